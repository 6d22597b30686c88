// Waiting for a lock on real servers: who is told of a release, what is left afterwards, and what happens when nothing is told.
import assert from "node:assert/strict";
import { once, setMaxListeners } from "node:events";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { createClient } from "redis";
import { connect, fromIoredis, fromNodeRedis } from "tallylock";
import { connect as connectInMemory } from "tallylock/memory";
import { SERVERS, startServer } from "./support/servers.js";

const TTL = { ttlMs: 60_000 };
const CHANNEL = "l{l}:tlu1:released";
/** For waits that must succeed, however slow the machine is. */
const LONG = { waitMs: 60_000 };
const PATIENT = { timeoutMs: 30_000 };
/** At the end of a wait: the server has said so, or the machine is too busy for its answer to come in time. */
const isDenied = ({ code }) => code === "busy" || code === "timeout";

/** How a client comes to a server: over sockets of its own, and over the clients that one may have. */
const WAYS = [
  { way: "a socket", open: ({ url }) => ({ options: { url }, end: () => undefined }) },
  { way: "a unix socket", open: ({ socket }) => ({ options: { url: `unix://${socket}` }, end: () => undefined }) },
  ...[Redis, Redis5].map((Kind, place) => ({
    way: `ioredis ${6 - place}`,
    async open({ port }) {
      const theirs = new /** @type {any} */ (Kind)(port);
      await once(theirs, "ready");
      return { options: { transport: fromIoredis(theirs) }, end: () => theirs.disconnect() };
    },
  })),
  {
    way: "node-redis",
    async open({ url }) {
      const theirs = createClient({ url });
      theirs.on("error", () => undefined);
      await theirs.connect();
      return { options: { transport: fromNodeRedis(theirs) }, end: () => theirs.destroy() };
    },
  },
];

const PLACES = SERVERS.flatMap((name) =>
  (name === SERVERS[0] ? WAYS : WAYS.slice(0, 1)).map((way) => ({ name, ...way })),
);

