import assert from "node:assert/strict";
import { once } from "node:events";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "tallylock";
import { connect as connectInMemory } from "tallylock/memory";
import { startProxy } from "./support/proxy.js";
import { SERVERS, startServer } from "./support/servers.js";

/** Short, for what ends with it; long enough for a step on a slow machine. */
const TTL = { ttlMs: 1_500 };
/** With time for a renewal that is not answered. */
const SILENT = { ttlMs: 3_000 };
/** Long enough for several tries on a slow machine. */
const CALM = { ttlMs: 5_000 };
const LONG = { ttlMs: 60_000 };
/** How late a timer may be on a slow machine, in milliseconds; less than what a call may take. */
const LATE = 20_000;
const PATIENT = { timeoutMs: 60_000 };

const EXPIRED = { code: "lost", reason: "expired" };
const TAKEN = { code: "lost", reason: "taken_over" };
const UNREACHABLE = { code: "lost", reason: "unreachable" };

/** The error of a lease's loss. */
async function lossOf({ signal }) {
  if (!signal.aborted) {
    await once(signal, "abort");
  }
  return signal.reason;
}

const assertLost = (error, expected) =>
  assert.deepEqual({ code: error.code, reason: error.reason }, expected, error.message);

/** Blocks the event loop. */
const block = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

