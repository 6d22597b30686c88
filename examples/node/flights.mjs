import { readFileSync } from "node:fs";
import { parse } from "csv-parse/sync";

/**
 * One row of the data, parsed: a flight to bill, or the reason why it is refused.
 *
 * @typedef {{ line: number, day: string, session: string, airSeconds: number }} Flight
 * @typedef {{ line: number, day: string, flight: string, reason: string }} Refusal
 */

/**
 * The rows of a file of flights, in its order, which is that of the days.
 *
 * @param {string} data the file's path
 * @returns {(Flight | Refusal)[]}
 */
export function readRows(data) {
  return parse(readFileSync(data), { columns: true, info: true }).map(({ record, info }) =>
    parseRow(record, info.lines),
  );
}

/** @returns {Flight | Refusal} */
function parseRow(record, line) {
  const day = `${record.month}-${record.day}`;
  const session = record.tailnum;
  const refuse = (reason) => ({ line, day, flight: `${record.carrier} ${record.flight}`, reason });
  if (!/^\d+$/.test(record.air_time)) {
    return refuse("no air time");
  }
  if (session === "") {
    return refuse("no tail number");
  }
  return { line, day, session, airSeconds: Number(record.air_time) * 60 };
}

/** Whether a row is a flight to bill. */
export function isFlight(row) {
  return "session" in row;
}
