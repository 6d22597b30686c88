// The Node edge function of the demo: serves the rows on odd lines of the data.
import { parseArgs } from "node:util";
import { connect } from "tallylock";
import { askAgain } from "./ask_again.mjs";
import { readRows } from "./flights.mjs";
import { SessionFunction } from "./session_function.mjs";

const { values: options } = parseArgs({
  options: {
    url: { type: "string" }, // the Redis or Valkey server
    data: { type: "string" }, // the flights, as CSV
    refused: { type: "string" }, // the file to list refused rows in
    "day-ms": { type: "string" }, // how long a day lasts
    "began-ms": { type: "string" }, // when the first day began, in milliseconds since 1970
  },
});
const missing = ["url", "data", "refused", "day-ms", "began-ms"].filter((name) => options[name] === undefined);
if (missing.length > 0) {
  console.error(`missing: ${missing.map((name) => `--${name}`).join(", ")}`);
  process.exit(2);
}

// A reply may be lost of the connecting, too.
const client = await askAgain(() => connect({ url: options.url }));
try {
  const edge = new SessionFunction(client, options.refused);
  await edge.serve(readRows(options.data), {
    ours: ({ line }) => line % 2 === 1,
    dayMs: Number(options["day-ms"]),
    beganMs: Number(options["began-ms"]),
  });
  const [served, repeats, refused] = [edge.secondsServed, edge.repeats, edge.rowsRefused].map((n) =>
    n.toLocaleString("en"),
  );
  console.log(`Node edge function: added ${served} seconds, refused ${refused} rows; ${repeats} adds were repeats`);
} finally {
  await client.close();
}
