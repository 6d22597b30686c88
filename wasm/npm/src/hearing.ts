import type * as FullGlue from "./full/tallylock_wasm.js";
import { encodeReplies, split } from "./resp.js";
import type { Reply, Subscriber, Transport } from "./transport.js";

/**
 * The one connection over which a client hears of releases. When it is opened and closed and what is sent over it, the core
 * says; what is wrong with it, the core is told later, since it must not be called back while it calls.
 */
export class Hearing {
  #tell: (what: (client: FullGlue.Client) => void) => void;
  /** That of the connection that is there, or is being opened: what comes of an earlier one concerns nobody. */
  #current: Connection | undefined;

  /** @param tell tells the core something */
  constructor(tell: (what: (client: FullGlue.Client) => void) => void) {
    this.#tell = tell;
  }

  /** Opens it, and says whether the transport knows how. */
  open(transport: Transport | undefined): boolean {
    if (transport?.subscribe === undefined) {
      return false;
    }
    const opening: Connection = { unwanted: new AbortController() };
    this.#current = opening;
    const ended = () => queueMicrotask(() => this.#lose(opening));
    const received = (reply: Reply) => queueMicrotask(() => this.#hear(opening, reply));
    const open = async () => {
      const subscriber = await transport.subscribe?.({ received, ended, unwanted: opening.unwanted.signal });
      if (this.#current !== opening || subscriber === undefined) {
        subscriber?.close();
        return;
      }
      opening.subscriber = subscriber;
      this.#tell((client) => client.listens());
    };
    open().catch(ended);
    return true;
  }

  /** Sends that many commands, which are in RESP. */
  send(commands: number, resp: Uint8Array): void {
    const current = this.#current;
    try {
      current?.subscriber?.send(split(resp.slice(), commands));
    } catch {
      queueMicrotask(() => this.#lose(current));
    }
  }

  /** Ends it, if there is one. */
  close(): void {
    const current = this.#current;
    this.#current = undefined;
    current?.unwanted.abort();
    try {
      current?.subscriber?.close();
    } catch {
      // It is not listened to any more, which is all that there is to its end.
    }
  }

  #hear(connection: Connection, reply: Reply): void {
    if (this.#current !== connection) {
      return;
    }
    let resp: Uint8Array;
    try {
      resp = encodeReplies([reply]);
    } catch {
      this.#lose(connection);
      return;
    }
    this.#tell((client) => client.heard(resp));
  }

  #lose(connection: Connection | undefined): void {
    if (connection !== undefined && this.#current === connection) {
      this.close();
      this.#tell((client) => client.deaf());
    }
  }
}

interface Connection {
  /** Tells the transport that what it may still be opening has become useless. */
  unwanted: AbortController;
  /** None while it is being opened. */
  subscriber?: Subscriber;
}
