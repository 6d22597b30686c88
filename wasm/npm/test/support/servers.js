import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";

const root = fileURLToPath(new URL("../../../../", import.meta.url));

/** The servers that everything is tested on. */
export const SERVERS = ["valkey-server", "redis-server"];

/** How long a server may take to start. */
const PATIENCE_MS = 20_000;

/**
 * Starts a server of a test's own.
 *
 * @param {string} name
 * @param {string[]} options more of its command line
 */
export async function startServer(name = "valkey-server", options = []) {
  const folder = await mkdtemp(join(tmpdir(), "tallylock-"));
  const { child, port, socket } = await launch(name, folder, options);
  const other = new Redis(port);
  other.on("error", () => undefined);
  return {
    name,
    port,
    socket,
    url: `redis://127.0.0.1:${port}`,
    /** Another program at the same server. */
    other,
    /** Lets the server answer nothing until it is continued. */
    pause: () => child.kill("SIGSTOP"),
    resume: () => child.kill("SIGCONT"),
    async stop() {
      other.disconnect();
      await end(child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Starts it on a free port; on another if somebody was faster. */
async function launch(name, folder, options) {
  const until = performance.now() + PATIENCE_MS;
  while (performance.now() < until) {
    const port = await freePort();
    const socket = join(folder, "server.sock");
    const fixed = ["--port", `${port}`, "--bind", "127.0.0.1", "--save", "", "--unixsocket", socket, "--dir", folder];
    const child = spawn(join(root, ".cache/servers", name), [...fixed, ...options], { stdio: "ignore" });
    await once(child, "spawn");
    while (child.exitCode === null && performance.now() < until) {
      if (await answers(port)) {
        return { child, port, socket };
      }
      await sleep(20);
    }
    await end(child);
  }
  throw new Error(`${name} did not start within ${PATIENCE_MS} ms`);
}

/** Whether whoever listens there speaks RESP. */
function answers(port) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" }, () => socket.write("PING\r\n"));
    const done = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("data", (bytes) => done(/^[+-]/.test(bytes.toString())));
    socket.once("error", () => done(false));
    socket.once("end", () => done(false));
  });
}

async function end(child) {
  child.kill("SIGKILL");
  if (child.exitCode === null && child.signalCode === null) {
    await once(child, "exit");
  }
}

/** A port that nobody listens on. */
export async function freePort() {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  server.close();
  await once(server, "close");
  return port;
}

export { root };
