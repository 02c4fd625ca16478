// Keys and values, each write awaited until it is on the disk.

import { actor, setup } from "greenroom";
import { ACTORS } from "../actors.mjs";
import { inFlight, rates } from "../measure.mjs";
import { atLeast } from "../table.mjs";
import { groupCommit } from "./durable.mjs";

const GROUP = 64;
const KEYS = 1_000;

const keeper = actor({
  actions: {
    put: (c, key) => c.kv.put(key, "a value of some length"),
    get: (c, key) => c.kv.get(key),
  },
});

export default async function* kv(run) {
  const registry = setup({ use: { keeper }, storage: run.folder() });
  const client = registry.client();
  const keepers = Array.from({ length: ACTORS }, (_, i) => client.keeper.getOrCreate(`${i}`));
  const reference = groupCommit(run.folder());
  const key = (i) => `key ${i % KEYS}`;
  for (const { work, operations, call, target } of [
    {
      work: `c.kv.put, durable, ${GROUP} in flight over ${ACTORS} actors`,
      operations: 20_000,
      call: (i) => keepers[i % ACTORS].put(key(i)),
      target: atLeast(25_000),
    },
    {
      work: `c.kv.get, ${GROUP} in flight over ${ACTORS} actors`,
      operations: 20_000,
      call: (i) => keepers[i % ACTORS].get(key(i)),
    },
  ]) {
    const body = (n) => inFlight(GROUP, n, call);
    const measured = await rates(run, { operations, body, reference });
    yield {
      work,
      unit: "rate",
      samples: measured.rates,
      cpus: measured.cpus,
      reference: { what: reference.what, unit: "rate", samples: measured.references },
      target,
    };
  }
  await registry.shutdown();
}
