import type { TallylockError } from "./error.js";
import { concatenated } from "./resp.js";
import type * as Glue from "./tallylock_wasm.js";

// The layout is that of core/src/counter/packed.rs, with times as milliseconds in a float64; that of the results is in
// wasm/src/batch.rs.
const PLAIN = 0;
const KEYED = 1;
const KEYED_FOR_A_TIME = 2;
const FAILED = 2;
const INTEGER = 8;
const LENGTH = 4;
const RESULT = 1 + INTEGER;
const LITTLE_ENDIAN = true;

/** What an add came to. */
export interface Added {
  /** The present total; 0 if the counter is gone. */
  total: bigint;
  /** Whether this call added; not if it was added under the same idempotency key before. */
  applied: boolean;
}

/** One add of a batch: made by `counter.entry()`, counted by `client.addMany()`. */
export class Entry {
  #client: Glue.Client;
  #parts: Uint8Array[];

  /** @internal */
  constructor(client: Glue.Client, parts: Uint8Array[]) {
    this.#client = client;
    this.#parts = parts;
  }

  /** @internal The bytes of a batch; refuses what is no entry of this client's counters. */
  static pack(client: Glue.Client, entries: Iterable<Entry>): Uint8Array {
    const parts: Uint8Array[] = [];
    for (const entry of entries) {
      if (!(entry instanceof Entry && entry.#client === client)) {
        throw client.invalidArgument("an entry is what entry() of a counter of this client gives");
      }
      parts.push(...entry.#parts);
    }
    return concatenated(parts);
  }
}

/** What the entries of a counter have in common. */
export function packCounter(key: Uint8Array, ttlMs: number, isFixed: boolean): Uint8Array {
  const head = new DataView(new ArrayBuffer(INTEGER + 1));
  head.setFloat64(0, ttlMs, LITTLE_ENDIAN);
  head.setUint8(INTEGER, isFixed ? 1 : 0);
  return concatenated([bytesOf(head), ...packText(key)]);
}

/** An add, counted once for its idempotency key if it has one. */
export function packAdd(amount: bigint, id?: Uint8Array, rememberMs?: number): Uint8Array {
  const add = new DataView(new ArrayBuffer(INTEGER + 1));
  add.setBigInt64(0, amount, LITTLE_ENDIAN);
  if (id === undefined) {
    add.setUint8(INTEGER, PLAIN);
    return bytesOf(add);
  }
  add.setUint8(INTEGER, rememberMs === undefined ? KEYED : KEYED_FOR_A_TIME);
  const parts = [bytesOf(add), ...packText(id)];
  if (rememberMs !== undefined) {
    const time = new DataView(new ArrayBuffer(INTEGER));
    time.setFloat64(0, rememberMs, LITTLE_ENDIAN);
    parts.push(bytesOf(time));
  }
  return concatenated(parts);
}

/** The results of a batch. */
export function unpack([packed, failures]: [Uint8Array, TallylockError[]]): (Added | TallylockError)[] {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  return Array.from({ length: packed.length / RESULT }, (_, place) => {
    const kind = view.getUint8(place * RESULT);
    const number = view.getBigInt64(place * RESULT + 1, LITTLE_ENDIAN);
    return kind === FAILED ? (failures[Number(number)] as TallylockError) : { total: number, applied: kind === 1 };
  });
}

/** A length and so many bytes. */
function packText(text: Uint8Array): Uint8Array[] {
  const length = new DataView(new ArrayBuffer(LENGTH));
  length.setUint32(0, text.length, LITTLE_ENDIAN);
  return [bytesOf(length), text];
}

function bytesOf(view: DataView<ArrayBuffer>): Uint8Array {
  return new Uint8Array(view.buffer);
}
