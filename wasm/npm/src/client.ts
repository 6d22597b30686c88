import { bytes, ms } from "./arguments.js";
import { type Added, Entry, unpack } from "./batch.js";
import { Counter, type CounterOptions } from "./counter.js";
import type { TallylockError } from "./error.js";
import { Guarded } from "./guarded.js";
import type { RuntimeHost } from "./host.js";
import { keepingOf, Lock, type LockOptions } from "./lock.js";
import { HEALED, type Metrics, metricsOf } from "./metrics.js";
import { type ExpiringOptions, type Page, Scan, type ScanOptions } from "./scan.js";
import type * as Glue from "./tallylock_wasm.js";
import type { Transport } from "./transport.js";
import { Value } from "./value.js";

/** What every client can be made with. */
export interface ClientOptions {
  /** How long one call may take, repeats included, in milliseconds. Default 2000. An acquire that waits has its own. */
  timeoutMs?: number;
  /**
   * What locks say about their owner for people who look at them: 1 to 64 visible ASCII characters, or false for nothing.
   * Default: host name and process id, where the runtime has them.
   */
  owner?: string | false;
}

/** A client of one server. Its handles are made freely; only their verbs talk to the server. */
export class Client {
  #host: RuntimeHost;
  #client: Glue.Client;
  #transport: Transport;

  /** @internal */
  constructor(host: RuntimeHost, client: Glue.Client, transport: Transport) {
    this.#host = host;
    this.#client = client;
    this.#transport = transport;
  }

  /**
   * A counter by its key, which is used as given.
   *
   * Throws `invalid_argument` for a key that is empty, longer than 16 KiB or breaks the layout, and for a TTL out of bounds.
   */
  counter(key: string | Uint8Array, options: CounterOptions): Counter {
    const name = bytes(this.#client, "a key", key).slice();
    const expiry = options?.expiry ?? "sliding";
    if (expiry !== "sliding" && expiry !== "fixed") {
      throw this.#client.invalidArgument(`expiry is "sliding" or "fixed", not ${JSON.stringify(expiry)}`, name);
    }
    const ttlMs = ms(options?.ttlMs);
    const counter = this.#client.counter(name, ttlMs, expiry === "fixed");
    return new Counter(this.#client, name, counter, { ttlMs, expiry });
  }

  /** A value by its key. Throws `invalid_argument` as {@link counter} does. */
  value(key: string | Uint8Array): Value {
    return new Value(this.#client, this.#client.value(bytes(this.#client, "a key", key)));
  }

  /** A value by its key that only holders of a lock write. Throws `invalid_argument` as {@link counter} does. */
  guarded(key: string | Uint8Array): Guarded {
    const name = bytes(this.#client, "a key", key).slice();
    return new Guarded(this.#client, name, this.#client.value(name));
  }

  /**
   * A lock by its key, whose leases have this TTL and are renewed until they are released. It is for one holder at a time: make
   * another handle for another one.
   *
   * Throws `invalid_argument` as {@link counter} does, for a TTL that its drift (a hundredth and 2 ms) would use up, and for
   * other times that cannot be.
   */
  lock(key: string | Uint8Array, options: LockOptions): Lock {
    const lock = this.#client.lock(bytes(this.#client, "a key", key), ms(options?.ttlMs), ...keepingOf(options));
    return new Lock(this.#host, lock);
  }

  /**
   * Adds to any counters of this client in one round trip: up to 10,000 entries, made by `counter.entry()`. Each is atomic
   * and has a result of its own, in the same order, so that a bad one neither stops nor hides the others: what went wrong
   * with it is its result. That of a keyed entry is known in the end, that of a plain one may be `outcome_unknown`.
   *
   * Rejects, with nothing sent, with `invalid_argument` for more than 10,000 entries and for what is no entry of this
   * client's counters.
   */
  async addMany(entries: Iterable<Entry>): Promise<(Added | TallylockError)[]> {
    const results = await this.#client.addMany(Entry.pack(this.#client, entries));
    return unpack(results as [Uint8Array, TallylockError[]]);
  }

  /** Looks through all keys of the server for counters that match `pattern` (`*`, `?`, `[a-z]`). Sends nothing yet. */
  scan(pattern: string | Uint8Array, options: ScanOptions = {}): Scan {
    return this.#scan(pattern, options);
  }

  /**
   * Like {@link scan}, but finds only counters with something in them that end within a time or have lost their TTL: what is
   * to be billed before it is gone. Sends nothing yet.
   */
  expiring(pattern: string | Uint8Array, options: ExpiringOptions): Scan {
    return this.#scan(pattern, options, ms(options?.withinMs));
  }

  /** How many counters had lost their TTL and were given one by a drain or a claim of this client. */
  get healed(): number {
    return this.#client.figure(HEALED);
  }

  /**
   * What this client has counted of its locks and counters: acquires by outcome, waits, holds, renewals, losses by reason. Sends
   * nothing; may be called as often as one likes, also once the client is closed.
   */
  metrics(): Metrics {
    return metricsOf(this.#client);
  }

  /**
   * Ends the client: later calls reject with `closed`, so do acquires that wait; calls under way are awaited.
   *
   * It touches no data: leases that are held stay until their time is over.
   */
  async close(): Promise<void> {
    await this.#client.close();
    await this.#transport.close?.();
  }

  /** Closes it; see {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #scan(pattern: string | Uint8Array, options: ScanOptions | undefined, withinMs?: number): Scan {
    const wanted = bytes(this.#client, "a pattern", pattern).slice();
    const page = async (cursor: string | null) => {
      const from = cursor === null ? undefined : bytes(this.#client, "a cursor", cursor);
      return (await this.#client.scan(wanted, from, withinMs)) as Page;
    };
    return new Scan(page, options?.cursor ?? null);
  }
}
