import { appendFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

const SESSION_TTL_MS = 15 * 60 * 1000;

/**
 * Counts the usage of sessions: adds each flight's seconds to its aircraft's counter, all flights of a day at once.
 *
 * An aircraft that does not fly again has its session ended, and what was still pending is left in a file.
 */
export class SessionFunction {
  secondsAdded = 0;
  sessionsEnded = 0;
  rowsRefused = 0;
  #client;
  #finished;
  #refused;

  /**
   * @param {import("tallylock").Client} client
   * @param {{ finished: string, refused: string }} files to append ended sessions and refused rows to
   */
  constructor(client, { finished, refused }) {
    this.#client = client;
    this.#finished = finished;
    this.#refused = refused;
  }

  /**
   * Serves the rows that `ours` picks, one day of the data after the other, a day lasting `dayMs`.
   *
   * @param {(import("./flights.mjs").Flight | import("./flights.mjs").Refusal)[]} rows
   * @param {{ ours: (row: { line: number }) => boolean, dayMs: number }} options
   */
  async serve(rows, { ours, dayMs }) {
    await appendFile(this.#refused, "line,flight,reason\n");
    const begin = performance.now();
    const days = byDay(rows);
    const lastFlights = new Map(rows.filter(isFlight).map((flight) => [flight.session, flight]));
    for (const [index, today] of days.entries()) {
      await delay(Math.max(0, begin + index * dayMs - performance.now()));
      const work = today.filter(ours);
      for (const refusal of work.filter((row) => !isFlight(row))) {
        await this.#refuse(refusal);
      }
      const flights = work.filter(isFlight);
      await Promise.all(flights.map((flight) => this.#add(flight)));
      // When the month ends, those that still fly stay open: the billing jobs drain them.
      if (index < days.length - 1) {
        const landed = flights.filter((flight) => lastFlights.get(flight.session) === flight);
        await Promise.all(landed.map(({ session }) => this.#end(session)));
      }
    }
  }

  async #add({ session, airSeconds }) {
    await this.#pending(session).add(airSeconds);
    this.secondsAdded += airSeconds;
  }

  // What finish returns is gone from the server: it is on disk before anything else is done.
  async #end(session) {
    const left = (await this.#pending(session).finish()) ?? 0n;
    if (left > 0n) {
      await appendFile(this.#finished, `${session},${left}\n`);
    }
    this.sessionsEnded += 1;
  }

  async #refuse({ line, flight, reason }) {
    await appendFile(this.#refused, `${line},${flight},${reason}\n`);
    this.rowsRefused += 1;
  }

  #pending(session) {
    return this.#client.counter(`session:${session}:billableSecondsPending`, { ttlMs: SESSION_TTL_MS });
  }
}

function isFlight(row) {
  return "session" in row;
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
