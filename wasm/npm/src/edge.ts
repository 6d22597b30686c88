import type { Client, ClientOptions } from "./client.js";
import { connectOver, ownTransport, type Runtime } from "./connect.js";
import * as glue from "./tallylock_wasm.js";
// @ts-expect-error: a module of WebAssembly, which the runtime compiles when it loads the Worker
import wasm from "./tallylock_wasm_bg.wasm";
import type { Transport } from "./transport.js";

export * from "./api.js";
export type { Credentials } from "./transports/handshake.js";
export { fromSocket, type WorkerSocket } from "./transports/worker-socket.js";

/** How to reach a server: an edge runtime has no sockets of its own kind, so the transport is the caller's. */
export type ConnectOptions = ClientOptions & { transport: Transport };

/**
 * Connects to a server over a transport, such as `fromSocket`.
 *
 * Rejects with `invalid_argument` for options that cannot be, `forbidden` for a wrong password, and `unavailable` or
 * `timeout` if the server cannot be reached.
 */
export function connect(options: ConnectOptions): Promise<Client> {
  return connectOver(runtime, options, (refuse) => {
    if (!("transport" in options)) {
      throw refuse("at the edge a client needs a transport, such as fromSocket(() => connect(address))");
    }
    return ownTransport(options.transport, refuse);
  });
}

let instantiated = false;

const runtime: Runtime = {
  glue: async () => {
    if (!instantiated) {
      glue.initSync({ module: wasm });
      instantiated = true;
    }
    return glue;
  },
  owner: () => undefined,
};
