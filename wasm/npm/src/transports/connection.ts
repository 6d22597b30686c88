import { Buffer } from "node:buffer";
import RedisParser from "redis-parser";
import { type Reply, Undelivered } from "../transport.js";

/** A stream of bytes to a server and back. */
export interface Pipe {
  /** Writes; chunks go out in order. */
  write(bytes: Uint8Array): void;
  /** Ends it at once; `ended` is not called any more. */
  destroy(): void;
}

/** What a pipe tells. */
export interface PipeEvents {
  /** Bytes have come. */
  received(bytes: Uint8Array): void;
  /** It is over, for this reason. */
  ended(reason: string): void;
}

/** A call whose replies are awaited. */
interface Pending {
  operation: number;
  expected: number;
  replies: Reply[];
  written: boolean;
  /** How much the connection had received when this was sent. */
  heardBefore: number;
  forgotten: boolean;
  resolve(replies: Reply[]): void;
  reject(error: Undelivered): void;
}

/** One connection: commands go out in the order of their calls, replies come back in the same order. */
export class Connection {
  #pipe: Pipe;
  #parser: RedisParser;
  #pending: Pending[] = [];
  #unwritten: Uint8Array[] = [];
  #heard = 0;
  #retired = false;
  #over: string | undefined;

  /** @param pipe opens the pipe; it may tell of nothing before it has returned */
  constructor(pipe: (events: PipeEvents) => Pipe) {
    this.#parser = new RedisParser({
      returnBuffers: true,
      stringNumbers: true,
      returnReply: (reply: unknown) => this.#replied(exact(reply as Reply)),
      returnError: (error: Error) => this.#replied(error),
      returnFatalError: (error: Error) => this.#endAsNoResp(error),
    });
    this.#pipe = pipe({
      received: (bytes) => {
        if (this.#over !== undefined) {
          return;
        }
        this.#heard += bytes.length;
        try {
          this.#parser.execute(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
        } catch (error) {
          // It throws at lengths and depths beyond reason; from a socket's event that would end the process.
          this.#endAsNoResp(error);
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

  /** Sends so many commands in RESP, which it copies; those of one turn of the event loop go out in one write. */
  send(resp: Uint8Array, expected: number, operation: number): Promise<Reply[]> {
    const { promise, resolve, reject } = withResolvers<Reply[]>();
    if (this.#over !== undefined) {
      reject(new Undelivered("no", this.#over));
      return promise;
    }
    const heardBefore = this.#heard;
    const call = { operation, expected, replies: [], written: false, heardBefore, forgotten: false, resolve, reject };
    this.#pending.push(call);
    this.#unwritten.push(Buffer.from(resp));
    if (this.#unwritten.length === 1) {
      queueMicrotask(() => this.#write());
    }
    return promise;
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

  /** Ends it; calls under way are undelivered. */
  close(): void {
    this.#end("the client closed the connection");
  }

  #write(): void {
    const chunks = this.#unwritten;
    this.#unwritten = [];
    const [first] = chunks;
    if (this.#over !== undefined || first === undefined) {
      return;
    }
    for (const pending of this.#pending) {
      pending.written = true;
    }
    this.#pipe.write(chunks.length === 1 ? first : Buffer.concat(chunks));
  }

  #replied(reply: Reply): void {
    const [first] = this.#pending;
    if (first === undefined) {
      this.#end("the server sent a reply that nobody had asked for");
      return;
    }
    first.replies.push(reply);
    if (first.replies.length === first.expected) {
      this.#pending.shift();
      first.resolve(first.replies);
      this.#endIfUseless();
    }
  }

  #endIfUseless(): void {
    if (this.#retired && this.#pending.every((pending) => pending.forgotten)) {
      this.#end("the server is silent");
    }
  }

  #endAsNoResp(error: unknown): void {
    this.#end(`the server does not speak RESP: ${error instanceof Error ? error.message : String(error)}`);
  }

  #end(reason: string): void {
    if (this.#over !== undefined) {
      return;
    }
    this.#over = reason;
    this.#pipe.destroy();
    for (const pending of this.#pending.splice(0)) {
      pending.reject(new Undelivered(pending.written ? "maybe" : "no", reason));
    }
  }
}

/** A reply as it is: the parser gives numbers as texts, since one of JavaScript's may be rounded. */
function exact(reply: Reply): Reply {
  if (typeof reply === "string") {
    return BigInt(reply);
  }
  return Array.isArray(reply) ? reply.map(exact) : reply;
}

// Promise.withResolvers is newer than Node 20.
function withResolvers<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
