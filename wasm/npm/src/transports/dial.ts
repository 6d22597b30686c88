import { Undelivered } from "../transport.js";

/** No connection within the time for it. */
export class DialTimeout extends Undelivered {
  constructor(where: string, timeoutMs: number) {
    super("no", `${where} did not answer within ${Math.ceil(timeoutMs)} ms`);
  }
}

/**
 * Gives what `attempt` gives, its greeting included: a server that accepts and then says nothing has not answered either.
 *
 * Calls `giveUp` if the attempt fails or its time is over; then rejects with a {@link DialTimeout}.
 */
export function within<T>(timeoutMs: number, where: string, giveUp: () => void, attempt: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => {
      clearTimeout(timer);
      reject(error);
      giveUp();
    };
    const timer = setTimeout(() => fail(new DialTimeout(where, timeoutMs)), timeoutMs);
    attempt().then((made) => {
      clearTimeout(timer);
      resolve(made);
    }, fail);
  });
}
