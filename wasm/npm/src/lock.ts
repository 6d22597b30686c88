import { optionalMs } from "./arguments.js";
import { TallylockError } from "./error.js";
import type { RuntimeHost } from "./host.js";
import { Lease } from "./lease.js";
import type * as Glue from "./tallylock_wasm.js";
import type { TtlOptions } from "./value.js";

/** What a lock is made with; its TTL is that of its leases. */
export interface LockOptions extends TtlOptions {
  /**
   * How long after each time that a lease was given its TTL it is renewed, in milliseconds, at most half of the TTL. A third of
   * the TTL if not said; false to end it with its TTL unless it is extended.
   */
  renewEveryMs?: number | false;
  /** How long a lease is held before it is renewed no more, in milliseconds: a holder that hangs loses it. No end if not said. */
  maxHoldMs?: number;
}

/** How the leases of a lock are kept, as the core is told: whether they are renewed, how often, and for how long. */
export function keepingOf(options: LockOptions | undefined): [boolean, number | undefined, number | undefined] {
  const { renewEveryMs, maxHoldMs } = options ?? {};
  const every = renewEveryMs === false ? undefined : optionalMs(renewEveryMs);
  return [renewEveryMs !== false, every, optionalMs(maxHoldMs)];
}

/** How to take a lock. */
export interface AcquireOptions {
  /** How long to wait for a lock that another holds, in milliseconds: 0 (the default) is one try. */
  waitMs?: number;
  /** Ends the wait: the acquire rejects with `cancelled` at once, and what it left on the server is undone. */
  signal?: AbortSignal;
}

/** The right of one owner at a time, for a limited time. While a lease that a handle acquired is ours, it acquires no other. */
export class Lock {
  #host: RuntimeHost;
  #lock: Glue.Lock;

  /** @internal */
  constructor(host: RuntimeHost, lock: Glue.Lock) {
    this.#host = host;
    this.#lock = lock;
  }

  /**
   * Takes the lock, waiting for it as long as is said.
   *
   * Rejects with `busy` if another holds it until the deadline, `already_held` if this handle does, `timeout` if the server is
   * silent, `unavailable` if it cannot be reached, and `cancelled` once the signal is aborted.
   */
  acquire(options: AcquireOptions = {}): Promise<Lease> {
    try {
      const { waitMs, signal } = options;
      if (signal) {
        return this.#acquireUntil(signal, optionalMs(waitMs));
      }
      return this.#lock.acquire(optionalMs(waitMs)).then(this.#leased);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Takes over the lease that {@link Lease.transfer} gave away under this text, with its fence, for this lock's TTL from now.
   *
   * Rejects with `lost` if the lock is no longer held by it, `already_held` if this handle holds the lock, `invalid_argument`
   * for another text, and `outcome_unknown` if the server does not answer in time.
   */
  async adopt(token: string): Promise<Lease> {
    return this.#leased(await this.#lock.adopt(String(token)));
  }

  /**
   * Holds the lock while `work` runs, releases it after that, and gives what `work` gives.
   *
   * Rejects like {@link acquire}, with what `work` throws, or with `lost` if the lock was lost meanwhile. Where `work` has thrown
   * and the release fails too, that is the `cause` of the error, unless it has one or is none.
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
      // would hide its class from the caller just when the server is in trouble.
      await lease.release().catch((failure) => remember(error, failure));
      throw error;
    }
    await lease.release();
    return result;
  }

  /** The lease of a number that the core has given. */
  #leased = (number: unknown): Lease => {
    const lease = new Lease(this.#lock, number as number);
    this.#host.hold(number as number, lease);
    return lease;
  };

  async #acquireUntil(signal: AbortSignal, waitMs: number | undefined): Promise<Lease> {
    const acquiring = this.#lock.acquiring(waitMs);
    const stop = () => acquiring.stop();
    // Before it begins: what is no signal must leave no lock behind, and a transport may abort it while it sends.
    signal.addEventListener("abort", stop, { once: true });
    try {
      if (signal.aborted) {
        stop();
      }
      const lease = await acquiring.start();
      if (signal.aborted) {
        // Between the grant and here.
        throw this.#lock.cancelled(lease as number);
      }
      return this.#leased(lease);
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
}

/** Keeps the error of a release beside that of the work, where that one has room for it. */
function remember(error: unknown, later: TallylockError): void {
  const isTheLoss = error instanceof TallylockError && error.code === "lost" && error.key === later.key;
  if (error instanceof Error && !isTheLoss && error.cause === undefined && Object.isExtensible(error)) {
    error.cause = later;
  }
}
