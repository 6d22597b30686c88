/** The longest that a timer of the runtime's can run: about 24 days. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * The timers of a client: one of the runtime's for all of them.
 *
 * Nearly every timer is a call's deadline that is never reached. Setting one of the runtime's for each, and clearing it,
 * would cost more than all else that a call needs in JavaScript.
 */
export class Timers {
  #woke: (timer: number) => void;
  /** When each is due. */
  #due = new Map<number, number>();
  #armed: ReturnType<typeof setTimeout> | undefined;
  #armedFor = Number.POSITIVE_INFINITY;

  /** @param woke called with each timer that has run out */
  constructor(woke: (timer: number) => void) {
    this.#woke = woke;
  }

  /** Lets a timer run out at a moment of `performance.now()`. */
  set(timer: number, due: number): void {
    this.#due.set(timer, due);
    if (this.#due.size === 1) {
      keepAlive(this.#armed, true);
    }
    if (due < this.#armedFor) {
      this.#arm(due);
    }
  }

  /** Forgets a timer. */
  clear(timer: number): void {
    this.#due.delete(timer);
    if (this.#due.size === 0) {
      // It stays armed for the next call, but nobody waits for it: the process may end.
      keepAlive(this.#armed, false);
    }
  }

  #arm(due: number): void {
    clearTimeout(this.#armed);
    this.#armedFor = due;
    // One that runs out early finds nobody due, and is armed again.
    const ms = Math.min(Math.max(0, due - performance.now()), LONGEST_MS);
    this.#armed = setTimeout(() => this.#ranOut(), ms);
  }

  #ranOut(): void {
    this.#armed = undefined;
    this.#armedFor = Number.POSITIVE_INFINITY;
    const now = performance.now();
    let next = Number.POSITIVE_INFINITY;
    const over: number[] = [];
    for (const [timer, due] of this.#due) {
      // A runtime may be early by a part of a millisecond; so may we.
      if (due <= now + 1) {
        over.push(timer);
      } else {
        next = Math.min(next, due);
      }
    }
    for (const timer of over) {
      this.#due.delete(timer);
    }
    if (next < this.#armedFor) {
      this.#arm(next);
    }
    over.forEach(this.#woke);
  }
}

/** Whether a timer keeps the process from ending, where there is such a thing. */
function keepAlive(timer: unknown, yes: boolean): void {
  const known = timer as { ref?(): void; unref?(): void } | undefined;
  if (yes) {
    known?.ref?.();
  } else {
    known?.unref?.();
  }
}
