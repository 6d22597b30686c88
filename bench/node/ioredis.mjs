// ioredis's evalsha and redlock (on ioredis) as contestants. Usage: ioredis.mjs add|lock redis://HOST:PORT KEY
import { readFile } from "node:fs/promises";
import { Redis } from "ioredis";
import Redlock from "redlock";
import { answerBlocks } from "./blocks.mjs";

const counterAdd = new URL("../../core/lua/counter_add.lua", import.meta.url);

const [work, url, key] = process.argv.slice(2);
const redis = new Redis(url);

if (work === "add") {
  const sha = await redis.script("LOAD", await readFile(counterAdd, "utf8"));
  await answerBlocks(async () => BigInt(await redis.evalsha(sha, 1, key, "1", "900000", "sliding")));
} else if (work === "lock") {
  const redlock = new Redlock([redis], { retryCount: 0 });
  await answerBlocks(async () => {
    const lock = await redlock.lock(key, 30_000);
    await lock.unlock();
  });
} else {
  throw new Error(`unknown work: ${work}`);
}
redis.disconnect();
