// State-changing calls whose answer waits for the disk.

import path from "node:path";
import { setup } from "greenroom";
import native from "../../index.js";
import { ACTORS, awake, reply } from "../actors.mjs";
import { inFlight, rateRow } from "../measure.mjs";
import { plainSync } from "../references.mjs";
import { atLeast, partOfReference } from "../table.mjs";

const GROUP = 64;
const STATE_BYTES = 128;

/** SQLite alone: rows in savepoints of their own, in groups, with the settings of the store. */
export const groupCommit = (folder) => ({
  what: `SQLite alone, groups of ${GROUP}`,
  operations: 100 * GROUP,
  body(operations) {
    native.__plainCommits(
      path.join(folder, "plain.db"),
      Math.ceil(operations / GROUP),
      GROUP,
      STATE_BYTES,
    );
  },
});

export default async function* durable(run) {
  const registry = setup({ use: { reply }, storage: run.folder() });
  const actors = await awake(registry.client(), "reply");
  const beside = run.folder();
  for (const { work, count, operations, call, reference, target } of [
    {
      work: 'state-changing call, durability "reply", 1 in flight',
      count: 1,
      operations: 1_000,
      call: (i) => actors[i % ACTORS].add(1),
      reference: plainSync(beside),
      target: partOfReference(0.8),
    },
    {
      work: `the same, ${GROUP} in flight over ${ACTORS} actors`,
      count: GROUP,
      operations: 20_000,
      call: (i) => actors[i % ACTORS].add(1),
      reference: groupCommit(beside),
      target: atLeast(25_000),
    },
    {
      work: `the same, ${GROUP} in flight on one actor`,
      count: GROUP,
      operations: 20_000,
      call: () => actors[0].add(1),
      reference: plainSync(beside),
    },
  ]) {
    const body = (n) => inFlight(count, n, call);
    yield await rateRow(run, { work, operations, body, reference, target });
  }
  await registry.shutdown();
}
