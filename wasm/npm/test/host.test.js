import assert from "node:assert/strict";
import { test } from "node:test";
import { RuntimeHost } from "../dist/host.js";

const PING = Buffer.from("*1\r\n$4\r\nPING\r\n");

test("a fault of the core ends every call that is under way with that fault", async () => {
  const host = new RuntimeHost();
  const fault = new Error("unreachable");
  const core = /** @type {any} */ ({
    answered: () => {
      throw fault;
    },
  });
  host.connect([{ send: async () => ["PONG"] }], core);
  const calls = [host.promise(1), host.promise(2)];
  host.send(1, 0, 1, 1, PING);
  for (const call of calls) {
    await assert.rejects(call, (error) => error === fault);
  }
  // What is under way still finds nobody, and what is settled stays so.
  host.resolve(1, "late");
  host.reject(3, "nobody");
});

test("what a transport gives that is no reply is a lost one", async () => {
  for (const given of [7, [undefined], [2 ** 53], [2n ** 63n], [{}]]) {
    const host = new RuntimeHost();
    const told = new Promise((resolve) => {
      const core = /** @type {any} */ ({ undelivered: (...what) => resolve(what) });
      host.connect([{ send: async () => /** @type {any} */ (given) }], core);
    });
    host.send(5, 0, 1, 1, PING);
    const [call, sent, message] = await told;
    assert.deepEqual([call, sent], [5, "maybe"]);
    assert.match(message, /no reply/);
  }
});
