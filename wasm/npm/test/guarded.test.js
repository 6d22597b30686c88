import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "tallylock/memory";

const TTL = { ttlMs: 60_000 };
test("what is no fence is refused, and nothing is sent", async () => {
  const client = await connect();
  const guarded = client.guarded("v");
  const refused = { code: "invalid_argument" };
  for (const fence of [-1, 1.5, 2 ** 53, 2n ** 64n, "7", null, undefined]) {
    await assert.rejects(guarded.set("x", { fence: /** @type {any} */ (fence), ...TTL }), { ...refused, key: "v" });
    await assert.rejects(guarded.delete({ fence: /** @type {any} */ (fence) }), { ...refused, key: "v" });
  }
  for (const options of [undefined, null, {}]) {
    await assert.rejects(guarded.set("x", /** @type {any} */ (options)), refused);
    await assert.rejects(guarded.delete(/** @type {any} */ (options)), refused);
  }
  await assert.rejects(guarded.set("x", /** @type {any} */ ({ fence: 7n })), refused);
  assert.deepEqual(client.memory.keys(), []);
});

test("a fence of 64 bits keeps each of them", async () => {
  const client = await connect();
  const guarded = client.guarded("v");
  await guarded.set("x", { fence: 2n ** 64n - 1n, ...TTL });
  await assert.rejects(guarded.set("y", { fence: 2n ** 64n - 2n, ...TTL }), { code: "fenced_off" });
  assert.equal(Buffer.from(/** @type {any} */ (await client.value("v").get())).toString(), "x");
});

test("a key is used as given when the handle was made", async () => {
  const client = await connect();
  const key = new Uint8Array([118]);
  const guarded = client.guarded(key);
  key[0] = 119;
  await guarded.set("x", { fence: 1, ...TTL });
  assert.equal(Buffer.from(/** @type {any} */ (await client.value("v").get())).toString(), "x");
  assert.equal(await client.value("w").get(), null);
});
