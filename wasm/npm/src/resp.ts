// The commands of Redis's protocol, version 2, and its replies. Between the core and its transports both are bytes: one
// piece of them crosses at the price of a single object.
import type { Reply } from "./transport.js";

const CR = 13;
const LINE_END = 2;

/** The commands: an array of bulk strings each. */
export function encode(commands: Uint8Array[][]): Uint8Array {
  const parts = commands.flatMap((command) => [line("*", command.length), ...command.flatMap(bulk)]);
  return concatenated(parts);
}

/** So many commands, each as its words; the bytes stay those of `resp`. */
export function split(resp: Uint8Array, commands: number): Uint8Array[][] {
  const cursor = new Cursor(resp);
  const word = () => cursor.take(cursor.number());
  return Array.from({ length: commands }, () => Array.from({ length: cursor.number() }, word));
}

/** The replies of a transport that gives them as what they are in JavaScript. Throws a `TypeError` for what is none. */
export function encodeReplies(replies: Reply[]): Uint8Array {
  if (!Array.isArray(replies)) {
    throw new TypeError(NO_REPLY);
  }
  return concatenated(replies.flatMap(encodeReply));
}

/** The replies in RESP. A number is a `bigint`: one of the server's may be more than JavaScript's are exact for. */
export function decodeReplies(resp: Uint8Array): Reply[] {
  const cursor = new Cursor(resp);
  const replies: Reply[] = [];
  while (!cursor.isAtEnd) {
    replies.push(decodeReply(cursor));
  }
  return replies;
}

/** All parts, one behind the other. */
export function concatenated(parts: Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

const NO_REPLY = "the transport answered with something that is no reply";

function encodeReply(reply: Reply): Uint8Array[] {
  if (reply === null) {
    return [line("$", -1)];
  }
  if (reply instanceof Uint8Array) {
    return bulk(reply);
  }
  if (Array.isArray(reply)) {
    return [line("*", reply.length), ...reply.flatMap(encodeReply)];
  }
  if (reply instanceof Error) {
    return [line("-", reply.message.replace(/[\r\n]/g, " "))];
  }
  if (typeof reply === "string") {
    return bulk(encoder.encode(reply));
  }
  // A number that JavaScript may have rounded is no number of the server's.
  if (Number.isSafeInteger(reply) || (typeof reply === "bigint" && BigInt.asIntN(64, reply) === reply)) {
    return [line(":", String(reply))];
  }
  throw new TypeError(NO_REPLY);
}

function decodeReply(cursor: Cursor): Reply {
  switch (cursor.mark()) {
    case "+":
      return cursor.line();
    case "-":
      return new Error(decoder.decode(cursor.line()));
    case ":":
      return BigInt(decoder.decode(cursor.line()));
    case "$": {
      const length = cursor.number();
      return length < 0 ? null : cursor.take(length);
    }
    default: {
      const length = cursor.number();
      return length < 0 ? null : Array.from({ length }, () => decodeReply(cursor));
    }
  }
}

/** Where one reads. The bytes are known to be well-formed. */
class Cursor {
  #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** The mark of what comes, which is passed over by whatever reads it. */
  mark(): string {
    return String.fromCharCode(this.#bytes[this.#at] ?? 0);
  }

  /** The line behind a mark. */
  line(): Uint8Array {
    const end = this.#bytes.indexOf(CR, this.#at);
    const line = this.#bytes.subarray(this.#at + 1, end);
    this.#at = end + LINE_END;
    return line;
  }

  number(): number {
    return Number(decoder.decode(this.line()));
  }

  /** So many bytes and the end of their line. */
  take(length: number): Uint8Array {
    const start = this.#at;
    this.#at += length + LINE_END;
    return this.#bytes.subarray(start, start + length);
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const END = encoder.encode("\r\n");

function line(mark: string, text: string | number): Uint8Array {
  return encoder.encode(`${mark}${text}\r\n`);
}

function bulk(bytes: Uint8Array): Uint8Array[] {
  return [line("$", bytes.length), bytes, END];
}
