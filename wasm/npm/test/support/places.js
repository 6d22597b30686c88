import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "tallylock";
import { connect as connectInMemory } from "tallylock/memory";

/** A client of a server in memory, and its test face as the other program. */
export async function memoryPlace() {
  const client = await connectInMemory();
  const { memory } = client;
  const buffer = (given) => given && Buffer.from(given);
  return {
    client,
    other: {
      plant(key, value, ttlMs) {
        const ttl = ttlMs === null ? {} : { ttlMs };
        return value === null ? memory.putOtherType(key, ttl) : memory.put(key, value, ttl);
      },
      remove: (key) => memory.remove(key),
      advance: (millis) => memory.advance(millis),
      loseNextReply: () => memory.loseNextReply(),
      keys: () => memory.keys().map(({ key, value, ttlMs }) => ({ key: buffer(key), value: buffer(value), ttlMs })),
    },
  };
}

/** A client of a server that was emptied, and another client as the other program. */
export async function serverPlace({ url, other }) {
  await other.flushall();
  const client = await connect({ url });
  return {
    client,
    other: {
      async plant(key, value, ttlMs) {
        await other.del(key);
        await (value === null ? other.rpush(key, "x") : other.set(key, value));
        if (ttlMs !== null) {
          await other.pexpire(key, ttlMs);
        }
      },
      remove: (key) => other.del(key),
      advance: (millis) => sleep(millis),
      loseNextReply() {
        throw new Error("a server loses no reply");
      },
      async keys() {
        const keys = await other.keysBuffer("*");
        return Promise.all(
          keys.map(async (key) => {
            const isText = (await other.type(key)) === "string";
            const left = await other.pttl(key);
            return { key, value: isText ? await other.getBuffer(key) : null, ttlMs: left === -1 ? null : left };
          }),
        );
      },
    },
  };
}
