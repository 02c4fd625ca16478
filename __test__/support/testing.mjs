// What the tests of `greenroom/testing` share.

import { actor } from "../../dist/index.js";
import { testRuntime } from "../../dist/testing.js";

export const HOUR = 3_600_000;
export const START = Date.UTC(2025, 0, 1);

/** A runtime that is closed after its test. */
export function runtime(t, use, options = {}) {
  const started = testRuntime({ use, logging: { level: "silent" }, ...options });
  t.after(() => started.close());
  return started;
}

export const counter = actor({
  state: { count: 0 },
  actions: {
    increment: (c) => ++c.state.count,
    get: (c) => c.state.count,
  },
});

/** Sleeps and says when it woke. */
export const sleeper = actor({
  options: { actionTimeout: 24 * HOUR },
  actions: {
    async nap(c, ms) {
      await c.clock.sleep(ms);
      return c.now;
    },
    ping: () => "pong",
  },
});
