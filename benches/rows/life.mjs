// Actors that begin, fall asleep and wake.

import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { setup } from "greenroom";
import { awake, reply } from "../actors.mjs";
import { cpuSince, inFlight, latencies, median, pause, timed } from "../measure.mjs";
import { plainSync } from "../references.mjs";
import { atMost } from "../table.mjs";

export default async function* life(run) {
  const folder = run.folder();
  const registry = setup({ use: { reply }, storage: run.folder() });
  const client = registry.client();
  yield await creation(run, client, plainSync(folder));
  yield* await waking(run, registry, folder);
  await registry.shutdown();
}

async function creation(run, client, sync) {
  const actors = run.scaled(1_000);
  const [samples, cpus, references] = [[], [], []];
  let made = 0;
  const create = (count) =>
    inFlight(32, count, () => client.reply.getOrCreate(`made-${made++}`).add(1));
  await create(Math.ceil(actors / 5));
  for (let i = 0; i < run.repetitions; i++) {
    await pause(200);
    references.push(await timed(() => sync.body(Math.ceil(actors / 32))));
    const usage = process.cpuUsage();
    samples.push(await timed(() => create(actors)));
    cpus.push(cpuSince(usage) / actors);
  }
  return {
    work: "create an actor and run its first state-changing action, 1,000 actors, 32 in flight",
    unit: "ms",
    samples,
    cpus,
    reference: { what: `one ${sync.what} for each 32`, unit: "ms", samples: references },
    target: atMost("ms", 500),
  };
}

async function* waking(run, registry, folder) {
  const sleepers = await awake(registry.client(), "reply");
  const page = path.join(folder, "page");
  await writeFile(page, Buffer.alloc(4096));
  const count = run.scaled(300);
  const wakes = [];
  const cycle = async (i) => {
    const handle = sleepers[i % sleepers.length];
    await registry.actor(handle).sleep();
    wakes.push(await timed(() => handle.read()));
  };
  const [firsts, cycles, cpus, references] = [[], [], [], []];
  await latencies(Math.ceil(count / 3), cycle);
  for (let i = 0; i < run.repetitions; i++) {
    await pause(50);
    references.push((await latencies(count, () => readFile(page))).p50);
    wakes.length = 0;
    const { p50, cpu } = await latencies(count, cycle);
    firsts.push(median(wakes));
    cycles.push(p50);
    cpus.push(cpu);
  }
  const reference = { what: "read a file of 4 KiB (p50)", unit: "ms", samples: references };
  yield {
    work: "first call to a sleeping actor (p50)",
    unit: "ms",
    samples: firsts,
    reference,
    target: atMost("ms", 0.5),
  };
  yield {
    work: "fall asleep and wake by a call, 1 in flight (p50)",
    unit: "ms",
    samples: cycles,
    cpus,
    reference,
  };
}
