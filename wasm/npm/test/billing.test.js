import assert from "node:assert/strict";
import { test } from "node:test";
import { connect as connectOver, TallylockError } from "tallylock";
import { connect } from "tallylock/memory";
import { startServer } from "./support/servers.js";

const TTL = { ttlMs: 60_000 };
const invalid = (mention) => (error) => {
  assert.ok(error instanceof TallylockError, `${error}`);
  assert.equal(error.code, "invalid_argument");
  assert.match(error.message, mention);
  return true;
};

test("options that lack what they are for are refused, and nothing is sent", async () => {
  const client = await connect();
  const counter = client.counter("k", TTL);
  for (const options of [{}, null, "evt-1", { idempotencyKey: undefined }, { idempotencykey: "evt-1" }]) {
    await assert.rejects(counter.add(1, /** @type {any} */ (options)), invalid(/an idempotency key must be/));
    assert.throws(() => counter.entry(1, /** @type {any} */ (options)), invalid(/an idempotency key must be/));
  }
  for (const options of [{}, null, 5n, { fence: undefined }, { fence: -1 }, { fence: 1.5 }, { fence: 2n ** 64n }]) {
    await assert.rejects(counter.drain(/** @type {any} */ (options)), invalid(/a fence must be/));
    await assert.rejects(counter.claim("run-1", /** @type {any} */ (options)), invalid(/a fence must be/));
  }
  for (const id of [undefined, null, 5, "\ud800", "", "x".repeat(513)]) {
    await assert.rejects(counter.claim(/** @type {any} */ (id)), invalid(/id/));
    await assert.rejects(counter.commit(/** @type {any} */ (id), 1), invalid(/id/));
    await assert.rejects(counter.abort(/** @type {any} */ (id)), invalid(/id/));
  }
  await assert.rejects(counter.add(1, { idempotencyKey: "evt-1", rememberMs: 0 }), invalid(/ttl/));
  await assert.rejects(counter.commit("run-1", 1.5), invalid(/amount/));
  assert.deepEqual(client.memory.keys(), []);
});

test("an idempotency key is remembered as long as is said", async () => {
  const client = await connect();
  const counter = client.counter("k", TTL);
  const once = { idempotencyKey: new Uint8Array([0, 255]), rememberMs: 1_000 };
  assert.deepEqual(await counter.add(30, once), { total: 30n, applied: true });
  assert.deepEqual(await client.addMany([counter.entry(30, once)]), [{ total: 30n, applied: false }]);
  client.memory.advance(1_001);
  assert.deepEqual(await client.addMany([counter.entry(30, once)]), [{ total: 60n, applied: true }]);
  client.memory.advance(999);
  assert.deepEqual(await counter.add(30, once), { total: 60n, applied: false });
});

test("a fence is of the whole range", async () => {
  const client = await connect();
  const counter = client.counter("k", TTL);
  await counter.add(5);
  assert.equal(await counter.drain({ fence: 7 }), 5n);
  assert.equal(await counter.drain({ fence: 2n ** 64n - 1n }), 0n);
  await assert.rejects(counter.claim("run-1", { fence: 2n ** 64n - 2n }), {
    code: "fenced_off",
    applied: "no",
    key: "k",
  });
});

test("claims that heal are counted", async () => {
  const client = await connect();
  client.memory.put("k", "5");
  assert.deepEqual(await client.counter("k", TTL).claim("run-1"), { amount: 5n, state: "open" });
  assert.equal(client.healed, 1);
});

