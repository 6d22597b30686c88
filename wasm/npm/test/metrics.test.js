// What a client counts: exactly in memory, whose time is virtual, and on a real server what needs a renewal.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { connect as connectOver } from "tallylock";
import { connect } from "tallylock/memory";
import { connectRedlock } from "tallylock/redlock";
import { startFleet } from "./support/fleet.js";
import { startProxy } from "./support/proxy.js";
import { SERVERS, startServer } from "./support/servers.js";

const TTL = { ttlMs: 60_000 };
/** What is left of it for its holder, whose clock may be another by this much. */
const VALID = 60_000 - 602;

const NOTHING = {
  granted: 0,
  busy: 0,
  cancelled: 0,
  failed: 0,
  attempts: 0,
  waitedMs: 0,
  longestWaitMs: 0,
  adopted: 0,
  released: 0,
  transferred: 0,
  abandoned: 0,
  lost: { expired: 0, taken_over: 0, unreachable: 0 },
  heldMs: 0,
  longestHoldMs: 0,
  renewals: 0,
  failedRenewals: 0,
  smallestMarginMs: null,
  healed: 0,
};

/** The first numbers that are as wanted. */
async function until(client, isThere, meanwhile = () => {}) {
  for (;;) {
    const metrics = client.metrics();
    if (isThere(metrics)) {
      return metrics;
    }
    meanwhile();
    await sleep(5);
  }
}

test("each number but those of renewals comes about", async () => {
  const client = await connect();
  const { memory } = client;
  const lock = client.lock("l", TTL);
  const other = client.lock("l", TTL);
  assert.deepEqual(client.metrics(), NOTHING);

  const lease = await lock.acquire();
  memory.advance(2_000);
  await assert.rejects(other.acquire({ waitMs: 5_000 }), { code: "busy" });
  const denied = client.metrics();
  assert.ok(denied.attempts > 2, `${denied.attempts}`);
  await assert.rejects(lock.acquire(), { code: "already_held" });
  assert.deepEqual(client.metrics(), denied);
  memory.advance(3_000);
  await lease.release();
  await lease.release();

  const given = await lock.acquire();
  memory.advance(1_000);
  const adopted = await other.adopt(await given.transfer());
  memory.advance(120_000);
  assert.equal(adopted.isValid(), false);
  const taken = await lock.acquire();
  memory.put("l", "another's", TTL);
  await assert.rejects(taken.extend(), { code: "lost", reason: "taken_over" });
  memory.remove("l");

  memory.putOtherType("list");
  await assert.rejects(client.lock("list", TTL).acquire({ waitMs: 1_000 }), { code: "wrong_type" });
  memory.put("counter", "5");
  await client.counter("counter", TTL).drain();

  const expected = {
    ...NOTHING,
    granted: 3,
    busy: 1,
    failed: 1,
    attempts: denied.attempts + 3,
    waitedMs: 5_000,
    longestWaitMs: 5_000,
    adopted: 1,
    released: 1,
    transferred: 1,
    lost: { expired: 1, taken_over: 1, unreachable: 0 },
    heldMs: 11_000 + VALID,
    longestHoldMs: VALID,
    healed: 1,
  };
  assert.deepEqual(client.metrics(), expected);
  assert.equal(client.healed, 1);
  await client.close();
  assert.deepEqual(client.metrics(), expected, "also once it is closed");
});

test("renewals, a silent server and a cancelled acquire are counted", { timeout: 120_000 }, async () => {
  const server = await startServer(SERVERS[0]);
  const proxy = await startProxy(server.port);
  const client = await connectOver({ url: proxy.url });
  const lock = client.lock("l", { ttlMs: 4_000, renewEveryMs: 20 });
  const lease = await lock.acquire();
  const stop = new AbortController();
  const acquiring = client.lock("l", TTL).acquire({ waitMs: 60_000, signal: stop.signal });
  const renewed = await until(client, ({ renewals }) => renewals >= 3);
  assert.ok(renewed.smallestMarginMs > 0 && renewed.smallestMarginMs < 4_000, `${renewed.smallestMarginMs}`);
  stop.abort();
  await assert.rejects(acquiring, { code: "cancelled" });
  const { granted, cancelled, busy, failed } = await until(client, (metrics) => metrics.cancelled > 0);
  assert.deepEqual({ granted, cancelled, busy, failed }, { granted: 1, cancelled: 1, busy: 0, failed: 0 });

  await proxy.tell("hold");
  const lost = await until(client, (metrics) => metrics.lost.unreachable > 0);
  assert.deepEqual(lost.lost, { expired: 0, taken_over: 0, unreachable: 1 });
  assert.ok(lost.failedRenewals > 0);
  assert.ok(lost.heldMs > 3_000 && lost.heldMs === lost.longestHoldMs, `${lost.heldMs}`);
  assert.equal(lease.isValid(), false);
  await proxy.tell("go");
  await client.close();
  proxy.stop();
  await server.stop();
});

test("several servers are one attempt", { timeout: 120_000 }, async () => {
  const servers = await startFleet();
  const redlock = await connectRedlock({ urls: servers.map(({ url }) => url), timeoutMs: 60_000 });
  const lease = await redlock.lock("l", TTL).acquire({ waitMs: 60_000 });
  const before = redlock.metrics().attempts;
  await assert.rejects(redlock.lock("l", TTL).acquire(), { code: "busy" });
  await lease.release();
  const { granted, busy, attempts, released } = redlock.metrics();
  assert.deepEqual([granted, busy, attempts, released], [1, 1, before + 1, 1]);
  await redlock.close();
  await Promise.all(servers.map((server) => server.stop()));
});

test("a lease that is forgotten is counted as such", { timeout: 120_000 }, async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  const server = await startServer(SERVERS[0]);
  const client = await connectOver({ url: server.url });
  const forget = async () => {
    await client.lock("l", { ...TTL, renewEveryMs: 20 }).acquire();
  };
  await forget();
  const { granted, released } = await until(client, ({ abandoned }) => abandoned === 1, collect);
  assert.deepEqual([granted, released], [1, 0]);
  await client.close();
  await server.stop();
});
