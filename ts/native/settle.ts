/** What becomes of what an author handed over, or gave back. */
import { logRejection } from "../../index.js";
import type { ActorBag } from "./bags.js";
import { recordOf } from "./errors.js";

/** Logs why something of an actor failed that nobody waits for. */
export function logRejected(bag: ActorBag, thrown: unknown): void {
  const { metadata, message } = recordOf(thrown);
  const { error } = (metadata ?? {}) as { error?: unknown };
  logRejection(bag.actor, typeof error === "string" ? error : message);
}

/**
 * Hears the end of whatever an author's function gave back, exactly once: a value,
 * a promise, an object whose `then` throws, calls twice or is no function.
 */
export function whenSettled(
  given: unknown,
  ok: (value: unknown) => void,
  failed: (thrown: unknown) => void,
): void {
  if ((typeof given !== "object" && typeof given !== "function") || given === null) {
    ok(given);
    return;
  }
  let promise: Promise<unknown>;
  try {
    promise = given instanceof Promise ? given : new Promise((resolve) => resolve(given));
    if (Object.getPrototypeOf(promise) !== Promise.prototype || Object.hasOwn(promise, "then")) {
      // A promise of somebody else's making: adopt it, so that its `then` is called safely.
      promise = new Promise((resolve) => resolve(given));
    }
    // Throws only before it has taken the functions.
    then.call(promise, ok, failed);
  } catch (thrown) {
    failed(thrown);
  }
}

const then = Promise.prototype.then;
