// The process that the crash test kills: crash-writer.mjs FOLDER EXPECTED SEED.
//
// First it checks, in a fresh process, that everything acknowledged to its predecessors is there;
// then it writes, with many calls in flight, until it is killed.
//
// 1. A line goes out with a blocking write, and only after the promise it tells of has resolved:
//    what the parent has read was acknowledged, whatever happens next.
// 2. Exit code 1 with the reason on stderr means that something was lost or doubled.

import assert from "node:assert/strict";
import { readFileSync, writeSync } from "node:fs";
import { actor, setup } from "greenroom";
import { chance } from "./chance.mjs";

const SLOTS = 3;
const ACTORS = 40;
const PADDING_CHARACTERS = 2_000;
/** How many writes are followed by sleep, so that calls meet actors in every phase of it. */
const SLEEP_SHARE = 0.05;

const [folder, expectedFile, seed] = process.argv.slice(2);
const random = chance(Number(seed));
const tell = (...words) => writeSync(1, `${words.join(" ")}\n`);

const ledger = actor({
  createState: () => ({ slots: Array(SLOTS).fill(0), sum: 0, padding: "" }),
  actions: {
    /** Moves one slot on by one. The sum changes in the same turn, so it can never disagree. */
    put(c, slot, value, padding) {
      assert.equal(c.state.slots[slot] + 1, value, `slot ${slot} of ${c.key}`);
      c.state.slots[slot] = value;
      c.state.sum += 1;
      c.state.padding = padding;
    },
    read: (c) => ({ slots: [...c.state.slots], sum: c.state.sum }),
    rest(c) {
      try {
        c.sleep();
      } catch (error) {
        // Another writer of the same actor has asked already.
        if (error.code !== "stopping") throw error;
      }
    },
  },
});

const registry = setup({ use: { ledger }, storage: folder });
const client = registry.client();

/** The next value of every slot, by key; filled by the check. */
const next = new Map();

async function check({ acknowledged, destroyed }) {
  const listed = await listAll();
  const names = listed.map(({ name, key }) => JSON.stringify([name, key]));
  assert.equal(new Set(names).size, names.length, "an actor is listed twice");
  const keys = new Set(listed.map(({ key }) => key.join("/")));
  for (const key of destroyed) assert(!keys.has(key), `destroyed actor ${key} is listed`);
  for (const [key, slots] of Object.entries(acknowledged)) {
    assert(keys.has(key), `actor ${key} is not listed`);
    const { slots: found, sum } = await client.ledger.get(key).read();
    for (const [slot, value] of slots.entries()) {
      const fits = found[slot] === value || found[slot] === value + 1;
      assert(fits, `slot ${slot} of ${key}: ${value} was acknowledged, ${found[slot]} is there`);
      // Nobody heard of it, and it is durable all the same: the next write goes on from there.
      if (found[slot] > value) tell("put", key, slot, found[slot]);
    }
    const total = found.reduce((a, b) => a + b);
    assert.equal(sum, total, `actor ${key} holds half of a turn`);
    next.set(key, found);
  }
}

async function listAll() {
  const all = [];
  let cursor;
  do {
    const page = await registry.list({ name: "ledger", limit: 100, ...(cursor && { cursor }) });
    all.push(...page.actors);
    cursor = page.cursor;
  } while (cursor);
  return all;
}

/** Writes to one slot of one actor for ever, one call at a time. */
async function write(key, slot) {
  const handle = client.ledger.getOrCreate(key);
  for (let value = (next.get(key)?.[slot] ?? 0) + 1; ; value++) {
    const padding = "x".repeat(Math.floor(random() * PADDING_CHARACTERS));
    await handle.put(slot, value, padding);
    tell("put", key, slot, value);
    if (random() < SLEEP_SHARE) await handle.rest();
  }
}

/** Creates actors and destroys every second one, for ever. */
async function createAndDestroy() {
  for (let i = 0; ; i++) {
    const key = `brief-${seed}-${i}`;
    const handle = client.ledger.getOrCreate(key);
    await handle.put(0, 1, "");
    tell("put", key, 0, 1);
    if (i % 2 === 0) continue;
    tell("destroying", key);
    await registry.actor(handle).destroy();
    tell("destroyed", key);
  }
}

await check(JSON.parse(readFileSync(expectedFile, "utf8")));
tell("checked", next.size);
const writers = Array.from({ length: ACTORS }, (_, i) =>
  Array.from({ length: SLOTS }, (_, slot) => write(`actor-${i}`, slot)),
);
await Promise.all([...writers.flat(), createAndDestroy()]);
