// The Node edge function of the demo: serves the rows on odd lines of the data.
import { parseArgs } from "node:util";
import { connect } from "tallylock";
import { readRows } from "./flights.mjs";
import { SessionFunction } from "./session_function.mjs";

const { values: options } = parseArgs({
  options: {
    url: { type: "string" }, // the Redis or Valkey server
    data: { type: "string" }, // the flights, as CSV
    finished: { type: "string" }, // the file to append ended sessions to
    refused: { type: "string" }, // the file to list refused rows in
    "day-ms": { type: "string", default: "150" }, // how long a day lasts
  },
});
const missing = ["url", "data", "finished", "refused"].filter((name) => options[name] === undefined);
if (missing.length > 0) {
  console.error(`missing: ${missing.map((name) => `--${name}`).join(", ")}`);
  process.exit(2);
}

const client = await connect({ url: options.url });
try {
  const edge = new SessionFunction(client, options);
  await edge.serve(readRows(options.data), { ours: ({ line }) => line % 2 === 1, dayMs: Number(options["day-ms"]) });
  const [added, ended, refused] = [edge.secondsAdded, edge.sessionsEnded, edge.rowsRefused].map((n) =>
    n.toLocaleString("en"),
  );
  console.log(`Node edge function: added ${added} seconds, ended ${ended} sessions, refused ${refused} rows`);
} finally {
  await client.close();
}
