import { ms, optionalMs } from "./arguments.js";
import { TallylockError } from "./error.js";
import type * as Glue from "./tallylock_wasm.js";
import type { TtlOptions } from "./value.js";

/** How to take a lock. */
export interface AcquireOptions {
  /** How long to wait for a lock that another holds, in milliseconds: 0 (the default) is one try. */
  waitMs?: number;
  /** Ends the wait: the acquire rejects with `cancelled` at once, and what it left on the server is undone. */
  signal?: AbortSignal;
}

/** The right of one owner at a time, for a limited time. */
export class Lock {
  #lock: Glue.Lock;

  /** @internal */
  constructor(lock: Glue.Lock) {
    this.#lock = lock;
  }

  /**
   * Takes the lock, waiting for it as long as is said.
   *
   * Rejects with `busy` if another holds it until the deadline, `timeout` if the server is silent, `unavailable` if it
   * cannot be reached, and `cancelled` once the signal is aborted.
   */
  async acquire(options: AcquireOptions = {}): Promise<Lease> {
    const { waitMs, signal } = options;
    if (!signal) {
      return new Lease((await this.#lock.acquire(optionalMs(waitMs))) as Glue.Lease);
    }
    const acquiring = this.#lock.acquiring(optionalMs(waitMs));
    const stop = () => acquiring.stop();
    // Before it begins: what is no signal must leave no lock behind, and a transport may abort it while it sends.
    signal.addEventListener("abort", stop, { once: true });
    try {
      if (signal.aborted) {
        stop();
      }
      const lease = (await acquiring.start()) as Glue.Lease;
      if (signal.aborted) {
        // Between the grant and here.
        throw lease.cancelled();
      }
      return new Lease(lease);
    } catch (error) {
      if (signal.aborted && error instanceof TallylockError && error.code === "cancelled") {
        error.cause = signal.reason;
      }
      throw error;
    } finally {
      signal.removeEventListener("abort", stop);
      // Until the garbage collector came for it, each further acquire would have to pass over it.
      acquiring.free();
    }
  }

  /**
   * Holds the lock while `work` runs, releases it after that, and gives what `work` gives.
   *
   * Rejects like {@link acquire}, with what `work` throws, or with `lost` if the lock was lost meanwhile.
   */
  using<T>(work: (lease: Lease) => T | Promise<T>): Promise<T>;
  using<T>(options: AcquireOptions, work: (lease: Lease) => T | Promise<T>): Promise<T>;
  async using<T>(
    first: AcquireOptions | ((lease: Lease) => T | Promise<T>),
    second?: (lease: Lease) => T | Promise<T>,
  ): Promise<T> {
    const [options, work] = typeof first === "function" ? [{}, first] : [first, second];
    if (typeof work !== "function") {
      throw new TypeError("using() needs a function to run while the lock is held");
    }
    const lease = await this.acquire(options);
    let result: T;
    try {
      result = await work(lease);
    } catch (error) {
      // What went wrong in the work is what the caller has to know, as it was thrown: the SuppressedError of `await using`
      // would hide its class from the caller just when the server is in trouble, and `cause` is not ours to set.
      await lease.release().catch(() => undefined);
      throw error;
    }
    await lease.release();
    return result;
  }
}

/**
 * The time-limited right to a lock. It ends with {@link release}, or when its time is over.
 *
 * An `await using` declaration releases it at the end of its block. Forgetting it releases nothing.
 */
export class Lease implements AsyncDisposable {
  #lease: Glue.Lease;

  /** @internal */
  constructor(lease: Glue.Lease) {
    this.#lease = lease;
  }

  /** The fencing token: larger than that of every earlier lease of this lock, under the conditions in the guarantees. */
  get fence(): bigint {
    return this.#lease.fence;
  }

  /** How long it is still ours by our own clock, in milliseconds; 0 once it is not. */
  remainingMs(): number {
    return this.#lease.remainingMs();
  }

  /** Whether it is still ours by our own clock. */
  isValid(): boolean {
    return this.#lease.remainingMs() > 0;
  }

  /** Throws `lost` unless it is ours for at least `marginMs` more milliseconds (0 or more), by our own clock. */
  ensure(marginMs: number): void {
    this.#lease.ensure(ms(marginMs));
  }

  /**
   * Gives it a TTL from now: `ttlMs`, or the lock's own.
   *
   * Rejects with `lost` if it is no longer ours: an expired lock is never resurrected.
   */
  async extend(options?: TtlOptions): Promise<void> {
    await this.#lease.extend(options === undefined ? undefined : ms(options.ttlMs));
  }

  /** Deletes the lock if it is still ours; does nothing once that has succeeded. Rejects with `lost` if it is not. */
  async release(): Promise<void> {
    await this.#lease.release();
  }

  /** Releases it; see {@link release}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}
