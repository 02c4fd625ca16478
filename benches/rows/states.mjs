// Actions that read or change much, on a small state and on one of 10 MB.

import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import path from "node:path";
import { actor, setup } from "greenroom";
import { pause, timed } from "../measure.mjs";

const record = (i) => ({ id: i, name: `record number ${i}`, score: i % 97, tags: ["a", "b"] });

const sum = (records) => {
  let total = 0;
  for (const each of records) total += each.score;
  return total;
};

const CHANGES = 1_000;

const library = actor({
  createState: (_c, records) => ({
    touched: 0,
    records: Array.from({ length: records }, (_, i) => record(i)),
  }),
  actions: {
    scan: (c) => sum(c.state.records),
    /** One small change. */
    touch(c, i) {
      c.state.records[i % c.state.records.length].score += 1;
      c.state.touched += 1;
    },
    /** Many changes in one action. */
    rewrite(c) {
      const { records } = c.state;
      for (let i = 0; i < CHANGES; i++) records[i % records.length].score += 1;
    },
  },
});

/** Writes as many bytes as a state has and waits for the disk. */
function plainWrite(folder, bytes) {
  const data = Buffer.alloc(bytes, 1);
  const descriptor = openSync(path.join(folder, "plain"), "w");
  writeSync(descriptor, data);
  fdatasyncSync(descriptor);
  closeSync(descriptor);
}

export default async function* states(run) {
  const registry = setup({
    use: { library },
    storage: run.folder(),
    logging: { level: "error" },
  });
  const client = registry.client();
  const beside = run.folder();
  for (const { size, records, operations } of [
    { size: "1,000 records (60 KB)", records: 1_000, operations: 200 },
    { size: "10 MB", records: 165_000, operations: 3 },
  ]) {
    const count = run.quick ? 50 : records;
    const data = Array.from({ length: count }, (_, i) => record(i));
    const handle = client.library.getOrCreate(`of-${records}`, { createWithInput: count });
    await handle.scan();
    const bytes = count * 62;
    const scan = { what: "the same on plain objects", body: () => sum(data) };
    const write = { what: "plain write and fdatasync", body: () => plainWrite(beside, bytes) };
    let at = 0;
    for (const [work, call, reference] of [
      [`state of ${size}: action that reads all of it`, () => handle.scan(), scan],
      [`state of ${size}: one small change, "reply"`, () => handle.touch(at++), write],
      [`state of ${size}: 1,000 changes in one action, "reply"`, () => handle.rewrite(), write],
    ]) {
      yield await each(run, { work, operations: run.scaled(operations), call, reference });
    }
  }
  await registry.shutdown();
}

/** A row whose figure is the time of one call. */
async function each(run, { work, operations, call, reference }) {
  const repeat = async (body) => {
    for (let n = 0; n < operations; n++) await body();
  };
  const [samples, cpus, references] = [[], [], []];
  await repeat(call);
  for (let i = 0; i < run.repetitions; i++) {
    await pause(50);
    references.push((await timed(() => repeat(reference.body))) / operations);
    const usage = process.cpuUsage();
    samples.push((await timed(() => repeat(call))) / operations);
    const { user, system } = process.cpuUsage(usage);
    cpus.push((user + system) / operations);
  }
  const beside = { what: reference.what, unit: "ms", samples: references };
  return { work, unit: "ms", samples, cpus, reference: beside };
}
