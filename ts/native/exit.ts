/**
 * The end of the process: what has changed and is not durable is handed over, and
 * waited for. Runs for a natural end and for `process.exit()`, not for signals,
 * for which nothing is installed here.
 */
import { flushSync } from "../../index.js";
import type { ActorBag } from "./bags.js";
import type { Turns } from "./turns.js";

/** How long the end of the process waits for the disk at most, in milliseconds. */
const LIMIT_MS = 5_000;

export function flushAtExit(bags: ReadonlyMap<number, ActorBag>, turns: Turns): void {
  process.on("exit", () => {
    const owing: number[] = [];
    for (const bag of bags.values()) {
      if (bag.wrote || bag.factory.callbacks.encodeState !== undefined) turns.push(bag);
      // What was only asked for needs JavaScript to run, which it does no more.
      if (bag.inFlight !== 0 || (bag.handedOver && !bag.asked)) owing.push(bag.actor);
    }
    if (owing.length > 0) flushSync(owing, LIMIT_MS);
  });
}