test("open claims come in the order of their bytes, and as text only if they are one", async () => {
  const client = await connect();
  const counter = client.counter("k", TTL);
  const ids = [new Uint8Array([0xff, 1]), "b", "\ufeffa", "ä", "a", new Uint8Array([0])];
  for (const id of ids) {
    await counter.add(1);
    await counter.claim(id);
  }
  const claims = await counter.claims();
  const sorted = ids.map((id) => Buffer.from(id)).sort(Buffer.compare);
  assert.deepEqual(
    claims.map(({ id }) => Buffer.from(id)),
    sorted,
  );
  assert.deepEqual(
    claims.slice(0, -1).map(({ idText }) => idText),
    ["\0", "a", "b", "ä", "\ufeffa"],
  );
  assert.throws(() => claims.at(-1)?.idText, TypeError);
  assert.ok(claims.every(({ amount, remainingMs }) => amount === 1n && remainingMs === 7 * 24 * 3_600_000));
  // What was found can be ended by its bytes.
  await counter.abort(/** @type {any} */ (claims.at(-1)).id);
  assert.equal((await counter.claims()).length, ids.length - 1);
});

test("a batch is of entries of this client's counters, and of 10,000 at most", async () => {
  const [client, stranger] = await Promise.all([connect(), connect()]);
  const counter = client.counter("k", TTL);
  const strange = stranger.counter("k", TTL).entry(1);
  for (const entry of [strange, {}, null, 5, [counter, 1]]) {
    await assert.rejects(client.addMany([counter.entry(1), /** @type {any} */ (entry)]), invalid(/an entry is/));
  }
  assert.throws(() => counter.entry(2 ** 53), invalid(/amount/));
  await assert.rejects(client.addMany([counter.entry(1, { idempotencyKey: "" })]), invalid(/id/));
  await assert.rejects(client.addMany([counter.entry(1, { idempotencyKey: "x", rememberMs: -1 })]), invalid(/ttl/));
  const entry = counter.entry(1);
  await assert.rejects(client.addMany(Array.from({ length: 10_001 }, () => entry)), invalid(/10000/));
  assert.deepEqual(client.memory.keys(), []);

  const totals = await client.addMany(new Set([entry, counter.entry(2n ** 40n), counter.entry(-(2n ** 63n))]));
  assert.deepEqual(totals, [
    { total: 1n, applied: true },
    { total: 2n ** 40n + 1n, applied: true },
    { total: 2n ** 40n + 1n - 2n ** 63n, applied: true },
  ]);
  await client.close();
  await assert.rejects(client.addMany([entry]), { code: "closed" });
});

test("what went wrong with an entry is an error like any other", async () => {
  const client = await connect();
  client.memory.put("text", "hello", TTL);
  const fixed = client.counter("fixed", { ...TTL, expiry: "fixed" });
  await fixed.add(1);
  client.memory.advance(10_000);
  const [error, added] = await client.addMany([client.counter("text", TTL).entry(1), fixed.entry(1)]);
  assert.ok(error instanceof TallylockError);
  assert.deepEqual([error.code, error.applied, error.key], ["not_an_integer", "no", "text"]);
  assert.deepEqual(added, { total: 2n, applied: true });
  assert.equal(client.memory.keys().find(({ key }) => Buffer.from(key).toString() === "fixed")?.ttlMs, 50_000);
});

test("10,000 adds and all that they touched, on a server, page by page", async (t) => {
  const server = await startServer();
  const client = await connectOver({ url: server.url, timeoutMs: 60_000 });
  t.after(async () => {
    await client.close();
    await server.stop();
  });
  const wanted = new Map(Array.from({ length: 10_000 }, (_, n) => [`many:${n}`, BigInt(n)]));
  const results = await client.addMany([...wanted].map(([key, n]) => client.counter(key, TTL).entry(n)));
  assert.deepEqual(
    results,
    Array.from(wanted.values(), (total) => ({ total, applied: true })),
  );

  const found = new Map();
  const take = ({ key, total }) => found.set(Buffer.from(key).toString(), total);
  const scan = client.scan("many:*");
  assert.equal(scan.cursor, null);
  let pages = 0;
  let at = scan.cursor;
  for await (const counter of scan) {
    take(counter);
    if (scan.cursor !== at) {
      at = scan.cursor;
      pages += 1;
    }
    if (pages === 3) {
      break;
    }
  }
  assert.ok(found.size < wanted.size, "it was left in the middle");
  // Another process goes on from there, and misses nothing of the page that was left.
  const later = client.scan("many:*", { cursor: scan.cursor });
  for await (const counter of later) {
    take(counter);
  }
  assert.equal(later.cursor, null);
  assert.deepEqual([...found].sort(), [...wanted].sort());
});

