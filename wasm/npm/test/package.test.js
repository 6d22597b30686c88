import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const here = fileURLToPath(new URL("..", import.meta.url));

test("the packed package can be installed and imported", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tallylock-pack-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], {
    cwd: here,
  });
  const [packed] = Object.values(JSON.parse(stdout));
  const names = packed.files.map(({ path }) => path);
  const needed = ["dist/node.js", "dist/node.d.ts", "dist/edge.js", "dist/redlock-node.js"];
  for (const name of [...needed, "dist/tallylock_wasm_bg.wasm", "dist/full/tallylock_wasm_bg.wasm"]) {
    assert.ok(names.includes(name), `${name} is not packed`);
  }
  assert.ok(!names.some((name) => /^(src|test|node_modules)\/|\.optimised|\.map$/.test(name)), names.join());

  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "user", type: "module", private: true }));
  const install = [
    "install",
    "--prefer-offline",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    join(folder, packed.filename),
  ];
  await run("npm", install, { cwd: folder });
  const program = `
    import { connect, TallylockError } from "tallylock";
    import { connect as inMemory } from "tallylock/memory";
    import { connectRedlock } from "tallylock/redlock";
    const client = await inMemory();
    console.log(String(await client.counter("k", { ttlMs: 1000 }).add(2n ** 60n)));
    await connect({ url: "redis://127.0.0.1:1", timeoutMs: 100 }).catch((error) => console.log(error.code));
    const urls = [1, 2, 3].map((port) => \`redis://127.0.0.1:\${port}\`);
    await connectRedlock({ urls, timeoutMs: 100 }).catch((error) => console.log(error instanceof TallylockError));
  `;
  await writeFile(join(folder, "program.js"), program);
  const ran = await run("node", ["program.js"], { cwd: folder });
  assert.deepEqual(ran.stdout.split("\n").slice(0, 3), ["1152921504606846976", "unavailable", "true"]);
});

test("importing does nothing: no timer, no randomness, no file, no socket, no wasm", async () => {
  const program = `
    import { createHook } from "node:async_hooks";
    import { syncBuiltinESMExports } from "node:module";
    import fs from "node:fs/promises";
    const seen = [];
    const forbid = (owner, name) => {
      const was = owner[name];
      owner[name] = (...given) => {
        // Node reads the modules themselves by the same function.
        if (name !== "readFile" || String(given[0]).endsWith(".wasm")) seen.push(name);
        return was.apply(owner, given);
      };
    };
    for (const name of ["setTimeout", "setInterval", "setImmediate", "fetch"]) forbid(globalThis, name);
    for (const name of ["getRandomValues", "randomUUID"]) forbid(globalThis.crypto, name);
    for (const name of ["compile", "instantiate"]) forbid(WebAssembly, name);
    forbid(performance, "now");
    forbid(Math, "random");
    forbid(fs, "readFile");
    syncBuiltinESMExports();
    createHook({ init: (_, type) => { if (/TCP|TLS|UDP|Timeout|GETADDRINFO/.test(type)) seen.push(type); } }).enable();
    const { connect } = await import("tallylock");
    const memory = await import("tallylock/memory");
    await import("tallylock/redlock");
    console.log(JSON.stringify(seen));
    const client = await memory.connect();
    await client.lock("k", { ttlMs: 1000 }).acquire();
    console.log(JSON.stringify([...new Set(seen)].sort()));
  `;
  const { stdout } = await run("node", ["--input-type=module", "--eval", program], { cwd: here });
  const [atImport, later] = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(atImport, []);
  // The watch is not blind.
  assert.ok(later.includes("getRandomValues") && later.includes("readFile"), later.join());
});

test("the types say what the exports are", async () => {
  const { exports } = JSON.parse(await readFile(join(here, "package.json"), "utf8"));
  for (const entry of [exports["."], exports["./memory"], exports["./redlock"]]) {
    for (const { types, default: file } of [entry, entry.workerd]) {
      assert.equal(types.replace(/\.d\.ts$/, ""), file.replace(/\.js$/, ""));
      await readFile(join(here, types));
      await readFile(join(here, file));
    }
  }
});
