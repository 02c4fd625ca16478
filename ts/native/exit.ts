/**
 * The end of the process: what has changed and is not durable is handed over, and
 * waited for. Runs for a natural end and for `process.exit()`, not for signals,
 * for which nothing is installed here.
 */
import type { ActorBag } from "./bags.js";
import type { Turns } from "./turns.js";

/** How long the end of the process waits for the disk at most, in milliseconds. */
const LIMIT_MS = 5_000;

export function flushAtExit(
  bags: ReadonlyMap<number, ActorBag>,
  turns: Turns,
  flushSync: (limitMs: number) => boolean,
): void {
  process.on("exit", () => {
    let owed = false;
    for (const bag of bags.values()) {
      if (bag.factory.callbacks.encodeState !== undefined) turns.push(bag);
      owed ||= bag.inFlight !== 0 || bag.awaitsSave;
    }
    if (owed) flushSync(LIMIT_MS);
  });
}
