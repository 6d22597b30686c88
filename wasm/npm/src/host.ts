import { hasEncoded, split } from "./encoded.js";
import { TallylockError } from "./error.js";
import type * as Glue from "./tallylock_wasm.js";
import { Timers } from "./timers.js";
import { type Transport, Undelivered } from "./transport.js";

const SEED = 16;
const DRAWN_AT_ONCE = 256 * SEED;

/** What this runtime gives to the core: a transport, a clock, randomness, and the class of its errors. */
export class RuntimeHost implements Glue.Host {
  #timers = new Timers((timer) => this.#client?.woke(timer));
  #drawn = new Uint8Array(0);
  #used = 0;
  #client: Glue.Client | undefined;
  #transport: Transport | undefined;

  /** Tells where calls go, and where their answers. */
  connect(transport: Transport, client: Glue.Client): void {
    this.#transport = transport;
    this.#client = client;
  }

  now(): number {
    return performance.now();
  }

  random(): Uint8Array {
    if (this.#used === this.#drawn.length) {
      this.#drawn = crypto.getRandomValues(new Uint8Array(DRAWN_AT_ONCE));
      this.#used = 0;
    }
    this.#used += SEED;
    return this.#drawn.subarray(this.#used - SEED, this.#used);
  }

  setTimer(timer: number, at: number): void {
    this.#timers.set(timer, at);
  }

  clearTimer(timer: number): void {
    this.#timers.clear(timer);
  }

  open(call: number): void {
    const opened = async () => {
      await this.#transport?.open?.(this.#client?.timeoutMs ?? 0);
      this.#client?.answered(call, []);
    };
    opened().catch((error) => this.#undelivered(call, error));
  }

  send(call: number, operation: number, commands: number, resp: Uint8Array): void {
    let replies: Promise<unknown> | undefined;
    try {
      replies = hasEncoded(this.#transport)
        ? this.#transport.sendEncoded(resp, commands, operation)
        : this.#transport?.send(split(resp.slice(), commands), operation);
    } catch (error) {
      replies = Promise.reject(error);
    }
    replies?.then(
      (given) => this.#client?.answered(call, given),
      (error) => this.#undelivered(call, error),
    );
  }

  forget(operation: number): void {
    try {
      this.#transport?.forget?.(operation);
    } catch {
      // It is told out of courtesy, from inside the core, which an exception must not pass through.
    }
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

  #undelivered(call: number, error: unknown): void {
    if (error instanceof Undelivered) {
      this.#client?.undelivered(call, error.sent, error.message, error.serverWords);
    } else {
      this.#client?.undelivered(call, "maybe", error instanceof Error ? error.message : String(error));
    }
  }
}
