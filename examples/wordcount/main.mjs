// Counts the words of real text through one actor per letter, in a process that is killed with
// SIGKILL on the way and started again on the same folder; then checks every single count.
//
//     npm run demo [-- FILE-OR-FOLDER…] [-- --kills N] [-- --seed N]

import { fork } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { open } from "./actors.mjs";
import { countPlainly, differences } from "./compare.mjs";
import { planChunks, textFilesUnder } from "./corpus.mjs";
import { Bar, table } from "./view.mjs";
import { LETTERS } from "./words.mjs";

const beside = (name) => fileURLToPath(new URL(name, import.meta.url));
const WORKER = beside("worker.mjs");
const DEFAULT_TEXT = beside("../../node_modules");

/** Numbers in [0, 1) that are the same for the same seed. */
function* chance(seed) {
  let state = seed >>> 0;
  while (true) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

/** The shares of the work at which the process is killed: one in each of `kills` equal stretches. */
function killPoints(kills, random) {
  return Array.from({ length: kills }, (_, i) => (i + 0.2 + 0.6 * random.next().value) / kills);
}

/** Runs the worker until it is done or killed; resolves with what it told last, and `killed`. */
function live(folder, plan, total, killAt, onProgress) {
  return new Promise((resolve, reject) => {
    const worker = fork(WORKER, [folder, plan]);
    let told = { done: 0, calls: 0, ignored: 0 };
    worker.on("message", (message) => {
      told = message;
      onProgress(told);
      if (killAt !== undefined && told.done < total && told.done >= killAt * total) {
        worker.kill("SIGKILL");
      }
    });
    worker.on("error", reject);
    worker.on("exit", (code, signal) => {
      if (signal === "SIGKILL") resolve({ ...told, killed: true });
      else if (code === 0) resolve({ ...told, killed: false });
      else reject(new Error(`the counting process ended with ${signal ?? `exit code ${code}`}`));
    });
  });
}

/** Counts everything, with a kill at each point; resolves with the calls made and what was lost. */
async function countThroughActors(folder, plan, total, points) {
  const bar = new Bar();
  const sum = { calls: 0, ignored: 0, restarts: 0 };
  const remaining = [...points];
  while (true) {
    const { calls, ignored, done, killed } = await live(
      folder,
      plan,
      total,
      remaining[0],
      (told) => {
        bar.update(told.done, total, `${sum.calls + told.calls} calls`);
      },
    );
    sum.calls += calls;
    sum.ignored += ignored;
    if (!killed) break;
    sum.restarts++;
    bar.say(`killed with SIGKILL after ${done} of ${total} chunks; starting again on the folder`);
    while (remaining.length > 0 && remaining[0] * total <= done) remaining.shift();
  }
  bar.say("");
  return sum;
}

const totalOf = (entries) => entries.reduce((sum, [, times]) => sum + times, 0);

const size = (bytes) =>
  bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;

function mostFrequent(entries) {
  const [word, times] = entries.reduce((best, it) => (it[1] > best[1] ? it : best), ["", 0]);
  return times === 0 ? "" : `${word} (${times.toLocaleString("en")})`;
}

/** Reads every letter back, prints the table and resolves with all words and all differences. */
async function report(folder, plain) {
  const registry = open(folder);
  const rows = [];
  const wrong = [];
  let words = 0;
  for (const letter of LETTERS) {
    const counts = await registry.client().letter.getOrCreate(letter).counts();
    wrong.push(...differences(plain.get(letter), counts));
    words += totalOf(counts);
    rows.push([letter, totalOf(counts).toLocaleString("en"), counts.length, mostFrequent(counts)]);
  }
  await registry.shutdown();
  console.log(table(["letter", "words", "distinct", "most frequent"], rows, [1, 2]));
  return { wrong, words };
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kills: { type: "string", default: "5" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
  },
});
const kills = Number(values.kills);
const seed = Number(values.seed);
if (!Number.isInteger(kills) || kills < 0 || !Number.isInteger(seed)) {
  console.error(`--kills and --seed are whole numbers, not ${values.kills} and ${values.seed}`);
  process.exit(2);
}

const given = positionals.length > 0 ? positionals : [DEFAULT_TEXT];
const missing = given.filter((entry) => !existsSync(entry));
if (missing.length > 0) {
  console.error(`there is no ${missing.join(", ")}`);
  process.exit(2);
}
const files = given
  .map((entry) => path.resolve(entry))
  .flatMap((entry) => (statSync(entry).isDirectory() ? textFilesUnder(entry) : [entry]));
const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0);
const folder = mkdtempSync(path.join(tmpdir(), "greenroom-wordcount-"));
const plan = path.join(folder, "plan.json");
const chunks = planChunks(files, bytes);
writeFileSync(plan, JSON.stringify(chunks));
console.log(
  `${files.length} files, ${size(bytes)}, in ${chunks.length} chunks; ` +
    `one actor for each of ${LETTERS.length} letters; ${kills} kills, seed ${seed}`,
);

const started = performance.now();
const store = path.join(folder, "actors");
const points = killPoints(kills, chance(seed));
const { calls, ignored, restarts } = await countThroughActors(store, plan, chunks.length, points);
const seconds = (performance.now() - started) / 1000;

const { wrong, words } = await report(store, countPlainly(files));
const perSecond = (number) => Math.round(number / seconds).toLocaleString("en");
console.log(
  `\n${words.toLocaleString("en")} words in ${calls.toLocaleString("en")} calls and ` +
    `${seconds.toFixed(1)} s: ${perSecond(words)} words and ${perSecond(calls)} calls per second\n` +
    `survived ${restarts} restarts; ${ignored} batches came twice and were counted once`,
);
if (wrong.length > 0) {
  console.error(`\n${wrong.length} words differ from a plain count (folder: ${folder}):`);
  console.error(wrong.slice(0, 20).join("\n"));
  process.exit(1);
}
console.log("every word agrees with a plain count in a single pass");
rmSync(folder, { recursive: true });
