// npm run bench: what a call costs, beside what the machine can do at all, in one run.

import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import path from "node:path";
import { encode } from "cbor-x";
import { actor, setup } from "greenroom";
import { dispatch } from "greenroom/native";
import { asTable, inFlight, measure } from "./measure.mjs";

const ACTORS = 100;
/** The kind of caller that a program in the same process is. */
const LOCAL = 2;
const NOTE = "x".repeat(100);

const actions = {
  read: (c) => c.state.count,
  add(c, by) {
    c.state.count += by;
    return c.state.count;
  },
};
const createState = () => ({ count: 0, note: NOTE });
const reply = actor({ createState, actions });
const interval = actor({ createState, actions, options: { durability: "interval" } });

const folder = mkdtempSync(path.join(tmpdir(), "greenroom-bench-"));
const registry = setup({ use: { reply, interval }, storage: path.join(folder, "store") });
const client = registry.client();
const handles = (name) =>
  Array.from({ length: ACTORS }, (_, i) => client[name].getOrCreate(`bench-${i}`));

async function awake(name) {
  const all = handles(name);
  await Promise.all(all.map((handle) => handle.read()));
  return all;
}

function fsyncRate() {
  const file = path.join(folder, "fsync");
  const page = Buffer.alloc(4096, 1);
  return measure("reference: write of 4 KiB and fdatasync", 300, (operations) => {
    const descriptor = openSync(file, "w");
    for (let i = 0; i < operations; i++) {
      writeSync(descriptor, page);
      fdatasyncSync(descriptor);
    }
    closeSync(descriptor);
  });
}

function plainCalls() {
  const plain = async (state) => state.count;
  const state = createState();
  return measure("reference: await of a plain async function", 500_000, async (operations) => {
    for (let i = 0; i < operations; i++) await plain(state);
  });
}

const rows = [await plainCalls(), await fsyncRate()];
const show = (row) => {
  rows.push(row);
  process.stderr.write(`  ${row.name}\n`);
};

const replying = await awake("reply");
const saving = await awake("interval");
const of = (all) => (i) => all[i % ACTORS];
for (const [count, operations] of [
  [1, 40_000],
  [64, 80_000],
]) {
  const read = of(replying);
  show(
    await measure(`read, ${count} in flight`, operations, (n) =>
      inFlight(count, n, (i) => read(i).read()),
    ),
  );
}
// What a call takes that cannot be admitted in place: through the host, the queue and a wake-up.
const host = await dispatch.openHost({ path: path.join(folder, "store") });
const targets = replying.map((_, i) => ({ name: "reply", key: [`bench-${i}`] }));
const noArguments = encode([]);
for (const [count, operations] of [
  [1, 10_000],
  [64, 40_000],
]) {
  const target = of(targets);
  show(
    await measure(`read, the ordinary way, ${count} in flight`, operations, (n) =>
      inFlight(count, n, (i) => host.submit(target(i), "read", noArguments, LOCAL)),
    ),
  );
}
for (const [count, operations] of [
  [1, 20_000],
  [64, 50_000],
]) {
  const add = of(saving);
  show(
    await measure(`state change, saved at intervals, ${count} in flight`, operations, (n) =>
      inFlight(count, n, (i) => add(i).add(1)),
    ),
  );
}
for (const [count, operations] of [
  [1, 500],
  [64, 10_000],
  [256, 20_000],
]) {
  const add = of(replying);
  show(
    await measure(`state change, durable before the reply, ${count} in flight`, operations, (n) =>
      inFlight(count, n, (i) => add(i).add(1)),
    ),
  );
}
show(
  await measure("state change of one actor, durable, 64 in flight", 20_000, (n) =>
    inFlight(64, n, () => replying[0].add(1)),
  ),
);

let created = 0;
for (const [count, operations] of [
  [1, 200],
  [64, 2_000],
]) {
  show(
    await measure(`first call of a new actor, ${count} in flight`, operations, (n) =>
      inFlight(count, n, () => client.reply.getOrCreate(`new-${created++}`).read()),
    ),
  );
}
show(
  await measure("sleep and wake by a call, one after the other", 200, (n) =>
    inFlight(1, n, async (i) => {
      await registry.actor(replying[i % ACTORS]).sleep();
      await replying[i % ACTORS].read();
    }),
  ),
);

await registry.shutdown();
rmSync(folder, { recursive: true });
console.log(`${asTable(rows)}

${cpus()[0]?.model.trim()}, ${availableParallelism()} cores, ${process.platform} ${process.arch}, Node ${process.version},
RUST_BACKTRACE ${process.env.RUST_BACKTRACE ?? "not set"}; ${ACTORS} actors unless said otherwise; median and range of 5
repetitions; CPU time is that of the whole process, all threads together. Command: npm run bench`);
