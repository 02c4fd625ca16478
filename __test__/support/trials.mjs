// Runtimes for tests whose clock stands still.

import { testRuntime } from "../../dist/testing.js";

export const SECOND = 1_000;
export const MINUTE = 60_000;
export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
/** When a runtime begins that is told nothing else. */
export const START = Date.UTC(2025, 0, 1);

/** A runtime that is closed after its test. */
export function runtime(t, use, options = {}) {
  const started = testRuntime({ use, logging: { level: "silent" }, ...options });
  t.after(() => started.close());
  return started;
}
