// The billing job in its shortest form: add seconds, then bill them under a lock, fenced.
// Argument: a URL; memory:// if none is given.
const [url = "memory://"] = process.argv.slice(2);
const { connect } = await import(url.startsWith("memory:") ? "tallylock/memory" : "tallylock");

const client = await connect({ url });
const pending = client.counter("session:42:billableSecondsPending", { ttlMs: 900_000 });
await pending.add(30);
await pending.add(45);

await client.lock("billing:42", { ttlMs: 30_000 }).using({ waitMs: 5_000 }, async (lease) => {
  const seconds = await pending.drain();
  lease.ensure(2_000);
  console.log(`invoice: ${seconds} seconds, fence ${lease.fence}`);
});
await client.close();
