// npm run bench: what greenroom's work costs, beside what the machine can do at all, in one run.
//
//   --only calls,memory   some groups of rows only
//   --quick               one short repetition each: shows that every row runs, and nothing else
//
// Progress is on stderr, the table on stdout. A figure says little without its reference: compare
// tables of one machine only.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { asTable, row } from "./table.mjs";

const GROUPS = [
  "calls",
  "ordinary",
  "threads",
  "durable",
  "kv",
  "queue",
  "life",
  "memory",
  "sql",
  "start",
  "states",
  "schedules",
  "testing",
];
const REPETITIONS = 5;
const QUICK_SHARE = 0.005;

function readArgs() {
  try {
    const { values } = parseArgs({
      options: { only: { type: "string" }, quick: { type: "boolean", default: false } },
    });
    const only = values.only?.split(",") ?? GROUPS;
    const unknown = only.find((group) => !GROUPS.includes(group));
    if (unknown !== undefined) throw new Error(`unknown group ${unknown}: ${GROUPS.join(", ")}`);
    return { quick: values.quick, groups: GROUPS.filter((group) => only.includes(group)) };
  } catch (error) {
    console.error(error.message);
    process.exit(2);
  }
}

const { quick, groups } = readArgs();
// Nobody who runs a server has it set, and it makes every error of Rust slow. Before the addon is loaded.
delete process.env.RUST_BACKTRACE;

const place = mkdtempSync(path.join(tmpdir(), "greenroom-bench-"));
let folders = 0;

/** What a group of rows is given. */
const run = {
  quick,
  repetitions: quick ? 1 : REPETITIONS,
  /** How many operations there are in this mode. */
  scaled: (operations) => (quick ? Math.max(8, Math.ceil(operations * QUICK_SHARE)) : operations),
  /** A new folder on the disk that is measured. */
  folder() {
    folders += 1;
    const folder = path.join(place, String(folders));
    mkdirSync(folder);
    return folder;
  },
};

const rows = [];
const started = performance.now();
try {
  for (const group of groups) {
    const { default: measure } = await import(`./rows/${group}.mjs`);
    for await (const measured of measure(run)) {
      // One short repetition reaches nothing and misses nothing.
      const made = row(quick ? { ...measured, target: undefined } : measured);
      rows.push(made);
      process.stderr.write(
        `${group.padEnd(9)} ${made.work}: ${made.measured}, CPU ${made.cpu || "-"} ${made.reached}\n`,
      );
    }
  }
} finally {
  rmSync(place, { recursive: true, force: true });
}

const seconds = Math.round((performance.now() - started) / 1000);
console.log(`${asTable(rows)}

${cpus()[0]?.model.trim()}, ${availableParallelism()} cores, ${process.platform} ${process.arch}, Node ${process.version},
RUST_BACKTRACE not set; median and range of ${run.repetitions} repetitions, each beside its reference; CPU
time is that of the whole process, all threads together; ${seconds} s${quick ? "; QUICK: these figures mean nothing" : ""}.
Command: npm run bench`);
