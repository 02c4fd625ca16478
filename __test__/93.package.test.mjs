import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import ts from "typescript";
import { fencesOf } from "../scripts/lib/fences.mjs";
import { inRoot, npm, ROOT } from "../scripts/lib/paths.mjs";

const run = promisify(execFile);

/** The README's actor, as JavaScript. */
function readmeActor() {
  const [sample] = fencesOf(readFileSync(inRoot("README.md"), "utf8")).filter(({ run }) => run);
  const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  return ts.transpileModule(sample.code, { compilerOptions: options }).outputText;
}

describe("the packed package, in a project of its own", () => {
  let project;
  before(async () => {
    project = mkdtempSync(path.join(tmpdir(), "greenroom-package-"));
    const [file, ...args] = npm();
    const pack = [...args, "pack", "--json", "--pack-destination", project];
    const { stdout } = await run(file, pack, { cwd: ROOT });
    const [{ filename }] = JSON.parse(stdout);
    await run("tar", ["-xzf", filename], { cwd: project });
    const modules = path.join(project, "node_modules");
    mkdirSync(modules);
    symlinkSync(path.join(project, "package"), path.join(modules, "greenroom"), "junction");
    // What npm would install beside it; resolved from where the package really is.
    const inside = path.join(project, "package", "node_modules");
    mkdirSync(inside);
    const { dependencies } = JSON.parse(readFileSync(inRoot("package.json"), "utf8"));
    for (const name of Object.keys(dependencies)) {
      mkdirSync(path.dirname(path.join(inside, name)), { recursive: true });
      symlinkSync(inRoot("node_modules", name), path.join(inside, name), "junction");
    }
  });
  after(() => rmSync(project, { recursive: true, force: true }));

  const runTwice = async (name, code) => {
    writeFileSync(path.join(project, name), code);
    const printed = [];
    for (let i = 0; i < 2; i++) {
      const { stdout } = await run(process.execPath, [name], { cwd: project });
      printed.push(stdout);
    }
    rmSync(path.join(project, "data"), { recursive: true });
    return printed;
  };

  it("runs the README's actor as an ES module and remembers what it counted", async () => {
    assert.deepEqual(await runTwice("main.mjs", readmeActor()), ["1\n", "2\n"]);
  });

  it("runs the README's actor through require", async () => {
    const required = readmeActor().replace(
      /import (\{[^}]+\}) from "greenroom";/,
      'const $1 = require("greenroom");',
    );
    assert.match(required, /require/);

    const code = `(async () => {\n${required}\n})();`;
    assert.deepEqual(await runTwice("main.cjs", code), ["1\n", "2\n"]);
  });
});
