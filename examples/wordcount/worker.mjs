// The process that does the counting, and that is killed on the way: worker.mjs FOLDER PLAN.
//
// It keeps nothing of its own. Started again, it asks the actor `progress` where to go on and
// sends everything from there; whatever had been counted already is ignored by its letter.

import { readFileSync } from "node:fs";
import { open } from "./actors.mjs";
import { readChunk } from "./corpus.mjs";
import { byLetter, count, LETTERS } from "./words.mjs";

/** How many chunks are on their way at once. */
const WINDOW = 6;

const [folder, plan] = process.argv.slice(2);
const chunks = JSON.parse(readFileSync(plan, "utf8"));
const registry = open(folder);
const client = registry.client();
const progress = client.progress.getOrCreate("words");
const letters = new Map(LETTERS.map((letter) => [letter, client.letter.getOrCreate(letter)]));

const told = { calls: 0, ignored: 0 };

/** Sends one chunk to all letters; resolves once all have it. */
function send(number) {
  const counts = new Map();
  for (const text of readChunk(chunks[number])) count(text, counts);
  const calls = [...byLetter(counts)].map(async ([letter, batch]) => {
    const fresh = await letters.get(letter).add(number, batch);
    told.calls++;
    if (!fresh) told.ignored++;
  });
  return Promise.all(calls);
}

let sent = await progress.done();
const onTheWay = [];
process.send({ done: sent, ...told });
for (let done = sent; done < chunks.length; done++) {
  while (sent < chunks.length && onTheWay.length < WINDOW) onTheWay.push(send(sent++));
  await onTheWay.shift();
  await progress.advance(done + 1);
  told.calls++;
  process.send({ done: done + 1, ...told });
}
await registry.shutdown();
process.disconnect();
