import type { Reply, Transport } from "./transport.js";

/** A transport over bytes: it takes commands in RESP as they come out of the core. */
export interface EncodedTransport extends Transport {
  /** As {@link Transport.send}, of so many commands in RESP; it copies what it keeps. */
  sendEncoded(resp: Uint8Array, commands: number, operation: number): Promise<Reply[]>;
}

/** Whether a transport takes commands in RESP. */
export function hasEncoded(transport: Transport | undefined): transport is EncodedTransport {
  return transport !== undefined && "sendEncoded" in transport;
}

const CR = 13;
const LINE_END = 2;

/** The commands in RESP: an array of bulk strings each. */
export function encode(commands: Uint8Array[][]): Uint8Array {
  const encoder = new TextEncoder();
  const parts: Uint8Array[] = [];
  for (const command of commands) {
    parts.push(encoder.encode(`*${command.length}\r\n`));
    for (const argument of command) {
      parts.push(encoder.encode(`$${argument.length}\r\n`), argument, encoder.encode("\r\n"));
    }
  }
  return concatenated(parts);
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

/** So many commands out of RESP, each as its words; the bytes stay those of `resp`. */
export function split(resp: Uint8Array, commands: number): Uint8Array[][] {
  let at = 0;
  const header = (): number => {
    let number = 0;
    // Past the mark; ours are digits only.
    for (at += 1; resp[at] !== CR; at++) {
      number = number * 10 + ((resp[at] ?? 0) - 48);
    }
    at += LINE_END;
    return number;
  };
  const word = (): Uint8Array => {
    const length = header();
    const start = at;
    at += length + LINE_END;
    return resp.subarray(start, start + length);
  };
  return Array.from({ length: commands }, () => Array.from({ length: header() }, word));
}
