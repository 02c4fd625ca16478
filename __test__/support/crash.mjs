// Kills a writing process with SIGKILL, round after round, on one folder.
//
// What the writer acknowledged is gathered from its lines and handed to the next writer, which
// checks it before it writes on. One round in five the kill may fall into the start or the check,
// so that recovery itself is cut short too.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chance } from "./chance.mjs";

const SLOTS = 3;
/** How long a writer writes before it is killed. */
const WRITING_MS = { least: 150, most: 800 };
const START_MS = 200;
/** A writer that has neither checked nor failed by then hangs. */
const CHECK_LIMIT_MS = 60_000;

/** What a writer of states has acknowledged. */
export class States {
  writer = "crash-writer.mjs";
  slots = {};
  destroyed = [];
  puts = 0;

  take(line) {
    const [kind, key, slot, value] = line.split(" ");
    if (kind === "put") {
      this.slots[key] ??= Array(SLOTS).fill(0);
      this.slots[key][slot] = Number(value);
      this.puts++;
    }
    // From here on it may be there or not; only the answer decides.
    if (kind === "destroying") delete this.slots[key];
    if (kind === "destroyed") this.destroyed.push(key);
  }

  expected = () => ({ acknowledged: this.slots, destroyed: this.destroyed });
}

/** What a writer of all that actors hold has acknowledged, by key. */
export class Holdings {
  writer = "holdings-writer.mjs";
  actors = {};
  puts = 0;

  take(line) {
    const [kind, key, value] = line.split(" ");
    if (kind === "begun") return;
    this.actors[key] ??= { note: 0, move: 0, mark: 0, jobs: [], plans: [] };
    const of = this.actors[key];
    if (["note", "move", "mark"].includes(kind)) of[kind] = Number(value);
    if (kind === "job") of.jobs.push(value);
    if (kind === "plan") of.plans.push(value);
    this.puts++;
  }

  expected = () => this.actors;
}

/** Runs one writer until it is killed; resolves with whether it had checked. */
function writeUntilKilled(args, acknowledged, { early, writingMs }) {
  return new Promise((resolve, reject) => {
    const program = fileURLToPath(new URL(acknowledged.writer, import.meta.url));
    const writer = spawn(process.execPath, [program, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stderr = "";
    let checked = false;
    let hung = false;
    const kill = () => writer.kill("SIGKILL");
    let timer = setTimeout(() => {
      hung = early === undefined;
      kill();
    }, early ?? CHECK_LIMIT_MS);
    writer.stderr.setEncoding("utf8").on("data", (text) => {
      stderr += text;
    });
    createInterface({ input: writer.stdout }).on("line", (line) => {
      if (line.startsWith("checked")) {
        checked = true;
        if (early !== undefined) return;
        clearTimeout(timer);
        timer = setTimeout(kill, writingMs);
      } else acknowledged.take(line);
    });
    writer.on("error", reject);
    writer.on("close", (code, signal) => {
      clearTimeout(timer);
      if (hung) reject(new Error(`the check took longer than ${CHECK_LIMIT_MS} ms\n${stderr}`));
      else if (signal === "SIGKILL") resolve(checked);
      else reject(new Error(`the writer ended with ${signal ?? `exit code ${code}`}\n${stderr}`));
    });
  });
}

/**
 * Runs `rounds` kills and a last check of a writer; `acknowledged` gathers its lines and resolves the
 * promise. `onRound` hears of each round. Rejects, naming seed and round and keeping the folder, as soon as anything that
 * was acknowledged is missing or an actor is there twice.
 */
export async function crashRounds({ rounds, seed, acknowledged, onRound = () => {} }) {
  const random = chance(seed);
  const folder = mkdtempSync(path.join(tmpdir(), "greenroom-crash-"));
  const store = path.join(folder, "store");
  const expectedFile = path.join(folder, "expected.json");
  for (let round = 0; round <= rounds; round++) {
    const last = round === rounds;
    const { least, most } = WRITING_MS;
    const writingMs = last ? 0 : least + random() * (most - least);
    const early = !last && random() < 0.2 ? random() * START_MS : undefined;
    writeFileSync(expectedFile, JSON.stringify(acknowledged.expected()));
    try {
      const args = [store, expectedFile, String(seed * 1_000 + round)];
      const checked = await writeUntilKilled(args, acknowledged, { early, writingMs });
      onRound({ round, checked, puts: acknowledged.puts });
    } catch (error) {
      const where = `seed ${seed}, round ${round}, folder ${folder}`;
      throw new Error(`${where}: ${error.message}`, { cause: error });
    }
  }
  rmSync(folder, { recursive: true });
  return acknowledged;
}
