// Many actors with a file of their own, all of them awake: more than may be open at once.

import { readdirSync } from "node:fs";
import { actor, setup } from "greenroom";
import { inFlight, timed } from "../measure.mjs";
import { plainSync } from "../references.mjs";

const ACTORS = 10_000;
const LANES = 64;
/** Files that are open for an actor: its database, the log and its index, and the log once more. */
const DESCRIPTORS_EACH = 4;
/** What is open besides, and the usual limit of open files. */
const [OTHERS, OPEN_FILES] = [100, 256];

const keeper = actor({
  options: { sleepTimeout: 3_600_000 },
  migrations: [{ version: 1, sql: "CREATE TABLE t (b TEXT)" }],
  actions: {
    add: (c) => void c.sql.exec("INSERT INTO t (b) VALUES (?)", "a row of some length"),
    count: (c) => c.sql.exec("SELECT count(*) AS n FROM t").one().n,
  },
});

export default async function* files(run) {
  const registry = setup({
    use: { keeper },
    storage: run.folder(),
    logging: { level: "silent" },
  });
  const client = registry.client();
  const count = run.scaled(ACTORS);
  const each = (call) =>
    timed(() => inFlight(LANES, count, (i) => call(client.keeper.getOrCreate(`${i}`))));
  const reference = plainSync(run.folder());
  const references = [await timed(() => reference.body(count))];
  const beside = { what: `as many times ${reference.what}`, unit: "ms", samples: references };
  const made = await each((handle) => handle.add());
  const again = await each((handle) => handle.add());
  const open = descriptors();
  if (open > OPEN_FILES * DESCRIPTORS_EACH + OTHERS) throw new Error(`${open} files are open`);
  const read = await each(async (handle) => {
    const rows = await handle.count();
    if (rows !== 2) throw new Error(`an actor has ${rows} rows instead of 2`);
  });
  for (const [work, ms] of [
    ["a file made and a row inserted", made],
    ["another row inserted, its file closed before", again],
    ["its rows counted, its file closed before", read],
  ]) {
    const what = `${ACTORS.toLocaleString("en")} awake actors, in each ${work}, ${LANES} in flight`;
    yield { work: what, unit: "ms", samples: [ms], reference: beside };
  }
  await registry.shutdown({ deadline: 120_000 });
}

/** How many files this process has open; 0 where the system does not say. */
function descriptors() {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return 0;
  }
}
