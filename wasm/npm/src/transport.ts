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

  /**
   * Opens a connection for subscriptions alone, over which those who wait for a lock hear of its release. Without this they ask
   * the server more often.
   *
   * It must not keep the process alive, nor be opened again by itself: {@link SubscriberEvents.ended} tells that it is lost.
   * Rejects if it cannot be opened.
   */
  subscribe?(events: SubscriberEvents): Promise<Subscriber>;

  /** Closes the connections that the transport has opened itself, but for those that `subscribe` gave. */
  close?(): void | Promise<void>;
}

/** A connection for subscriptions. */
export interface Subscriber {
  /** Sends commands in this order, each a SUBSCRIBE or an UNSUBSCRIBE of one channel. */
  send(commands: Uint8Array[][]): void;
  /** Ends it; nothing of it is told any more. */
  close(): void;
}

/** What a connection for subscriptions tells. */
export interface SubscriberEvents {
  /**
   * A message, `["message", channel, text]`, or the answer to a command, in the order of the commands: `["subscribe", channel,
   * count]`, `["unsubscribe", channel, count]`, or an `Error` for a refusal. Texts are best as bytes.
   */
  received(reply: Reply): void;
  /** It is lost. */
  ended(): void;
  /** Aborted once nobody wants it: what is still being opened is to be given up. */
  readonly unwanted: AbortSignal;
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
