import assert from "node:assert/strict";
import { test } from "node:test";
import { Connection } from "../dist/transports/connection.js";

const text = (reply) => Buffer.from(reply).toString();
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
  ["a length that is none", "$1x\r\n"],
  ["a line without an end", `+${"x".repeat(70_000)}`],
  ["a line that ends in half", "+OK\rno"],
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
  assert.deepEqual((await replies).map(text), ["PONG"]);
  assert.equal(connection.isOpen, false);
});

test("replies may be cut anywhere", async () => {
  const sent = "*5\r\n$7\r\nhel\r\nlo\r\n:-9223372036854775808\r\n$-1\r\n*2\r\n+OK\r\n*0\r\n*-1\r\n";
  for (let first = 1; first < sent.length; first++) {
    for (const second of [first, first + 1, sent.length - 1].filter((at) => at < sent.length)) {
      const { replies, received } = await called();
      received(sent.slice(0, first));
      received(sent.slice(first, second));
      received(sent.slice(second));
      const [[bulk, integer, nothing, [status, empty], gone]] = /** @type {any} */ (await replies);
      assert.deepEqual(
        [text(bulk), integer, nothing, text(status), empty, gone],
        ["hel\r\nlo", -(2n ** 63n), null, "OK", [], null],
      );
    }
  }
});

test("replies to several calls may come at once and in any pieces", async () => {
  const { connection, replies, received } = await called();
  const second = connection.send(Buffer.concat([PING, PING]), 2, 1);
  const third = connection.send(PING, 1, 2);
  await Promise.resolve();
  const long = "x".repeat(100_000);
  received("+one\r\n+two\r\n-ERR thr");
  received(`ee\r\n$${long.length}\r\n${long.slice(1)}`);
  received("x\r\n");
  assert.deepEqual((await replies).map(text), ["one"]);
  const [two, three] = await second;
  assert.deepEqual([text(two), /** @type {any} */ (three).message], ["two", "ERR three"]);
  assert.deepEqual((await third).map(text), [long]);
});