for (const name of SERVERS) {
  describe(`a lease on ${name}`, () => {
    let server;
    let proxy;
    let client;
    before(async () => {
      server = await startServer(name);
      proxy = await startProxy(server.port);
      client = await connect({ url: proxy.url, ...PATIENT });
      // So that the server knows the scripts.
      const lease = await client.lock("l", LONG).acquire();
      await lease.extend();
      await lease.release();
    });
    afterEach(async () => {
      await proxy.tell("go");
      await server.other.del("l");
    });
    after(async () => {
      await client.close();
      proxy.stop();
      await server.stop();
    });

    const isFree = async () => (await server.other.exists("l")) === 0;

    test("outlives its TTL and ends with its release", async () => {
      const lease = await client.lock("l", CALM).acquire();
      await sleep(CALM.ttlMs * 1.5);
      assert.equal(lease.signal.aborted, false);
      assert.ok(lease.remainingMs() > 0);
      await lease.verify(0);
      await lease.release();
      assert.ok(await isFree());
      assert.equal(lease.isValid(), false);
      assert.equal(lease.signal.aborted, false, "what was released is not lost");
    });

    test("is told at its deadline that the server is silent", async () => {
      const lease = await client.lock("l", SILENT).acquire();
      await proxy.tell("hold");
      const deadline = performance.now() + lease.remainingMs();
      assertLost(await lossOf(lease), UNREACHABLE);
      const late = performance.now() - deadline;
      assert.ok(-2 < late && late < LATE, `${late} ms late`);
      const begun = performance.now();
      await assert.rejects(lease.release(), UNREACHABLE);
      assert.ok(performance.now() - begun < LATE, "nobody is waited for");
    });

    test("that was lost leaves no key once the server is back", async () => {
      const lease = await client.lock("l", SILENT).acquire();
      const token = await server.other.get("l");
      await proxy.tell("hold");
      await lossOf(lease);
      // Some of the held renewals were executed: it may be there for a TTL yet, and here for longer.
      await server.other.set("l", token, "PX", 60_000);
      await proxy.tell("go");
      await assert.rejects(lease.release(), UNREACHABLE);
      await (await client.lock("l", TTL).acquire({ waitMs: 20_000 })).release();
    });

    test("is not ended by lost replies and lost connections", async () => {
      const lease = await client.lock("l", CALM).acquire();
      for (const lost of [1, 2]) {
        await proxy.tell("lose-matching EVAL");
        await proxy.tell(`await-lost ${lost}`);
      }
      await proxy.tell("cut");
      await sleep(CALM.ttlMs * 1.5);
      assert.equal(lease.signal.aborted, false);
      await lease.release();
      assert.ok(await isFree());
    });

    test("is told of another owner at the next renewal", async () => {
      const lease = await client.lock("l", { ...LONG, renewEveryMs: 500 }).acquire();
      await server.other.set("l", "another", "PX", 60_000);
      const begun = performance.now();
      assertLost(await lossOf(lease), TAKEN);
      assert.ok(performance.now() - begun < LONG.ttlMs, "before the deadline");
      await assert.rejects(lease.release(), TAKEN);
      assert.equal(await server.other.get("l"), "another");
    });

    test("tells the truth at once after the event loop was blocked", async () => {
      const lease = await client.lock("l", TTL).acquire();
      const { signal } = lease;
      block(TTL.ttlMs + 100);
      assert.equal(lease.isValid(), false);
      assert.throws(() => lease.ensure(0), EXPIRED);
      assert.equal(signal.aborted, true, "who asked has been told");
      const other = await client.lock("l", TTL).acquire({ waitMs: 20_000 });
      const loss = lossOf(other);
      block(TTL.ttlMs + 100);
      assertLost(await loss, EXPIRED);
    });

    test("is released after the renewal under way", async () => {
      const lease = await client.lock("l", { ...LONG, renewEveryMs: 50 }).acquire();
      await proxy.tell("hold-matching EVAL");
      await proxy.tell("await-held 1");
      let isReleased = false;
      const releasing = lease.release().then(() => (isReleased = true));
      assert.equal(lease.isValid(), false);
      // Two round trips of others: what had been sent before is there by then.
      await proxy.tell("stats");
      assert.equal(await isFree(), false, "it has not been sent");
      assert.equal(isReleased, false);
      await proxy.tell("go");
      await releasing;
      assert.ok(await isFree());
      assert.equal(lease.signal.aborted, false);
    });

    test("is released at any moment of its renewals without a loss or a key", async () => {
      const lock = client.lock("l", { ...LONG, renewEveryMs: 1 });
      for (let round = 0; round < 100; round++) {
        const lease = await lock.acquire();
        for (let turn = 0; turn < round % 25; turn++) {
          await new Promise(setImmediate);
        }
        assert.equal(lease.signal.aborted, false);
        await lease.release();
        assert.ok(await isFree());
      }
    });

    test("is lost by who hangs", async () => {
      // It is renewed once at the beginning: no answer is still to come at the end.
      const hold = { renewEveryMs: TTL.ttlMs / 6, maxHoldMs: TTL.ttlMs / 4 };
      const lease = await client.lock("l", { ...TTL, ...hold }).acquire();
      const begun = performance.now();
      assertLost(await lossOf(lease), EXPIRED);
      const held = performance.now() - begun;
      assert.ok(TTL.ttlMs <= held && held < 2 * TTL.ttlMs + LATE, `${held} ms`);
    });

    test("ends with its TTL where it is not renewed, and sends nothing", async () => {
      const lease = await client.lock("l", { ...TTL, renewEveryMs: false }).acquire();
      const { stats } = await proxy.tell("stats");
      assertLost(await lossOf(lease), EXPIRED);
      assert.deepEqual((await proxy.tell("stats")).stats.requests, stats.requests);
    });

    test("of a client that is closed is renewed no more, and its end is told", async () => {
      const closed = await connect({ url: server.url, ...PATIENT });
      const lease = await closed.lock("l", TTL).acquire();
      await closed.close();
      assertLost(await lossOf(lease), EXPIRED);
    });

    test("is asked for at the server", async () => {
      const lease = await client.lock("l", { ...LONG, renewEveryMs: false }).acquire();
      await lease.verify();
      await lease.verify(50_000);
      await assert.rejects(lease.verify(59_999), EXPIRED);
      assert.equal(lease.isValid(), true, "too little is left for that margin, but it is ours");
      await assert.rejects(lease.verify(-1), { code: "invalid_argument", key: "l" });
      await server.other.set("l", "another", "PX", 60_000);
      await assert.rejects(lease.verify(), TAKEN);
      assertLost(await lossOf(lease), TAKEN);
    });

    test("changes hands", async () => {
      const taker = await connect({ url: server.url, ...PATIENT });
      const lease = await client.lock("l", CALM).acquire();
      const other = taker.lock("l", CALM);
      await assert.rejects(other.adopt("no token"), { code: "invalid_argument", key: "l" });
      const token = await lease.transfer();
      const adopted = await other.adopt(token);
      assert.equal(adopted.fence, lease.fence);
      await lease.release();
      await assert.rejects(lease.extend(), EXPIRED);
      await assert.rejects(other.adopt(token), { code: "already_held" });
      await sleep(CALM.ttlMs * 1.3);
      assert.equal(adopted.signal.aborted, false, "the taker renews it");
      assert.equal(lease.signal.aborted, false, "what was given away is not lost");
      await adopted.release();
      assert.ok(await isFree());
      await assert.rejects(other.adopt(token), EXPIRED);
      await taker.close();
    });

    test("keeps its handle from waiting for itself", async () => {
      const lock = client.lock("l", LONG);
      const lease = await lock.acquire();
      await assert.rejects(lock.acquire({ waitMs: 60_000 }), { code: "already_held", applied: "no", key: "l" });
      await assert.rejects(client.lock("l", LONG).acquire(), { code: "busy" });
      await lease.release();
      await (await lock.acquire()).release();
      // One that was lost holds nobody back.
      const lost = await lock.acquire();
      await server.other.del("l");
      await assert.rejects(lost.extend(), EXPIRED);
      await (await lock.acquire()).release();
    });
  });
}

