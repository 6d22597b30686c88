import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "tallylock";
import { startProxy } from "./support/proxy.js";
import { SERVERS, startServer } from "./support/servers.js";

const TTL = { ttlMs: 60_000 };
/** For calls that must succeed, however slow the machine is. */
const PATIENT = { timeoutMs: 60_000 };

for (const name of SERVERS) {
  describe(`cancelling on ${name}`, () => {
    let server;
    let proxy;
    let client;
    before(async () => {
      server = await startServer(name);
      proxy = await startProxy(server.port);
      client = await connect({ url: proxy.url, ...PATIENT });
      // So that the server knows the scripts: a held reply is then that of the call itself.
      await (await client.lock("warm", TTL).acquire()).release();
    });
    afterEach(() => proxy.tell("go"));
    after(async () => {
      await client.close();
      proxy.stop();
      await server.stop();
    });

    test("at any point leaves no lock behind and mixes up no replies", async () => {
      const counter = client.counter("between", TTL);
      let [taken, cancelled, sum] = [0, 0, 0n];
      for (let round = 0; round < 200; round++) {
        const controller = new AbortController();
        const acquiring = client.lock(`lock:${round}`, TTL).acquire({ signal: controller.signal });
        const acquired = acquiring.then(
          (lease) => ({ lease, error: undefined }),
          (error) => ({ lease: undefined, error }),
        );
        const adding = counter.add(1);
        // From at once to after the grant, in turns of the event loop and in time.
        if (round % 8 === 7) {
          await acquired;
        }
        for (let turn = 0; turn < round % 8; turn++) {
          await (round % 2 === 0 ? new Promise(setImmediate) : Promise.resolve());
        }
        controller.abort();
        sum += 1n;
        assert.equal(await adding, sum);
        const { lease, error } = await acquired;
        if (lease === undefined) {
          assert.equal(error.code, "cancelled");
          assert.equal(error.cause, controller.signal.reason);
          cancelled += 1;
        } else {
          await lease.release();
          taken += 1;
        }
      }
      assert.ok(cancelled > 0, "nothing was cancelled");
      assert.ok(taken > 0, "nothing was granted");
      assert.equal(taken + cancelled, 200);
      assert.deepEqual(await settled(server.other), []);
    });

    test("is told at once, while the undo is still under way", async () => {
      // Not just any reply: those to the undos of the test before may still be under way.
      await proxy.tell("hold-matching held-up");
      const controller = new AbortController();
      const acquiring = client.lock("held-up", TTL).acquire({ signal: controller.signal });
      acquiring.catch(() => undefined);
      await proxy.tell("await-held 1");
      assert.equal(await server.other.exists("held-up"), 1);
      controller.abort();
      await assert.rejects(acquiring, { code: "cancelled", applied: "no", key: "held-up" });
      await proxy.tell("go");
      assert.deepEqual(await settled(server.other), []);
    });

    test("a silent server ends in a time-out that leaves no lock", async () => {
      const impatient = await connect({ url: proxy.url, timeoutMs: 1500 });
      await proxy.tell("hold");
      await assert.rejects(impatient.lock("silent", TTL).acquire(), { code: "timeout", applied: "no" });
      await proxy.tell("go");
      await impatient.close();
      assert.deepEqual(await settled(server.other), []);
    });

    test("a wait ends at once", async () => {
      const holder = await client.lock("waited-for", TTL).acquire();
      const controller = new AbortController();
      const waiting = client.lock("waited-for", TTL).acquire({ waitMs: 60_000, signal: controller.signal });
      await sleep(30);
      controller.abort(new Error("enough"));
      await assert.rejects(
        waiting,
        (/** @type {any} */ error) => error.code === "cancelled" && error.cause.message === "enough",
      );
      await holder.release();
    });

    test("a signal that is aborted already sends nothing", async () => {
      const { stats } = await proxy.tell("stats");
      const signal = AbortSignal.abort();
      await assert.rejects(client.lock("never", TTL).acquire({ signal }), { code: "cancelled" });
      assert.deepEqual((await proxy.tell("stats")).stats.requests, stats.requests);
    });

    test("closing the client ends a wait as closed, and undoes it", async () => {
      const holder = await client.lock("closed", TTL).acquire();
      const other = await connect({ url: proxy.url, ...PATIENT });
      const waiting = other.lock("closed", TTL).acquire({ waitMs: 60_000 });
      const ended = assert.rejects(waiting, { code: "closed" });
      await sleep(30);
      await other.close();
      await ended;
      await assert.rejects(other.counter("x", TTL).add(1), { code: "closed", key: "x" });
      await holder.release();
    });
  });
}

/** The locks that are left once undos had their time. */
async function settled(other) {
  let locks;
  for (let patience = 0; patience < 1000; patience++) {
    const keys = await other.keys("*");
    locks = keys.filter((key) => !key.includes(":tlu1:") && key !== "between");
    if (locks.length === 0) {
      break;
    }
    await sleep(20);
  }
  return locks;
}
