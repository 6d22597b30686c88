import * as glue from "./memory/tallylock_wasm.js";
// @ts-expect-error: a module of WebAssembly, which the runtime compiles when it loads the Worker
import wasm from "./memory/tallylock_wasm_bg.wasm";
import { connectInMemory, type MemoryClient, type MemoryOptions } from "./memory.js";

export * from "./api.js";
export type { Memory, MemoryClient, MemoryKey, MemoryOptions } from "./memory.js";

/** Makes a client of a server in memory, for tests. Rejects with `invalid_argument` for options that cannot be. */
export function connect(options: MemoryOptions = {}): Promise<MemoryClient> {
  return connectInMemory({ glue: instantiate, owner: () => undefined }, options);
}

let instantiated = false;

async function instantiate(): Promise<typeof glue> {
  if (!instantiated) {
    glue.initSync({ module: wasm });
    instantiated = true;
  }
  return glue;
}
