import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { connect, fromIoredis } from "tallylock";
import { connect as connectInMemory } from "tallylock/memory";
import { startServer } from "./support/servers.js";

const TTL = { ttlMs: 60_000 };

test("a lease stays lost for the reason that the server gave first", async () => {
  const client = await connectInMemory();
  const lease = await client.lock("k", TTL).acquire();
  client.memory.put("k", "another", TTL);
  await assert.rejects(lease.extend(), { code: "lost", reason: "taken_over" });
  client.memory.remove("k");
  await assert.rejects(lease.release(), { code: "lost" });
  assert.throws(() => lease.ensure(0), { code: "lost", reason: "taken_over", key: "k" });
  assert.equal(lease.isValid(), false);
});

test("a lease of a client that is closed is neither extended nor released", async () => {
  const client = await connectInMemory();
  const lease = await client.lock("k", TTL).acquire();
  await client.close();
  await assert.rejects(lease.extend(), { code: "closed", key: "k" });
  await assert.rejects(lease.release(), { code: "closed", key: "k" });
  assert.equal(client.memory.keys().filter(({ key }) => key.length === 1).length, 1);
});

test("using throws what the work threw, also where the release fails too", async () => {
  const client = await connectInMemory();
  const thrown = new RangeError("the work's own");
  const held = client.lock("k", TTL).using(() => {
    client.memory.advance(70_000);
    throw thrown;
  });
  await assert.rejects(held, (error) => error === thrown);
});

test("what is no signal takes no lock", async () => {
  const client = await connectInMemory();
  const signal = /** @type {any} */ ({ aborted: false });
  await assert.rejects(client.lock("k", TTL).acquire({ signal }), TypeError);
  assert.deepEqual(client.memory.keys(), []);
});

describe("where calls and replies cross", () => {
  let server;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());

  /** A client whose calls and replies are seen on their way. */
  async function watched({ sending = () => {}, answered = () => {} }) {
    const inner = fromIoredis(server.other);
    const transport = {
      open: async (timeoutMs) => inner.open?.(timeoutMs),
      close: () => inner.close?.(),
      send(commands, operation) {
        sending();
        const replies = inner.send(commands, operation);
        replies.then(answered, () => {});
        return replies;
      },
    };
    return connect({ transport, timeoutMs: 30_000 });
  }

  test("releases at a time all succeed, and so does a later one", async () => {
    const client = await connect({ url: server.url, timeoutMs: 30_000 });
    const lease = await client.lock("released", TTL).acquire();
    await Promise.all([lease.release(), lease.release(), lease.release()]);
    await lease.release();
    await client.close();
    assert.equal(await server.other.exists("released"), 0);
  });

  test("an abort between the grant and its receiver releases the lock", async () => {
    const controller = new AbortController();
    let calls = 0;
    // A turn later the core has the reply, and the caller has not yet.
    const client = await watched({ answered: () => ++calls && queueMicrotask(() => controller.abort("crossed")) });
    const acquiring = client.lock("crossed", TTL).acquire({ signal: controller.signal });
    await assert.rejects(acquiring, { code: "cancelled", applied: "no", key: "crossed", cause: "crossed" });
    // It waits for what is under way, also for what nobody else waits for.
    await client.close();
    assert.equal(await server.other.exists("crossed"), 0);
    assert.ok(calls >= 2, "a lock was taken and released");
  });

  test("an abort from within the transport ends the wait", async () => {
    const holder = await watched({});
    const lease = await holder.lock("waited-for", TTL).acquire();
    const controller = new AbortController();
    const client = await watched({ sending: () => controller.abort() });
    const acquiring = client.lock("waited-for", TTL).acquire({ waitMs: 600_000, signal: controller.signal });
    await assert.rejects(acquiring, { code: "cancelled", key: "waited-for" });
    await client.close();
    await lease.release();
    await holder.close();
  });
});
