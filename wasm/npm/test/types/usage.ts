// Compiled by `npm run lint`, never run: what a user writes has to be of the types that we say.
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { createClient } from "redis";
import {
  type Added,
  type Claim,
  type Client,
  connect,
  type Entry,
  fromIoredis,
  fromNodeRedis,
  type Lease,
  type Lock,
  type Metrics,
  type Scan,
  TallylockError,
} from "tallylock";
import { connect as connectInMemory } from "tallylock/memory";
import { connectRedlock, type Redlock, type RedlockOptions } from "tallylock/redlock";

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
  const lock: Lock = client.lock("invoice:43", { ttlMs: 30_000, renewEveryMs: 5_000, maxHoldMs: 600_000 });
  const fence: bigint = await lock.using({ signal }, async (held: Lease) => {
    await fetch("http://127.0.0.1", { signal: held.signal });
    await held.verify(1_000);
    return held.fence;
  });
  const given: string = await lease.transfer();
  const { granted, lost, smallestMarginMs }: Metrics = client.metrics();
  const counted: [number, number, number | null] = [granted, lost.taken_over, smallestMarginMs];
  console.log(counted);
  const adopted: Lease = await client.lock("invoice:42", { ttlMs: 30_000, renewEveryMs: false }).adopt(given);
  console.log(adopted.isValid());
  const added: Added = await seconds.add(30n, { idempotencyKey: "evt-1", rememberMs: 3_600_000 });
  const claim: Claim | null = await seconds.claim("run-1", { fence: lease.fence });
  if (claim?.state === "open") {
    await seconds.commit("run-1", claim.amount);
  }
  for (const { id, amount } of await seconds.claims()) {
    const returned: bigint = await seconds.abort(id);
    console.log(amount === returned);
  }
  const entries: Entry[] = [seconds.entry(1), seconds.entry(2n, { idempotencyKey: new Uint8Array([1]) })];
  for (const result of await client.addMany(entries)) {
    console.log(result instanceof TallylockError ? result.code : result.total);
  }
  const scan: Scan = client.expiring("session:*", { withinMs: 60_000, cursor: client.scan("session:*").cursor });
  for await (const { key, total: found, remainingMs } of scan) {
    console.log(client.counter(key, { ttlMs: remainingMs ?? 1 }), found + 1n);
  }
  const written: Uint8Array | null = await client.value("ctx").update((present) => present.slice(1), { ttlMs: 5 });
  try {
    lease.ensure(2_000);
  } catch (error) {
    if (error instanceof TallylockError && error.code === "lost") {
      const reason: string | undefined = error.reason;
      throw new Error(reason);
    }
  }
  const options: RedlockOptions = { urls: ["redis://a", "redis://b", "redis://c"], nodeTimeoutMs: 50, rejoin: true };
  await using redlock: Redlock = await connectRedlock(options);
  const spread: Lock = redlock.lock("invoice:42", { ttlMs: 30_000, maxHoldMs: 600_000 });
  console.log(await spread.using((held: Lease) => held.fence));
  await (await connectRedlock({ transports: [fromIoredis(new Redis()), fromNodeRedis(createClient())] })).close();
  // @ts-expect-error: several servers have locks only
  redlock.counter("k", { ttlMs: 1 });
  // @ts-expect-error: several URLs
  await connectRedlock({ urls: "redis://a" });
  // @ts-expect-error: a counter has a TTL
  client.counter("k");
  // @ts-expect-error: a text is no amount
  await seconds.add("30");
  // @ts-expect-error: an add with options has an idempotency key
  await seconds.add(30, {});
  // @ts-expect-error: a fence is a number
  await seconds.drain({ fence: "7" });
  // @ts-expect-error: entries are made by counters
  await client.addMany([30]);
  // @ts-expect-error: expiring needs a time
  client.expiring("session:*");
  // @ts-expect-error: either a URL or a transport
  await connect({});
  await Promise.all(clients.map((one) => one.close()));
  return total + (drained ?? 0n) + fence + added.total + BigInt(written?.length ?? 0);
}
