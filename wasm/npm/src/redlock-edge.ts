import * as glue from "./full/tallylock_wasm.js";
// @ts-expect-error: a module of WebAssembly, which the runtime compiles when it loads the Worker
import wasm from "./full/tallylock_wasm_bg.wasm";
import {
  connectRedlockOver,
  ownTransports,
  type Redlock,
  type RedlockClientOptions,
  type RedlockRuntime,
} from "./redlock.js";
import type { Transport } from "./transport.js";

export * from "./api.js";
export type { Redlock, RedlockClientOptions } from "./redlock.js";
export type { Credentials } from "./transports/handshake.js";
export { fromSocket, type WorkerSocket } from "./transports/worker-socket.js";

/** How to reach the servers, an odd number of them from 3 to 99: over transports, such as `fromSocket` gives. */
export type RedlockOptions = RedlockClientOptions & { transports: readonly Transport[] };

/**
 * Connects to several independent servers, of which more than half decide about each lock. Resolves once more than half of them
 * are connected; the others are connected to when they can be.
 *
 * Rejects with `invalid_argument` for options that cannot be, `unavailable` if too few servers can be reached within the time-out
 * (the message counts them), and `forbidden` if a server wants another user or password and said so before that was known.
 */
export function connectRedlock(options: RedlockOptions): Promise<Redlock> {
  return connectRedlockOver(runtime, options, (refuse) => ownTransports(options.transports, refuse));
}

let instantiated = false;

const runtime: RedlockRuntime = {
  glue: async () => {
    if (!instantiated) {
      glue.initSync({ module: wasm });
      instantiated = true;
    }
    return glue;
  },
  owner: () => undefined,
};
