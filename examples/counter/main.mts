// A counter that keeps its number from one run to the next.
//
//     npm run example -- counter [FOLDER]

import { tmpdir } from "node:os";
import path from "node:path";
import { actor, setup } from "greenroom";

const counter = actor({
  state: { count: 0 },
  actions: {
    increment(c, by: number) {
      c.state.count += by;
      return c.state.count;
    },
    value: (c) => c.state.count,
  },
});

const storage = process.argv[2] ?? path.join(tmpdir(), "greenroom-example-counter");
const registry = setup({ use: { counter }, storage });
const client = registry.client();

// The handle knows the actions and their types; nothing is started until the first call.
const visits = client.counter.getOrCreate("visits");
const before: number = await visits.value();

// Twenty calls at once: each sees the state that the one before it left.
const results = await Promise.all(Array.from({ length: 20 }, () => visits.increment(1)));

console.log(`the counter stood at ${before}`);
console.log(`twenty calls answered ${results[0]} to ${results.at(-1)}`);
console.log(`run it again: it goes on from ${await visits.value()} (kept in ${storage})`);

await registry.shutdown();
