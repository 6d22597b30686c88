import type { ConnectionOptions } from "node:tls";
import { instantiated } from "./instance.js";
import { hostAndPid } from "./owner.js";
import {
  connectRedlockOver,
  listOf,
  ownTransports,
  type Redlock,
  type RedlockClientOptions,
  type RedlockRuntime,
  refuseTwins,
} from "./redlock.js";
import type { Transport } from "./transport.js";
import { type Address, parseUrl } from "./transports/address.js";
import { nodeSocket } from "./transports/node-socket.js";

export * from "./api.js";
export type { Redlock, RedlockClientOptions } from "./redlock.js";

/** How to reach the servers, an odd number of them from 3 to 99: by their URLs, or over transports of the caller's. */
export type RedlockOptions = RedlockClientOptions &
  (
    | {
        /** One for each server, as of `connect` of `tallylock`; no two of the same host and port, whatever the database. */
        urls: readonly string[];
        /** For TLS: certificates and the like, as `node:tls` takes them; the same for all servers. */
        tls?: ConnectionOptions;
      }
    | { transports: readonly Transport[] }
  );

/**
 * Connects to several independent servers, of which more than half decide about each lock. Resolves once more than half of them
 * are connected; the others are connected to when they can be.
 *
 * Rejects with `invalid_argument` for options that cannot be, `unavailable` if too few servers can be reached within the time-out
 * (the message counts them), and `forbidden` if a server wants another user or password and said so before that was known.
 */
export function connectRedlock(options: RedlockOptions): Promise<Redlock> {
  return connectRedlockOver(runtime, options, (refuse) => {
    if ("transports" in options) {
      return ownTransports(options.transports, refuse);
    }
    const addresses = listOf("urls", options.urls, refuse).map((url) => parseUrl(url as string, refuse));
    if (addresses.some(({ kind }) => kind === "memory")) {
      throw refuse("memory:// is no server that stands when another falls, and has no locks over several");
    }
    refuseTwins("URLs", addresses, (one, other) => place(one) === place(other), refuse);
    return addresses.map((address) => nodeSocket(address, options.tls ?? {}));
  });
}

/** Where a server is, as far as its URL says. */
function place(address: Address): string {
  switch (address.kind) {
    case "tcp":
    case "tls":
      return `${address.host.toLowerCase()}:${address.port}`;
    case "unix":
      return address.path;
    case "memory":
      return address.name;
  }
}

const runtime: RedlockRuntime = { glue: instantiated, owner: hostAndPid };
