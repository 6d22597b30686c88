// The protocol of a contestant: it says `ready`, then answers each line `block N` with the nanoseconds that N calls took.
import { createInterface } from "node:readline";

/** Runs the blocks that standard input asks for until it ends, one awaited call after another. */
export async function answerBlocks(call) {
  console.log("ready");
  for await (const line of createInterface({ input: process.stdin })) {
    const calls = Number(line.replace(/^block /, ""));
    const started = process.hrtime.bigint();
    for (let done = 0; done < calls; done += 1) {
      await call();
    }
    console.log(String(process.hrtime.bigint() - started));
  }
}
