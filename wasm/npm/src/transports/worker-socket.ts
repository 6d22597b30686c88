import { type Transport, Undelivered } from "../transport.js";
import { Connection, type PipeEvents } from "./connection.js";
import { within } from "./dial.js";
import { type Credentials, greet } from "./handshake.js";
import { Reconnecting } from "./reconnecting.js";

/** What of a socket of `cloudflare:sockets` is used. */
export interface WorkerSocket {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
  readonly opened: Promise<unknown>;
  close(): Promise<void>;
}

/**
 * A transport over sockets that you open: `fromSocket(() => connect({ hostname, port }), { password })`, where `connect` is
 * that of `cloudflare:sockets`.
 *
 * A Worker's socket belongs to the request that opened it: connect in the handler and close the client at its end.
 */
export function fromSocket(open: () => WorkerSocket, credentials: Credentials = {}): Transport {
  return new Reconnecting(async (timeoutMs) => {
    const socket = open();
    return within(
      timeoutMs,
      "the server",
      () => void socket.close().catch(() => undefined),
      async () => {
        await socket.opened.catch((error) => {
          throw new Undelivered("no", reasonOf(error));
        });
        const connection = new Connection((events) => pipe(socket, events));
        await greet(connection, credentials);
        return connection;
      },
    );
  });
}

function pipe(socket: WorkerSocket, events: PipeEvents) {
  const writer = socket.writable.getWriter();
  const reader = socket.readable.getReader();
  let isOver = false;
  const over = (reason: string) => {
    if (!isOver) {
      isOver = true;
      events.ended(reason);
    }
  };
  const read = async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || isOver) {
        return over("the server closed the connection");
      }
      events.received(value);
    }
  };
  read().catch((error) => over(reasonOf(error)));
  return {
    write: (bytes: Uint8Array) => void writer.write(bytes).catch((error) => over(reasonOf(error))),
    destroy: () => {
      isOver = true;
      void socket.close().catch(() => undefined);
    },
  };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
