import { appendFile, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { askAgain } from "./ask_again.mjs";
import { isFlight } from "./flights.mjs";

const SESSION_TTL_MS = 15 * 60 * 1000;
const GUEST_TTL_MS = 30 * 1000;
/**
 * Counts the usage of sessions: adds each flight's seconds to its aircraft's counter, all flights of a day at once.
 *
 * It may be killed at any moment and started again from the start: a flight's key makes its seconds count once.
 */
export class SessionFunction {
  secondsServed = 0;
  /** Adds that found their flight counted: its reply was lost, or this program was killed after it. */
  repeats = 0;
  rowsRefused = 0;
  #client;
  #refused;
  /** Those that fly but once: nobody ends their sessions, and their counters live for seconds. */
  #guests = new Set();

  /**
   * @param {import("tallylock").Client} client
   * @param {string} refused the file to list refused rows in
   */
  constructor(client, refused) {
    this.#client = client;
    this.#refused = refused;
  }

  /**
   * Serves the rows that `ours` picks, one day of the data after the other; days that have passed already, at once.
   *
   * @param {(import("./flights.mjs").Flight | import("./flights.mjs").Refusal)[]} rows
   * @param {{ ours: (row: { line: number }) => boolean, dayMs: number, beganMs: number }} options how long a day lasts,
   *   and when the first one began, by the system's clock
   */
  async serve(rows, { ours, dayMs, beganMs }) {
    await writeFile(this.#refused, "line,flight,reason\n");
    this.#guests = flyingOnce(rows.filter(isFlight));
    for (const [index, today] of byDay(rows).entries()) {
      await delay(Math.max(0, beganMs + index * dayMs - Date.now()));
      const work = today.filter(ours);
      for (const refusal of work.filter((row) => !isFlight(row))) {
        await this.#refuse(refusal);
      }
      await Promise.all(work.filter(isFlight).map((flight) => this.#add(flight, beganMs)));
    }
  }

  async #add({ line, session, airSeconds }, beganMs) {
    const pending = this.#pending(session);
    // The server remembers it for a day, and there may be other runs on that.
    const idempotencyKey = `run-${beganMs}-line-${line}`;
    const { applied } = await askAgain(() => pending.add(airSeconds, { idempotencyKey }));
    this.secondsServed += airSeconds;
    this.repeats += applied ? 0 : 1;
  }

  #pending(session) {
    return this.#guests.has(session)
      ? this.#client.counter(`guest:${session}:billableSecondsPending`, { ttlMs: GUEST_TTL_MS })
      : this.#client.counter(`session:${session}:billableSecondsPending`, { ttlMs: SESSION_TTL_MS });
  }

  async #refuse({ line, flight, reason }) {
    await appendFile(this.#refused, `${line},${flight},${reason}\n`);
    this.rowsRefused += 1;
  }
}

/** The sessions with one flight. */
function flyingOnce(flights) {
  const seen = new Set();
  const again = new Set();
  for (const { session } of flights) {
    (seen.has(session) ? again : seen).add(session);
  }
  return new Set([...seen].filter((session) => !again.has(session)));
}

/** The rows in lists, one for each day, in the order of the days. */
function byDay(rows) {
  const days = new Map();
  for (const row of rows) {
    if (!days.has(row.day)) {
      days.set(row.day, []);
    }
    days.get(row.day).push(row);
  }
  return [...days.values()];
}
