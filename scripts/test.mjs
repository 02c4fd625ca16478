// npm test [-- --only lint,rust,js,clients,docs] [-- --verbose]: everything that must hold before a merge.
//
// 1. Every check runs even when an earlier one failed, except what cannot run without it.
// 2. The exit code is 0 only if no check failed. A check that a tool is missing for is skipped
//    with a note, and fails where `CI` is set.
// 3. Nothing is retried.

import { existsSync, readFileSync } from "node:fs";
import { GENERATED, install, native, typescript } from "./lib/build.mjs";
import { chromium } from "./lib/chromium.mjs";
import { clients } from "./lib/clients.mjs";
import { command, compile, examples, LASTING, QUICK } from "./lib/examples.mjs";
import { filesUnder } from "./lib/fresh.mjs";
import { inRoot, ROOT, tool, versionOf } from "./lib/paths.mjs";
import { execute, StepFailed, Steps } from "./lib/steps.mjs";

const GROUPS = ["lint", "rust", "js", "clients", "docs"];
const MINUTE_MS = 60_000;
/** No test, and no file of tests, takes so long; one that does has its name in the output. */
const TEST_TIMEOUT = `--test-timeout=${5 * MINUTE_MS}`;

/** The one that builds, and the oldest and the newest that authors may have. */
const COMPILERS = ["typescript", "typescript-oldest", "typescript-newest"];

const args = process.argv.slice(2);
const verbose = args.includes("--verbose");
const only = args[args.indexOf("--only") + 1]?.split(",") ?? [];
const wanted = args.includes("--only") ? only : GROUPS;
const unknown = wanted.filter((group) => !GROUPS.includes(group));
if (unknown.length > 0 || wanted.length === 0) {
  console.error(`unknown group ${unknown.join(",") || "(none)"}: ${GROUPS.join(", ")}`);
  process.exit(2);
}

const steps = new Steps();
const has = (group) => wanted.includes(group);

/** A step that runs one command; `closing` picks the lines to show when it succeeds. */
function check(title, command, { closing, env, limitMs } = {}) {
  return steps.step(title, async (progress) => {
    const output = await execute(command, { cwd: ROOT, env, limitMs, progress });
    const lines = output.split("\n").filter((line) => verbose || closing?.test(line));
    return { closing: lines.join("\n") };
  });
}

const node = (...rest) => [process.execPath, ...rest];
const script = (name, ...rest) => node(inRoot("scripts", name), ...rest);

/** Whether cargo knows a subcommand; a minimal toolchain has neither fmt nor clippy. */
async function cargoHas(subcommand) {
  try {
    await execute(["cargo", subcommand, "--version"], { cwd: ROOT });
    return true;
  } catch (error) {
    if (error instanceof StepFailed) return false;
    throw error;
  }
}

async function rustLint() {
  const clippy = ["cargo", "clippy", "--all-targets"];
  const strict = ["--", "-D", "warnings"];
  const checks = [
    ["fmt", "format of the Rust code", ["cargo", "fmt", "--check"]],
    ["clippy", "clippy, without node", [...clippy, "--no-default-features", ...strict]],
    [
      "clippy",
      "clippy, with faults",
      [...clippy, "--no-default-features", "--features", "faults", ...strict],
    ],
    ["clippy", "clippy, with node", [...clippy, ...strict]],
  ];
  for (const [subcommand, title, command] of checks) {
    if (await cargoHas(subcommand)) await check(title, command);
    else
      steps.skip(
        title,
        `cargo ${subcommand} is not installed`,
        process.env.CI ? "failed" : "skipped",
      );
  }
}

async function rustTests() {
  const closing = /^(test result:|error:|failures:)/;
  const options = { closing, limitMs: 20 * MINUTE_MS };
  const test = ["cargo", "test", "--no-fail-fast", "--no-default-features"];
  await check("cargo test", test, options);
  await check("cargo test, with faults", [...test, "--features", "faults"], options);
}

/** Builds the addon, and fails when that changed the loader or the types that are committed. */
async function addon() {
  const read = () =>
    GENERATED.map((name) => (existsSync(inRoot(name)) ? readFileSync(inRoot(name), "utf8") : null));
  const before = read();
  if (!(await native(steps, "dev"))) return false;
  return steps.step("generated files are as committed", async () => {
    const after = read();
    const changed = GENERATED.filter((_, i) => before[i] !== after[i]);
    if (changed.length > 0)
      throw new StepFailed(`the build changed ${changed.join(" and ")}: commit the new ones`);
  });
}

const testFiles = () => filesUnder("__test__").filter((file) => file.endsWith(".test.mjs"));

async function jsTests() {
  const files = testFiles();
  await chromium(steps);
  for (const compiler of COMPILERS) {
    const command = [...tool(compiler, "tsc"), "--noEmit", "-p", "__test__/types"];
    await check(`type tests, TypeScript ${versionOf(compiler)}`, command);
  }
  // Named one by one: what a folder means to `node --test` differs from version to version.
  await check("node --test", node("--test", "--test-reporter=spec", TEST_TIMEOUT, ...files), {
    closing: /^ℹ (tests|pass|fail|cancelled|skipped|duration_ms)/,
    limitMs: 20 * MINUTE_MS,
  });
  if (!(await check("examples compile", compile()))) return;
  for (const name of examples.filter((each) => !LASTING.has(each))) {
    const limit = { limitMs: 2 * MINUTE_MS };
    await check(`example ${name}`, command(name, QUICK[name] ?? []), limit);
  }
}

const installed = await install(steps);
if (has("lint")) {
  const colors = `--colors=${process.stdout.isTTY ? "force" : "off"}`;
  if (installed) await check("biome", [...tool("@biomejs/biome", "biome"), "ci", colors, "."]);
  await rustLint();
}
if (has("rust")) await rustTests();
if (has("js") || has("clients") || has("docs")) {
  const built = installed && (await addon()) && (await typescript(steps));
  if (!built) steps.skip("JavaScript tests, examples, samples", "the build failed", "not run");
  if (built && has("js")) await jsTests();
  if (built && has("clients")) await clients(steps, verbose);
  if (built && has("docs"))
    await check("code in README and docs", script("samples.mjs"), { closing: /./ });
  if (built && has("js")) await check("publint", [...tool("publint", "publint"), "--strict"]);
}

process.stdout.write(`\n${steps.summary()}\n`);
process.exitCode = steps.failed ? 1 : 0;
