import { bytes, ms } from "./arguments.js";
import type * as Glue from "./tallylock_wasm.js";

/** The TTL to give. */
export interface TtlOptions {
  /** In milliseconds, 1 ms to 10 years; a fraction is rounded up. */
  ttlMs: number;
}

/** A text of any bytes that is written together with its TTL, and only where it is still there. */
export class Value {
  #client: Glue.Client;
  #value: Glue.Value;

  /** @internal */
  constructor(client: Glue.Client, value: Glue.Value) {
    this.#client = client;
    this.#value = value;
  }

  /** Gives the bytes; null if there is no value. Rejects with `wrong_type`. */
  get(): Promise<Uint8Array | null> {
    return this.#value.get() as Promise<Uint8Array | null>;
  }

  /**
   * Writes value and TTL in one step if the key is still there, and gives whether it was.
   *
   * Rejects with `wrong_type`, and with `outcome_unknown` if the reply is lost.
   */
  async replaceIfPresent(value: string | Uint8Array, options: TtlOptions): Promise<boolean> {
    return (await this.#value.replaceIfPresent(bytes(this.#client, "a value", value), ms(options?.ttlMs))) as boolean;
  }

  /** Sets the TTL if the key is still there, and gives whether it was. Rejects with `wrong_type`. */
  async touch(options: TtlOptions): Promise<boolean> {
    return (await this.#value.touch(ms(options?.ttlMs))) as boolean;
  }

  /**
   * Writes value and TTL in one step if the key still holds `expected`, and gives whether it did.
   *
   * Rejects with `wrong_type`, and with `outcome_unknown` if the reply is lost.
   */
  async compareAndSet(
    expected: string | Uint8Array,
    value: string | Uint8Array,
    options: TtlOptions,
  ): Promise<boolean> {
    const seen = bytes(this.#client, "the expected value", expected);
    const written = bytes(this.#client, "a value", value);
    return (await this.#value.compareAndSet(seen, written, ms(options?.ttlMs))) as boolean;
  }
}
