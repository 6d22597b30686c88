import { bytes, fence, integer, optionalMs } from "./arguments.js";
import { type Added, Entry, packAdd, packCounter } from "./batch.js";
import { type Claim, type ClaimState, inOrder, OpenClaim } from "./claim.js";
import type { Page } from "./scan.js";
import type * as Glue from "./tallylock_wasm.js";

/** What a counter is made with. */
export interface CounterOptions {
  /** Its TTL in milliseconds, 1 ms to 10 years; a fraction is rounded up. */
  ttlMs: number;
  /** When an add sets the TTL: on each (`sliding`, the default), or only on a counter that has none (`fixed`). */
  expiry?: "sliding" | "fixed";
}

/** What makes an add count once. */
export interface OnceOptions {
  /** The caller's own name for it, 1 to 512 bytes, unique among those of the counter. */
  idempotencyKey: string | Uint8Array;
  /**
   * How long the server remembers that name, in milliseconds, 1 ms to 10 years; 24 hours if not said. It takes some 150 bytes
   * of the server's memory for so long.
   */
  rememberMs?: number;
}

/** For the holder of a lock. */
export interface FenceOptions {
  /** The fence of the lease: a holder that was overtaken by one with a higher fence is refused with `fenced_off`. */
  fence: bigint | number;
}

/** A whole number of 64 bits on the server that never loses its TTL. */
export class Counter {
  #client: Glue.Client;
  #key: Uint8Array;
  #counter: Glue.Counter;
  #options: CounterOptions;
  /** What its entries have in common, once there is one. */
  #packed: Uint8Array | undefined;

  /** @internal */
  constructor(client: Glue.Client, key: Uint8Array, counter: Glue.Counter, options: CounterOptions) {
    this.#client = client;
    this.#key = key;
    this.#counter = counter;
    this.#options = options;
  }

  /**
   * Adds `amount`, any whole number of 64 bits, sets the TTL in the same step, and gives the total.
   *
   * Rejects with `wrong_type`, `not_an_integer` or `overflow`, and with `outcome_unknown` if the reply is lost: an add is
   * never repeated by itself.
   */
  add(amount: bigint | number): Promise<bigint>;
  /**
   * Adds `amount` unless it was added under this idempotency key before; gives the present total and whether this call
   * added. It is repeated by itself after a lost reply, and may be repeated by the caller as long as the key is remembered.
   *
   * Rejects with `conflict` if another amount was added under this key, and like the add without one.
   */
  add(amount: bigint | number, options: OnceOptions): Promise<Added>;
  add(amount: bigint | number, options?: OnceOptions): Promise<bigint | Added> {
    try {
      const units = integer(this.#client, this.#key, amount);
      if (options === undefined) {
        return this.#counter.add(units) as Promise<bigint>;
      }
      return this.#addOnce(units, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** An {@link add} for `client.addMany()`, with or without an idempotency key. Sends nothing. */
  entry(amount: bigint | number, options?: OnceOptions): Entry {
    const units = integer(this.#client, this.#key, amount);
    const add =
      options === undefined
        ? packAdd(units)
        : packAdd(units, this.#id("an idempotency key", options?.idempotencyKey), optionalMs(options?.rememberMs));
    this.#packed ??= packCounter(this.#key, this.#options.ttlMs, this.#options.expiry === "fixed");
    return new Entry(this.#client, [this.#packed, add]);
  }

  /** Gives the total without touching it; null if there is no counter. Rejects with `wrong_type` or `not_an_integer`. */
  read(): Promise<bigint | null> {
    return this.#counter.read() as Promise<bigint | null>;
  }

  /**
   * Takes what the counter holds, leaves 0 in it with the TTL that it has, and gives the amount; null if there is none.
   *
   * Rejects with `wrong_type` or `not_an_integer`, with `fenced_off` for a holder that was overtaken, and with
   * `outcome_unknown` if the reply is lost.
   */
  async drain(options?: FenceOptions): Promise<bigint | null> {
    return (await this.#counter.drain(this.#fence(options))) as bigint | null;
  }

  /**
   * Deletes the counter and gives what was left in it; null if there is none.
   *
   * Rejects with `wrong_type` or `not_an_integer`, and with `outcome_unknown` if the reply is lost.
   */
  finish(): Promise<bigint | null> {
    return this.#counter.finish() as Promise<bigint | null>;
  }

  /**
   * Takes what the counter holds for the claim of this id (1 to 512 bytes), to be {@link commit committed} once it is billed;
   * gives null, and writes nothing, if there is nothing to take.
   *
   * Asked again with the same id it gives the same amount, and what has become of the claim: a biller that died asks again.
   * An open claim is kept for 7 days, an ended one for 24 hours. Repeated by itself after a lost reply.
   *
   * Rejects with `wrong_type`, `not_an_integer`, and `fenced_off` for a holder that was overtaken.
   */
  async claim(id: string | Uint8Array, options?: FenceOptions): Promise<Claim | null> {
    const fence = this.#fence(options);
    const claimed = await this.#counter.claim(this.#id("a claim's id", id), fence);
    if (claimed === null) {
      return null;
    }
    const [amount, state] = claimed as [bigint, ClaimState];
    return { amount, state };
  }

  /**
   * Ends the claim of this id as billed with this amount; done again, it changes nothing. Repeated by itself after a lost
   * reply.
   *
   * Rejects with `conflict` if the claim took another amount, was aborted, or is not there.
   */
  async commit(id: string | Uint8Array, amount: bigint | number): Promise<void> {
    await this.#counter.commit(this.#id("a claim's id", id), integer(this.#client, this.#key, amount));
  }

  /**
   * Ends the claim of this id as not billed, adds its amount to the counter again and gives it; done again, it changes
   * nothing. A counter that is gone is made anew. Repeated by itself after a lost reply.
   *
   * Rejects with `conflict` if the claim was committed or is not there, with `overflow` if the counter cannot take the amount,
   * and with `fenced_off` for a holder that was overtaken, whose successor may have billed the claim: it then stays open.
   */
  async abort(id: string | Uint8Array, options?: FenceOptions): Promise<bigint> {
    const fence = this.#fence(options);
    return (await this.#counter.abort(this.#id("a claim's id", id), fence)) as bigint;
  }

  /**
   * The open claims of this counter, in the order of their ids. It goes through all keys of the server: for billing jobs
   * that start and for people, not for each call.
   *
   * Rejects with `forbidden` if the account may not SCAN.
   */
  async claims(): Promise<OpenClaim[]> {
    const open: OpenClaim[] = [];
    let cursor: string | null = null;
    do {
      const from: Uint8Array | undefined = cursor === null ? undefined : bytes(this.#client, "a cursor", cursor);
      const [next, found] = (await this.#counter.claims(from)) as Page;
      open.push(...found.map(([id, amount, remainingMs]) => new OpenClaim(id, amount, remainingMs)));
      cursor = next;
    } while (cursor !== null);
    return inOrder(open);
  }

  async #addOnce(units: bigint, options: OnceOptions): Promise<Added> {
    const id = this.#id("an idempotency key", options?.idempotencyKey);
    const added = await this.#counter.addOnce(units, id, optionalMs(options?.rememberMs));
    const [total, applied] = added as [bigint, boolean];
    return { total, applied };
  }

  #id(what: string, given: string | Uint8Array): Uint8Array {
    return bytes(this.#client, what, given, this.#key);
  }

  /** Options that lack a fence are a mistake, such as a misspelt name, and not a wish for none. */
  #fence(options: FenceOptions | undefined): bigint | undefined {
    return options === undefined ? undefined : fence(this.#client, this.#key, options?.fence);
  }
}
