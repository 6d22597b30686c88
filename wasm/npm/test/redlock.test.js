// Locks over five real servers of two kinds, of which some hang, are away, or lose what they knew.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { connect, fromIoredis, fromNodeRedis } from "tallylock";
import { connectRedlock } from "tallylock/redlock";
import { heldOn, onEach, startFleet, untilHeldOn } from "./support/fleet.js";
import { startProxy } from "./support/proxy.js";

const TTL = { ttlMs: 60_000 };
/** Short enough to be outlived in a test, long enough for a busy machine. */
const SHORT = { ttlMs: 4_000 };
const WAIT = { waitMs: 20_000 };
/** Nothing is given up: what a hung server is sent is in the order in which it was meant. */
const PATIENT = { timeoutMs: 60_000 };
/** For tests in which no server hangs: nobody is missing because the machine is busy. */
const WITH_ALL = { timeoutMs: 60_000, nodeTimeoutMs: 20_000 };

describe("over five servers", () => {
  let servers;
  let urls;
  /** What a test has opened. */
  let opened = [];
  before(async () => {
    servers = await startFleet();
    urls = servers.map(({ url }) => url);
  });
  afterEach(async () => {
    for (const server of servers) {
      server.resume();
    }
    await Promise.all(opened.map((client) => client.close()));
    opened = [];
    await Promise.all(servers.map(({ other }) => other.flushall()));
  });
  after(() => Promise.all(servers.map((server) => server.stop())));

  const open = async (options) => {
    const redlock = await connectRedlock({ urls, ...options });
    opened.push(redlock);
    return redlock;
  };
  /** A client that is connected to all servers, and not just to more than half. */
  const openToAll = async (options = PATIENT) => {
    const redlock = await open(options);
    const lease = await redlock.lock("l", TTL).acquire(WAIT);
    await untilHeldOn(servers, "l", 5);
    await lease.release();
    await untilHeldOn(servers, "l", 0);
    return redlock;
  };
  const pause = (...places) => {
    for (const place of places) {
      servers[place].pause();
    }
  };
  const resume = (...places) => {
    for (const place of places) {
      servers[place].resume();
    }
  };

  test("each who waits asks for itself, also behind one who waits longer", async () => {
    const redlock = await open(WITH_ALL);
    const held = await redlock.lock("l", TTL).acquire(WAIT);
    const longer = redlock.lock("l", TTL).acquire({ waitMs: 60_000 });
    await assert.rejects(redlock.lock("l", TTL).acquire({ waitMs: 5_000 }), { code: "busy" });
    await held.release();
    await (await longer).release();
  });

  test("two hung servers delay nothing but the release", async () => {
    const redlock = await openToAll();
    const lock = redlock.lock("l", TTL);
    pause(1, 3);
    let last = 0n;
    for (let round = 0; round < 3; round++) {
      const lease = await lock.acquire(WAIT);
      assert.ok(lease.fence > last);
      last = lease.fence;
      await lease.extend();
      await lease.verify(30_000);
      assert.ok(lease.remainingMs() > 50_000, "it took less than the time-out of a call");
      await lease.release();
    }
    resume(1, 3);
    await untilHeldOn(servers, "l", 0);
  });

  test("three hung servers are told with their number and leave nothing", async () => {
    const redlock = await openToAll({ timeoutMs: 5_000 });
    const lock = redlock.lock("l", TTL);
    const lease = await lock.acquire(WAIT);
    await untilHeldOn(servers, "l", 5);
    pause(0, 1, 2);
    await assert.rejects(lease.extend(), {
      code: "outcome_unknown",
      message: /extended on 2, unreachable 3 of 5 nodes/,
    });
    await assert.rejects(lease.release(), /unreachable 3 of 5 nodes/);
    const begun = performance.now();
    await assert.rejects(lock.acquire({ waitMs: 1_000 }), (/** @type {any} */ error) => {
      assert.ok(["timeout", "unavailable"].includes(error.code), error.code);
      assert.match(error.message, /unreachable 3 of 5 nodes/);
      return true;
    });
    assert.ok(performance.now() - begun < 3_000, "no later than the wait");
    resume(0, 1, 2);
    // What the hung ones could not be told the holder says again.
    await lease.release();
    await untilHeldOn(servers, "l", 0);
    await (await lock.acquire(WAIT)).release();
  });

  test("a minority that is away at the beginning is used once it is there", async () => {
    pause(4);
    const redlock = await open({ timeoutMs: 4_000 });
    const lock = redlock.lock("l", TTL);
    await (await lock.acquire(WAIT)).release();
    resume(4);
    pause(0);
    for (let patience = 0; (await servers[4].other.exists("l")) === 0; patience++) {
      assert.ok(patience < 100, "it is never used");
      const lease = await lock.acquire(WAIT);
      if (await servers[4].other.exists("l")) {
        break;
      }
      await lease.release();
      await sleep(50);
    }
    resume(0);
    pause(1, 2, 3);
    await assert.rejects(connectRedlock({ urls, timeoutMs: 500 }), {
      code: "unavailable",
      message: /unreachable 3 of 5 nodes/,
    });
  });

  test("one holder at a time while the votes are split", async () => {
    pause(1);
    const counted = await connect({ url: urls[0], timeoutMs: 30_000 });
    opened.push(counted);
    const inside = counted.counter("inside", TTL);
    const work = async () => {
      const lock = (await open()).lock("l", TTL);
      for (let round = 0; round < 3; round++) {
        const before = await lock.using({ waitMs: 60_000 }, async () => {
          const entered = await inside.add(1);
          await inside.add(-1);
          return entered;
        });
        assert.equal(before, 1n, "nobody else is inside");
      }
    };
    await Promise.all([1, 2, 3, 4].map(work));
    // What the hung one may execute yet, of acquires whose release it was never sent, is nobody's concern.
    await untilHeldOn([...servers.slice(0, 1), ...servers.slice(2)], "l", 0);
  });

  test("an acquire that is aborted at any point leaves nothing on any server", async () => {
    const redlock = await openToAll();
    let cancelled = 0;
    for (let round = 0; round < 100; round++) {
      const controller = new AbortController();
      const acquired = redlock
        .lock("l", TTL)
        .acquire({ waitMs: 30_000, signal: controller.signal })
        .catch((error) => assert.equal(error.code, "cancelled") ?? undefined);
      for (let turn = 0; turn < round % 10; turn++) {
        await (round % 3 === 0 ? Promise.resolve() : new Promise(setImmediate));
      }
      controller.abort();
      const lease = await acquired;
      cancelled += lease === undefined ? 1 : 0;
      await lease?.release();
      await (await redlock.lock("l", TTL).acquire(WAIT)).release();
    }
    assert.ok(cancelled > 0, "nothing was cancelled");
    await untilHeldOn(servers, "l", 0);
  });

  test("replies that more than half lose are asked for again", async (t) => {
    const proxies = await Promise.all(servers.map(({ port }) => startProxy(port)));
    t.after(() => proxies.forEach((proxy) => void proxy.stop()));
    const three = proxies.slice(0, 3);
    const redlock = await openToAll({ ...WITH_ALL, urls: proxies.map(({ url }) => url) });
    const arm = () => Promise.all(three.map((proxy) => proxy.tell("lose-matching EVAL")));
    const lost = (each) => Promise.all(three.map((proxy) => proxy.tell(`await-lost ${each}`)));
    await arm();
    const lease = await redlock.lock("l", TTL).acquire(WAIT);
    await lost(1);
    await untilHeldOn(servers, "l", 5);
    await arm();
    await lease.extend({ ttlMs: 120_000 });
    await lost(2);
    assert.ok(lease.remainingMs() > 90_000);
    await arm();
    await lease.release();
    await lost(3);
    await untilHeldOn(servers, "l", 0);
  });

  test("a minority that another holds keeps nobody out", async () => {
    const redlock = await openToAll(WITH_ALL);
    const lock = redlock.lock("l", TTL);
    const taken = (place) => servers[place].other.set("l", "another", "PX", 60_000);
    await Promise.all([taken(0), taken(1)]);
    const lease = await lock.acquire(WAIT);
    await lease.extend();
    await lease.verify(30_000);
    await taken(2);
    const lost = { code: "lost", reason: "taken_over", message: /held by another on 3 of 5 nodes/ };
    await assert.rejects(lease.verify(), lost);
    assert.equal(lease.signal.aborted, true);
    await assert.rejects(lock.acquire(), { code: "busy", message: /held by another on 3/ });
    await assert.rejects(lease.release(), { code: "lost", reason: "taken_over" });
    await untilHeldOn(servers.slice(3), "l", 0);
    assert.deepEqual(await onEach(servers.slice(0, 3), "l"), ["another", "another", "another"]);
  });

  test("a lease outlives its TTL while a server hangs and another has lost it", async () => {
    const redlock = await openToAll();
    const lease = await redlock.lock("l", SHORT).acquire(WAIT);
    await untilHeldOn(servers, "l", 5);
    pause(1);
    await servers[3].other.flushall();
    await sleep(2 * SHORT.ttlMs);
    assert.equal(lease.signal.aborted, false);
    await lease.verify(SHORT.ttlMs / 4);
    await lease.release();
    resume(1);
    await untilHeldOn(servers, "l", 0);
  });

  test("a silent majority is told at the deadline", async () => {
    const redlock = await openToAll();
    const lease = await redlock.lock("l", SHORT).acquire(WAIT);
    pause(0, 1, 2);
    if (!lease.signal.aborted) {
      await once(lease.signal, "abort");
    }
    const { code, reason, message } = lease.signal.reason;
    assert.deepEqual([code, reason], ["lost", "unreachable"]);
    assert.match(message, /unreachable 3 of 5 nodes/);
    assert.equal(lease.remainingMs(), 0);
    await assert.rejects(lease.release(), { code: "lost", reason: "unreachable" });
    resume(0, 1, 2);
    await untilHeldOn(servers, "l", 0);
  });

  test("a majority that lost it is told at the next renewal", async () => {
    const redlock = await openToAll();
    const lease = await redlock.lock("l", { ttlMs: 15_000, renewEveryMs: 500 }).acquire(WAIT);
    await untilHeldOn(servers, "l", 5);
    await Promise.all(servers.slice(0, 3).map(({ other }) => other.flushall()));
    if (!lease.signal.aborted) {
      await once(lease.signal, "abort");
    }
    assert.equal(lease.signal.reason.reason, "expired");
    assert.match(lease.signal.reason.message, /gone from 3/);
    await assert.rejects(lease.release(), { code: "lost" });
    await untilHeldOn(servers, "l", 0);
  });

  test("a lease changes hands while a minority is away", async () => {
    const [giver, taker] = [await openToAll(), await openToAll()];
    const lease = await giver.lock("l", TTL).acquire(WAIT);
    await untilHeldOn(servers, "l", 5);
    const token = await lease.transfer();
    pause(0, 1);
    const lock = taker.lock("l", TTL);
    const adopted = await lock.adopt(token);
    assert.equal(adopted.fence, lease.fence);
    await adopted.verify(30_000);
    resume(0, 1);
    await adopted.release();
    await untilHeldOn(servers, "l", 0);
    await assert.rejects(lock.adopt(token), { code: "lost", reason: "expired" });
  });

  test("a server that came back empty has it again if that was asked for", async () => {
    for (const rejoin of [true, false]) {
      const redlock = await openToAll({ ...WITH_ALL, rejoin });
      const lease = await redlock.lock("l", TTL).acquire(WAIT);
      await untilHeldOn(servers, "l", 5);
      await servers[3].other.flushall();
      await lease.extend();
      assert.equal(await heldOn(servers, "l"), rejoin ? 5 : 4);
      if (rejoin) {
        assert.ok(BigInt(await servers[3].other.get("l{l}:tlu1:fence")) >= lease.fence);
      }
      await lease.release();
      await untilHeldOn(servers, "l", 0);
    }
  });

  test("waiters of one client have it one after the other", async () => {
    const redlock = await openToAll(WITH_ALL);
    const order = [];
    const waits = (number) => redlock.lock("l", TTL).using(WAIT, () => void order.push(number));
    await Promise.all(Array.from({ length: 8 }, (_, number) => waits(number)));
    assert.equal(order.length, 8);
    await untilHeldOn(servers, "l", 0);
  });

  test("over clients that one has, of either kind", async (t) => {
    const theirs = servers.slice(0, 2).map(({ port }) => new Redis(port));
    const nodeRedis = createClient({ url: urls[2] });
    nodeRedis.on("error", () => undefined);
    await nodeRedis.connect();
    t.after(() => {
      for (const client of theirs) {
        client.disconnect();
      }
      nodeRedis.destroy();
    });
    const transports = [...theirs.map(fromIoredis), fromNodeRedis(nodeRedis)];
    // More than half of them are enough for a client: the last may be connected later.
    await Promise.all(transports.map((transport) => transport.open?.(60_000)));
    const redlock = await connectRedlock({ transports, owner: "biller-7", ...WITH_ALL });
    opened.push(redlock);
    const lease = await redlock.lock("l", TTL).acquire(WAIT);
    await untilHeldOn(servers.slice(0, 3), "l", 3);
    assert.match((await servers[0].other.get("l")) ?? "", /\.biller-7$/);
    await lease.release();
    await redlock.close();
    await untilHeldOn(servers, "l", 0);
  });

  test("a closed client renews nothing, tells the end and leaves its lock to the TTL", async () => {
    const redlock = await connectRedlock({ urls, ...PATIENT });
    const lock = redlock.lock("l", SHORT);
    const lease = await lock.acquire(WAIT);
    const waiting = redlock.lock("l", TTL).acquire({ waitMs: 60_000 });
    const ended = assert.rejects(waiting, { code: "closed" });
    await redlock.close();
    await ended;
    if (!lease.signal.aborted) {
      await once(lease.signal, "abort");
    }
    assert.equal(lease.signal.reason.reason, "expired");
    await assert.rejects(lock.acquire(), { code: "closed" });
    await untilHeldOn(servers, "l", 0);
  });

  test("closing waits for a server that hangs no longer than a call may take", async () => {
    const redlock = await openToAll({ timeoutMs: 1_500 });
    pause(2);
    await (await redlock.lock("l", TTL).acquire(WAIT)).release();
    const begun = performance.now();
    await redlock.close();
    assert.ok(performance.now() - begun < 10_000);
  });
});

