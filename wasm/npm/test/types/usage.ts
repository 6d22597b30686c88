// Compiled by `npm run lint`, never run: what a user writes has to be of the types that we say.
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { createClient } from "redis";
import { type Client, connect, fromIoredis, fromNodeRedis, type Lease, TallylockError } from "tallylock";
import { connect as connectInMemory } from "tallylock/memory";

export async function use(signal: AbortSignal): Promise<bigint> {
  const clients: Client[] = await Promise.all([
    connect({ url: "rediss://127.0.0.1", tls: { ca: "" }, timeoutMs: 500, owner: "biller" }),
    connect({ transport: fromIoredis(new Redis()), owner: false }),
    connect({ transport: fromIoredis(new Redis5()) }),
    connect({ transport: fromNodeRedis(createClient()) }),
  ]);
  await using client = await connectInMemory({ url: "memory://shared" });
  client.memory.advance(5);
  const seconds = client.counter("session:42:billableSecondsPending", { ttlMs: 900_000, expiry: "fixed" });
  const total: bigint = await seconds.add(30);
  const drained: bigint | null = await seconds.drain();
  await using lease = await client.lock("invoice:42", { ttlMs: 30_000 }).acquire({ waitMs: 5_000, signal });
  const fence: bigint = await client
    .lock("invoice:43", { ttlMs: 30_000 })
    .using({ signal }, async (held: Lease) => held.fence);
  try {
    lease.ensure(2_000);
  } catch (error) {
    if (error instanceof TallylockError && error.code === "lost") {
      const reason: string | undefined = error.reason;
      throw new Error(reason);
    }
  }
  // @ts-expect-error: a counter has a TTL
  client.counter("k");
  // @ts-expect-error: a text is no amount
  await seconds.add("30");
  // @ts-expect-error: either a URL or a transport
  await connect({});
  await Promise.all(clients.map((one) => one.close()));
  return total + (drained ?? 0n) + fence;
}
