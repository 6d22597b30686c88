import assert from "node:assert/strict";
import { test } from "node:test";
import { connect as connectOver, TallylockError, Undelivered } from "tallylock";
import { connect } from "tallylock/memory";

const TTL = { ttlMs: 60_000 };
const refused = (call, mention) => {
  const check = (error) => {
    assert.ok(error instanceof TallylockError, `${error}`);
    assert.equal(error.code, "invalid_argument");
    assert.match(error.message, mention);
    return true;
  };
  return assert.rejects(async () => call(), check);
};

test("what is no amount is refused, and nothing is sent", async () => {
  const client = await connect();
  const counter = client.counter("k", TTL);
  for (const amount of [1.5, Number.NaN, Infinity, 2 ** 53, "1", null, undefined, {}, 2n ** 63n, -(2n ** 63n) - 1n]) {
    await refused(() => counter.add(/** @type {any} */ (amount)), /amount/);
  }
  assert.deepEqual(client.memory.keys(), []);
  assert.equal(await counter.add(-(2n ** 63n)), -(2n ** 63n));
  assert.equal(await counter.add(Number.MAX_SAFE_INTEGER), -(2n ** 63n) + 2n ** 53n - 1n);
});

test("what is no key, value or option is refused", async () => {
  const client = await connect();
  for (const key of [undefined, null, 5, {}]) {
    await refused(() => client.value(/** @type {any} */ (key)), /a key must be a string or a Uint8Array/);
  }
  await refused(() => client.value("\ud800"), /lone surrogate/);
  await refused(() => client.value("v").replaceIfPresent("\udc00", TTL), /lone surrogate/);
  await refused(() => client.value("v").replaceIfPresent("x", /** @type {any} */ ({})), /ttl/);
  await refused(() => client.value("v").touch(/** @type {any} */ (undefined)), /ttl/);
  await refused(() => client.counter("k", /** @type {any} */ (undefined)), /ttl/);
  await refused(() => client.counter("k", /** @type {any} */ ({ ttlMs: "60000" })), /ttl/);
  await refused(() => client.counter("k", /** @type {any} */ ({ ...TTL, expiry: "never" })), /sliding/);
  await refused(() => client.lock("k", { ttlMs: 2 }), /drift/);
  await refused(() => client.lock("k", TTL).acquire({ waitMs: Number.NaN }), /wait/);
  const lease = await client.lock("k", TTL).acquire();
  await refused(() => lease.ensure(Number.NaN), /margin/);
  await refused(() => lease.ensure(-1), /margin/);
  await refused(() => lease.extend({ ttlMs: 0 }), /ttl/);
});

test("a key is used as given when the handle was made", async () => {
  const client = await connect();
  const key = new Uint8Array([0, 255, 128]);
  const counter = client.counter(key, TTL);
  key.fill(7);
  await counter.add(1);
  assert.deepEqual([...client.memory.keys()[0].key], [0, 255, 128]);
});

test("the owner of a lock can be read, chosen and left out", async () => {
  const token = async (options) => {
    const client = await connect(options);
    await client.lock("k", TTL).acquire();
    return Buffer.from(client.memory.keys().find(({ key }) => key.length === 1)?.value ?? []).toString();
  };
  assert.match(await token({}), new RegExp(`^[0-9a-f]{32}\\..+\\.${process.pid}$`));
  assert.match(await token({ owner: "biller-1" }), /^[0-9a-f]{32}\.biller-1$/);
  assert.match(await token({ owner: false }), /^[0-9a-f]{32}$/);
});

test("a lease disposes of itself", async () => {
  const client = await connect();
  const lock = client.lock("k", TTL);
  const lease = await lock.acquire();
  await lease[Symbol.asyncDispose]();
  assert.equal(lease.isValid(), false);
  assert.equal(lease.remainingMs(), 0);
  assert.throws(() => lease.ensure(0), { code: "lost", reason: "expired" });
  await lease[Symbol.asyncDispose]();
  await lock.using(async (held) => assert.ok(held.fence > lease.fence));
  assert.equal(await lock.using({ waitMs: 10 }, () => 5), 5);
});

test("using tells that the lock was lost while it was held", async () => {
  const client = await connect();
  const held = client.lock("k", TTL).using(() => client.memory.advance(70_000));
  await assert.rejects(held, { code: "lost", reason: "expired", key: "k" });
});

test("drains that heal are counted", async () => {
  const client = await connect();
  client.memory.put("k", "5");
  assert.equal(client.healed, 0);
  assert.equal(await client.counter("k", TTL).drain(), 5n);
  assert.equal(client.healed, 1);
});

test("clients share a server in memory by its name, and others have their own", async () => {
  const [one, two, alone] = await Promise.all([
    connect({ url: "memory://shared" }),
    connect({ url: "memory://shared" }),
    connect({ url: "memory://" }),
  ]);
  await one.counter("k", TTL).add(3);
  assert.equal(await two.counter("k", TTL).read(), 3n);
  assert.equal(await alone.counter("k", TTL).read(), null);
});

test("the clock in memory jumps when all wait, not while somebody works", async () => {
  const client = await connect();
  const [one, other] = [1, 2].map(() => client.lock("k", { ttlMs: 3_600_000 }));
  const lease = await one.acquire();
  const waiting = other.acquire({ waitMs: 1_800_000 });
  await lease.release();
  const next = await waiting;
  assert.ok(next.remainingMs() > 3_500_000);
  await assert.rejects(one.acquire({ waitMs: 60_000 }), { code: "busy" });
  assert.ok(next.remainingMs() < 3_600_000 - 60_000);
});

test("scripts that a server has forgotten are sent again", async () => {
  const client = await connect();
  await client.counter("k", TTL).add(1);
  client.memory.forgetScripts();
  assert.equal(await client.counter("k", TTL).add(1), 2n);
});

test("a transport of one's own: its failures are taken at their word, and nonsense is nobody knows what", async () => {
  const answers = [];
  const transport = { send: () => answers.shift()() };
  const client = await connectOver({ transport, timeoutMs: 30_000 });
  const counter = client.counter("k", TTL);

  answers.push(
    () => Promise.reject(new Undelivered("no", "not yet")),
    () => Promise.resolve(["7"]),
  );
  assert.equal(await counter.add(1), 7n);
  for (const answer of [
    () => Promise.reject(new Undelivered("maybe", "gone")),
    () => Promise.reject(new Error("who knows")),
    () => Promise.resolve(undefined),
    () => Promise.resolve([undefined]),
    () => Promise.resolve([{ total: 7 }]),
    () => {
      throw new Error("thrown at once");
    },
  ]) {
    answers.push(answer);
    await assert.rejects(counter.add(1), { code: "outcome_unknown", applied: "maybe", key: "k" });
  }
  answers.push(() => Promise.reject(new Undelivered("refused", "", "WRONGPASS no")));
  await assert.rejects(counter.add(1), { code: "forbidden", applied: "no" });
  answers.push(() => Promise.resolve([new Error("WRONGTYPE no")]));
  await assert.rejects(counter.add(1), { code: "wrong_type", applied: "no" });
  // A number may have been rounded on its way; ours come as texts.
  answers.push(() => Promise.resolve([7]));
  await assert.rejects(counter.add(1), TallylockError);
});
