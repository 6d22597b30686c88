import { bytes, ms } from "./arguments.js";
import { Counter, type CounterOptions } from "./counter.js";
import { Lock } from "./lock.js";
import type * as Glue from "./tallylock_wasm.js";
import type { Transport } from "./transport.js";
import { type TtlOptions, Value } from "./value.js";

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
  #client: Glue.Client;
  #transport: Transport;

  /** @internal */
  constructor(client: Glue.Client, transport: Transport) {
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
    return new Counter(this.#client, name, this.#client.counter(name, ms(options?.ttlMs), expiry === "fixed"));
  }

  /** A value by its key. Throws `invalid_argument` as {@link counter} does. */
  value(key: string | Uint8Array): Value {
    return new Value(this.#client, this.#client.value(bytes(this.#client, "a key", key)));
  }

  /**
   * A lock by its key, whose leases have this TTL.
   *
   * Throws `invalid_argument` as {@link counter} does, and for a TTL that its drift (a hundredth and 2 ms) would use up.
   */
  lock(key: string | Uint8Array, options: TtlOptions): Lock {
    return new Lock(this.#client.lock(bytes(this.#client, "a key", key), ms(options?.ttlMs)));
  }

  /** How many counters had lost their TTL and were given one by a drain of this client. */
  get healed(): number {
    return this.#client.healed;
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
}