test("what cannot be is refused before anything is sent", async () => {
  const a = "redis://:secret@127.0.0.1:1";
  const [b, c] = ["redis://127.0.0.1:2", "unix:///nowhere/a.sock"];
  const transport = { send: () => Promise.reject(new Error("nothing is sent")) };
  const given = [
    [undefined, /options/],
    [{}, /urls must be an array/],
    [{ urls: b }, /urls must be an array/],
    [{ urls: [] }, /not 0/],
    [{ urls: [b] }, /not 1/],
    [{ urls: [a, b] }, /not 2/],
    [{ urls: [a, b, c, "redis://c"] }, /not 4/],
    [{ urls: [a, b, "rediss://127.0.0.1:1/7"] }, /URLs 1 and 3/],
    [{ urls: ["redis://Host", b, "redis://host:6379"] }, /URLs 1 and 3/],
    [{ urls: [c, b, `${c}?db=1`] }, /URLs 1 and 3/],
    [{ urls: [a, b, undefined] }, /URL/],
    [{ urls: [a, b, "memory://"] }, /memory/],
    [{ urls: [a, b, c], nodeTimeoutMs: 0 }, /nodeTimeoutMs/],
    [{ urls: [a, b, c], nodeTimeoutMs: "50" }, /nodeTimeoutMs/],
    [{ urls: [a, b, c], timeoutMs: -1 }, /ttl|timeout/],
    [{ urls: [a, b, c], rejoin: "no" }, /rejoin/],
    [{ urls: [a, b, c], owner: "x".repeat(65) }, /64/],
    [{ transports: transport }, /transports must be an array/],
    [{ transports: [transport, undefined, { ...transport }] }, /send/],
    [{ transports: [transport, { ...transport }, transport] }, /transports 1 and 3/],
  ];
  for (const [options, words] of given) {
    await assert.rejects(connectRedlock(/** @type {any} */ (options)), (/** @type {any} */ error) => {
      assert.equal(error.code, "invalid_argument", error.message);
      assert.match(error.message, /** @type {RegExp} */ (words));
      assert.ok(!error.message.includes("secret"), error.message);
      return true;
    });
  }
});

test("a refused password is told, and servers that nobody can reach are counted", async (t) => {
  const locked = await startFleet(3);
  t.after(() => Promise.all(locked.map((server) => server.stop())));
  await Promise.all(locked.map(({ other }) => other.config("SET", "requirepass", "right")));
  const urls = locked.map(({ port }) => `redis://:wrong@127.0.0.1:${port}`);
  await assert.rejects(connectRedlock({ urls }), (/** @type {any} */ error) => {
    assert.equal(error.code, "forbidden");
    assert.ok(!error.message.includes("wrong"), error.message);
    return true;
  });
  const nobody = [1, 2, 3].map((port) => `redis://127.0.0.1:${port}`);
  await assert.rejects(connectRedlock({ urls: nobody }), {
    code: "unavailable",
    message: /unreachable [23] of 3 nodes/,
  });
});
