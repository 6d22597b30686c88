import { connect as connectNet, isIP, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import { type Transport, Undelivered } from "../transport.js";
import type { Address } from "./address.js";
import { Connection } from "./connection.js";
import { greet } from "./handshake.js";
import { DialTimeout, Reconnecting } from "./reconnecting.js";

/** A transport over sockets of Node. */
export function nodeSocket(address: Address, tls: ConnectionOptions): Transport {
  return new Reconnecting(async (timeoutMs) => {
    const socket = await openSocket(address, tls, timeoutMs);
    const connection = over(socket);
    // A server that accepts and then says nothing must not hold up those who wait for the connection.
    const timer = setTimeout(() => connection.close(), timeoutMs);
    try {
      await greet(connection, address);
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  });
}

function over(socket: Socket): Connection {
  return new Connection((events) => {
    let problem = "the server closed the connection";
    socket.on("data", (bytes) => events.received(bytes));
    socket.on("error", (error) => {
      problem = error.message;
    });
    // The end is told at once: what is written after it would be lost.
    socket.on("end", () => events.ended(problem));
    socket.on("close", () => events.ended(problem));
    return { write: (bytes) => void socket.write(bytes), destroy: () => void socket.destroy() };
  });
}

function openSocket(address: Address, tls: ConnectionOptions, timeoutMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const { socket, ready, where } = dial(address, tls);
    socket.setNoDelay(true);
    const timer = setTimeout(() => fail(new DialTimeout(where, timeoutMs)), timeoutMs);
    const fail = (error: Undelivered) => {
      clearTimeout(timer);
      socket.destroy();
      reject(error);
    };
    const failed = (error: NodeJS.ErrnoException) => {
      const why = `${where}: ${error.message || error.code || "connection failed"}`;
      fail(new Undelivered(isCertificateProblem(error) ? "refused" : "no", why));
    };
    const closed = () => fail(new Undelivered("no", `${where} closed the connection`));
    socket.once("error", failed);
    socket.once("close", closed);
    socket.once(ready, () => {
      clearTimeout(timer);
      socket.off("close", closed);
      resolve(socket);
      // From now on the connection listens; an error in between would end the process.
      queueMicrotask(() => queueMicrotask(() => socket.off("error", failed)));
    });
  });
}

function dial(address: Address, tls: ConnectionOptions): { socket: Socket; ready: string; where: string } {
  switch (address.kind) {
    case "unix":
      return { socket: connectNet({ path: address.path }), ready: "connect", where: address.path };
    case "tcp":
    case "tls": {
      const { host, port } = address;
      const where = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
      if (address.kind === "tcp") {
        return { socket: connectNet({ host, port }), ready: "connect", where };
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
