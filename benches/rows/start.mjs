// From the start of a program to its first answered call.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { timed } from "../measure.mjs";
import { atMost } from "../table.mjs";

const program = (name) => fileURLToPath(new URL(`../programs/${name}.mjs`, import.meta.url));

/** Runs a program until it has written something, which is when it has done its work. */
function answered(name, ...args) {
  return timed(
    () =>
      new Promise((resolve, reject) => {
        const child = spawn(process.execPath, [program(name), ...args], {
          stdio: ["ignore", "pipe", "inherit"],
        });
        child.stdout.once("data", () => {
          child.kill("SIGKILL");
        });
        child.once("error", reject);
        child.once("exit", resolve);
      }),
  );
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
