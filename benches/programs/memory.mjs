// Brings actors into a state and prints the resident memory of the process, in bytes.
//
//   node --expose-gc memory.mjs untouched|slept|awake FOLDER ACTORS CALLS

import { setTimeout as pause } from "node:timers/promises";
import { setup } from "greenroom";
import { reply } from "../actors.mjs";
import { inFlight } from "../measure.mjs";

const [mode, storage, actors, calls] = process.argv.slice(2);
const crowd = Number(actors);

// The young generation of V8 grows with the first garbage and stays so: in every process alike.
let garbage = [];
for (let i = 0; i < 3_000; i++) {
  garbage.push(Array.from({ length: 1_000 }, () => ({ i })));
  if (garbage.length === 100) garbage = [];
}
garbage = [];

const registry = setup({ use: { reply }, storage });
const client = registry.client();
const handle = (i) => client.reply.getOrCreate(`bench-${i % crowd}`);

const steps = {
  untouched: () => handle(0).read(),
  awake: () => inFlight(64, Number(calls), (i) => handle(i).read()),
  // As many at once as there are at least, so that none is called while it falls asleep.
  slept: () =>
    inFlight(Math.min(8, crowd), Number(calls), async (i) => {
      await handle(i).read();
      await registry.actor(handle(i)).sleep();
    }),
};
await steps[mode]();

for (let i = 0; i < 5; i++) {
  globalThis.gc();
  await pause(100);
}
console.log(process.memoryUsage().rss);
process.exit();
