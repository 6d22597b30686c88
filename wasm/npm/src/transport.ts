/** What a server answers: nothing, a text (bytes are best: a string has been decoded), a number, several, or a refusal. */
export type Reply = null | Uint8Array | string | number | bigint | Error | Reply[];

/**
 * The way to one server. Bring your own, or take one of those of this package.
 *
 * It must never send the same commands twice by itself: whether a repeat is harmless, only tallylock knows.
 */
export interface Transport {
  /**
   * Connects ahead of the first call, within so many milliseconds.
   *
   * Rejects with an {@link Undelivered}.
   */
  open?(timeoutMs: number): Promise<void>;

  /**
   * Sends commands in one write and resolves with one reply a command; a server's refusal is an `Error` among the replies.
   *
   * Calls are sent in the order in which they are made. Those with the same `operation` belong together and must not
   * overtake one another, even where the connection is changed in between. Rejects with an {@link Undelivered}; any other
   * rejection counts as `maybe`.
   */
  send(commands: Uint8Array[][], operation: number): Promise<Reply[]>;

  /** Nobody waits any more for the calls of this operation. */
  forget?(operation: number): void;

  /** Closes the connections that the transport has opened itself. */
  close?(): void | Promise<void>;
}

/** Why a call has no replies, and whether the server may have executed it all the same. */
export class Undelivered extends Error {
  /** `no`: not executed, try again; `maybe`: perhaps executed; `refused`: the connection as such is refused. */
  readonly sent: "no" | "maybe" | "refused";
  /** With `refused`: the server's own words, if it gave any. */
  readonly serverWords: string | undefined;

  /** @param message what happened, without a password in it */
  constructor(sent: "no" | "maybe" | "refused", message: string, serverWords?: string) {
    super(message);
    this.name = "Undelivered";
    this.sent = sent;
    this.serverWords = serverWords;
  }
}
