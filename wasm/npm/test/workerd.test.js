import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { startFleet } from "./support/fleet.js";
import { freePort } from "./support/servers.js";

const here = fileURLToPath(new URL(".", import.meta.url));
const WASM = "tallylock_wasm_bg.wasm";
const FULL = `full/${WASM}`;

/** The program of the package for this platform; the package's own start-up script is not needed. */
function workerd() {
  const suffix = { x64: "64", arm64: "arm64" }[process.arch];
  const require = createRequire(createRequire(import.meta.url).resolve("workerd"));
  return require.resolve(`@cloudflare/workerd-${process.platform}-${suffix}/bin/workerd`);
}

/** Bundles as a Worker's own tools do; the wasm file stays a module of its own, since bytes are not compiled there. */
async function bundle(folder) {
  await build({
    entryPoints: [join(here, "workerd/worker.js")],
    outfile: join(folder, "worker.js"),
    bundle: true,
    format: "esm",
    conditions: ["workerd"],
    external: ["cloudflare:*", "*.wasm"],
    logLevel: "error",
  });
  await copyFile(join(here, "../dist", WASM), join(folder, WASM));
  await mkdir(join(folder, "full"));
  await copyFile(join(here, "../dist", FULL), join(folder, FULL));
}

function config(port, serverPorts) {
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "internet", network = (allow = ["local", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [
    (name = "worker.js", esModule = embed "worker.js"),
    (name = "${WASM}", wasm = embed "${WASM}"),
    (name = "${FULL}", wasm = embed "${FULL}"),
  ],
  compatibilityDate = "2026-01-01",
  bindings = [(name = "SERVER_PORTS", text = "${serverPorts.join()}")],
);
`;
}

test("in workerd, over a socket of cloudflare:sockets", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tallylock-workerd-"));
  const servers = await startFleet(3);
  const [server] = servers;
  t.after(() => Promise.all(servers.map((one) => one.stop())));
  const port = await freePort();
  await bundle(folder);
  await writeFile(
    join(folder, "config.capnp"),
    config(
      port,
      servers.map((one) => one.port),
    ),
  );
  const child = spawn(workerd(), ["serve", join(folder, "config.capnp")], { stdio: ["ignore", "inherit", "inherit"] });
  t.after(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) {
      await once(child, "exit");
    }
    await rm(folder, { recursive: true, force: true });
  });

  // Twice: the second request meets an instance that is there already, and opens a connection of its own.
  for (const round of [1, 2]) {
    const response = await request(child, port);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    const { totals, drained, fences, refused, renewed, reason, wrong, spread } = JSON.parse(text);
    assert.deepEqual(totals, ["30", `${2n ** 60n + 30n}`, `${2n ** 60n + 25n}`], `round ${round}`);
    assert.equal(drained, `${2n ** 60n + 25n}`);
    assert.ok(BigInt(fences[1]) > BigInt(fences[0]));
    assert.equal(refused, "busy");
    assert.equal(renewed, true, "a lease outlives its TTL");
    assert.equal(reason, "expired");
    assert.equal(wrong, "invalid_argument");
    assert.deepEqual(spread, { refused: "busy", message: "held by another on" });
  }
  assert.equal(await server.other.get("session:42:billableSecondsPending"), "0");
  assert.ok((await server.other.pttl("session:42:billableSecondsPending")) > 800_000);
  assert.equal(await server.other.exists("invoice:42"), 0);
});

/** Asks until workerd listens. */
async function request(child, port) {
  for (let patience = 0; patience < 500 && child.exitCode === null; patience++) {
    try {
      return await fetch(`http://127.0.0.1:${port}/`);
    } catch {
      await sleep(20);
    }
  }
  throw new Error(`workerd does not listen (exit code ${child.exitCode})`);
}
