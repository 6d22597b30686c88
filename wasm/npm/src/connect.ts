import { optionalMs } from "./arguments.js";
import { Client, type ClientOptions } from "./client.js";
import { RuntimeHost } from "./host.js";
import type * as Glue from "./tallylock_wasm.js";
import type { Transport } from "./transport.js";

/** What an entry file knows of its runtime. */
export interface Runtime {
  /** Instantiates the wasm file; the same instance each time. */
  glue(): Promise<typeof Glue>;
  /** What locks say about their owner if the caller says nothing. */
  owner(): string | undefined;
}

/** Makes the error for options that no client can be made with. */
export type Refuse = (detail: string) => unknown;

/** Makes a client over a transport and connects it. */
export async function connectOver(
  runtime: Runtime,
  options: ClientOptions,
  transportFor: (refuse: Refuse) => Transport,
): Promise<Client> {
  const glue = await runtime.glue();
  const host = new RuntimeHost();
  const refuse: Refuse = (detail) => glue.refuseOptions(host, detail);
  checkOptions(options, refuse);
  const transport = transportFor(refuse);
  const client = new glue.Client(host, optionalMs(options.timeoutMs), label(runtime, options));
  host.connect([transport], client);
  try {
    await client.open();
  } catch (error) {
    await transport.close?.();
    throw error;
  }
  return new Client(host, client, transport);
}

/** Refuses what is no object of options. */
export function checkOptions(given: unknown, refuse: Refuse): void {
  if (typeof given !== "object" || given === null) {
    throw refuse("the options must be an object");
  }
}

/** A transport of the caller's; refuses what is none, such as a variable that was never set. */
export function ownTransport(given: unknown, refuse: Refuse): Transport {
  if (typeof (given as Transport | null | undefined)?.send !== "function") {
    throw refuse("transport must be an object with send(), such as fromIoredis(client) gives");
  }
  return given as Transport;
}

/** The label of a client's locks. */
export function label(runtime: Runtime, { owner }: ClientOptions): string | undefined {
  if (owner === undefined) {
    return runtime.owner();
  }
  return owner === false ? undefined : String(owner);
}
