// The agent in Node.
import { createInterface } from "node:readline";
import { TallylockError, connect } from "../../wasm/npm/dist/node.js";

const client = await connect({ url: process.argv[2] });
const leases = new Map();

async function perform(word, key, amount) {
  if (word === "acquire") {
    const lease = await client.lock(key, { ttlMs: 30_000 }).acquire();
    leases.set(key, lease);
    return lease.fence;
  }
  if (word === "release") {
    await leases.get(key).release();
    return 0n;
  }
  const counter = client.counter(key, { ttlMs: 900_000 });
  if (word === "add") return counter.add(BigInt(amount));
  return word === "drain" ? counter.drain() : counter.finish();
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(String((await perform(...line.split(" "))) ?? "none"));
  } catch (error) {
    if (!(error instanceof TallylockError)) throw error;
    console.log(`error ${error.code}`);
  }
}
await client.close();
