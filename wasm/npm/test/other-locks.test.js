// Locks of the npm package redlock on the same keys: each excludes the other.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import Theirs from "redlock";
import { connect } from "tallylock";
import { connectRedlock } from "tallylock/redlock";
import { startFleet, untilHeldOn } from "./support/fleet.js";

const TTL_MS = 60_000;
const TTL = { ttlMs: TTL_MS };
/** For calls that must succeed, however slow the machine is. */
const PATIENT = { timeoutMs: 30_000 };

describe("beside npm's redlock", () => {
  let servers;
  before(async () => {
    servers = await startFleet(3);
  });
  afterEach(() => Promise.all(servers.map(({ other }) => other.flushall())));
  after(() => Promise.all(servers.map((server) => server.stop())));

  const theirs = (count) =>
    new Theirs(
      servers.slice(0, count).map(({ other }) => other),
      { retryCount: 0 },
    );

  const places = [
    { where: "on one server", count: 1, open: () => connect({ url: servers[0].url, ...PATIENT }) },
    {
      where: "over three servers",
      count: 3,
      open: () => connectRedlock({ urls: servers.map(({ url }) => url), ...PATIENT, nodeTimeoutMs: 20_000 }),
    },
  ];
  for (const { where, count, open } of places) {
    test(`${where}, its lock excludes ours`, async () => {
      const client = await open();
      const held = await theirs(count).lock("l", TTL_MS);
      await assert.rejects(client.lock("l", TTL).acquire(), { code: "busy" });
      const waiting = client.lock("l", TTL).acquire({ waitMs: 30_000 });
      await held.unlock();
      await (await waiting).release();
      await client.close();
    });

    test(`${where}, ours excludes its lock`, async () => {
      const client = await open();
      const lease = await client.lock("l", TTL).acquire();
      await untilHeldOn(servers.slice(0, count), "l", count);
      await assert.rejects(theirs(count).lock("l", TTL_MS), { name: "LockError" });
      await lease.verify(TTL_MS / 2);
      await lease.release();
      await untilHeldOn(servers, "l", 0);
      await (await theirs(count).lock("l", TTL_MS)).unlock();
      await client.close();
    });
  }
});
