// The rows of one group, in a process of its own: what V8 has learned from the work of another
// group makes up to half the difference. For benches/main.mjs, which hears each row as it is there.
//
//   node benches/group.mjs GROUP [--quick]

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { row } from "./table.mjs";

const REPETITIONS = 5;
const QUICK_SHARE = 0.005;

const [group, option] = process.argv.slice(2);
const quick = option === "--quick";

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

try {
  const { default: measure } = await import(`./rows/${group}.mjs`);
  for await (const measured of measure(run)) {
    // One short repetition reaches nothing and misses nothing.
    process.send(row(quick ? { ...measured, target: undefined } : measured));
  }
} finally {
  rmSync(place, { recursive: true, force: true });
}
process.send({ repetitions: run.repetitions });
process.disconnect();
