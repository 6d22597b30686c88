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

  /**
   * Replaces the value by what `change` makes of it, gives it the TTL in the same step, and gives what was written; null if
   * there is no value.
   *
   * `change` may be called several times: where another writes in between, it is asked again with what is there then. It runs
   * while nothing is locked.
   *
   * Rejects with `conflict` if others were faster until the call's deadline, `wrong_type`, `outcome_unknown` if the reply to
   * a write is lost, and with what `change` throws, in which case nothing is written.
   */
  async update(
    change: (present: Uint8Array) => string | Uint8Array | Promise<string | Uint8Array>,
    options: TtlOptions,
  ): Promise<Uint8Array | null> {
    if (typeof change !== "function") {
      throw new TypeError("update() needs a function that makes a new value of the present one");
    }
    const updating = (await this.#value.readForUpdate(ms(options?.ttlMs))) as Glue.Updating | null;
    if (updating === null) {
      return null;
    }
    try {
      while (true) {
        const value = bytes(this.#client, "a value", await change(updating.present()));
        const isWritten = (await updating.offer(value)) as boolean | null;
        if (isWritten !== false) {
          return isWritten && value;
        }
      }
    } finally {
      updating.free();
    }
  }
}
