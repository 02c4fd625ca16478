// From the start of a program to its first answered call.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { atMost } from "../table.mjs";

const program = (name) => fileURLToPath(new URL(`../programs/${name}.mjs`, import.meta.url));

/** Milliseconds from the start of a program until it writes something, which is when its work is done. */
async function answered(name, ...args) {
  const started = performance.now();
  const child = spawn(process.execPath, [program(name), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  await once(child.stdout, "data");
  const took = performance.now() - started;
  child.kill("SIGKILL");
  await ended;
  return took;
}

export default async function* start(run) {
  const repetitions = run.quick ? 1 : 10;
  const kept = run.folder();
  await answered("first-call", kept);
  for (const { work, folder } of [
    { work: "from `node app.mjs` to the first answered call", folder: () => kept },
    { work: "the same in a new folder", folder: () => run.folder() },
  ]) {
    const [samples, references] = [[], []];
    for (let i = 0; i < repetitions; i++) {
      references.push(await answered("empty"));
      samples.push(await answered("first-call", folder()));
    }
    const reference = { what: "an empty program", unit: "ms", samples: references };
    yield { work, unit: "ms", samples, reference, target: atMost("ms", 120) };
  }
}
