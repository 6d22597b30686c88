import { encode } from "../resp.js";
import { Undelivered } from "../transport.js";
import type { Connection } from "./connection.js";

/** As whom a connection speaks, and to which database. */
export interface Credentials {
  /** User of an ACL; needs a password. */
  username?: string;
  password?: string;
  /** Number of the database; 0 if not given. */
  database?: number;
}

const NAME = "tallylock";
/** What a connection cannot go on after; anything else just leaves it without a name, as an ACL may want it. */
const FATAL_TO_A_NAME = /^(NOAUTH|LOADING|BUSY|TRYAGAIN|MASTERDOWN|NOREPLICAS|MISCONF)|max number of clients/;

/** Says who we are, which database we want, and our name. Rejects with an {@link Undelivered}. */
export async function greet(connection: Connection, credentials: Credentials): Promise<void> {
  const { username, password, database } = credentials;
  const greetings: string[][] = [];
  if (password !== undefined) {
    greetings.push(username === undefined ? ["AUTH", password] : ["AUTH", username, password]);
  }
  if (database !== undefined && database !== 0) {
    greetings.push(["SELECT", String(database)]);
  }
  greetings.push(["CLIENT", "SETNAME", NAME]);

  const encoder = new TextEncoder();
  const commands = greetings.map((words) => words.map((word) => encoder.encode(word)));
  const replies = await connection.send(encode(commands), commands.length, HANDSHAKE).catch((error) => {
    // Nothing of a caller's has been sent yet.
    throw error instanceof Undelivered ? new Undelivered("no", error.message) : error;
  });
  replies.forEach((reply, place) => {
    const isName = place === replies.length - 1;
    if (reply instanceof Error && (!isName || FATAL_TO_A_NAME.test(reply.message))) {
      const words = wordsWithoutPassword(greetings[place]?.[0], reply.message);
      throw new Undelivered("refused", words, words);
    }
  });
}

/** A server that knows no AUTH repeats what it was sent: that is the password. */
function wordsWithoutPassword(command: string | undefined, words: string): string {
  return command === "AUTH" && words.includes("unknown command") ? "ERR unknown command 'AUTH'" : words;
}

/** No operation has this number. */
const HANDSHAKE = -1;
