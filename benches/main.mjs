// npm run bench: what greenroom's work costs, beside what the machine can do at all, in one run.
//
//   --only calls,memory   some groups of rows only
//   --quick               one short repetition each: shows that every row runs, and nothing else
//
// Progress is on stderr, the table on stdout. A figure says little without its reference: compare
// tables of one machine only.

import { fork } from "node:child_process";
import { once } from "node:events";
import { availableParallelism, cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { asTable } from "./table.mjs";

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
  "files",
  "start",
  "states",
  "schedules",
  "testing",
  "gateway",
  "hibernation",
];

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

const rows = [];
let repetitions = 0;

/** Measures a group in a process of its own, so that none runs on what V8 learned from another. */
async function measure(group) {
  const program = fileURLToPath(new URL("group.mjs", import.meta.url));
  const child = fork(program, quick ? [group, "--quick"] : [group]);
  child.on("message", (told) => {
    if (told.repetitions !== undefined) {
      repetitions = told.repetitions;
      return;
    }
    rows.push(told);
    process.stderr.write(
      `${group.padEnd(9)} ${told.work}: ${told.measured}, CPU ${told.cpu || "-"} ${told.reached}\n`,
    );
  });
  // Whatever it has told has arrived when its channel is closed.
  const [[code, signal]] = await Promise.all([once(child, "exit"), once(child, "disconnect")]);
  if (code === 0) return;
  console.error(`the group ${group} ended with ${signal ?? `exit code ${code}`}`);
  process.exit(1);
}

const started = performance.now();
for (const group of groups) await measure(group);

const seconds = Math.round((performance.now() - started) / 1000);
console.log(`${asTable(rows)}

${cpus()[0]?.model.trim()}, ${availableParallelism()} cores, ${process.platform} ${process.arch}, Node ${process.version},
RUST_BACKTRACE not set; median and range of ${repetitions} repetitions, fewer where one takes long, each beside its reference; CPU
time is that of the whole process, all threads together; ${seconds} s${quick ? "; QUICK: these figures mean nothing" : ""}.
Command: npm run bench`);
