// An application by `greenroom/register`, whatever is installed in the place of RivetKit's native module.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, it } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";

import { appOf, fresh } from "./support.mjs";

const run = promisify(execFile);
const inRoot = (name) => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const HOOK = pathToFileURL(inRoot("dist/register/index.js")).href;
const NATIVE = "@rivetkit/rivetkit-napi";

/** What a program with the hook prints, as a module of the kind. */
async function told(kind, source) {
  const args = ["--import", HOOK, `--input-type=${kind}`, "--eval", source];
  const { stdout } = await run(process.execPath, args, { cwd: inRoot("compat") });
  return stdout.trim();
}

describe("a program with greenroom/register", () => {
  const app = appOf({ areas: ["actions"], env: { NODE_OPTIONS: `--import=${HOOK}` } });
  const client = app.client;

  it("loads greenroom where RivetKit imports its native module", async () => {
    const found = await told("module", `console.log(import.meta.resolve("${NATIVE}"))`);
    assert.match(found, /\/dist\/native\/index\.mjs$/);
  });

  it("and where somebody requires it", async () => {
    const source = `console.log(require("${NATIVE}") === require("${inRoot("dist/native/index.js")}"))`;
    assert.equal(await told("commonjs", source), "true");
  });

  it("serves its actors", async () => {
    const handle = client().calls.getOrCreate(fresh("calls"));
    assert.equal(await handle.add(2), 2);
    assert.equal(await handle.add(3), 5);
  });
});
