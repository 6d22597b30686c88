import { integer } from "./arguments.js";
import type * as Glue from "./tallylock_wasm.js";

/** What a counter is made with. */
export interface CounterOptions {
  /** Its TTL in milliseconds, 1 ms to 10 years; a fraction is rounded up. */
  ttlMs: number;
  /** When an add sets the TTL: on each (`sliding`, the default), or only on a counter that has none (`fixed`). */
  expiry?: "sliding" | "fixed";
}

/** A whole number of 64 bits on the server that never loses its TTL. */
export class Counter {
  #client: Glue.Client;
  #key: Uint8Array;
  #counter: Glue.Counter;

  /** @internal */
  constructor(client: Glue.Client, key: Uint8Array, counter: Glue.Counter) {
    this.#client = client;
    this.#key = key;
    this.#counter = counter;
  }

  /**
   * Adds `amount`, any whole number of 64 bits, sets the TTL in the same step, and gives the total.
   *
   * Rejects with `wrong_type`, `not_an_integer` or `overflow`, and with `outcome_unknown` if the reply is lost: an add is
   * never repeated by itself.
   */
  add(amount: bigint | number): Promise<bigint> {
    try {
      return this.#counter.add(integer(this.#client, this.#key, amount)) as Promise<bigint>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Gives the total without touching it; null if there is no counter. Rejects with `wrong_type` or `not_an_integer`. */
  read(): Promise<bigint | null> {
    return this.#counter.read() as Promise<bigint | null>;
  }

  /**
   * Takes what the counter holds, leaves 0 in it with the TTL that it has, and gives the amount; null if there is none.
   *
   * Rejects with `wrong_type` or `not_an_integer`, and with `outcome_unknown` if the reply is lost.
   */
  drain(): Promise<bigint | null> {
    return this.#counter.drain() as Promise<bigint | null>;
  }

  /**
   * Deletes the counter and gives what was left in it; null if there is none.
   *
   * Rejects with `wrong_type` or `not_an_integer`, and with `outcome_unknown` if the reply is lost.
   */
  finish(): Promise<bigint | null> {
    return this.#counter.finish() as Promise<bigint | null>;
  }
}
