import { hasEncoded, type Receiver } from "./encoded.js";
import { TallylockError } from "./error.js";
import type * as FullGlue from "./full/tallylock_wasm.js";
import { Hearing } from "./hearing.js";
import type { Lease } from "./lease.js";
import { encodeReplies, split } from "./resp.js";
import type * as Glue from "./tallylock_wasm.js";
import { Timers } from "./timers.js";
import { type Reply, type Transport, Undelivered } from "./transport.js";

/** What this runtime gives to the core: a transport for each server, a clock, randomness, and the class of its errors. */
export class RuntimeHost implements Glue.Host {
  #timers = new Timers((timer) => this.#tell((client) => client.woke(timer)));
  /** No process stays alive to renew its leases. */
  #watches = new Timers((lease) => this.#due(lease), false);
  /** Those that nobody has looked at yet. Most end before, and whether they are forgotten need not be found out. */
  #young = new Map<number, Lease>();
  #forgotten = new FinalizationRegistry<number>((lease) => this.#tell((client) => client.forget(lease)));
  /** The promises that are not settled yet. */
  #open = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();
  // A build that hears of nothing asks for no connection either.
  #hearing = new Hearing((what) => this.#tell((client) => what(client as unknown as FullGlue.Client)));
  #client: Glue.Client | undefined;
  #transports: Transport[] = [];

  /** Tells where the calls to each server go, and where their answers. */
  connect(transports: Transport[], client: Glue.Client): void {
    this.#transports = transports;
    this.#client = client;
  }

  now(): number {
    return performance.now();
  }

  promise(number: number): Promise<unknown> {
    return new Promise((resolve, reject) => this.#open.set(number, { resolve, reject }));
  }

  resolve(number: number, value: unknown): void {
    const promise = this.#open.get(number);
    this.#open.delete(number);
    promise?.resolve(value);
  }

  reject(number: number, error: unknown): void {
    const promise = this.#open.get(number);
    this.#open.delete(number);
    promise?.reject(error);
  }

  random(bytes: Uint8Array): void {
    crypto.getRandomValues(bytes);
  }

  setTimer(timer: number, at: number): void {
    this.#timers.set(timer, at);
  }

  clearTimer(timer: number): void {
    this.#timers.clear(timer);
  }

  watch(lease: number, at: number): void {
    this.#watches.set(lease, at);
  }

  unwatch(lease: number, isGone: boolean): void {
    this.#watches.clear(lease);
    if (isGone) {
      this.#young.delete(lease);
    } else {
      this.#letGo(lease);
    }
  }

  /** Keeps a lease from being forgotten until it is looked at. */
  hold(number: number, lease: Lease): void {
    this.#young.set(number, lease);
  }

  open(call: number, node: number): void {
    const opened = async () => {
      await this.#transports[node]?.open?.(this.#client?.timeoutMs ?? 0);
      this.#tell((client) => client.answered(call, encodeReplies([])));
    };
    opened().catch((error) => this.#undelivered(call, error));
  }

  send(call: number, node: number, operation: number, commands: number, resp: Uint8Array): void {
    const transport = this.#transports[node];
    const receiver: Receiver = {
      resolve: (replies) => {
        try {
          this.#client?.answered(call, replies);
        } catch (fault) {
          this.#failed(fault);
        }
      },
      reject: (error) => this.#undelivered(call, error),
    };
    if (hasEncoded(transport)) {
      transport.sendEncoded(resp, commands, operation, receiver);
      return;
    }
    let replies: Promise<Reply[]> | undefined;
    try {
      replies = transport?.send(split(resp.slice(), commands), operation);
    } catch (error) {
      replies = Promise.reject(error);
    }
    replies?.then((given) => receiver.resolve(encodeReplies(given))).catch(receiver.reject);
  }

  forget(node: number, operation: number): void {
    try {
      this.#transports[node]?.forget?.(operation);
    } catch {
      // It is told out of courtesy, from inside the core, which an exception must not pass through.
    }
  }

  listen(): boolean {
    return this.#hearing.open(this.#transports[0]);
  }

  subscribe(commands: number, resp: Uint8Array): void {
    this.#hearing.send(commands, resp);
  }

  hush(): void {
    this.#hearing.close();
  }

  failure(
    code: string,
    reason: string | undefined,
    key: string | undefined,
    applied: string,
    message: string,
  ): TallylockError {
    return new TallylockError(code, reason, key, applied === "no" ? "no" : "maybe", message);
  }

  #due(lease: number): void {
    this.#letGo(lease);
    this.#tell((client) => client.due(lease));
  }

  #letGo(number: number): void {
    const lease = this.#young.get(number);
    if (lease !== undefined) {
      this.#young.delete(number);
      this.#forgotten.register(lease, number);
    }
  }

  #undelivered(call: number, error: unknown): void {
    const { sent, message, serverWords } =
      error instanceof Undelivered
        ? error
        : new Undelivered("maybe", error instanceof Error ? error.message : String(error));
    this.#tell((client) => client.undelivered(call, sent, message, serverWords));
  }

  /** Tells the core something. Should it fail at that, all calls end with its fault: nothing else would end them. */
  #tell(what: (client: Glue.Client) => void): void {
    try {
      if (this.#client !== undefined) {
        what(this.#client);
      }
    } catch (fault) {
      this.#failed(fault);
    }
  }

  #failed(fault: unknown): void {
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { reject } of open) {
      reject(fault);
    }
  }
}