test("who leaves a page in the middle gets all of it again", async () => {
  const client = await connect();
  await client.addMany(["a", "b", "c"].map((key) => client.counter(key, TTL).entry(1)));
  const scan = client.scan("*");
  const keys = async (most) => {
    const list = [];
    for await (const { key } of scan) {
      list.push(Buffer.from(key).toString());
      if (list.length === most) {
        break;
      }
    }
    return list.join("");
  };
  assert.equal(await keys(2), "ab");
  assert.equal(scan.cursor, null);
  assert.equal(await keys(9), "abc");
});

test("what is no pattern, cursor or time is refused", async () => {
  const client = await connect();
  const first = (scan) => scan[Symbol.asyncIterator]().next();
  assert.throws(() => client.scan(/** @type {any} */ (undefined)), invalid(/a pattern/));
  await assert.rejects(first(client.scan("*", { cursor: "x" })), invalid(/cursor/));
  await assert.rejects(first(client.scan("*", /** @type {any} */ ({ cursor: 5 }))), invalid(/a cursor/));
  for (const options of [undefined, {}, { withinMs: -1 }, { withinMs: "5" }]) {
    await assert.rejects(first(client.expiring("*", /** @type {any} */ (options))), invalid(/within/));
  }
  await client.close();
  await assert.rejects(first(client.scan("*")), { code: "closed" });
});

test("an update asks again with what another has written meanwhile", async () => {
  const client = await connect();
  client.memory.put("v", "a", TTL);
  const seen = [];
  const written = await client.value("v").update(
    async (present) => {
      seen.push(Buffer.from(present).toString());
      if (seen.length === 1) {
        client.memory.put("v", "b", TTL);
      }
      return `${Buffer.from(present)}!`;
    },
    { ttlMs: 5_000 },
  );
  assert.deepEqual(seen, ["a", "b"]);
  assert.equal(Buffer.from(written ?? []).toString(), "b!");
  const [{ value, ttlMs }] = client.memory.keys();
  assert.deepEqual([Buffer.from(value ?? []).toString(), ttlMs], ["b!", 5_000]);
});

test("an update ends where others are always faster, where the key goes, and where its function throws", async () => {
  const client = await connect();
  const value = client.value("v");
  client.memory.put("v", "0", TTL);
  let n = 0;
  const overtaken = value.update(() => {
    n += 1;
    client.memory.put("v", `${n}`, TTL);
    return "mine";
  }, TTL);
  await assert.rejects(overtaken, { code: "conflict", applied: "no", key: "v" });
  assert.ok(n > 1);

  const gone = value.update(() => {
    client.memory.remove("v");
    return "mine";
  }, TTL);
  assert.equal(await gone, null);
  assert.deepEqual(client.memory.keys(), []);

  client.memory.put("v", "0", TTL);
  const thrown = new Error("no");
  await assert.rejects(
    value.update(() => Promise.reject(thrown), TTL),
    (error) => error === thrown,
  );
  await assert.rejects(
    value.update(() => /** @type {any} */ (5), TTL),
    invalid(/a value must be/),
  );
  await assert.rejects(value.update(/** @type {any} */ ("x"), TTL), TypeError);
  await assert.rejects(
    value.update(() => "x", /** @type {any} */ (undefined)),
    invalid(/ttl/),
  );
  assert.equal(Buffer.from((await value.get()) ?? []).toString(), "0");
});

test("a bad TTL of an update is refused before its function is called", async () => {
  const client = await connect();
  let called = false;
  const change = () => {
    called = true;
    return "x";
  };
  await assert.rejects(client.value("v").update(change, { ttlMs: 0 }), invalid(/ttl/));
  assert.equal(called, false);
});
