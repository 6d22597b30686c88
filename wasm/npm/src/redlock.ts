import { bytes, ms, optionalMs } from "./arguments.js";
import type { ClientOptions } from "./client.js";
import { checkOptions, label, ownTransport, type Refuse, type Runtime } from "./connect.js";
import type * as RedlockGlue from "./full/tallylock_wasm.js";
import { RuntimeHost } from "./host.js";
import { keepingOf, Lock, type LockOptions } from "./lock.js";
import { type Metrics, metricsOf } from "./metrics.js";
import type * as Glue from "./tallylock_wasm.js";
import type { Transport } from "./transport.js";

/** What every client of several servers can be made with. */
export interface RedlockClientOptions extends ClientOptions {
  /**
   * How long a server is waited for that the others can do without, in milliseconds. Default a twentieth of the lock's TTL, at
   * least 25 and at most 500.
   */
  nodeTimeoutMs?: number;
  /**
   * Whether a server that knows nothing of a lock has it again after the next extend, which then waits for all servers. Default
   * no. Only for servers that keep the rule of the delayed restart, see docs/locks.md.
   */
  rejoin?: boolean;
}

/** A client whose locks are on several independent servers, of which more than half decide. It has locks only. */
export class Redlock implements AsyncDisposable {
  #host: RuntimeHost;
  #client: Glue.Client;
  #transports: Transport[];

  /** @internal */
  constructor(host: RuntimeHost, client: Glue.Client, transports: Transport[]) {
    this.#host = host;
    this.#client = client;
    this.#transports = transports;
  }

  /**
   * A lock by its key, with the verbs and options of a lock on one server. It is for one holder at a time: make another handle
   * for another one. Errors count the servers: `granted by 2, held by another on 2, unreachable 1 of 5 nodes`.
   *
   * Throws `invalid_argument` for a key that is empty, longer than 16 KiB or breaks the layout, for a TTL that its drift (a
   * hundredth and 2 ms) would use up, and for other times that cannot be.
   */
  lock(key: string | Uint8Array, options: LockOptions): Lock {
    const lock = this.#client.lock(bytes(this.#client, "a key", key), ms(options?.ttlMs), ...keepingOf(options));
    return new Lock(this.#host, lock);
  }

  /** What this client has counted of its locks, as that of a client of one server. Sends nothing. */
  metrics(): Metrics {
    return metricsOf(this.#client);
  }

  /**
   * Ends the client: later calls reject with `closed`, so do acquires that wait; calls under way are awaited, and for
   * `timeoutMs` at the longest those to servers that the others could do without.
   *
   * It touches no data: leases that are held stay until their time is over.
   */
  async close(): Promise<void> {
    await this.#client.close();
    await closeAll(this.#transports);
  }

  /** Closes it; see {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** What an entry file knows of its runtime. */
export interface RedlockRuntime extends Omit<Runtime, "glue"> {
  /** Instantiates the wasm file; the same instance each time. */
  glue(): Promise<typeof RedlockGlue>;
}

/** Makes a client over a transport for each server, and connects it to more than half of them. */
export async function connectRedlockOver(
  runtime: RedlockRuntime,
  options: RedlockClientOptions,
  transportsFor: (refuse: Refuse) => Transport[],
): Promise<Redlock> {
  const glue = await runtime.glue();
  const host = new RuntimeHost();
  const refuse: Refuse = (detail) => glue.refuseOptions(host, detail);
  checkOptions(options, refuse);
  const transports = transportsFor(refuse);
  const { timeoutMs, nodeTimeoutMs, rejoin = false } = options;
  if (typeof rejoin !== "boolean") {
    throw refuse("rejoin must be true or false");
  }
  const made = glue.Client.ofNodes(
    host,
    transports.length,
    optionalMs(timeoutMs),
    optionalMs(nodeTimeoutMs),
    rejoin,
    label(runtime, options),
  );
  // Of the same shape but for its servers: the types are those of two files.
  host.connect(transports, made as unknown as Glue.Client);
  try {
    await made.openNodes();
  } catch (error) {
    await closeAll(transports);
    throw error;
  }
  return new Redlock(host, made as unknown as Glue.Client, transports);
}

/** Transports of the caller's, one for each server; refuses what is none and one that is there twice. */
export function ownTransports(given: unknown, refuse: Refuse): Transport[] {
  const transports = listOf("transports", given, refuse).map((transport) => ownTransport(transport, refuse));
  refuseTwins("transports", transports, (one, other) => one === other, refuse);
  return transports;
}

/** A list that was given; refuses what is none, such as a text. */
export function listOf(what: string, given: unknown, refuse: Refuse): unknown[] {
  if (!Array.isArray(given)) {
    throw refuse(`${what} must be an array`);
  }
  return given;
}

/** Refuses two that are one server: it is not independent of itself. */
export function refuseTwins<T>(what: string, all: T[], areOne: (one: T, other: T) => boolean, refuse: Refuse): void {
  for (const [place, one] of all.entries()) {
    const first = all.findIndex((other) => areOne(one, other));
    if (first < place) {
      throw refuse(`${what} ${first + 1} and ${place + 1} name the same server: independent ones are needed`);
    }
  }
}

async function closeAll(transports: Transport[]): Promise<void> {
  await Promise.all(transports.map((transport) => transport.close?.()));
}
