import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { root } from "./servers.js";

const built = ["debug", "release"].map((profile) => join(root, "target", profile, "tallylock-fault-proxy"));

/**
 * Starts the fault proxy in front of a server; `tell` gives it a command and waits until that is done.
 *
 * @param {number} port of the server
 */
export async function startProxy(port) {
  const binary = process.env.TALLYLOCK_FAULT_PROXY ?? built.find((path) => existsSync(path));
  if (binary === undefined) {
    throw new Error("the fault proxy is missing: run 'cargo build -p tallylock-testkit'");
  }
  const child = spawn(binary, [`127.0.0.1:${port}`], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async () => {
    const { value, done } = await lines.next();
    const parsed = done ? { ok: false, error: "the fault proxy has ended" } : JSON.parse(value);
    if (!parsed.ok) {
      throw new Error(parsed.error);
    }
    return parsed;
  };
  const { listen } = await answer();
  let last = Promise.resolve();
  return {
    url: `redis://${listen}`,
    port: Number(listen.split(":")[1]),
    /** @param {string} command */
    tell(command) {
      const told = last.then(() => {
        child.stdin.write(`${command}\n`);
        return answer();
      });
      last = told.catch(() => undefined);
      return told;
    },
    stop() {
      child.stdin.end();
    },
  };
}
