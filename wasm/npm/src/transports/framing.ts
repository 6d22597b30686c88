const CR = 13;
const LF = 10;
const LINE_END = 2;
const [TEXT, ERROR, NUMBER, BULK, LIST, MINUS, ZERO] = [..."+-:$*-0"].map((mark) => mark.charCodeAt(0));

/** How deep lists may stand in one another, and how long a line, a text and a list may be: more than a server of ours sends. */
const DEEPEST = 8;
const LONGEST_LINE = 64 * 1024;
const LONGEST = 512 * 1024 * 1024;

/**
 * Finds out where the replies to a call end, in bytes of RESP that come in pieces.
 *
 * It looks at marks and lengths only: what they mean is for the core.
 */
export class Framing {
  /** How many of the bytes have been looked at, of the present piece or of those that were kept. */
  #at = 0;
  /** How many replies are missing yet: to the call, and in each list that is being read. */
  #missing: number[] = [];
  /** What came of a call's replies before the last piece, in memory that may be longer. */
  #kept = NOTHING;
  #length = 0;

  /**
   * Takes in a piece, and calls back with the replies to each call that are complete by it: views of memory that will be used
   * for something else.
   *
   * @param expected tells how many replies the next call waits for; 0 if nobody waits
   * @returns what is wrong with the bytes, if something is
   */
  read(piece: Uint8Array, expected: () => number, complete: (replies: Uint8Array) => void): string | undefined {
    const bytes = this.#length === 0 ? piece : this.#keep(piece);
    let start = 0;
    while (this.#at < bytes.length) {
      if (this.#missing.length === 0) {
        const count = expected();
        if (count === 0) {
          return "the server sent a reply that nobody had asked for";
        }
        this.#missing.push(count);
      }
      const isThere = this.#readOne(bytes);
      if (isThere === undefined) {
        return "the server does not speak RESP";
      }
      if (!isThere) {
        break;
      }
      if (this.#missing.length === 0) {
        const replies = bytes.subarray(start, this.#at);
        start = this.#at;
        complete(replies);
      }
    }
    this.#keepFrom(bytes, start);
    return undefined;
  }

  /** Goes past a reply, or to the first in a list, if all of it is there; gives nothing for what is none. */
  #readOne(bytes: Uint8Array): boolean | undefined {
    const end = bytes.indexOf(CR, this.#at);
    if (end < 0 || end + 1 === bytes.length) {
      return bytes.length - this.#at < LONGEST_LINE ? false : undefined;
    }
    if (bytes[end + 1] !== LF) {
      return undefined;
    }
    let next = end + LINE_END;
    const mark = bytes[this.#at];
    if (mark === BULK || mark === LIST) {
      const length = numberIn(bytes, this.#at + 1, end);
      if (length === undefined || length > LONGEST) {
        return undefined;
      }
      if (mark === LIST && length > 0) {
        this.#at = next;
        return this.#missing.push(length) <= DEEPEST ? true : undefined;
      }
      if (mark === BULK && length >= 0) {
        next += length + LINE_END;
        if (next > bytes.length) {
          return false;
        }
      }
    } else if (mark !== TEXT && mark !== ERROR && mark !== NUMBER) {
      return undefined;
    }
    this.#at = next;
    this.#oneLess();
    return true;
  }

  #oneLess(): void {
    for (let depth = this.#missing.length - 1; depth >= 0; depth--) {
      const missing = (this.#missing[depth] ?? 0) - 1;
      this.#missing[depth] = missing;
      if (missing > 0) {
        return;
      }
      this.#missing.pop();
    }
  }

  /** What was kept, with the piece behind it. */
  #keep(piece: Uint8Array): Uint8Array {
    const length = this.#length + piece.length;
    if (length > this.#kept.length) {
      const longer = new Uint8Array(2 * length);
      longer.set(this.#kept.subarray(0, this.#length));
      this.#kept = longer;
    }
    this.#kept.set(piece, this.#length);
    this.#length = length;
    return this.#kept.subarray(0, length);
  }

  /** Keeps what has no end yet. */
  #keepFrom(bytes: Uint8Array, start: number): void {
    this.#at -= start;
    if (start === bytes.length) {
      // A long reply leaves no long memory behind.
      this.#kept = NOTHING;
      this.#length = 0;
    } else if (this.#length === 0) {
      this.#keep(bytes.subarray(start));
    } else {
      this.#kept.copyWithin(0, start, bytes.length);
      this.#length = bytes.length - start;
    }
  }
}

const NOTHING = new Uint8Array(0);

/** A whole number of up to ten digits. */
function numberIn(bytes: Uint8Array, start: number, end: number): number | undefined {
  const isNegative = bytes[start] === MINUS;
  const first = isNegative ? start + 1 : start;
  if (first === end || end - first > 10) {
    return undefined;
  }
  let number = 0;
  for (let at = first; at < end; at++) {
    const digit = (bytes[at] ?? 0) - Number(ZERO);
    if (digit < 0 || digit > 9) {
      return undefined;
    }
    number = number * 10 + digit;
  }
  return isNegative ? -number : number;
}
