// What waiting for a lock does to the process in which somebody waits: it may end, and nothing is rejected that nobody handles.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { startServer } from "./support/servers.js";

/** For how long a connection that hears of releases is kept while nobody waits. */
const KEPT_IDLE_MS = 10_000;

/** How a program comes to a server: each defines `transport`, and `end` for all that is not the library's to end. */
const WAYS = {
  "a socket": `
    import { nodeSocket } from "../dist/transports/node-socket.js";
    import { parseUrl } from "../dist/transports/address.js";
    const transport = nodeSocket(parseUrl(url), {});
    const end = () => transport.close();`,
  ioredis: `
    const theirs = new Redis(url, { autoResendUnfulfilledCommands: false, enableOfflineQueue: false });
    theirs.on("error", () => undefined);
    await once(theirs, "ready");
    const transport = fromIoredis(theirs);
    const end = () => theirs.disconnect();`,
  "node-redis": `
    import { createClient } from "redis";
    const theirs = createClient({ url, pingInterval: 30_000 });
    theirs.on("error", () => undefined);
    await theirs.connect();
    const transport = fromNodeRedis(theirs);
    const end = () => theirs.destroy();`,
};

/** A program that holds a lock, has another of its calls wait for it, and goes on once the releases of that lock are listened for. */
const waiting = (url, way, options) => `
  import { once } from "node:events";
  import { Redis } from "ioredis";
  import { connect, fromIoredis, fromNodeRedis } from "tallylock";
  const url = "${url}";
  const other = new Redis(url, { retryStrategy: () => null });
  other.on("error", () => undefined);
  const connections = async () => Number(/connected_clients:([0-9]+)/.exec(await other.info("clients"))[1]);
  ${WAYS[way]}
  const client = await connect({ transport, timeoutMs: ${options.timeoutMs} });
  const lock = () => client.lock("l", { ttlMs: 60_000 });
  const held = await lock().acquire();
  const before = await connections();
  const waits = [1, 2, 3].map(() => lock().acquire({ waitMs: ${options.waitMs} }));
  const ends = Promise.all(waits.map((wait) => wait.then((lease) => lease.release()).then(() => "released", ({ code }) => code)));
  while (Number((await other.pubsub("NUMSUB", "l{l}:tlu1:released"))[1]) === 0) {
    await new Promise((wake) => setTimeout(wake, 10));
  }
`;

/** Runs a program in which a rejection that nobody handles is an error, and gives the lines that it prints, each told when it comes. */
async function run(source, told = (/** @type {string} */ _line) => undefined) {
  const options = ["--unhandled-rejections=strict", "--input-type=module", "--eval", source];
  const cwd = fileURLToPath(new URL(".", import.meta.url));
  const child = spawn(process.execPath, options, { cwd, stdio: ["ignore", "pipe", "inherit"] });
  const lines = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    told(line);
  });
  const [code] = await once(child, "close");
  assert.equal(code, 0, lines.join("\n"));
  return lines;
}

for (const way of Object.keys(WAYS)) {
  describe(`a process that waits over ${way}`, { concurrency: true }, () => {
    test(`ends although it could still hear of releases over ${way}`, async (t) => {
      const server = await startServer();
      t.after(() => server.stop());
      const lines = await run(`
        ${waiting(server.url, way, { timeoutMs: 60_000, waitMs: 60_000 })}
        await held.release();
        console.log(String(await ends));
        console.log((await connections()) - before);
        const begun = performance.now();
        process.on("exit", () => console.log(performance.now() - begun < ${KEPT_IDLE_MS} - 1_000));
        other.disconnect();
        end();
      `);
      assert.deepEqual(lines, ["released,released,released", "1", "true"]);
    });

    test(`rejects nothing that nobody handles when its server dies, over ${way}`, async (t) => {
      const server = await startServer();
      t.after(() => server.stop());
      const lines = await run(
        `
        ${waiting(server.url, way, { timeoutMs: 2_000, waitMs: 4_000 })}
        console.log("listening");
        console.log(String(await ends));
        await client.close();
        other.disconnect();
        end();
      `,
        (line) => void (line === "listening" && server.stop()),
      );
      assert.equal(lines.length, 2);
      for (const code of lines[1].split(",")) {
        assert.ok(["busy", "timeout", "unavailable"].includes(code), lines[1]);
      }
    });

    test(`ends although its server hangs while it waits, over ${way}`, async (t) => {
      const server = await startServer();
      t.after(async () => {
        server.resume();
        await server.stop();
      });
      const lines = await run(
        `
        ${waiting(server.url, way, { timeoutMs: 1_000, waitMs: 6_000 })}
        await other.client("KILL", "TYPE", "pubsub");
        console.log("killed");
        console.log(String(await ends));
        other.disconnect();
        end();
      `,
        (line) => void (line === "killed" && server.pause()),
      );
      assert.equal(lines.length, 2);
      assert.ok(!lines[1].includes("released"), lines[1]);
    });
  });
}