for (const { name, way, open } of PLACES) {
  describe(`waiting on ${name} over ${way}`, () => {
    let server;
    let client;
    let end;
    before(async () => {
      server = await startServer(name);
      const opened = await open(server);
      end = opened.end;
      client = await connect({ ...opened.options, ...PATIENT });
    });
    afterEach(() => server.other.del("l", "m", "n"));
    after(async () => {
      await client.close();
      end();
      await server.stop();
    });

    const listeners = async () => Number((await server.other.pubsub("NUMSUB", CHANNEL))[1]);
    const until = async (what, wanted, look) => {
      for (let patience = 0; patience < 1_500; patience++) {
        if ((await look()) === wanted) {
          return;
        }
        await sleep(10);
      }
      throw new Error(`${what}: ${await look()}, not ${wanted}`);
    };
    const untilListening = (count) => until("listeners", count, listeners);
    const channels = async () => (await server.other.pubsub("CHANNELS")).length;
    const killSubscribers = () => server.other.client("KILL", "TYPE", "pubsub");
    /** How many scripts the server has run. */
    const scripts = async () => {
      const stats = String(await server.other.info("commandstats"));
      return [...stats.matchAll(/cmdstat_evalsha:calls=(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
    };

    test("a release wakes the waiter", async () => {
      const times = [];
      for (let round = 0; round < 20; round++) {
        const held = await client.lock("l", TTL).acquire();
        const waiting = client.lock("l", TTL).acquire(LONG);
        await untilListening(1);
        const begun = performance.now();
        await held.release();
        const lease = await waiting;
        times.push(performance.now() - begun);
        await lease.release();
        await untilListening(0);
      }
      // Who is not told looks by itself, half a second after it last asked at the earliest.
      assert.ok(2 * times.filter((time) => time < 400).length > times.length, times.join());
    });

    test("who waits again at once is told again", async () => {
      const unsubscribed = async () => {
        const stats = String(await server.other.info("commandstats"));
        return Number(/cmdstat_unsubscribe:calls=(\d+)/.exec(stats)?.[1] ?? 0);
      };
      let held = await client.lock("l", TTL).acquire();
      const before = await unsubscribed();
      let waiting = client.lock("l", TTL).acquire(LONG);
      for (let round = 1; round <= 20; round++) {
        await untilListening(1);
        await held.release();
        held = await waiting;
        waiting = client.lock("l", TTL).acquire(LONG);
        // What the last waiter did not want any more may not take the next one's with it.
        await until("unsubscribed", before + round, unsubscribed);
      }
      await untilListening(1);
      await held.release();
      await (await waiting).release();
      await untilListening(0);
    });

    test("64 waiters have it in their order, by less than four scripts each", async () => {
      const held = await client.lock("l", TTL).acquire();
      const order = [];
      const waits = Array.from({ length: 64 }, (_, number) =>
        client.lock("l", TTL).using(LONG, () => void order.push(number)),
      );
      await untilListening(1);
      const before = await scripts();
      await held.release();
      await Promise.all(waits);
      assert.deepEqual(
        order,
        order.map((_, number) => number),
      );
      const count = (await scripts()) - before;
      assert.ok(count < 64 * 4, `${count} scripts`);
      await untilListening(0);
    });

    test("one connection hears for all locks, and nothing is left subscribed", async () => {
      const keys = ["l", "m", "n"];
      const held = await Promise.all(keys.map((key) => client.lock(key, TTL).acquire()));
      const waits = [...keys, ...keys].map((key) => client.lock(key, TTL).using(LONG, () => undefined));
      await until("channels", 3, channels);
      const list = String(await server.other.client("LIST", "TYPE", "pubsub"));
      assert.equal(list.trim().split("\n").length, 1, list);
      await Promise.all(held.map((lease) => lease.release()));
      await Promise.all(waits);
      await until("channels", 0, channels);
    });

    test("waiters who give up leave the line and let the next one in", async () => {
      const held = await client.lock("l", TTL).acquire();
      const controllers = [1, 2, 3].map(() => new AbortController());
      const waits = controllers.map(({ signal }) => client.lock("l", TTL).acquire({ ...LONG, signal }));
      const ends = waits.map((wait) => wait.catch(({ code }) => code));
      await untilListening(1);
      controllers[0].abort();
      controllers[1].abort();
      assert.deepEqual(await Promise.all(ends.slice(0, 2)), ["cancelled", "cancelled"]);
      const hurried = await client
        .lock("l", TTL)
        .acquire({ waitMs: 300 })
        .catch(({ code }) => code);
      assert.equal(hurried, "busy");
      await held.release();
      await (await waits[2]).release();
      await untilListening(0);
    });

    test("a wait ends in time", async () => {
      const held = await client.lock("l", TTL).acquire();
      const late = [];
      for (let round = 0; round < 10; round++) {
        const begun = performance.now();
        await assert.rejects(client.lock("l", TTL).acquire({ waitMs: 150 }), isDenied);
        late.push(performance.now() - begun - 150);
      }
      assert.ok(2 * late.filter((time) => time < 50).length > late.length, late.join());
      await held.release();
    });

    test("a connection that is killed is opened again, and a release that nobody hears is found", async () => {
      const held = await client.lock("l", TTL).acquire();
      const waiting = client.lock("l", TTL).acquire(LONG);
      for (let round = 0; round < 5; round++) {
        await untilListening(1);
        await killSubscribers();
      }
      await untilListening(1);
      await killSubscribers();
      await held.release();
      await (await waiting).release();
      // Of another library's release nothing is told at all.
      await server.other.set("l", "another", "PX", 60_000);
      const found = client.lock("l", TTL).acquire(LONG);
      await untilListening(1);
      await server.other.del("l");
      await (await found).release();
    });

    test("what is published for no reason grants nothing", async () => {
      const held = await client.lock("l", TTL).acquire();
      const waiting = client.lock("l", TTL).acquire({ waitMs: 1_000 });
      const ended = assert.rejects(waiting, isDenied);
      for (let round = 0; round < 50; round++) {
        await server.other.publish(CHANNEL, "released");
        held.ensure(0);
      }
      await ended;
      await held.release();
    });
  });
}

/** How many connections a server has, without the one that asks. */
const connectionsOf = async ({ other }) => {
  const found = /connected_clients:(\d+)/.exec(String(await other.info("clients")));
  return Number(found?.[1]) - 1;
};

async function waitFor(what, isSo) {
  const until = performance.now() + 60_000;
  while (!(await isSo())) {
    assert.ok(performance.now() < until, what);
    await sleep(20);
  }
}

const listenersOf = async ({ other }) => Number((await other.pubsub("NUMSUB", CHANNEL))[1]);

describe("the connection that hears of releases", { concurrency: true }, () => {
  for (const { way, open } of WAYS) {
    test(`is closed after ten idle seconds over ${way}, and opened again`, async (t) => {
      const server = await startServer();
      const { options, end } = await open(server);
      const client = await connect({ ...options, ...PATIENT });
      t.after(async () => {
        await client.close();
        end();
        await server.stop();
      });
      let held = await client.lock("l", TTL).acquire();
      const before = await connectionsOf(server);
      for (let round = 0; round < 2; round++) {
        const waiting = client.lock("l", TTL).acquire(LONG);
        await waitFor("it is listened for", async () => (await listenersOf(server)) === 1);
        assert.equal(await connectionsOf(server), before + 1);
        await held.release();
        held = await waiting;
        const begun = performance.now();
        await waitFor("it is closed", async () => (await connectionsOf(server)) === before);
        const kept = performance.now() - begun;
        // Seen a little later than it was left, at the most.
        assert.ok(kept > 9_000, `closed after ${kept} ms`);
      }
    });

    test(`is closed with its client over ${way}, whose waiters end as closed`, async (t) => {
      const server = await startServer();
      t.after(() => server.stop());
      const { options, end } = await open(server);
      const holder = await connect({ url: server.url, ...PATIENT });
      const held = await holder.lock("l", TTL).acquire();
      const before = await connectionsOf(server);
      const client = await connect({ ...options, ...PATIENT });
      const waits = Array.from({ length: 20 }, () => client.lock("l", TTL).acquire(LONG));
      const ends = Promise.all(waits.map((wait) => wait.then(String, ({ code }) => code)));
      await waitFor("it is listened for", async () => (await listenersOf(server)) === 1);
      await client.close();
      assert.deepEqual(await ends, Array(20).fill("closed"));
      await waitFor("it is gone", async () => (await connectionsOf(server)) <= before);
      await held.release();
      assert.equal(await server.other.get("l"), null);
      end();
      await holder.close();
    });
  }
});

test("an account without channels waits by pauses", async (t) => {
  const server = await startServer();
  t.after(() => server.stop());
  await server.other.acl("SETUSER", "alice", "on", ">pw", "resetchannels", "~*", "+@all");
  const url = `redis://alice:pw@127.0.0.1:${server.port}`;
  const client = await connect({ url, ...PATIENT });
  t.after(() => client.close());
  const times = [];
  for (let round = 0; round < 10; round++) {
    const held = await client.lock("l", TTL).acquire();
    const waiting = client.lock("l", TTL).acquire(LONG);
    await sleep(700);
    const begun = performance.now();
    await held.release();
    await (await waiting).release();
    times.push(performance.now() - begun);
  }
  // Who believes that it is told looks by itself after half a second at the earliest; by pauses that is a quarter.
  assert.ok(2 * times.filter((time) => time < 400).length > times.length, times.join());
  const stats = String(await server.other.info("commandstats"));
  const asked = Number(/cmdstat_subscribe:calls=\d+.*rejected_calls=(\d+)/.exec(stats)?.[1]);
  assert.ok(asked >= 1 && asked <= 10, `subscribed ${asked} times`);
});

test("waiters that come and go all the time miss nothing, and leave nothing", async (t) => {
  const server = await startServer();
  t.after(() => server.stop());
  const client = await connect({ url: server.url, ...PATIENT });
  t.after(() => client.close());
  let granted = 0;
  const come = async () => {
    for (let round = 0; round < 60; round++) {
      const waitMs = Math.floor(Math.random() * 20);
      const lease = await client
        .lock("l", TTL)
        .acquire({ waitMs })
        .catch((error) => assert.equal(error.code === "busy" || error.code === "timeout", true, String(error)));
      if (lease) {
        granted += 1;
        await sleep(Math.random() * 10);
        await lease.release();
      }
    }
  };
  await Promise.all(Array.from({ length: 6 }, come));
  assert.ok(granted > 0);
  await waitFor("nothing is subscribed", async () => (await listenersOf(server)) === 0);
  const held = await client.lock("l", TTL).acquire(LONG);
  const waiting = client.lock("l", TTL).acquire(LONG);
  await waitFor("it is listened for", async () => (await listenersOf(server)) === 1);
  await held.release();
  await (await waiting).release();
});

test("all who wait can be stopped at once, and what they began leaves no lock", async (t) => {
  const server = await startServer();
  t.after(() => server.stop());
  const client = await connect({ url: server.url, ...PATIENT });
  t.after(() => client.close());
  for (const isReleased of [false, true]) {
    const held = await client.lock("l", TTL).acquire();
    const controller = new AbortController();
    setMaxListeners(64, controller.signal);
    const options = { ...LONG, signal: controller.signal };
    const waits = Array.from({ length: 64 }, () => client.lock("l", TTL).acquire(options));
    const ends = Promise.all(
      waits.map((wait) =>
        wait.then(
          () => "granted",
          ({ code }) => code,
        ),
      ),
    );
    await waitFor("it is listened for", async () => (await listenersOf(server)) === 1);
    const released = isReleased ? held.release() : undefined;
    controller.abort();
    assert.deepEqual(await ends, Array(64).fill("cancelled"));
    await (released ?? held.release());
    await waitFor("nothing is subscribed", async () => (await listenersOf(server)) === 0);
    await (await client.lock("l", TTL).acquire(LONG)).release();
    assert.equal(await server.other.get("l"), null);
  }
});

test("in memory a release wakes too, and all have it in their order", async () => {
  const client = await connectInMemory();
  const held = await client.lock("l", TTL).acquire();
  const order = [];
  const waits = Array.from({ length: 8 }, (_, number) =>
    client.lock("l", TTL).using({ waitMs: 50_000 }, () => void order.push(number)),
  );
  await held.release();
  await Promise.all(waits);
  assert.deepEqual(order, [0, 1, 2, 3, 4, 5, 6, 7]);
  await client.close();
});
