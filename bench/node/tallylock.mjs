// tallylock's npm package as a contestant. Usage: tallylock.mjs add|lock redis://HOST:PORT KEY
import { connect } from "../../wasm/npm/dist/node.js";
import { answerBlocks } from "./blocks.mjs";

const [work, url, key] = process.argv.slice(2);
const client = await connect({ url });

if (work === "add") {
  const counter = client.counter(key, { ttlMs: 900_000 });
  await answerBlocks(() => counter.add(1));
} else if (work === "lock") {
  const lock = client.lock(key, { ttlMs: 30_000 });
  await answerBlocks(async () => {
    const lease = await lock.acquire();
    await lease.release();
  });
} else {
  throw new Error(`unknown work: ${work}`);
}
await client.close();
