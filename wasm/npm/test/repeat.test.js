import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { connect } from "tallylock";
import { startProxy } from "./support/proxy.js";
import { SERVERS, startServer } from "./support/servers.js";

const TTL = { ttlMs: 60_000 };
/** Only what the proxy does is to go wrong, and not what a busy machine does. */
const PATIENT = { timeoutMs: 60_000 };

let names = 0;
const fresh = () => `name-${names++}`;
/** A claim that has taken what is there. */
const claimed = async (client) => {
  const id = fresh();
  await client.counter("k", TTL).claim(id);
  return id;
};

/**
 * Each verb: what comes before the call, the call, and how it ends when its reply is lost.
 *
 * @type {{ verb: string, before?: Function, call: Function, unknown?: boolean, gives?: unknown, left: string | null }[]}
 */
const VERBS = [
  { verb: "add", call: (c) => c.counter("k", TTL).add(5), unknown: true, left: "15" },
  {
    verb: "add with an idempotency key",
    call: (c) => c.counter("k", TTL).add(5, { idempotencyKey: fresh() }),
    gives: { total: 15n, applied: false },
    left: "15",
  },
  {
    verb: "claim",
    call: (c) => c.counter("k", TTL).claim(fresh()),
    gives: { amount: 10n, state: "open" },
    left: "0",
  },
  {
    verb: "commit",
    before: claimed,
    call: (c, id) => c.counter("k", TTL).commit(id, 10),
    gives: undefined,
    left: "0",
  },
  { verb: "abort", before: claimed, call: (c, id) => c.counter("k", TTL).abort(id), gives: 10n, left: "10" },
  { verb: "read", call: (c) => c.counter("k", TTL).read(), gives: 10n, left: "10" },
  { verb: "drain", call: (c) => c.counter("k", TTL).drain(), unknown: true, left: "0" },
  { verb: "finish", call: (c) => c.counter("k", TTL).finish(), unknown: true, left: null },
  { verb: "get", call: async (c) => Buffer.from(await c.value("k").get()).toString(), gives: "10", left: "10" },
  { verb: "replaceIfPresent", call: (c) => c.value("k").replaceIfPresent("x", TTL), unknown: true, left: "x" },
  { verb: "touch", call: (c) => c.value("k").touch(TTL), gives: true, left: "10" },
  {
    verb: "guarded set",
    call: (c) => c.guarded("k").set("x", { fence: 7n, ...TTL }),
    unknown: true,
    left: "x",
  },
  { verb: "guarded delete", call: (c) => c.guarded("k").delete({ fence: 7n }), unknown: true, left: null },
  { verb: "compareAndSet", call: (c) => c.value("k").compareAndSet("10", "x", TTL), unknown: true, left: "x" },
];

