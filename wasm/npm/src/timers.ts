/** The longest that a timer of the runtime's can run: about 24 days. */
const LONGEST_MS = 2 ** 31 - 1;

/** How long the process may be kept from ending after the last call. */
const LINGER_MS = 50;

/**
 * The timers of a client: one of the runtime's for all of them.
 *
 * Nearly every timer is a call's deadline that is never reached. Setting one of the runtime's for each, and clearing it,
 * would cost more than all else that a call needs in JavaScript.
 */
export class Timers {
  #woke: (timer: number) => void;
  #keepsAlive: boolean;
  /** When each is due. */
  #due = new Map<number, number>();
  #armed: ReturnType<typeof setTimeout> | undefined;
  #armedFor = Number.POSITIVE_INFINITY;
  /** Whether the armed timer keeps the process alive. */
  #isKeeping = true;
  #isLetGoSoon = false;

  /**
   * @param woke called with each timer that has run out
   * @param keepsAlive whether the process stays alive for them
   */
  constructor(woke: (timer: number) => void, keepsAlive = true) {
    this.#woke = woke;
    this.#keepsAlive = keepsAlive;
  }

  /** Lets a timer run out at a moment of `performance.now()`. */
  set(timer: number, due: number): void {
    this.#due.set(timer, due);
    if (!this.#isKeeping && this.#keepsAlive) {
      this.#keep(true);
    }
    if (due < this.#armedFor) {
      this.#arm(due);
    }
  }

  /** Forgets a timer. */
  clear(timer: number): void {
    this.#due.delete(timer);
    // It stays armed for the next call, but nobody waits for it: the process may end. To tell the runtime so after each
    // call, and the contrary before, would cost as much as all else here.
    if (this.#keepsAlive && this.#due.size === 0 && !this.#isLetGoSoon && canKeepAlive(this.#armed)) {
      this.#isLetGoSoon = true;
      keepAlive(
        setTimeout(() => this.#letGo(), LINGER_MS),
        false,
      );
    }
  }

  #letGo(): void {
    this.#isLetGoSoon = false;
    if (this.#due.size === 0) {
      this.#keep(false);
    }
  }

  #keep(yes: boolean): void {
    this.#isKeeping = yes;
    keepAlive(this.#armed, yes);
  }

  #arm(due: number): void {
    clearTimeout(this.#armed);
    this.#armedFor = due;
    // One that runs out early finds nobody due, and is armed again.
    const ms = Math.min(Math.max(0, due - performance.now()), LONGEST_MS);
    this.#armed = setTimeout(() => this.#ranOut(), ms);
    if (!this.#keepsAlive) {
      keepAlive(this.#armed, false);
    }
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

interface KeepsAlive {
  ref(): void;
  unref(): void;
}

/** Whether a timer may keep a process from ending: at the edge it is a mere number. */
function canKeepAlive(timer: unknown): timer is KeepsAlive {
  return typeof timer === "object" && timer !== null && "ref" in timer && "unref" in timer;
}

function keepAlive(timer: unknown, yes: boolean): void {
  if (canKeepAlive(timer)) {
    yes ? timer.ref() : timer.unref();
  }
}
