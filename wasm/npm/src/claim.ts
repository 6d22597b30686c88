/** What has become of a claim. */
export type ClaimState = "open" | "committed" | "aborted";

/** What a claim took from its counter. */
export interface Claim {
  /** The amount that it took. */
  amount: bigint;
  /** What has become of it: `open` until it is committed or aborted. */
  state: ClaimState;
}

/** A claim that was neither committed nor aborted yet. */
export class OpenClaim {
  /** Its id. */
  readonly id: Uint8Array;
  /** The amount that it took. */
  readonly amount: bigint;
  /** How long it is kept yet, in milliseconds; after that its amount is lost. Null if it has lost its TTL. */
  readonly remainingMs: number | null;

  /** @internal */
  constructor(id: Uint8Array, amount: bigint, remainingMs: number | null) {
    this.id = id;
    this.amount = amount;
    this.remainingMs = remainingMs;
  }

  /** Its id as text. Throws a `TypeError` if it is not UTF-8. */
  get idText(): string {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.id);
  }
}

/** The claims in the order of their ids, each once: a look through a server's keys may find one twice. */
export function inOrder(found: OpenClaim[]): OpenClaim[] {
  // One character a byte, so that texts sort as their bytes do.
  const name = ({ id }: OpenClaim) => id.reduce((text, byte) => text + String.fromCharCode(byte), "");
  const byName = new Map(found.map((claim) => [name(claim), claim]));
  return [...byName].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, claim]) => claim);
}
