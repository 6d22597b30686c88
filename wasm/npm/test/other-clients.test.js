import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { createClient } from "redis";
import { connect, fromIoredis, fromNodeRedis } from "tallylock";
import { startProxy } from "./support/proxy.js";
import { startServer } from "./support/servers.js";

const TTL = { ttlMs: 60_000 };

/** Each client that a user may have: how to make it, give it to tallylock, and end it. */
const CLIENTS = [
  {
    name: "ioredis 6",
    make: (port) => new Redis(port, { retryStrategy: () => 20 }),
    from: fromIoredis,
    end: (client) => client.disconnect(),
  },
  {
    name: "ioredis 5",
    make: (port) => new Redis5(port, { retryStrategy: () => 20 }),
    from: fromIoredis,
    end: (client) => client.disconnect(),
  },
  {
    name: "ioredis 6 that sends nothing again or later",
    make: (port) =>
      new Redis(port, {
        retryStrategy: () => 20,
        autoResendUnfulfilledCommands: false,
        enableOfflineQueue: false,
      }),
    from: fromIoredis,
    end: (client) => client.disconnect(),
  },
  {
    name: "node-redis",
    make: (port) => createClient({ url: `redis://127.0.0.1:${port}`, socket: { reconnectStrategy: () => 20 } }),
    from: fromNodeRedis,
    end: (client) => client.destroy(),
  },
];

for (const { name, make, from, end } of CLIENTS) {
  describe(`over ${name}`, () => {
    let server;
    let proxy;
    let theirs;
    let client;
    before(async () => {
      server = await startServer();
      proxy = await startProxy(server.port);
      theirs = make(proxy.port);
      theirs.on("error", () => undefined);
      if (name === "node-redis") {
        await theirs.connect();
      }
      client = await connect({ transport: from(theirs) });
    });
    after(async () => {
      await client.close();
      end(theirs);
      proxy.stop();
      await server.stop();
    });

    test("integers are exact, and bytes stay bytes", async () => {
      const counter = client.counter("big", TTL);
      assert.equal(await counter.add(2n ** 62n + 1n), 2n ** 62n + 1n);
      assert.equal(await counter.drain(), 2n ** 62n + 1n);
      await server.other.set("bytes", Buffer.from("00ff80", "hex"), "PX", 60_000);
      assert.deepEqual(Buffer.from(await client.value("bytes").get()), Buffer.from("00ff80", "hex"));
      assert.equal(await client.value("absent").get(), null);
    });

    test("a batch and a scan", async () => {
      await server.other.flushdb();
      const [one, other] = [client.counter("batch:1", TTL), client.counter("batch:2", TTL)];
      await server.other.rpush("batch:list", "x");
      const results = await client.addMany([
        one.entry(2n ** 62n),
        client.counter("batch:list", TTL).entry(1),
        other.entry(5, { idempotencyKey: "evt-1" }),
        other.entry(5, { idempotencyKey: "evt-1" }),
      ]);
      assert.equal(/** @type {any} */ (results[1]).code, "wrong_type");
      assert.deepEqual(
        [results[0], ...results.slice(2)],
        [
          { total: 2n ** 62n, applied: true },
          { total: 5n, applied: true },
          { total: 5n, applied: false },
        ],
      );
      const found = new Map();
      for await (const { key, total, remainingMs } of client.scan("batch:*")) {
        found.set(Buffer.from(key).toString(), total);
        assert.ok(Number(remainingMs) > 50_000);
      }
      assert.deepEqual([...found].sort(), [
        ["batch:1", 2n ** 62n],
        ["batch:2", 5n],
      ]);
    });

    test("a server's refusal is an error of its kind", async () => {
      await server.other.rpush("list", "x");
      await assert.rejects(client.counter("list", TTL).add(1), { code: "wrong_type", applied: "no" });
      await server.other.script("FLUSH");
      assert.equal(await client.counter("again", TTL).add(1), 1n);
    });

    test("a lock", async () => {
      const lease = await client.lock("lock", TTL).acquire();
      await assert.rejects(client.lock("lock", TTL).acquire(), { code: "busy" });
      await lease.extend();
      await lease.release();
    });

    test("overlapping calls", async () => {
      const counter = client.counter("many", TTL);
      const totals = await Promise.all(Array.from({ length: 100 }, () => counter.add(1)));
      assert.deepEqual(
        totals,
        totals.map((_, n) => BigInt(n + 1)),
      );
    });

    test("an add whose reply is lost is never repeated", async () => {
      const counter = client.counter("lost", TTL);
      await counter.add(1);
      await proxy.tell("lose-matching lost");
      await assert.rejects(counter.add(1), { code: "outcome_unknown", applied: "maybe" });
      // Whatever the client would send again by itself is sent before this.
      assert.equal(await counter.add(1), 3n);
      assert.equal(await server.other.get("lost"), "3");
    });

    test("a read whose reply is lost is repeated", async () => {
      await server.other.set("read", "7", "PX", 60_000);
      const counter = client.counter("read", TTL);
      await counter.read();
      await proxy.tell("lose-matching read");
      assert.equal(await counter.read(), 7n);
    });

    test("while nobody can be reached nothing is kept to be sent later", async () => {
      const counter = client.counter("offline", TTL);
      await counter.add(1);
      await proxy.tell("refuse");
      await proxy.tell("cut");
      await assert.rejects(counter.add(1), (/** @type {any} */ error) =>
        ["unavailable", "outcome_unknown"].includes(error.code),
      );
      await proxy.tell("accept");
      assert.equal(await counter.add(1), 2n);
    });
  });
}

