import { type Reply, Undelivered } from "../transport.js";

/**
 * The replies to a call, of a client that takes its commands one by one.
 *
 * Where only some of them have a reply, or were not sent, the call as a whole may have been: taken for one that was not, it
 * would be sent again, and what had gone out would count twice.
 */
export async function together(asked: Promise<Reply>[]): Promise<Reply[]> {
  const settled = await Promise.allSettled(asked);
  const failures: unknown[] = settled.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  if (failures.length === 0) {
    return settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  }
  const wasSent = failures.find((failure) => !(failure instanceof Undelivered && failure.sent === "no"));
  if (wasSent !== undefined) {
    throw wasSent;
  }
  const [first] = failures as [Undelivered];
  throw failures.length === asked.length ? first : new Undelivered("maybe", first.message);
}
