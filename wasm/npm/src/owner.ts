import { hostname } from "node:os";

/** The name of the machine and the id of the process, at most 64 visible ASCII characters. */
export function hostAndPid(): string {
  const pid = `.${process.pid}`;
  return (
    hostname()
      .replace(/[^!-~]/gu, "-")
      .slice(0, 64 - pid.length) + pid
  );
}
