// Calls that cannot be made in place: they wait for the event loop, in the queue of the environment.

import { actor, setup } from "greenroom";
import { ACTORS, awake, reply } from "../actors.mjs";
import { inFlight, rateRow } from "../measure.mjs";
import { plainCall } from "../references.mjs";
import { atLeast } from "../table.mjs";

/** A chain of calls this deep makes none in place any more. */
const DEPTH = 32;

/** Work to be done at the end of a chain of calls; set by the row that is measured. */
let atTheEnd;

const chain = actor({
  actions: {
    async descend(c, left) {
      if (left === 0) return atTheEnd(c.client());
      await c
        .client()
        .chain.getOrCreate(`link-${left}`)
        .descend(left - 1);
    },
  },
  options: { actionTimeout: 600_000 },
});

export default async function* ordinary(run) {
  const registry = setup({ use: { reply, chain }, storage: run.folder() });
  const client = registry.client();
  await awake(client, "reply");
  const reference = plainCall();
  for (const [count, operations, target] of [
    [1, 20_000, undefined],
    [64, 80_000, atLeast(100_000, 12)],
  ]) {
    const body = async (n) => {
      atTheEnd = async (inside) => {
        const actors = await awake(inside, "reply");
        await inFlight(count, n, (i) => actors[i % ACTORS].read());
      };
      await client.chain.getOrCreate("link").descend(DEPTH - 1);
    };
    const work = `call on the ordinary way, same environment, ${count} in flight`;
    yield await rateRow(run, { work, operations, body, reference, target });
  }
  await registry.shutdown();
}
