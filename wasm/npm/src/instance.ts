import { readFile } from "node:fs/promises";
import * as glue from "./full/tallylock_wasm.js";

let instance: Promise<typeof glue> | undefined;

/** Instantiates the wasm file of Node: once, since the glue knows one instance only. */
export function instantiated(): Promise<typeof glue> {
  instance ??= instantiate();
  return instance;
}

async function instantiate(): Promise<typeof glue> {
  const file = await readFile(new URL("./full/tallylock_wasm_bg.wasm", import.meta.url));
  await glue.default({ module_or_path: file });
  return glue;
}
