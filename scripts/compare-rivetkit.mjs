// npm run compare:rivetkit: the same applications and tests on RivetKit's own engine and on greenroom,
// and what came of them, area by area. It installs RivetKit with its engine, some 150 MB, under target/.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";

import { build } from "./lib/build.mjs";
import { APPLICATIONS, prepare } from "./lib/clients.mjs";
import { Steps } from "./lib/steps.mjs";
import { stockFolder } from "./lib/stock.mjs";

/** A copy of the applications that finds RivetKit's own runtime. */
async function stockApplications() {
  const folder = path.join(await stockFolder(), "applications");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const programs = readdirSync(APPLICATIONS).filter((name) => name.endsWith(".mjs"));
  for (const name of programs) {
    copyFileSync(path.join(APPLICATIONS, name), path.join(folder, name));
  }
  return folder;
}

/** `{area: [{name, passed, why}]}` of one runtime. */
async function outcomes(node, more) {
  const { RUST_BACKTRACE, NODE_OPTIONS, ...env } = process.env;
  const child = spawn(node, ["outcomes.mjs"], {
    cwd: APPLICATIONS,
    env: { ...env, RIVET_LOG_LEVEL: "silent", ...more },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exit = once(child, "exit");
  const text = await new Response(child.stdout).text();
  const [code] = await exit;
  if (code !== 0) throw new Error(`the tests ended with ${code}`);
  return JSON.parse(text.trim().split("\n").at(-1));
}

const passed = (tests) => tests.filter((test) => test.passed).length;

function report(stock, ours) {
  const rows = Object.keys(ours).map((area) => {
    const mine = ours[area];
    const theirs = new Map(stock[area].map((test) => [test.name, test]));
    const differ = mine.filter(({ name, passed }) => theirs.get(name)?.passed !== passed);
    return {
      area,
      tests: mine.length,
      stock: passed(stock[area]),
      ours: passed(mine),
      differ,
      theirs,
    };
  });
  const lines = [
    "| area | tests | RivetKit's engine | greenroom | different |",
    "| --- | ---: | ---: | ---: | ---: |",
  ];
  for (const { area, tests, stock, ours, differ } of rows) {
    lines.push(`| ${area} | ${tests} | ${stock} | ${ours} | ${differ.length} |`);
  }
  const total = (pick) => rows.reduce((sum, row) => sum + pick(row), 0);
  const sums = [
    total((r) => r.tests),
    total((r) => r.stock),
    total((r) => r.ours),
    total((r) => r.differ.length),
  ];
  lines.push(`| all | ${sums.join(" | ")} |`, "");
  for (const { area, differ, theirs } of rows) {
    for (const { name, passed, why } of differ) {
      const who = passed ? "RivetKit's engine" : "greenroom";
      lines.push(`- ${area}: ${name}: fails on ${who}: ${passed ? theirs.get(name)?.why : why}`);
    }
  }
  return lines.join("\n");
}

const steps = new Steps();
if (!(await build(steps, "dev"))) process.exit(1);
const node = await prepare(steps, ["comparison"]);
if (node === undefined) process.exit(1);
const stock = await outcomes(node, { RIVETKIT_APPS: await stockApplications() });
const ours = await outcomes(node, {});
process.stdout.write(`${report(stock, ours)}\n`);
if (
  Object.values(ours)
    .flat()
    .some((test) => !test.passed)
)
  process.exitCode = 1;
