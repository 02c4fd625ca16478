/**
 * The timers and the clock of Node.js, whatever stands in the place of the globals.
 *
 * Tests put false ones there, and move or stop them at will; calls and commits go on by the real ones.
 *
 * 1. What is real when this is loaded is kept.
 * 2. What is false by then is replaced by something real that no test replaces, and that costs more.
 * 3. Node.js calls back in the async context of whoever asked. What is done for several goes through
 *    {@link inOwnContext}, so that nobody's context reaches the others.
 */
import { AsyncResource } from "node:async_hooks";
import * as timers from "node:timers";

/** Milliseconds since some point of this environment. */
export const now: () => number = performance.now.bind(performance);

/** `body`, always in the async context in which this is called, and never in its caller's (3). */
export function inOwnContext<T>(body: () => T): () => T {
  return AsyncResource.bind(body);
}

/** Keeps the process alive, or does not. */
export interface Hold {
  ref(): unknown;
  unref(): unknown;
}

/** As long as a timer of Node.js can be. */
const FAR_MS = 2 ** 31 - 1;

/** Whether a function is Node.js's own: false ones have other names, or show their clock. */
function isReal(timer: { readonly name: string; readonly clock?: unknown }, name: string): boolean {
  return timer.name === name && timer.clock === undefined;
}

/** Calls back once the event loop has turned. */
export const setImmediate: (callback: () => void) => void = isReal(
  timers.setImmediate,
  "setImmediate",
)
  ? timers.setImmediate
  : throughChannel();

function throughChannel(): (callback: () => void) => void {
  // Not loaded before it is needed: a start would take some milliseconds longer.
  const { MessageChannel } = require("node:worker_threads") as typeof import("node:worker_threads");
  const { port1, port2 } = new MessageChannel();
  const waiting: (() => void)[] = [];
  port2.on("message", () => {
    if (waiting.length === 1) port2.unref();
    waiting.shift()?.();
  });
  port1.unref();
  port2.unref();
  return (callback) => {
    waiting.push(callback);
    port2.ref();
    port1.postMessage(null);
  };
}

/** A hold that begins. It is kept for good, and a timer keeps the context in which it was made (3). */
export const holdProcess: () => Hold = inOwnContext<Hold>(
  isReal(timers.setInterval, "setInterval")
    ? timers.setInterval.bind(undefined, () => {}, FAR_MS)
    : () => new MessageChannel().port1.on("message", () => {}),
);

/** Keeps the process alive until what it returns is called. */
export const hold = (): (() => void) => after(FAR_MS, () => {});

const timersAreReal =
  isReal(timers.setTimeout, "setTimeout") && isReal(timers.clearTimeout, "clearTimeout");

/**
 * Calls back after `ms` milliseconds, at most {@link FAR_MS}; returns how to prevent that.
 */
export const after: (ms: number, callback: () => void) => () => void = timersAreReal
  ? throughTimer(timers.setTimeout, timers.clearTimeout)
  : throughSignal;

/** The same, without holding the process meanwhile. */
export const later: (ms: number, callback: () => void) => void = timersAreReal
  ? unheld(timers.setTimeout)
  : throughSignal;

function throughTimer(set: typeof setTimeout, clear: typeof clearTimeout): typeof after {
  return (ms, callback) => {
    const timer = set(callback, ms);
    return () => clear(timer);
  };
}

function unheld(set: typeof setTimeout): typeof later {
  return (ms, callback) => {
    set(callback, ms).unref();
  };
}

/** A signal of Node.js has a timer of its own, which holds nothing. */
function throughSignal(ms: number, callback: () => void): () => void {
  const signal = AbortSignal.timeout(Math.ceil(ms));
  signal.addEventListener("abort", callback, { once: true });
  return () => signal.removeEventListener("abort", callback);
}
