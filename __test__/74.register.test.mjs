// The two ways in for programs of RivetKit: the package in place of its native module, and the hook.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { promisify } from "node:util";

import * as native from "greenroom/native";
import { inRoot } from "../scripts/lib/paths.mjs";
import { NAMES } from "./support/contract.mjs";

const run = promisify(execFile);
const folder = inRoot("packages", "rivetkit-napi");
const json = (...parts) => JSON.parse(readFileSync(inRoot(...parts), "utf8"));

/** What a program says of what it imported as RivetKit does: by a name that nobody can read beforehand. */
const PROGRAM = `
  const name = ["@rivetkit", "rivetkit-napi"].join("/");
  const bindings = await import(name);
  console.log(JSON.stringify(Object.keys(bindings).filter((key) => bindings[key] !== undefined)));
`;

async function told(...args) {
  const { stdout } = await run(process.execPath, [...args, "--input-type=module", "-e", PROGRAM], {
    cwd: inRoot(),
  });
  return JSON.parse(stdout);
}

describe("the package in the place of RivetKit's native module", () => {
  it("names everything where those find it who read it as a module of ECMAScript", () => {
    const source = readFileSync(`${folder}/index.js`, "utf8");
    const named = [...source.matchAll(/^module\.exports\.(\w+) = native\.(\w+);$/gm)];

    assert.deepEqual(
      named.map(([, name]) => name),
      NAMES,
    );
    for (const [, name, from] of named) {
      assert.equal(name, from);
      assert.equal(typeof Reflect.get(native, name), "function", name);
    }
    const declared = readFileSync(`${folder}/index.d.ts`, "utf8");
    assert.deepEqual(
      [...declared.matchAll(/^ {2}(\w+),$/gm)].map(([, name]) => name).sort(),
      [...NAMES].sort(),
    );
  });

  it("is of the same version as greenroom, and needs that", () => {
    const { version } = json("package.json");
    const contract = json("packages", "rivetkit-napi", "package.json");

    assert.equal(contract.version, version);
    assert.deepEqual(contract.dependencies, { greenroom: version });
  });
});

describe("greenroom/register", () => {
  it("gives whoever imports RivetKit's native module greenroom, with all of its names", async () => {
    const names = await told("--import", "greenroom/register");

    for (const name of NAMES) assert.ok(names.includes(name), name);
  });

  it("is what makes the difference", async () => {
    await assert.rejects(told(), /Cannot find package/);
  });
});
