// What the tests of queues share.

import { actor, queue } from "../../dist/index.js";
import { inMemory } from "./registry.mjs";

/** `run(body)` calls `body(c)` as an action of one actor with two queues. */
export function inside(config = {}, open = (use) => inMemory(use)) {
  const asked = new Map();
  const it = actor({
    state: { seen: [] },
    queues: { job: queue(), other: queue() },
    actions: { run: (c, id) => asked.get(id)(c) },
    ...config,
  });
  const registry = open({ it });
  const handle = registry.client().it.getOrCreate("k");
  const run = (body) => {
    asked.set(asked.size, body);
    return handle.run(asked.size - 1);
  };
  return { run, registry, handle };
}

export const code = (error) => `${error.group}.${error.code}`;
export const fails = (promise) =>
  promise.then(
    () => "nothing",
    (error) => code(error),
  );
export const bodies = (received) => received.map(({ body }) => body);

/** A schema of even numbers, which may take its time. */
export const even = (isAsync = false) => ({
  "~standard": {
    version: 1,
    vendor: "test",
    validate(value) {
      const ok = typeof value === "number" && value % 2 === 0;
      const result = ok ? { value } : { issues: [{ message: "not even" }] };
      return isAsync ? Promise.resolve(result) : result;
    },
  },
});
