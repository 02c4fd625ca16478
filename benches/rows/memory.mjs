// What actors cost in memory. Each figure is the resident memory of a process of its own, less that of
// one which does the same work with very few actors.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { setup } from "greenroom";
import { reply } from "../actors.mjs";
import { inFlight } from "../measure.mjs";
import { atMost } from "../table.mjs";

const CROWD = 10_000;
const FEW = 10;
const REPETITIONS = 3;

const program = fileURLToPath(new URL("../programs/memory.mjs", import.meta.url));

/** The resident memory in bytes of a process in which `actors` of the folder are as `mode` says. */
async function resident(mode, storage, actors, calls) {
  const args = ["--expose-gc", program, mode, storage, String(actors), String(calls)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return Number(stdout);
}

async function populated(storage, actors) {
  const registry = setup({ use: { reply }, storage });
  const client = registry.client();
  await inFlight(64, actors, (i) => client.reply.getOrCreate(`bench-${i}`).read());
  await registry.shutdown();
  return storage;
}

export default async function* memory(run) {
  const actors = run.scaled(CROWD);
  const crowded = await populated(run.folder(), actors);
  const sparse = await populated(run.folder(), FEW);
  const repetitions = run.quick ? 1 : REPETITIONS;
  for (const { work, mode, each, target } of [
    {
      work: "10,000 sleeping actors, in all",
      mode: "untouched",
      each: 1,
      target: atMost("bytes", 1e6, "1 MB"),
    },
    {
      // What SQLite and the host keep of the last ones is in it, up to the limits of their caches.
      work: "the same, each of them awake once in this process",
      mode: "slept",
      each: 1,
    },
    {
      work: "10,000 live idle actors, each, Rust and JavaScript together",
      mode: "awake",
      each: actors,
      target: atMost("bytes", 4096, "4 KiB"),
    },
  ]) {
    const [samples, references] = [[], []];
    for (let i = 0; i < repetitions; i++) {
      const none = await resident(mode, sparse, FEW, actors);
      const all = await resident(mode, crowded, actors, actors);
      references.push(none);
      samples.push((all - none) / each);
    }
    const reference = {
      what: `the process with ${FEW} actors`,
      unit: "bytes",
      samples: references,
    };
    yield { work, unit: "bytes", samples, reference, target };
  }
}
