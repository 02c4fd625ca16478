// Runs the tests of every area against one application, and prints what came of them as JSON:
// `{area: [{name, passed, why}]}`. A test of a crash starts applications of its own.

import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { newFolder, startApp } from "./support.mjs";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
const ENV = { _RIVET_TEST_INSPECTOR_TOKEN: "token-of-the-tests" };
const LIMIT_MS = 300_000;

const without = (end) =>
  readdirSync(FOLDER)
    .filter((name) => name.endsWith(end))
    .map((name) => name.slice(0, -end.length));

async function run(area, url) {
  const args = ["--test", `--test-timeout=${LIMIT_MS}`, "--test-force-exit"];
  const child = spawn(
    process.execPath,
    [...args, "--test-reporter=./reporter.mjs", `${area}.test.mjs`],
    {
      cwd: FOLDER,
      env: { ...process.env, RIVETKIT_URL: url },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const lines = (await new Response(child.stdout).text()).split("\n").filter(Boolean);
  if (lines.length === 0) throw new Error(`no test of ${area} ran`);
  return lines.map((line) => JSON.parse(line));
}

const place = await newFolder();
const outcomes = {};
try {
  const app = await startApp(without(".app.mjs"), place.folder, ENV);
  try {
    for (const area of without(".test.mjs")) {
      process.stderr.write(`${area}\n`);
      outcomes[area] = await run(area, app.url);
    }
  } finally {
    await app.close();
  }
} finally {
  await place.remove();
}
process.stdout.write(`${JSON.stringify(outcomes)}\n`);