for (const name of SERVERS) {
  describe(`a lost reply on ${name}`, () => {
    let server;
    let proxy;
    let client;
    before(async () => {
      server = await startServer(name);
      proxy = await startProxy(server.port);
      client = await connect({ url: proxy.url, ...PATIENT });
      // So that the server knows the scripts, and the request whose reply is lost is the one that counts.
      for (const { before: prepare, call } of VERBS) {
        await server.other.set("k", "10", "PX", 60_000);
        await call(client, await prepare?.(client));
      }
      const lease = await client.lock("warm", TTL).acquire();
      await lease.extend();
      // Nothing is renewed later, when the next request is to be lost.
      await lease.release();
    });
    after(async () => {
      await client.close();
      proxy.stop();
      await server.stop();
    });

    for (const { verb, before: prepare, call, unknown, gives, left } of VERBS) {
      test(`${verb} is ${unknown ? "not " : ""}repeated`, async () => {
        await server.other.set("k", "10", "PX", 60_000);
        const given = await prepare?.(client);
        const { stats } = await proxy.tell("stats");
        await proxy.tell("lose 1");
        if (unknown) {
          await assert.rejects(call(client, given), { code: "outcome_unknown", applied: "maybe", key: "k" });
        } else {
          assert.deepEqual(await call(client, given), gives);
        }
        assert.equal(await server.other.get("k"), left);
        const later = (await proxy.tell("stats")).stats;
        assert.equal(later.lost, stats.lost + 1);
        assert.equal(evalshas(later) - evalshas(stats), unknown ? 1 : 2);
      });

      test(`${verb} is sent again if it did not arrive`, async () => {
        await server.other.set("k", "10", "PX", 60_000);
        const given = await prepare?.(client);
        await proxy.tell("cut");
        await call(client, given);
        assert.equal(await server.other.get("k"), left);
      });
    }

    test("of a batch only what counts once is repeated", async () => {
      await server.other.set("k", "10", "PX", 60_000);
      const counter = client.counter("k", TTL);
      // The reply to the last: once it is there, the server has executed all.
      await proxy.tell("lose 2");
      const results = await client.addMany([counter.entry(1), counter.entry(20, { idempotencyKey: fresh() })]);
      assert.equal(/** @type {any} */ (results[0]).code, "outcome_unknown");
      assert.deepEqual(results[1], { total: 31n, applied: false });
      assert.equal(await server.other.get("k"), "31");
    });

    test("a scan whose reply is lost is repeated", async () => {
      await server.other.flushdb();
      await server.other.set("k", "10", "PX", 60_000);
      await proxy.tell("lose 1");
      const found = [];
      for await (const { key, total } of client.scan("k")) {
        found.push([Buffer.from(key).toString(), total]);
      }
      assert.deepEqual(found, [["k", 10n]]);
    });

    test("acquire finds its own lock", async () => {
      await proxy.tell("lose 1");
      const lease = await client.lock("own", TTL).acquire();
      assert.ok(lease.isValid());
      assert.match(await server.other.get("own"), /^[0-9a-f]{32}\./);
      await lease.release();
    });

    test("a connection that is lost while it opens is opened again", async () => {
      const { stats } = await proxy.tell("stats");
      await proxy.tell("cut");
      await proxy.tell("lose-matching SETNAME");
      const lease = await client.lock("opened", TTL).acquire();
      await lease.release();
      assert.equal((await proxy.tell("stats")).stats.lost, stats.lost + 1);
    });

    test("extend is repeated", async () => {
      const lease = await client.lock("extended", { ttlMs: 5_000 }).acquire();
      await proxy.tell("lose 1");
      await lease.extend(TTL);
      assert.ok(lease.remainingMs() > 50_000);
      assert.ok((await server.other.pttl("extended")) > 50_000);
      await lease.release();
    });

    test("release is repeated, and finding nothing is a success", async () => {
      const lease = await client.lock("released", TTL).acquire();
      await proxy.tell("lose 1");
      await lease.release();
      assert.equal(await server.other.exists("released"), 0);
      await lease.release();
    });

    test("calls that overlap each get their own answer when the connection is cut", async () => {
      await server.other.flushdb();
      const counters = Array.from({ length: 50 }, (_, n) => client.counter(`many:${n}`, TTL));
      await Promise.all(counters.map((counter, n) => counter.add(n)));
      await proxy.tell("lose 20");
      const outcomes = await Promise.allSettled(counters.map((counter, n) => counter.add(n)));
      for (const [n, outcome] of outcomes.entries()) {
        const total = BigInt(await server.other.get(`many:${n}`));
        if (outcome.status === "fulfilled") {
          assert.equal(outcome.value, total);
          assert.equal(total, BigInt(2 * n));
        } else {
          assert.equal(outcome.reason.code, "outcome_unknown");
          assert.ok(total === BigInt(n) || total === BigInt(2 * n), `${total} for ${n}`);
        }
      }
      assert.ok(outcomes.some(({ status }) => status === "rejected"));
    });
  });
}

const evalshas = ({ requests }) => requests.evalsha ?? requests.EVALSHA ?? 0;