test("what passes in memory is a pause", async () => {
  const client = await connectInMemory();
  const lease = await client.lock("l", LONG).acquire();
  const { signal } = lease;
  client.memory.advance(30_000);
  assert.ok(lease.remainingMs() < 30_000, "nothing is renewed in it");
  assert.equal(signal.aborted, false);
  client.memory.advance(29_398);
  assert.equal(signal.aborted, true, "told at the deadline, without having been asked");
  assertLost(signal.reason, EXPIRED);
});

test("the clock in memory does not run for the sake of a lease", async () => {
  const client = await connectInMemory();
  const lease = await client.lock("l", LONG).acquire();
  await sleep(20);
  assert.ok(lease.remainingMs() > 59_000);
  // It does for the sake of who waits.
  const next = await client.lock("l", LONG).acquire({ waitMs: 120_000 });
  assert.ok(next.fence > lease.fence);
  assertLost(await lossOf(lease), EXPIRED);
});

test("times that leave no second try are refused", async () => {
  const client = await connectInMemory();
  const refused = (options) =>
    assert.throws(() => client.lock("l", { ...LONG, ...options }), { code: "invalid_argument" });
  for (const renewEveryMs of [30_001, 0, -1, Number.NaN, /** @type {any} */ ("1s"), /** @type {any} */ (null), true]) {
    refused({ renewEveryMs });
  }
  for (const maxHoldMs of [0, Number.NaN, /** @type {any} */ (false)]) {
    refused({ maxHoldMs });
  }
  client.lock("l", { ...LONG, renewEveryMs: 30_000, maxHoldMs: 1 });
});

describe("using", () => {
  /** The work fails after it has lost the lock. */
  const losing = (client, thrown) =>
    client.lock("l", LONG).using((lease) => {
      client.memory.advance(61_000);
      throw thrown ?? lease.signal.reason;
    });

  test("keeps the error of a release that failed as the cause of that of the work", async () => {
    const client = await connectInMemory();
    const thrown = new RangeError("the work's own");
    await assert.rejects(losing(client, thrown), (error) => error === thrown);
    assertLost(thrown.cause, EXPIRED);
  });

  test("leaves the causes that there are", async () => {
    const client = await connectInMemory();
    const thrown = new RangeError("the work's own", { cause: "mine" });
    await assert.rejects(losing(client, thrown), (error) => error === thrown && thrown.cause === "mine");
    const frozen = Object.freeze(new RangeError("frozen"));
    await assert.rejects(losing(client, frozen), (error) => error === frozen);
    await assert.rejects(losing(client, "a text"), (error) => error === "a text");
  });

  test("throws the loss itself as it is", async () => {
    const client = await connectInMemory();
    await assert.rejects(losing(client), (/** @type {any} */ error) => {
      assertLost(error, EXPIRED);
      return error.cause === undefined;
    });
  });
});
