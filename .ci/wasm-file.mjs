// Checks the built wasm files: they import nothing from `env` (which would be a clock, randomness or I/O that crept in
// through a C library), and the production one is small enough to load at the edge.
//
// usage: node .ci/wasm-file.mjs [--at-most BYTES]    the limit is for the production file, gzipped
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";

const { values } = parseArgs({ options: { "at-most": { type: "string", default: "Infinity" } } });
const limit = Number(values["at-most"]);
if (!(limit > 0)) {
  throw new RangeError(`--at-most: not a number of bytes: ${values["at-most"]}`);
}
const dist = new URL("../wasm/npm/dist/", import.meta.url);
const files = [
  { name: "production", path: "tallylock_wasm_bg.wasm", gzippedAtMost: limit },
  { name: "memory", path: "memory/tallylock_wasm_bg.wasm", gzippedAtMost: Infinity },
  { name: "full", path: "full/tallylock_wasm_bg.wasm", gzippedAtMost: Infinity },
];

let failed = false;
for (const { name, path, gzippedAtMost } of files) {
  const bytes = readFileSync(new URL(path, dist));
  const foreign = WebAssembly.Module.imports(new WebAssembly.Module(bytes))
    .filter((entry) => !entry.module.startsWith("./tallylock_wasm") && !entry.module.startsWith("wbg"))
    .map((entry) => `${entry.module}.${entry.name}`);
  const gzipped = gzipSync(bytes, { level: 9 }).length;
  console.log(`wasm ${name}: ${bytes.length} bytes, ${gzipped} gzipped`);
  if (foreign.length > 0) {
    console.error(`wasm ${name}: imports ${foreign.join(", ")}; only wasm-bindgen's own glue may be imported`);
    failed = true;
  }
  if (gzipped > gzippedAtMost) {
    console.error(`wasm ${name}: more than ${gzippedAtMost} bytes gzipped`);
    failed = true;
  }
}
process.exit(failed ? 1 : 0);
