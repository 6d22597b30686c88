import { type Reply, type Subscriber, type SubscriberEvents, type Transport, Undelivered } from "../transport.js";
import { inOrder, together } from "./together.js";

/** What of an ioredis client (`Redis`, version 5 or 6) is used. */
export interface IoredisClient {
  readonly status: string;
  /** Its socket. */
  readonly stream?: { unref?(): void };
  readonly options: {
    autoResendUnfulfilledCommands?: boolean | undefined;
    enableOfflineQueue?: boolean | undefined;
    keyPrefix?: string | undefined;
  };
  callBuffer(command: string, ...args: (string | Buffer)[]): Promise<unknown>;
  connect(): Promise<void>;
  disconnect(): void;
  subscribe(channel: Buffer): Promise<unknown>;
  unsubscribe(channel: Buffer): Promise<unknown>;
  on(event: "messageBuffer", listener: (channel: Buffer, message: Buffer) => void): unknown;
  on(event: string, listener: () => void): unknown;
  once(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
  duplicate(override: {
    autoResendUnfulfilledCommands: boolean;
    enableOfflineQueue: boolean;
    lazyConnect: boolean;
    connectionName: string;
    retryStrategy?: () => null;
  }): IoredisClient;
}

/**
 * A transport over an ioredis client that you have.
 *
 * By default ioredis sends commands again by itself after a reconnect, which would count an add twice, and keeps those that
 * it cannot write to send them later. A client made with `autoResendUnfulfilledCommands: false` and
 * `enableOfflineQueue: false` is used as it is; of any other a duplicate with these settings is made, with a connection of
 * its own, which `client.close()` closes. A `keyPrefix` is refused: give tallylock the whole key.
 */
export function fromIoredis(client: IoredisClient): Transport {
  if (client.options.keyPrefix) {
    return new Refusing("ioredis's keyPrefix would put side keys into another slot; give tallylock the whole key");
  }
  const { autoResendUnfulfilledCommands, enableOfflineQueue } = client.options;
  if (autoResendUnfulfilledCommands === false && enableOfflineQueue === false) {
    return new Ioredis(client, false);
  }
  const own = client.duplicate(OWN);
  // Without a listener an error that every call reports anyway would end the process.
  own.on("error", () => undefined);
  return new Ioredis(own, true);
}

/** How a connection of ours differs. */
const OWN = {
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: false,
  lazyConnect: true,
  connectionName: "tallylock",
};

class Ioredis implements Transport {
  #client: IoredisClient;
  #isOurs: boolean;
  /** How to tell those who wait for a reply that it is lost: ioredis forgets them without a word. */
  #waiting = new Set<(lost: Undelivered) => void>();
  #closed = () => {
    for (const tell of this.#waiting) {
      tell(new Undelivered("maybe", "ioredis lost the connection"));
    }
  };

  constructor(client: IoredisClient, isOurs: boolean) {
    this.#client = client;
    this.#isOurs = isOurs;
    client.on("close", this.#closed);
  }

  async open(): Promise<void> {
    if (this.#client.status === "wait") {
      await this.#client.connect().catch((error: Error) => {
        throw new Undelivered("no", error.message);
      });
    } else if (this.#client.status !== "ready") {
      await this.#ready();
    }
  }

  send(commands: Uint8Array[][]): Promise<Reply[]> {
    if (this.#client.status !== "ready") {
      // ioredis would keep it and send it at a moment when its caller has long been told that it failed.
      return Promise.reject(new Undelivered("no", `the ioredis client is not ready (${this.#client.status})`));
    }
    return together(commands.map((command) => this.#ask(command)));
  }

  async subscribe({ received, ended, unwanted }: SubscriberEvents): Promise<Subscriber> {
    const own = this.#client.duplicate({ ...OWN, retryStrategy: () => null });
    own.on("error", () => undefined);
    own.on("end", ended);
    own.on("messageBuffer", (channel: Buffer, message: Buffer) => received(["message", channel, message]));
    own.on("connect", () => unref(own));
    // A server that accepts and then says nothing would have it wait for ever.
    unwanted.addEventListener("abort", () => own.disconnect());
    await own.connect();
    return {
      send: inOrder(received, async (kind, channel) => {
        await own[kind](channel);
        return [kind, channel, 1];
      }),
      close: () => {
        own.off("end", ended);
        own.disconnect();
      },
    };
  }

  close(): void {
    this.#client.off("close", this.#closed);
    if (this.#isOurs) {
      this.#client.disconnect();
    }
  }

  async #ask([name, ...words]: Uint8Array[]): Promise<Reply> {
    const args = words.map((word) => Buffer.from(word.buffer, word.byteOffset, word.byteLength));
    let tell: (lost: Undelivered) => void = () => undefined;
    const lost = new Promise<never>((_, reject) => {
      tell = reject;
    });
    this.#waiting.add(tell);
    try {
      return (await Promise.race([this.#client.callBuffer(String(Buffer.from(name ?? "")), ...args), lost])) as Reply;
    } catch (error) {
      if (error instanceof Undelivered) {
        throw error;
      }
      if (error instanceof Error && error.name === "ReplyError") {
        return error;
      }
      const message = error instanceof Error ? error.message : String(error);
      throw new Undelivered(NOT_WRITTEN.test(message) ? "no" : "maybe", message);
    } finally {
      this.#waiting.delete(tell);
    }
  }

  #ready(): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (settle: () => void) => () => {
        this.#client.off("ready", ready);
        this.#client.off("end", ended);
        settle();
      };
      const ready = done(resolve);
      const ended = done(() => reject(new Undelivered("no", "the ioredis client has ended")));
      this.#client.once("ready", ready);
      this.#client.once("end", ended);
      if (this.#client.status === "end") {
        ended();
      }
    });
  }
}

/** Lets the process end although this one is connected. */
function unref(client: { stream?: { unref?(): void } }): void {
  client.stream?.unref?.();
}

/** What ioredis says if it has not written a command and will not. */
const NOT_WRITTEN = /^Stream isn't writeable and enableOfflineQueue options is false|^Connection in subscriber mode/;

class Refusing implements Transport {
  #why: string;

  constructor(why: string) {
    this.#why = why;
  }

  open(): Promise<void> {
    return Promise.reject(new Undelivered("refused", this.#why, `UNSUPPORTED ${this.#why}`));
  }

  send(): Promise<Reply[]> {
    return Promise.reject(new Undelivered("refused", this.#why, `UNSUPPORTED ${this.#why}`));
  }
}
