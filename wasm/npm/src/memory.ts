import { bytes, ms, optionalMs } from "./arguments.js";
import { Client, type ClientOptions } from "./client.js";
import { checkOptions, label, type Refuse, type Runtime } from "./connect.js";
import { RuntimeHost } from "./host.js";
import type * as MemoryGlue from "./memory/tallylock_wasm.js";
import type * as Glue from "./tallylock_wasm.js";
import { parseUrl } from "./transports/address.js";

/** A key of a server in memory. */
export interface MemoryKey {
  key: Uint8Array;
  /** Its bytes; null for a key of another type. */
  value: Uint8Array | null;
  /** Its remaining milliseconds; null for a key without a TTL. */
  ttlMs: number | null;
}

/** The face of a server in memory for tests. */
export class Memory {
  #client: Glue.Client;
  #face: MemoryGlue.MemoryFace;

  /** @internal */
  constructor(client: Glue.Client, face: MemoryGlue.MemoryFace) {
    this.#client = client;
    this.#face = face;
  }

  /** Lets so many milliseconds pass on its clock. Throws `invalid_argument` if it is negative or more than 10 years. */
  advance(millis: number): void {
    this.#face.advance(ms(millis));
  }

  /** Every live key. */
  keys(): MemoryKey[] {
    return this.#face.keys().map(([key, value, ttlMs]) => ({ key, value, ttlMs }));
  }

  /** Puts a text there as another program would; without a TTL if none is given. */
  put(key: string | Uint8Array, value: string | Uint8Array, options: { ttlMs?: number } = {}): void {
    this.#face.put(this.#bytes(key), bytes(this.#client, "a value", value), optionalMs(options.ttlMs));
  }

  /** Puts a key of another type there as another program would; without a TTL if none is given. */
  putOtherType(key: string | Uint8Array, options: { ttlMs?: number } = {}): void {
    this.#face.putOtherType(this.#bytes(key), optionalMs(options.ttlMs));
  }

  /** Removes a key as another program would. */
  remove(key: string | Uint8Array): void {
    this.#face.remove(this.#bytes(key));
  }

  /** Executes the next call, but loses its reply. */
  loseNextReply(): void {
    this.#face.loseNextReply();
  }

  /** Forgets which scripts it was sent, as a server does when it restarts. */
  forgetScripts(): void {
    this.#face.forgetScripts();
  }

  #bytes(key: string | Uint8Array): Uint8Array {
    return bytes(this.#client, "a key", key);
  }
}

/** A client of a server in memory, whose clock jumps to the next deadline when all its callers wait. */
export class MemoryClient extends Client {
  /** The face for tests. */
  readonly memory: Memory;

  /** @internal */
  constructor(host: RuntimeHost, client: Glue.Client, memory: Memory) {
    super(host, client, {
      send: () => Promise.reject(new Error("a server in memory has no transport")),
    });
    this.memory = memory;
  }
}

/** How to make a client of a server in memory. */
export interface MemoryOptions extends ClientOptions {
  /** `memory://` for a server of this client's own (the default), `memory://name` for one that is shared by its name. */
  url?: string;
}

/** What an entry file knows of its runtime. */
export interface MemoryRuntime extends Omit<Runtime, "glue"> {
  /** Instantiates the wasm file; the same instance each time. */
  glue(): Promise<typeof MemoryGlue>;
}

/** Makes a client of a server in memory. */
export async function connectInMemory(runtime: MemoryRuntime, options: MemoryOptions = {}): Promise<MemoryClient> {
  const glue = await runtime.glue();
  const host = new RuntimeHost();
  const refuse: Refuse = (detail) => glue.refuseOptions(host, detail);
  checkOptions(options, refuse);
  // A URL that was given but is undefined is a variable that was never set, not a wish for the default.
  const address = parseUrl("url" in options ? options.url : "memory://", refuse);
  if (address.kind !== "memory") {
    throw refuse("tallylock/memory knows memory:// only; servers are reached with tallylock itself");
  }
  const made = glue.Client.ofMemory(host, address.name, optionalMs(options.timeoutMs), label(runtime, options));
  const face = made.memory;
  // Of the same shape but for its memory: the types are those of two files.
  const client = made as unknown as Glue.Client;
  host.connect([], client);
  if (face === undefined) {
    throw new TypeError("a client of a server in memory has a face");
  }
  return new MemoryClient(host, client, new Memory(client, face));
}
