import type { ConnectionOptions } from "node:tls";
import type { Client, ClientOptions } from "./client.js";
import { connectOver, ownTransport, type Runtime } from "./connect.js";
import { instantiated } from "./instance.js";
import { hostAndPid } from "./owner.js";
import type { Transport } from "./transport.js";
import { parseUrl } from "./transports/address.js";
import { nodeSocket } from "./transports/node-socket.js";

export * from "./api.js";

/** How to reach a server: by its URL, or over a transport of the caller's. */
export type ConnectOptions = ClientOptions &
  (
    | {
        /** `redis://`, `valkey://`, `rediss://` or `valkeys://` (both with TLS), or `unix:///path/to.sock?db=0`. */
        url: string;
        /** For TLS: certificates and the like, as `node:tls` takes them. */
        tls?: ConnectionOptions;
      }
    | { transport: Transport }
  );

/**
 * Connects to a server.
 *
 * Rejects with `invalid_argument` for options that cannot be, `forbidden` for a wrong password, and `unavailable` or
 * `timeout` if the server cannot be reached.
 */
export function connect(options: ConnectOptions): Promise<Client> {
  return connectOver(runtime, options, (refuse) => {
    if ("transport" in options) {
      return ownTransport(options.transport, refuse);
    }
    const address = parseUrl(options.url, refuse);
    if (address.kind === "memory") {
      throw refuse('memory:// is in another build: import { connect } from "tallylock/memory"');
    }
    return nodeSocket(address, options.tls ?? {});
  });
}

const runtime: Runtime = { glue: instantiated, owner: hostAndPid };
