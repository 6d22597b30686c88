import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "tallylock/memory";
import instantiated from "../dist/memory/tallylock_wasm.js";

const TTL = { ttlMs: 60_000 };

test("the instance needs no more memory than its calls at once", async () => {
  const client = await connect();
  const { memory } = await instantiated(undefined);
  const counter = client.counter("c", TTL);
  const value = client.value("v");
  client.memory.put("v", "x", TTL);
  const call = async (round) => {
    // Of every size, in an order without a pattern, and held for different times.
    const size = (round * 7_919) % 100_003;
    await Promise.all([
      value.replaceIfPresent("x".repeat(1 + size), TTL),
      value.get(),
      counter.add(round, { idempotencyKey: `${round % 50}:${size % 3}`.padEnd(1 + (size % 500), "k") }).catch(() => {}),
      client.addMany(Array.from({ length: size % 200 }, () => counter.entry(1))),
    ]);
    client.memory.advance(1_000);
  };
  for (let round = 0; round < 400; round++) {
    await call(round);
  }
  const before = memory.buffer.byteLength;
  for (let round = 400; round < 2_000; round++) {
    await call(round);
  }
  assert.ok(memory.buffer.byteLength <= before * 1.25, `from ${before} to ${memory.buffer.byteLength} bytes`);
});
