import { bytes, fence, ms } from "./arguments.js";
import type { FenceOptions } from "./counter.js";
import type * as Glue from "./tallylock_wasm.js";
import type { TtlOptions } from "./value.js";

/**
 * A text of any bytes that only the holder of a lock writes, in the name of its fence: once a holder with a higher fence was
 * here, an earlier one is refused with `fenced_off`. The guard is that of fenced drains and claims at the same key. It is kept
 * for 7 days after its last use, also when the text is deleted or ends; once it is forgotten, a holder from before passes.
 * `client.value()` reads the text.
 *
 * Neither verb is repeated by itself after a lost reply, which ends as `outcome_unknown`: the fence keeps other holders out, but
 * not what the same holder wrote in between. A holder who writes one after the other may repeat it.
 */
export class Guarded {
  #client: Glue.Client;
  #key: Uint8Array;
  #value: Glue.Value;

  /** @internal */
  constructor(client: Glue.Client, key: Uint8Array, value: Glue.Value) {
    this.#client = client;
    this.#key = key;
    this.#value = value;
  }

  /**
   * Writes value and TTL in one step, whether the key is there or not.
   *
   * Rejects with `fenced_off` for a holder that was overtaken, `wrong_type`, `invalid_argument` for a fence or a TTL out of
   * bounds, and `outcome_unknown` if the reply is lost.
   */
  async set(value: string | Uint8Array, options: FenceOptions & TtlOptions): Promise<void> {
    const written = bytes(this.#client, "a value", value, this.#key);
    await this.#value.guardedSet(written, this.#fence(options), ms(options?.ttlMs));
  }

  /**
   * Deletes the value and gives whether there was one; its guard stays.
   *
   * Rejects with `fenced_off` for a holder that was overtaken, `wrong_type`, `invalid_argument` for a fence out of bounds, and
   * `outcome_unknown` if the reply is lost.
   */
  async delete(options: FenceOptions): Promise<boolean> {
    return (await this.#value.guardedDelete(this.#fence(options))) as boolean;
  }

  #fence(options: FenceOptions): bigint {
    return fence(this.#client, this.#key, options?.fence);
  }
}
