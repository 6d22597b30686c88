/** The kind of a failure; the same word in every language. The set is open: keep a default branch. */
export type Code =
  | "busy"
  | "lost"
  | "already_held"
  | "fenced_off"
  | "conflict"
  | "invalid_argument"
  | "wrong_type"
  | "not_an_integer"
  | "overflow"
  | "timeout"
  | "unavailable"
  | "outcome_unknown"
  | "read_only"
  | "forbidden"
  | "out_of_memory"
  | "unsupported"
  | "cancelled"
  | "closed"
  | (string & {});

/** Why a lease is no longer ours. The set is open. */
export type Reason = "expired" | "taken_over" | "unreachable" | "forked" | (string & {});

/** The one error of tallylock: what happened, to which key, and whether it may have been applied all the same. */
export class TallylockError extends Error {
  /** What kind of failure this is. */
  readonly code: Code;
  /** Why a lease was lost; only with the code `lost`. */
  readonly reason: Reason | undefined;
  /** The key that the call was about, as text. */
  readonly key: string | undefined;
  /** Whether the call may have been applied; `maybe` only with the code `outcome_unknown`. */
  readonly applied: "no" | "maybe";

  /** Made by tallylock; the message names the key and the next step. */
  constructor(
    code: string,
    reason: string | undefined,
    key: string | undefined,
    applied: "no" | "maybe",
    message: string,
  ) {
    super(message);
    this.name = "TallylockError";
    this.code = code;
    this.reason = reason;
    this.key = key;
    this.applied = applied;
  }
}
