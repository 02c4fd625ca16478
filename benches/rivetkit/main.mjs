// npm run bench:rivetkit: the same application and the same client, on RivetKit's own engine and on
// greenroom, in one run, as a table in Markdown.
//
//   node benches/rivetkit/main.mjs [--only greenroom|rivetkit] [--seconds 2] [--rounds 5] [--actors 200]
//   node benches/rivetkit/main.mjs --profile
//
// RivetKit with its engine is installed under target/ for it. Linux alone: memory is read from /proc.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";

import { inRoot } from "../../scripts/lib/paths.mjs";
import { runtimeEnv, stockEnv, stockFolder, stockNode } from "../../scripts/lib/stock.mjs";
import { spread } from "../measure.mjs";
import { show } from "../table.mjs";
import { profile } from "./profile.mjs";

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    seconds: { type: "string", default: "2" },
    rounds: { type: "string", default: "5" },
    actors: { type: "string", default: "200" },
    profile: { type: "boolean", default: false },
  },
});

/** What is measured; whether less is better. */
const ROWS = [
  ["action over a connection, 1 in flight", "connection", "rate"],
  ["action over HTTP, 1 in flight", "http", "rate"],
  ["actions over connections, 64 in flight over 100 actors", "crowd", "rate"],
  ["new actor and its first answer, p50", "create", "ms"],
  ["first answer of a sleeping actor, p50", "wake", "ms"],
  ["action with an awaited save", "durable", "rate"],
  ["action with an SQL INSERT", "insert", "rate"],
  ["events to 50 connections, each heard", "events", "rate"],
  ["memory of an idle actor", "memory", "bytes"],
  ["start of the program to its first answer", "start", "ms"],
];

const PORT = 23_420;

const RUNTIMES = {
  rivetkit: { args: [], env: stockEnv(PORT), port: PORT },
  greenroom: {
    args: ["--import", inRoot("dist", "register", "index.js")],
    env: { ...process.env, ...runtimeEnv(PORT + 1) },
    port: PORT + 1,
  },
};

const folder = await stockFolder();
const FILES = ["app.mjs", "crowd.mjs", "driver.mjs"];
for (const file of FILES) {
  copyFileSync(inRoot("benches", "rivetkit", file), path.join(folder, file));
}

if (values.profile) {
  const seconds = Number(values.seconds);
  await profile({ ...RUNTIMES.greenroom, node: stockNode(folder), folder, seconds });
  process.exit(0);
}

async function measure(name) {
  process.stderr.write(`${name}\n`);
  const job = {
    ...RUNTIMES[name],
    cwd: folder,
    seconds: Number(values.seconds),
    rounds: Number(values.rounds),
    actors: Number(values.actors),
  };
  const child = spawn(stockNode(folder), [path.join(folder, "driver.mjs"), JSON.stringify(job)], {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (piece) => {
    output += piece;
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${name} ended with ${code}`);
  // Before it come lines of the log that the client writes.
  return JSON.parse(output.trim().split("\n").at(-1));
}

const names = Object.keys(RUNTIMES).filter((name) => (values.only ?? name) === name);
const found = {};
for (const name of names) found[name] = await measure(name);

function cell(samples, unit) {
  const { median, low, high } = spread(samples);
  const range = samples.length > 1 ? ` (${show(unit, low)} – ${show(unit, high)})` : "";
  return `${show(unit, median)}${range}`;
}

/** How many times better greenroom is. */
function factor(id, unit) {
  const [theirs, ours] = [found.rivetkit, found.greenroom].map((of) => of && spread(of[id]).median);
  if (theirs === undefined || ours === undefined) return "";
  const times = unit === "rate" ? ours / theirs : theirs / ours;
  return `${times >= 10 ? Math.round(times) : times.toFixed(1)} times`;
}

process.stdout.write(`| work | ${names.join(" | ")} | better by |\n`);
process.stdout.write(`| --- |${" --- |".repeat(names.length)} --- |\n`);
for (const [work, id, unit] of ROWS) {
  const cells = names.map((name) => cell(found[name][id], unit));
  process.stdout.write(`| ${work} | ${cells.join(" | ")} | ${factor(id, unit)} |\n`);
}
