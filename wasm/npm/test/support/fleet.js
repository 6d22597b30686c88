import { setTimeout as sleep } from "node:timers/promises";
import { SERVERS, startServer } from "./servers.js";

/** Starts so many independent servers, of each kind some. */
export function startFleet(count = 5) {
  return Promise.all(Array.from({ length: count }, (_, place) => startServer(SERVERS[place % SERVERS.length])));
}

/** What is under a key on each server. */
export const onEach = (servers, key) => Promise.all(servers.map(({ other }) => other.get(key)));

/** On how many servers a lock is. */
export const heldOn = async (servers, key) => (await onEach(servers, key)).filter((value) => value !== null).length;

/** Waits until a lock is on so many servers: what goes on in the background takes a moment. */
export async function untilHeldOn(servers, key, count) {
  for (let patience = 0; patience < 1_000; patience++) {
    if ((await heldOn(servers, key)) === count) {
      return;
    }
    await sleep(20);
  }
  throw new Error(`not on ${count}: ${await onEach(servers, key)}`);
}
