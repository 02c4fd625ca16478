// npm run samples: runs the code in README.md and docs/*.md, so that it stays true.
//
// What a fence says after its language decides:
//   ```ts run            compiled strictly, then run; must end with exit code 0
//   ```ts check          compiled strictly, with the samples of the same page
//   ```ts file=name.ts   put beside the samples of the same page, to be imported; compiled too
//   ```ts test=name.ts   put into a project of that framework by a test of __test__/
//   ```js run            run as an ES module
//   ```text output       what the sample before it prints, compared line by line
// A fence without these words is not looked at.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fencesOf } from "./lib/fences.mjs";
import { filesUnder } from "./lib/fresh.mjs";
import { inRoot, ROOT, tool } from "./lib/paths.mjs";
import { execute, StepFailed } from "./lib/steps.mjs";

/** Outside the repository, as a user's project is; kept when something is wrong. */
const WORK = mkdtempSync(path.join(tmpdir(), "greenroom-samples-"));
const LIMIT_MS = 60_000;

/** What npm puts beside greenroom, and what a project of the samples has besides. */
const BESIDE = ["@standard-schema", "@types", "@hono", "express", "hono"];

let typed = 0;

/** Writes the samples of a page into a folder of their own; returns those to run. */
function layOut(page) {
  const folder = path.join(WORK, path.basename(page, ".md"));
  mkdirSync(folder, { recursive: true });
  const samples = [];
  for (const fence of fencesOf(readFileSync(page, "utf8"))) {
    const at = `${path.relative(ROOT, page)}:${fence.line}`;
    if (fence.output) {
      const shown = samples.at(-1);
      if (!shown) throw new Error(`${at}: an output without a sample before it`);
      shown.expected = fence.code;
    }
    if (!fence.run && !fence.check && !fence.file) continue;
    const name = fence.file ?? `line-${fence.line}.${fence.language}`;
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), fence.code);
    if (name.endsWith(".ts")) typed++;
    if (fence.run) samples.push({ at, script: path.join(folder, name.replace(/\.ts$/, ".js")) });
  }
  return samples;
}

function prepare() {
  const modules = path.join(WORK, "node_modules");
  mkdirSync(modules, { recursive: true });
  symlinkSync(ROOT, path.join(modules, "greenroom"), "junction");
  for (const name of BESIDE) {
    symlinkSync(inRoot("node_modules", name), path.join(modules, name), "junction");
  }
  writeFileSync(path.join(WORK, "package.json"), JSON.stringify({ type: "module" }));
  const compilerOptions = {
    target: "es2022",
    module: "node16",
    moduleResolution: "node16",
    strict: true,
    typeRoots: [inRoot("node_modules", "@types")],
    types: ["node"],
    skipLibCheck: true,
  };
  const tsconfig = { compilerOptions, include: ["**/*.ts"] };
  writeFileSync(path.join(WORK, "tsconfig.json"), JSON.stringify(tsconfig));
}

const lines = (text) => text.trimEnd().split("\n").join("\n");

/** Runs one sample in an empty folder; returns what is wrong with it, or undefined. */
async function fault({ script, expected }) {
  const folder = mkdtempSync(path.join(tmpdir(), "greenroom-sample-"));
  try {
    const output = await execute([process.execPath, script], { cwd: folder, limitMs: LIMIT_MS });
    if (expected === undefined || lines(output) === lines(expected)) return undefined;
    return `prints\n${output}instead of\n${expected}`;
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error;
    return `${error.message}\n${error.output}`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

prepare();
const pages = filesUnder("README.md", "docs").filter((file) => file.endsWith(".md"));
const samples = pages.flatMap(layOut);
const faults = [];
try {
  if (typed > 0) await execute([...tool("typescript", "tsc"), "-p", WORK], { cwd: WORK });
  for (const sample of samples) {
    const wrong = await fault(sample);
    if (wrong) faults.push(`${sample.at}: ${wrong}`);
  }
} catch (error) {
  if (!(error instanceof StepFailed)) throw error;
  faults.push(`the samples do not compile\n${error.output}`);
}
if (faults.length > 0) {
  console.error(`${faults.join("\n\n")}\n(as written to ${WORK})`);
  process.exit(1);
}
rmSync(WORK, { recursive: true });
console.log(`${samples.length} samples of ${pages.length} pages run as written`);
