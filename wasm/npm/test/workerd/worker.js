// What runs inside workerd: the package as a Worker imports it, and a socket of the Worker's own.
import { connect as open } from "cloudflare:sockets";
import { connect, fromSocket } from "tallylock";
import { connectRedlock } from "tallylock/redlock";

export default {
  async fetch(_request, env) {
    const ports = env.SERVER_PORTS.split(",").map(Number);
    const client = await connect({ transport: fromSocket(() => open({ hostname: "127.0.0.1", port: ports[0] })) });
    try {
      return Response.json({ ...(await work(client)), spread: await workOnSeveral(ports) });
    } finally {
      await client.close();
    }
  },
};

async function work(client) {
  const seconds = client.counter("session:42:billableSecondsPending", { ttlMs: 900_000 });
  const totals = await Promise.all([seconds.add(30), seconds.add(2n ** 60n), seconds.add(-5)]);
  const drained = await seconds.drain();
  const lock = client.lock("invoice:42", { ttlMs: 30_000 });
  const fences = [];
  const refused = await lock.using(async (lease) => {
    fences.push(lease.fence);
    return client
      .lock("invoice:42", { ttlMs: 30_000 })
      .acquire({ waitMs: 1_000 })
      .catch(({ code }) => code);
  });
  await lock.using((lease) => fences.push(lease.fence));
  const renewed = await client.lock("invoice:43", { ttlMs: 3_000 }).using(async (lease) => {
    await new Promise((wake) => setTimeout(wake, 4_500));
    return lease.isValid() && !lease.signal.aborted;
  });
  const lost = await client.lock("invoice:44", { ttlMs: 300, renewEveryMs: false }).acquire();
  await new Promise((wake) => {
    lost.signal.addEventListener("abort", wake);
    // It may have been lost before.
    if (lost.signal.aborted) {
      wake(undefined);
    }
  });
  const wrong = await Promise.resolve()
    .then(() => client.counter("", { ttlMs: 1 }))
    .catch(({ code }) => code);
  const texts = (list) => list.map(String);
  return {
    totals: texts(totals),
    drained: String(drained),
    fences: texts(fences),
    refused,
    renewed,
    reason: lost.signal.reason.reason,
    wrong,
  };
}

/** A lock over several servers, and what another is told meanwhile. */
async function workOnSeveral(ports) {
  const transports = () => ports.map((port) => fromSocket(() => open({ hostname: "127.0.0.1", port })));
  const [redlock, other] = await Promise.all(
    [1, 2].map(() => connectRedlock({ transports: transports(), timeoutMs: 20_000, nodeTimeoutMs: 10_000 })),
  );
  try {
    return await redlock.lock("spread", { ttlMs: 30_000 }).using({ waitMs: 20_000 }, async (lease) => {
      await lease.verify();
      const refusal = await other
        .lock("spread", { ttlMs: 30_000 })
        .acquire()
        .catch((error) => error);
      return { refused: refusal.code, message: refusal.message.match(/held by another on/)?.[0] };
    });
  } finally {
    await Promise.all([redlock.close(), other.close()]);
  }
}
