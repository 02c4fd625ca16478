// From the start of a program to its first answered call.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { atMost } from "../table.mjs";

const program = (name) => fileURLToPath(new URL(`../programs/${name}.mjs`, import.meta.url));

/**
 * Milliseconds from the start of a program until it writes something, which is when its work is done,
 * and the CPU time that it has used by then.
 */
async function answered(name, ...args) {
  const started = performance.now();
  const child = spawn(process.execPath, [program(name), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const [cpu] = await once(child.stdout, "data");
  const ms = performance.now() - started;
  child.kill("SIGKILL");
  await ended;
  return { ms, cpu: Number(cpu) };
}

export default async function* start(run) {
  const repetitions = run.quick ? 1 : 10;
  const kept = run.folder();
  await answered("first-call", kept);
  for (const { work, folder } of [
    { work: "from `node app.mjs` to the first answered call", folder: () => kept },
    { work: "the same in a new folder", folder: () => run.folder() },
  ]) {
    const [samples, cpus, references] = [[], [], []];
    for (let i = 0; i < repetitions; i++) {
      references.push((await answered("empty")).ms);
      const { ms, cpu } = await answered("first-call", folder());
      samples.push(ms);
      cpus.push(cpu);
    }
    const reference = { what: "an empty program", unit: "ms", samples: references };
    yield { work, unit: "ms", samples, cpus, reference, target: atMost("ms", 120) };
  }
}
