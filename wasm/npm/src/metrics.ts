import type * as Glue from "./tallylock_wasm.js";

/**
 * What a client has counted of its locks since it was made: numbers that only grow, and the extremes.
 *
 * `granted + adopted` leases came to be; of them `released + transferred + abandoned` and those that were lost are over, and the
 * others are held.
 */
export interface Metrics {
  /** Acquires that were granted the lock. */
  readonly granted: number;
  /** Acquires that ended as `busy`. */
  readonly busy: number;
  /** Acquires that their callers gave up. */
  readonly cancelled: number;
  /** Acquires that ended with another error. */
  readonly failed: number;
  /** How often these have asked for the lock. */
  readonly attempts: number;
  /** How long these have taken, all together, in milliseconds. */
  readonly waitedMs: number;
  /** How long the longest of these took, in milliseconds. */
  readonly longestWaitMs: number;
  /** Leases that were taken over by `adopt`. */
  readonly adopted: number;
  /** Leases that were released. */
  readonly released: number;
  /** Leases that were given away by `transfer`. */
  readonly transferred: number;
  /** Leases that were forgotten without a release, or whose release has an unknown outcome. */
  readonly abandoned: number;
  /** Leases that were lost, by the `reason` of the error. */
  readonly lost: Losses;
  /** How long leases were held that were released, given away or lost, all together, in milliseconds. */
  readonly heldMs: number;
  /** How long the one of these was held that was held the longest, in milliseconds. */
  readonly longestHoldMs: number;
  /** Renewals that gave a lease its TTL again. An `extend` is none. */
  readonly renewals: number;
  /** Renewals that had no success; each is tried again while there is time. */
  readonly failedRenewals: number;
  /** The least that was left of a lease when it was renewed, in milliseconds; null before the first renewal. */
  readonly smallestMarginMs: number | null;
  /** Counters that had lost their TTL and were given one by a drain or a claim. */
  readonly healed: number;
}

/** How many leases were lost, by the `reason` of the error. */
export interface Losses {
  /** Their time ran out, or the server had them no more: restarted, evicted, stolen. */
  readonly expired: number;
  /** Another token was in their place. */
  readonly taken_over: number;
  /** Their time ran out while the server could not be asked for more. */
  readonly unreachable: number;
}

/** The numbers of a client, each by its place among those of the core. */
export function metricsOf(client: Glue.Client): Metrics {
  const figure = (place: number) => client.figure(place);
  const margin = figure(18);
  return {
    granted: figure(0),
    busy: figure(1),
    cancelled: figure(2),
    failed: figure(3),
    attempts: figure(4),
    waitedMs: figure(5),
    longestWaitMs: figure(6),
    adopted: figure(7),
    released: figure(8),
    transferred: figure(9),
    abandoned: figure(10),
    lost: { expired: figure(11), taken_over: figure(12), unreachable: figure(13) },
    heldMs: figure(14),
    longestHoldMs: figure(15),
    renewals: figure(16),
    failedRenewals: figure(17),
    smallestMarginMs: margin < 0 ? null : margin,
    healed: figure(HEALED),
  };
}

/** Where the number of healed counters is. */
export const HEALED = 20;
