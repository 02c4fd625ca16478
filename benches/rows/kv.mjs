// Keys and values, each write awaited until it is on the disk.

import { actor, setup } from "greenroom";
import { ACTORS } from "../actors.mjs";
import { inFlight, rateRow } from "../measure.mjs";
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
    yield await rateRow(run, { work, operations, body, reference, target });
  }
  await registry.shutdown();
}
