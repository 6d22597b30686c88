import type { Receiver } from "../encoded.js";
import { concatenated, decodeReplies, encode } from "../resp.js";
import { type Reply, type Subscriber, type SubscriberEvents, Undelivered } from "../transport.js";
import { Framing } from "./framing.js";

/** A stream of bytes to a server and back. */
export interface Pipe {
  /** Writes; chunks go out in order. */
  write(bytes: Uint8Array): void;
  /** Ends it at once; `ended` is not called any more. */
  destroy(): void;
  /** Lets the process end although it is there, where it would keep it alive. */
  unref?(): void;
}

/** What a pipe tells. */
export interface PipeEvents {
  /** Bytes have come. */
  received(bytes: Uint8Array): void;
  /** It is over, for this reason. */
  ended(reason: string): void;
}

const ROOM = 32 * 1024;

/** A call whose replies are awaited. */
interface Pending {
  operation: number;
  expected: number;
  written: boolean;
  /** How much the connection had received when this was sent. */
  heardBefore: number;
  forgotten: boolean;
  receiver: Receiver;
}

/** One connection: commands go out in the order of their calls, replies come back in the same order. */
export class Connection {
  #pipe: Pipe;
  #framing = new Framing();
  #pending: Pending[] = [];
  #unwritten: Uint8Array[] = [];
  /** Memory for what is to be written; what was written may be on its way for some time, so no part is used twice. */
  #room = new Uint8Array(0);
  #used = 0;
  #heard = 0;
  #retired = false;
  #over: string | undefined;
  /** Who hears what nobody asked for. */
  #listener: SubscriberEvents | undefined;

  /** @param pipe opens the pipe; it may tell of nothing before it has returned */
  constructor(pipe: (events: PipeEvents) => Pipe) {
    this.#pipe = pipe({
      received: (bytes) => {
        if (this.#over !== undefined) {
          return;
        }
        this.#heard += bytes.length;
        const problem = this.#framing.read(bytes, this.#expected, this.#replied);
        if (problem !== undefined) {
          this.#end(problem);
        }
      },
      ended: (reason) => this.#end(reason),
    });
  }

  /** Whether further calls may be sent through it. */
  get isOpen(): boolean {
    return this.#over === undefined && !this.#retired;
  }

  /** Whether any call is under way in it. */
  get isCarrying(): boolean {
    return this.#pending.length > 0;
  }

  /** Whether a call of this operation is under way in it. */
  carries(operation: number): boolean {
    return this.#pending.some((pending) => pending.operation === operation);
  }

  /** Sends so many commands in RESP, and resolves with the replies; see {@link carry}. */
  send(resp: Uint8Array, expected: number, operation: number): Promise<Reply[]> {
    return new Promise((resolve, reject) => {
      const receiver = { resolve: (replies: Uint8Array) => resolve(decodeReplies(replies.slice())), reject };
      this.carry(resp, expected, operation, receiver);
    });
  }

  /** Sends so many commands in RESP, which it copies; those of one turn of the event loop go out in one write. */
  carry(resp: Uint8Array, expected: number, operation: number, receiver: Receiver): void {
    if (this.#over !== undefined) {
      const error = new Undelivered("no", this.#over);
      queueMicrotask(() => receiver.reject(error));
      return;
    }
    const heardBefore = this.#heard;
    this.#pending.push({ operation, expected, written: false, heardBefore, forgotten: false, receiver });
    this.#writeSoon(this.#copyOf(resp));
  }

  /**
   * Nobody waits any more for this operation. A connection on which nothing was heard since it sent the operation's call
   * may be dead: it gets no further calls, and ends once nobody waits for what it still carries.
   */
  forget(operation: number): void {
    for (const pending of this.#pending) {
      if (pending.operation === operation) {
        pending.forgotten = true;
        this.#retired ||= pending.heardBefore === this.#heard;
      }
    }
    this.#endIfUseless();
  }

  /** Gives it over to subscriptions. It carries no calls any more, and does not keep the process alive. */
  listen(events: SubscriberEvents): Subscriber {
    this.#listener = events;
    if (this.#over === undefined) {
      this.#pipe.unref?.();
    } else {
      queueMicrotask(() => events.ended());
    }
    return {
      send: (commands) => this.#writeSoon(encode(commands)),
      close: () => {
        this.#listener = undefined;
        this.close();
      },
    };
  }

  /** Ends it; calls under way are undelivered. */
  close(): void {
    this.#end("the client closed the connection");
  }

  #writeSoon(bytes: Uint8Array): void {
    this.#unwritten.push(bytes);
    if (this.#unwritten.length === 1) {
      queueMicrotask(this.#write);
    }
  }

  #write = (): void => {
    const chunks = this.#unwritten;
    this.#unwritten = [];
    const [first] = chunks;
    if (this.#over !== undefined || first === undefined) {
      return;
    }
    for (const pending of this.#pending) {
      pending.written = true;
    }
    this.#pipe.write(chunks.length === 1 ? first : concatenated(chunks));
  };

  /** A copy in memory that others have a part of: to set aside some for each costs more than the copying. */
  #copyOf(resp: Uint8Array): Uint8Array {
    if (resp.length > ROOM / 8) {
      return resp.slice();
    }
    if (this.#used + resp.length > this.#room.length) {
      this.#room = new Uint8Array(ROOM);
      this.#used = 0;
    }
    const start = this.#used;
    this.#used += resp.length;
    this.#room.set(resp, start);
    return this.#room.subarray(start, this.#used);
  }

  #expected = (): number => this.#pending[0]?.expected ?? (this.#listener === undefined ? 0 : 1);

  #replied = (replies: Uint8Array): void => {
    const first = this.#pending.shift();
    this.#endIfUseless();
    if (first !== undefined) {
      first.receiver.resolve(replies);
      return;
    }
    for (const reply of decodeReplies(replies.slice())) {
      this.#listener?.received(reply);
    }
  };

  #endIfUseless(): void {
    if (this.#retired && this.#pending.every((pending) => pending.forgotten)) {
      this.#end("the server is silent");
    }
  }

  #end(reason: string): void {
    if (this.#over !== undefined) {
      return;
    }
    this.#over = reason;
    this.#pipe.destroy();
    const pending = this.#pending.splice(0);
    // Whoever is told may send again at once, and this may be the middle of a call of the core's.
    queueMicrotask(() => {
      for (const { written, receiver } of pending) {
        receiver.reject(new Undelivered(written ? "maybe" : "no", reason));
      }
      this.#listener?.ended();
    });
  }
}
