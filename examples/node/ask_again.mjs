import { setTimeout as delay } from "node:timers/promises";

/** What may be asked again after: none of these says that it can't be done. */
const ASK_AGAIN = new Set(["outcome_unknown", "unavailable", "timeout"]);
const ATTEMPTS = 20;
const BETWEEN_ATTEMPTS_MS = 100;

/**
 * Does what is harmless to do twice, again if it may not have been done.
 *
 * @template T
 * @param {() => Promise<T>} ask
 * @returns {Promise<T>}
 */
export async function askAgain(ask) {
  for (let left = ATTEMPTS; ; left -= 1) {
    try {
      return await ask();
    } catch (error) {
      if (left === 0 || !ASK_AGAIN.has(error.code)) {
        throw error;
      }
    }
    await delay(BETWEEN_ATTEMPTS_MS);
  }
}
