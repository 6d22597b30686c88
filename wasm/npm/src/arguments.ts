import type * as Glue from "./tallylock_wasm.js";

const encoder = new TextEncoder();

/** The bytes of a key or a value; refuses what is neither text nor bytes, and text that has no bytes of its own. */
export function bytes(client: Glue.Client, what: string, given: string | Uint8Array, key?: Uint8Array): Uint8Array {
  if (typeof given === "string") {
    if (given.isWellFormed()) {
      return encoder.encode(given);
    }
    // Encoded, it would be the same as other ill-formed texts.
    throw client.invalidArgument(`${what} has a lone surrogate in it; give bytes instead`, key);
  }
  if (given instanceof Uint8Array) {
    return given;
  }
  throw client.invalidArgument(`${what} must be a string or a Uint8Array, not ${kind(given)}`, key);
}

/** A whole number of 64 bits; refuses numbers that JavaScript may have rounded. */
export function integer(client: Glue.Client, key: Uint8Array, given: bigint | number): bigint {
  if (typeof given === "bigint") {
    if (BigInt.asIntN(64, given) === given) {
      return given;
    }
    throw client.invalidArgument("an amount must be a whole number of 64 bits", key);
  }
  if (Number.isSafeInteger(given)) {
    return BigInt(given);
  }
  const got = typeof given === "number" ? String(given) : kind(given);
  throw client.invalidArgument(`an amount must be a bigint or a safe integer, not ${got}`, key);
}

/** A fence, a whole number from 0 to 2 ** 64 - 1; refuses numbers that JavaScript may have rounded. */
export function fence(client: Glue.Client, key: Uint8Array, given: bigint | number): bigint {
  const isOne =
    typeof given === "bigint" ? BigInt.asUintN(64, given) === given : Number.isSafeInteger(given) && given >= 0;
  if (isOne) {
    return BigInt(given);
  }
  const got = typeof given === "number" || typeof given === "bigint" ? String(given) : kind(given);
  throw client.invalidArgument(`a fence must be a bigint or a safe integer from 0 to 2 ** 64 - 1, not ${got}`, key);
}

/** Milliseconds; whatever is no number becomes NaN, which the core refuses. */
export function ms(given: unknown): number {
  return typeof given === "number" ? given : Number.NaN;
}

/** Milliseconds that need not be given. */
export function optionalMs(given: unknown): number | undefined {
  return given === undefined ? undefined : ms(given);
}

function kind(given: unknown): string {
  return given === null ? "null" : typeof given;
}