/** The errors of the clients for a command that they have not written and will not. */
class AbortError extends Error {}
const notWritten = new Error("Stream isn't writeable and enableOfflineQueue options is false");

/** Clients of nothing, whose commands end one after the other as is said. */
const PRETENDERS = [
  {
    name: "ioredis",
    notSent: () => Promise.reject(notWritten),
    transport: (ends) =>
      fromIoredis(
        /** @type {any} */ ({
          status: "ready",
          options: { autoResendUnfulfilledCommands: false, enableOfflineQueue: false },
          on: () => undefined,
          off: () => undefined,
          callBuffer: () => ends.shift()(),
        }),
      ),
  },
  {
    name: "node-redis",
    notSent: () => Promise.reject(new AbortError()),
    transport: (ends) =>
      fromNodeRedis(
        /** @type {any} */ ({
          isReady: true,
          isOpen: true,
          on: () => undefined,
          off: () => undefined,
          withTypeMapping: () => ({ sendCommand: () => ends.shift()() }),
        }),
      ),
  },
];

for (const { name, notSent, transport } of PRETENDERS) {
  test(`over ${name}, a batch that was sent in part is not sent again`, async () => {
    const ends = [];
    const client = await connect({ transport: transport(ends), timeoutMs: 30_000 });
    const counter = client.counter("k", TTL);
    const sent = () => Promise.resolve(Buffer.from("7"));
    const lost = () => Promise.reject(new Error("gone"));
    for (const [first, second] of [
      [sent, notSent],
      [notSent, lost],
    ]) {
      ends.push(first, second);
      for (const result of await client.addMany([counter.entry(1), counter.entry(1)])) {
        assert.equal(/** @type {any} */ (result).code, "outcome_unknown");
      }
    }
    ends.push(notSent, notSent, sent, sent);
    assert.deepEqual(await client.addMany([counter.entry(1), counter.entry(1)]), [
      { total: 7n, applied: true },
      { total: 7n, applied: true },
    ]);
    assert.deepEqual(ends, []);
    await client.close();
  });
}

test("a keyPrefix is refused", async (t) => {
  const server = await startServer();
  const theirs = new Redis(server.port, { keyPrefix: "app:" });
  t.after(async () => {
    theirs.disconnect();
    await server.stop();
  });
  await assert.rejects(connect({ transport: fromIoredis(theirs) }), (/** @type {any} */ error) => {
    assert.equal(error.code, "unsupported");
    assert.match(error.message, /keyPrefix/);
    return true;
  });
});
