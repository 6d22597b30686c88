import assert from "node:assert/strict";
import { test } from "node:test";
import { Connection } from "../dist/transports/connection.js";

const PING = Buffer.from("*1\r\n$4\r\nPING\r\n");

/** A connection with a call under way, and the events of its pipe. */
async function called() {
  const pipe = { destroyed: false };
  let events = /** @type {any} */ (undefined);
  const connection = new Connection((given) => {
    events = given;
    return { write: () => {}, destroy: () => (pipe.destroyed = true) };
  });
  const replies = connection.send(PING, 1, 0);
  await Promise.resolve();
  return { connection, replies, pipe, received: (text) => events.received(Buffer.from(text)) };
}

for (const [name, text] of [
  ["another protocol", "HTTP/1.1 400 Bad Request\r\n"],
  ["a list that is longer than any", "*5000000000\r\n"],
  ["lists in lists without an end", "*1\r\n".repeat(200_000)],
]) {
  test(`${name} ends the connection, not the process`, async () => {
    const { connection, replies, pipe, received } = await called();
    received(text);
    await assert.rejects(replies, { sent: "maybe", message: /does not speak RESP/ });
    assert.equal(connection.isOpen, false);
    assert.equal(pipe.destroyed, true);
    // What is on its way still is not looked at.
    received("+OK\r\n");
  });
}

test("a reply that nobody asked for ends the connection", async () => {
  const { connection, replies, received } = await called();
  received("+PONG\r\n+PONG\r\n");
  assert.equal(String(await replies), "PONG");
  assert.equal(connection.isOpen, false);
});

test("replies may be cut anywhere", async () => {
  const text = "*4\r\n$7\r\nhel\r\nlo\r\n:-9223372036854775808\r\n$-1\r\n*1\r\n+OK\r\n";
  for (let at = 1; at < text.length; at++) {
    const { replies, received } = await called();
    received(text.slice(0, at));
    received(text.slice(at));
    const [[bulk, integer, nothing, list]] = /** @type {any} */ (await replies);
    assert.deepEqual([String(bulk), integer, nothing, String(list)], ["hel\r\nlo", -(2n ** 63n), null, "OK"]);
  }
});
