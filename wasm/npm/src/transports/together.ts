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

/**
 * Sends subscriptions through a client that takes each as a call of its own, and tells their answers in the order of the
 * commands; a rejection counts as a refusal.
 *
 * What concerns one channel is sent one by one: node-redis sends no SUBSCRIBE while it is not answered that the channel is gone.
 */
export function inOrder(
  received: (reply: Reply) => void,
  ask: (kind: "subscribe" | "unsubscribe", channel: Buffer) => Promise<Reply>,
): (commands: Uint8Array[][]) => void {
  let told = Promise.resolve();
  const answers = new Map<string, Promise<Reply>>();
  return (commands) => {
    for (const [name, bytes] of commands) {
      const kind = String(Buffer.from(name ?? [])) === "SUBSCRIBE" ? "subscribe" : "unsubscribe";
      const channel = Buffer.from(bytes ?? []);
      const text = channel.toString("latin1");
      const answer = Promise.resolve(answers.get(text))
        .then(() => ask(kind, channel))
        .catch((error) => (error instanceof Error ? error : new Error(String(error))));
      answers.set(text, answer);
      told = told.then(async () => {
        received(await answer);
        if (answers.get(text) === answer) {
          answers.delete(text);
        }
      });
    }
  };
}
