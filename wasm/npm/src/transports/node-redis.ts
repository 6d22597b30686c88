import { type Reply, type Subscriber, type SubscriberEvents, type Transport, Undelivered } from "../transport.js";
import { inOrder, together } from "./together.js";

/** What of a node-redis client (`redis`, version 5 or 6) is used. */
export interface NodeRedisClient {
  readonly isReady: boolean;
  readonly isOpen: boolean;
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
  readonly options?: { socket?: object | undefined } | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: as below
  duplicate(overrides: any): NodeRedisSubscriber;
  // biome-ignore lint/suspicious/noExplicitAny: the type of a client of another package, whose own is far narrower
  withTypeMapping(mapping: any): Sender;
}

interface NodeRedisSubscriber {
  connect(): Promise<unknown>;
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
  subscribe(channel: string, listener: (message: Buffer) => void, asBytes: true): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  unref(): void;
  destroy(): void;
}

interface Sender {
  sendCommand(args: Buffer[], options: { abortSignal: AbortSignal }): Promise<unknown>;
}

/** RESP's marks for texts, whose bytes must come as they are. */
const BLOB_STRING = 36;
const SIMPLE_STRING = 43;

/**
 * A transport over a node-redis client that you have, connected or connecting; closing it remains yours.
 *
 * node-redis keeps commands while it is not connected. None of ours are given to it then, and what it has not yet written
 * when the connection breaks is taken back, so that nothing is executed after its caller was told that it failed.
 */
export function fromNodeRedis(client: NodeRedisClient): Transport {
  return new NodeRedis(client);
}

class NodeRedis implements Transport {
  #client: NodeRedisClient;
  #inBytes: Sender;
  /** How to take commands back that have not been written, by operation. */
  #unanswered = new Map<AbortController, number>();
  #takeBack = () => {
    for (const controller of this.#unanswered.keys()) {
      controller.abort();
    }
  };

  constructor(client: NodeRedisClient) {
    this.#client = client;
    client.on("reconnecting", this.#takeBack);
    client.on("error", this.#takeBack);
    this.#inBytes = client.withTypeMapping({ [BLOB_STRING]: Buffer, [SIMPLE_STRING]: Buffer });
  }

  send(commands: Uint8Array[][], operation: number): Promise<Reply[]> {
    if (!this.#client.isReady) {
      const state = this.#client.isOpen ? "not connected at the moment" : "closed";
      return Promise.reject(new Undelivered("no", `the node-redis client is ${state}`));
    }
    return together(commands.map((command) => this.#ask(command, operation)));
  }

  forget(operation: number): void {
    for (const [controller, known] of this.#unanswered) {
      if (known === operation) {
        controller.abort();
      }
    }
  }

  async subscribe({ received, ended, unwanted }: SubscriberEvents): Promise<Subscriber> {
    const socket = { ...this.#client.options?.socket, reconnectStrategy: false };
    // Its timer for pings would keep the process alive.
    const own = this.#client.duplicate({ socket, pingInterval: 0 });
    own.on("error", ended);
    own.unref();
    const end = () => {
      own.off("error", ended);
      // What a connection says of its own end concerns nobody, but without a listener it would end the process.
      own.on("error", () => undefined);
      try {
        own.destroy();
      } catch {
        // It has ended before.
      }
    };
    // A server that accepts and then says nothing would have it wait for ever.
    unwanted.addEventListener("abort", end);
    await own.connect();
    const heard = (channel: Buffer) => (message: Buffer) => received(["message", channel, message]);
    return {
      send: inOrder(received, async (kind, channel) => {
        // node-redis knows channels by their text.
        const text = channel.toString();
        if (!Buffer.from(text).equals(channel)) {
          throw new Error("ERR node-redis cannot subscribe to a channel whose name is no UTF-8");
        }
        await (kind === "subscribe" ? own.subscribe(text, heard(channel), true) : own.unsubscribe(text));
        return [kind, channel, 1];
      }),
      close: end,
    };
  }

  close(): void {
    this.#client.off("reconnecting", this.#takeBack);
    this.#client.off("error", this.#takeBack);
  }

  async #ask(words: Uint8Array[], operation: number): Promise<Reply> {
    const controller = new AbortController();
    this.#unanswered.set(controller, operation);
    try {
      const command = words.map((word) => Buffer.from(word.buffer, word.byteOffset, word.byteLength));
      return (await this.#inBytes.sendCommand(command, { abortSignal: controller.signal })) as Reply;
    } catch (error) {
      if (error instanceof Error && isReply(error)) {
        return error;
      }
      const name = error instanceof Error ? error.constructor.name : "";
      const message = error instanceof Error ? error.message : String(error);
      throw new Undelivered(NOT_WRITTEN.includes(name) ? "no" : "maybe", message);
    } finally {
      this.#unanswered.delete(controller);
    }
  }
}

/** The errors of node-redis for a command that it has not written and will not. */
const NOT_WRITTEN = ["ClientClosedError", "ClientOfflineError", "AbortError"];

/** Whether it is a server's refusal: node-redis has a class of its own for those, and subclasses of that. */
function isReply(error: Error): boolean {
  for (let kind = Object.getPrototypeOf(error); kind !== null; kind = Object.getPrototypeOf(kind)) {
    if (kind.constructor.name === "ErrorReply") {
      return true;
    }
  }
  return false;
}
