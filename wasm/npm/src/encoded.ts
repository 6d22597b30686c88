import type { Transport } from "./transport.js";

/** Who gets the replies to a call, or learns why there are none; one of the two is called, in a later turn or microtask. */
export interface Receiver {
  /** @param replies in RESP, in memory that is another's as soon as this returns */
  resolve(replies: Uint8Array): void;
  reject(error: unknown): void;
}

/** A transport over bytes: commands go into it as they come out of the core, and replies come as the server sent them. */
export interface EncodedTransport extends Transport {
  /** As {@link Transport.send}, of so many commands in RESP, but without a promise; it copies what it keeps. */
  sendEncoded(resp: Uint8Array, commands: number, operation: number, receiver: Receiver): void;
}

/** Whether a transport takes commands in RESP. */
export function hasEncoded(transport: Transport | undefined): transport is EncodedTransport {
  return transport !== undefined && "sendEncoded" in transport;
}
