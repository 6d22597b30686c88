import { readFile } from "node:fs/promises";
import * as glue from "./memory/tallylock_wasm.js";
import { connectInMemory, type MemoryClient, type MemoryOptions } from "./memory.js";
import { hostAndPid } from "./owner.js";

export * from "./api.js";
export type { Memory, MemoryClient, MemoryKey, MemoryOptions } from "./memory.js";

/** Makes a client of a server in memory, for tests. Rejects with `invalid_argument` for options that cannot be. */
export function connect(options: MemoryOptions = {}): Promise<MemoryClient> {
  return connectInMemory({ glue: () => (instance ??= instantiate()), owner: hostAndPid }, options);
}

let instance: Promise<typeof glue> | undefined;

async function instantiate(): Promise<typeof glue> {
  const file = await readFile(new URL("./memory/tallylock_wasm_bg.wasm", import.meta.url));
  await glue.default({ module_or_path: file });
  return glue;
}
