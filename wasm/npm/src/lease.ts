import { ms } from "./arguments.js";
import type * as Glue from "./tallylock_wasm.js";
import type { TtlOptions } from "./value.js";

/**
 * The time-limited right to a lock, renewed by itself until {@link release}, {@link transfer}, its loss, or the lock's
 * `maxHoldMs`.
 *
 * An `await using` declaration releases it at the end of its block. Forgetting it releases nothing: once the garbage collector
 * has found that, it is renewed no more and ends with its TTL; but it is not forgotten if its {@link signal} was asked for.
 */
export class Lease implements AsyncDisposable {
  /** The fencing token: larger than that of every earlier lease of this lock, under the conditions in the guarantees. */
  readonly fence: bigint;

  #lock: Glue.Lock;
  /** By which the core knows it. */
  #number: number;
  #controller: AbortController | undefined;

  /** @internal */
  constructor(lock: Glue.Lock, number: number) {
    this.fence = lock.fence(number);
    this.#lock = lock;
    this.#number = number;
  }

  /**
   * Is aborted when the lease is lost, no later than at its deadline, also when the server is silent; its reason is the error
   * `lost`. Never if it is released or transferred before.
   *
   * After a time in which the event loop was blocked it is aborted as soon as that turns; {@link isValid} and {@link ensure} tell the
   * truth at once.
   */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      // Who waits for the signal may be known to the signal alone: the core refers to all of them as long as the lease lasts.
      this.#lock.onLost(this.#number, (error: unknown) => this.#controller?.abort(error));
    }
    return this.#controller.signal;
  }

  /** How long it is still ours by our own clock, in milliseconds; 0 once it is not. */
  remainingMs(): number {
    return this.#lock.remainingMs(this.#number);
  }

  /** Whether it is still ours by our own clock. */
  isValid(): boolean {
    return this.#lock.remainingMs(this.#number) > 0;
  }

  /** Throws `lost` unless it is ours for at least `marginMs` more milliseconds (0 or more), by our own clock. */
  ensure(marginMs: number): void {
    this.#lock.ensure(this.#number, ms(marginMs));
  }

  /**
   * Asks the server whether it is ours for at least `marginMs` more milliseconds (0 or more; 0 if not said). Changes nothing.
   *
   * Rejects with `lost` if not, `timeout` if the server does not answer in time, and `unavailable` if it cannot be reached.
   */
  async verify(marginMs = 0): Promise<void> {
    await this.#lock.verify(this.#number, ms(marginMs));
  }

  /**
   * Gives it a TTL from now: `ttlMs`, or the lock's own. It is renewed to that from then on.
   *
   * Rejects with `lost` if it is no longer ours: an expired lock is never resurrected.
   */
  async extend(options?: TtlOptions): Promise<void> {
    await this.#lock.extend(this.#number, options === undefined ? undefined : ms(options.ttlMs));
  }

  /**
   * Gives the lease away: whoever has the text that this gives can adopt it ({@link Lock.adopt}), in this process or another,
   * for as long as it lasts. It is renewed no more, and a release does nothing. The text is the right to release, so it belongs
   * into no log.
   *
   * Rejects with `lost` if it is no longer ours.
   */
  async transfer(): Promise<string> {
    return (await this.#lock.transfer(this.#number)) as string;
  }

  /**
   * Deletes the lock if it is still ours; does nothing once that has succeeded. No renewal comes after it: one that is under way
   * is waited for. After a failure it can be called again.
   *
   * Rejects with `lost` if it is not ours, at once if that is known.
   */
  release(): Promise<void> {
    return this.#lock.release(this.#number) as Promise<void>;
  }

  /** Releases it; see {@link release}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}
