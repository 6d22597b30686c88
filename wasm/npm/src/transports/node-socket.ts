import { connect as connectNet, isIP, type OnReadOpts, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import { type Transport, Undelivered } from "../transport.js";
import type { Address } from "./address.js";
import { Connection } from "./connection.js";
import { within } from "./dial.js";
import { greet } from "./handshake.js";
import { Reconnecting } from "./reconnecting.js";

/** A transport over sockets of Node. */
export function nodeSocket(address: Address, tls: ConnectionOptions): Transport {
  return new Reconnecting((timeoutMs) => {
    const incoming = new Incoming();
    const { socket, ready, where } = dial(address, tls, incoming.onread);
    socket.setNoDelay(true);
    return within(
      timeoutMs,
      where,
      () => socket.destroy(),
      async () => {
        const connection = over(socket, incoming);
        await opened(socket, ready, where);
        await greet(connection, address);
        return connection;
      },
    );
  });
}

/** How much comes in at once at the most. */
const ROOM = 64 * 1024;

/** What comes in: each piece in the same memory, which costs half of what a stream's events do. */
class Incoming {
  received: (bytes: Uint8Array) => void = () => undefined;

  readonly onread: OnReadOpts = {
    buffer: new Uint8Array(ROOM),
    callback: (length, bytes) => {
      this.received(bytes.subarray(0, length));
      return true;
    },
  };
}

function over(socket: Socket, incoming: Incoming): Connection {
  return new Connection((events) => {
    let problem = "the server closed the connection";
    incoming.received = events.received;
    // What a TLS socket has deciphered comes as an event.
    socket.on("data", events.received);
    socket.on("error", (error) => {
      problem = error.message;
    });
    // The end is told at once: what is written after it would be lost.
    socket.on("end", () => events.ended(problem));
    socket.on("close", () => events.ended(problem));
    return {
      write: (bytes) => void socket.write(bytes),
      destroy: () => void socket.destroy(),
      unref: () => void socket.unref(),
    };
  });
}

function opened(socket: Socket, ready: string, where: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once(ready, resolve);
    socket.once("error", (error: NodeJS.ErrnoException) => {
      const why = `${where}: ${error.message || error.code || "connection failed"}`;
      reject(new Undelivered(isCertificateProblem(error) ? "refused" : "no", why));
    });
    socket.once("close", () => reject(new Undelivered("no", `${where} closed the connection`)));
  });
}

interface Dialed {
  socket: Socket;
  ready: string;
  where: string;
}

function dial(address: Address, tls: ConnectionOptions, onread: OnReadOpts): Dialed {
  switch (address.kind) {
    case "unix":
      return { socket: connectNet({ path: address.path, onread }), ready: "connect", where: address.path };
    case "tcp":
    case "tls": {
      const { host, port } = address;
      const where = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
      if (address.kind === "tcp") {
        return { socket: connectNet({ host, port, onread }), ready: "connect", where };
      }
      const servername = isIP(host) === 0 ? { servername: host } : {};
      return { socket: connectTls({ ...servername, ...tls, host, port }), ready: "secureConnect", where };
    }
    case "memory":
      throw new TypeError("memory:// has no socket");
  }
}

/** Asking again does not make a certificate better. */
function isCertificateProblem(error: NodeJS.ErrnoException): boolean {
  return /^(CERT_|DEPTH_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT|ERR_SSL_WRONG_VERSION|HOSTNAME_MISMATCH)/.test(
    error.code ?? "",
  );
}
