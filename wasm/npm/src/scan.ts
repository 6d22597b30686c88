/** How to look for counters. */
export interface ScanOptions {
  /** Where an earlier look for the same pattern stood (see {@link Scan.cursor}), to go on from there. */
  cursor?: string | null;
}

/** Which counters are expiring. */
export interface ExpiringOptions extends ScanOptions {
  /** They end within so many milliseconds: 0 to 10 years. */
  withinMs: number;
}

/** A counter that was found. */
export interface CounterFound {
  /** Its key. */
  key: Uint8Array;
  /** What it holds. */
  total: bigint;
  /** Its remaining milliseconds; null if it has lost its TTL. */
  remainingMs: number | null;
}

/** One page of a look through a server's keys: where to go on, and of each that was found a name, a number and its time. */
export type Page = [cursor: string | null, found: [name: Uint8Array, number: bigint, remainingMs: number | null][]];

/**
 * The counters that match a pattern, to be gone through by `for await`; no more than a page is in memory.
 *
 * A counter may come twice, and one that comes or goes meanwhile may be missed: that is what the server's SCAN gives. Each
 * loop goes on from {@link cursor}; it fails with `forbidden` if the account may not SCAN, and then may be begun again.
 */
export class Scan implements AsyncIterable<CounterFound> {
  #page: (cursor: string | null) => Promise<Page>;
  #cursor: string | null;

  /** @internal */
  constructor(page: (cursor: string | null) => Promise<Page>, cursor: string | null) {
    this.#page = page;
    this.#cursor = cursor;
  }

  /**
   * Where it stands, to be kept and gone on from: before the page whose counters are being given, so that none is passed
   * over. Null at the beginning and at the end.
   */
  get cursor(): string | null {
    return this.#cursor;
  }

  /** The counters, from {@link cursor} on. */
  async *[Symbol.asyncIterator](): AsyncGenerator<CounterFound, void, undefined> {
    let cursor = this.#cursor;
    do {
      const [next, found] = await this.#page(cursor);
      for (const [key, total, remainingMs] of found) {
        yield { key, total, remainingMs };
      }
      // Not before the last of the page was asked beyond: whoever stops in the middle of it gets all of it again.
      cursor = next;
      this.#cursor = cursor;
    } while (cursor !== null);
  }
}
