import type { EncodedTransport, Receiver } from "../encoded.js";
import { decodeReplies, encode } from "../resp.js";
import { type Reply, type Subscriber, type SubscriberEvents, Undelivered } from "../transport.js";
import type { Connection } from "./connection.js";
import { DialTimeout } from "./dial.js";

/** Opens a connection, ready for calls, within so many milliseconds. Rejects with an {@link Undelivered}. */
export type Dial = (timeoutMs: number) => Promise<Connection>;

/** A transport over one connection at a time, which is opened again when it is lost. */
export class Reconnecting implements EncodedTransport {
  #dial: Dial;
  #current: Connection | undefined;
  #dialing: Promise<Connection> | undefined;
  /** Connections that get no further calls but still carry some. */
  #old = new Set<Connection>();
  /** The calls that wait for a connection. */
  #waiting = new Set<{ operation: number }>();
  #timeoutMs = 0;
  #lastTimeout: Undelivered | undefined;
  #closed = false;

  constructor(dial: Dial) {
    this.#dial = dial;
  }

  async open(timeoutMs: number): Promise<void> {
    // Half of a call's time, so that the call still learns that nothing was sent.
    this.#timeoutMs = Math.max(1, timeoutMs / 2);
    await this.#connect();
  }

  send(commands: Uint8Array[][], operation: number): Promise<Reply[]> {
    return new Promise((resolve, reject) => {
      const receiver = { resolve: (replies: Uint8Array) => resolve(decodeReplies(replies.slice())), reject };
      this.sendEncoded(encode(commands), commands.length, operation, receiver);
    });
  }

  sendEncoded(resp: Uint8Array, commands: number, operation: number, receiver: Receiver): void {
    for (const connection of this.#old) {
      if (connection.carries(operation)) {
        connection.carry(resp, commands, operation, receiver);
        return;
      }
    }
    // What is sent while an earlier call waits for the connection must not overtake that: it may be the release of a lock whose
    // acquire is waiting.
    if (this.#current?.isOpen && this.#waiting.size === 0) {
      this.#current.carry(resp, commands, operation, receiver);
      return;
    }
    this.#sendOnceConnected(resp.slice(), commands, operation, receiver).catch(receiver.reject);
  }

  forget(operation: number): void {
    for (const call of this.#waiting) {
      if (call.operation === operation) {
        this.#waiting.delete(call);
      }
    }
    this.#current?.forget(operation);
    for (const connection of this.#old) {
      connection.forget(operation);
    }
  }

  async subscribe(events: SubscriberEvents): Promise<Subscriber> {
    return (await this.#dial(this.#timeoutMs)).listen(events);
  }

  close(): void {
    this.#closed = true;
    this.#current?.close();
    for (const connection of this.#old) {
      connection.close();
    }
    this.#old.clear();
  }

  async #sendOnceConnected(resp: Uint8Array, commands: number, operation: number, receiver: Receiver): Promise<void> {
    const call = { operation };
    this.#waiting.add(call);
    try {
      const connecting = this.#connect();
      if (this.#lastTimeout !== undefined) {
        // The server did not answer the last attempt: rather than all its time, a call waits for none of the next.
        connecting.catch(() => undefined);
        throw this.#lastTimeout;
      }
      const connection = await connecting;
      if (!this.#waiting.has(call)) {
        throw new Undelivered("no", "the call was given up before there was a connection");
      }
      connection.carry(resp, commands, operation, receiver);
    } finally {
      this.#waiting.delete(call);
    }
  }

  /** The connection for new calls; all who need one while it is being opened get the same. */
  #connect(): Promise<Connection> {
    if (this.#closed) {
      return Promise.reject(new Undelivered("no", "the transport is closed"));
    }
    this.#setAside();
    // Those who have waited for it are told some microtasks after it is there.
    if (this.#current !== undefined && this.#dialing === undefined) {
      return Promise.resolve(this.#current);
    }
    this.#dialing ??= this.#dialed().finally(() => {
      this.#dialing = undefined;
    });
    return this.#dialing;
  }

  async #dialed(): Promise<Connection> {
    try {
      const connection = await this.#dial(this.#timeoutMs);
      this.#lastTimeout = undefined;
      if (this.#closed) {
        connection.close();
        throw new Undelivered("no", "the transport is closed");
      }
      this.#current = connection;
      return connection;
    } catch (error) {
      this.#lastTimeout = error instanceof DialTimeout ? error : undefined;
      throw error;
    }
  }

  /** Puts a connection that gets no further calls aside. */
  #setAside(): void {
    for (const connection of this.#old) {
      if (!connection.isCarrying) {
        this.#old.delete(connection);
      }
    }
    if (this.#current !== undefined && !this.#current.isOpen) {
      if (this.#current.isCarrying) {
        this.#old.add(this.#current);
      }
      this.#current = undefined;
    }
  }
}
