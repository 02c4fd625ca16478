// Calls within one thread, which are admitted in place.

import { setup } from "greenroom";
import { ACTORS, awake, interval, reply } from "../actors.mjs";
import { inFlight, rateRow } from "../measure.mjs";
import { plainCall } from "../references.mjs";
import { atLeast } from "../table.mjs";

export default async function* calls(run) {
  const registry = setup({ use: { reply, interval }, storage: run.folder() });
  const client = registry.client();
  const replying = await awake(client, "reply");
  const saving = await awake(client, "interval");
  const reference = plainCall();
  const measured = async (work, target, count, operations, call) => {
    const body = (n) => inFlight(count, n, call);
    return await rateRow(run, { work, operations, body, reference, target });
  };

  yield await measured(
    "call in the same process, 1 in flight",
    atLeast(200_000, 5),
    1,
    150_000,
    (i) => replying[i % ACTORS].read(),
  );
  yield await measured(
    `the same, 64 in flight over ${ACTORS} actors`,
    atLeast(200_000, 5),
    64,
    150_000,
    (i) => replying[i % ACTORS].read(),
  );
  yield await measured(
    'the same with a state change (durability: "interval")',
    atLeast(150_000),
    64,
    100_000,
    (i) => saving[i % ACTORS].add(1),
  );
  await registry.shutdown();
}
