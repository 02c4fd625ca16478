// One table of what the harness measured, a column for each system:
//
//   node benches/peers/table.mjs greenroom.json rivetkit.json do.json ref.json
//
// A cell is the median, and the range where several repetitions were run. Compare only files of one
// machine and one hour.

import { readFileSync } from "node:fs";
import { basename } from "node:path";

/** What is compared: how it is called, in which result it lies, which figure, and the bare program. */
const ROWS = [
  ["start to the first answer, s", "j.startup_s", "sec"],
  ["action over a connection, 1 in flight, calls/s", "a.ws", "ops", "ws_echo_seq"],
  ["the same, p50 in ms", "a.ws", "p50", "ws_echo_seq"],
  ["64 in flight over 100 actors, calls/s", "b.ws64", "ops", "ws_echo_64_over_100"],
  ["action over HTTP by the system's client, calls/s", "a.http", "ops", "fetch_keepalive_seq"],
  ["action over HTTP by node:http, calls/s", "a.http_raw", "ops", "http_keepalive_seq"],
  ["64 over HTTP by the system's client, calls/s", "b.http64", "ops", "fetch_keepalive_64"],
  ["durable change over a connection, calls/s", "f.one", "ops", "overwrite4k_fdatasync"],
  ["durable changes, 64 in flight over 100 actors, calls/s", "f.64x100", "ops"],
  ["SQL INSERT, each durable, rows/s", "g.insert_loop", "ops", "sqlite_insert_FULL"],
  ["SQL INSERT, durable with the reply, rows/s", "g.insert_loop_nosync", "ops"],
  ["SQL SELECT by key, awaited, rows/s", "g.select_loop", "ops", "sqlite_select_pk"],
  ["SQL SELECT by key, in place, rows/s", "g.select_loop_inplace", "ops", "sqlite_select_pk"],
  ["event to 100 connections, messages/s", "h.burst", "per_s"],
  ["the same at 20 events/s, p50 in ms", "h.paced20", "p50"],
  ["1,000 scheduled runs at once, p99 of lateness in ms", "i.1000_over_100", "p99"],
  ["new actor, one after the other, p50 in ms", "c.create_seq200", "p50"],
  ["1,000 new actors, 32 at a time, s", "c.create_1000_c32", "total_s"],
  ["first call to a sleeping actor, p50 in ms", "d.wake", "p50"],
  ["memory of an idle actor, KiB", "e.memory", "kib"],
];

const read = (file) => {
  const { peer, results } = JSON.parse(readFileSync(file, "utf8"));
  return { name: peer ?? basename(file, ".json"), results };
};

const shown = (value) => {
  if (value >= 100) return Math.round(value).toLocaleString("en");
  return value.toFixed(value >= 10 ? 1 : 2);
};

function memory(result) {
  const each = (result?.reps ?? []).map((rep) => rep.bytes1k / 1024).filter(Number.isFinite);
  if (each.length === 0) return undefined;
  each.sort((a, b) => a - b);
  return { med: each[Math.floor(each.length / 2)], lo: each[0], hi: each[each.length - 1] };
}

function cell(system, id, figure) {
  const result = system.results[id];
  const found = id === "e.memory" ? memory(result) : result?.sum?.[figure];
  if (found === undefined) return "";
  const { med, lo, hi } = found;
  return lo === hi ? shown(med) : `${shown(med)} (${shown(lo)} – ${shown(hi)})`;
}

const systems = process.argv.slice(2).map(read);
if (systems.length === 0) {
  console.error("usage: node table.mjs RESULTS.json ...");
  process.exit(2);
}
const line = (cells) => `| ${cells.join(" | ")} |`;
console.log(line(["work", ...systems.map(({ name }) => name)]));
console.log(line(["---", ...systems.map(() => "---:")]));
for (const [work, id, figure, bare] of ROWS) {
  const cells = systems.map((system) =>
    system.name === "ref" ? (bare ? cell(system, bare, figure) : "") : cell(system, id, figure),
  );
  if (cells.some((each) => each !== "")) console.log(line([work, ...cells]));
}
