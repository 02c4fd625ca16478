// What is packed, installed by npm into a project outside of the repository.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, describe, it } from "node:test";
import { promisify } from "node:util";
import ts from "typescript";
import { fencesOf } from "../scripts/lib/fences.mjs";
import {
  layOutMain,
  layOutPlatform,
  pack,
  packageOf,
  platformHere,
  platforms,
} from "../scripts/lib/packages.mjs";
import { inRoot, ROOT, tool } from "../scripts/lib/paths.mjs";
import { nodeOf, npmIn } from "./support/packages.mjs";

const run = promisify(execFile);
const manifest = JSON.parse(readFileSync(inRoot("package.json"), "utf8"));
const here = platformHere();

/** The README's actor, as JavaScript. */
function readmeActor() {
  const [sample] = fencesOf(readFileSync(inRoot("README.md"), "utf8")).filter(({ run }) => run);
  const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  return ts.transpileModule(sample.code, { compilerOptions: options }).outputText;
}

const asModule = readmeActor();
const asScript = `(async () => {\n${asModule.replace(
  /import (\{[^}]+\}) from "greenroom";/,
  'const $1 = require("greenroom");',
)}\n})();`;

const work = mkdtempSync(path.join(tmpdir(), "greenroom-package-"));
after(() => rmSync(work, { recursive: true, force: true }));

const inWork = (...parts) => path.join(work, ...parts);

/** A project in which npm installed tarballs. */
async function projectWith(name, tarballs) {
  const folder = inWork(name);
  mkdirSync(folder);
  const dependencies = Object.fromEntries(
    Object.entries(tarballs).map(([of, file]) => [of, `file:${file}`]),
  );
  writeFileSync(path.join(folder, "package.json"), JSON.stringify({ private: true, dependencies }));
  await npmIn(folder, "install");
  return folder;
}

/** What a program prints that is run twice in a project; `data` is gone afterwards. */
async function runTwice(folder, node, name, code) {
  const own = mkdtempSync(path.join(folder, "run-"));
  writeFileSync(path.join(own, name), code);
  const printed = [];
  for (let i = 0; i < 2; i++) {
    const { stdout, stderr } = await run(node, [name], { cwd: own });
    printed.push(stdout + stderr);
  }
  rmSync(own, { recursive: true });
  return printed;
}

const [main, platform] = [inWork("main"), inWork("platform")];
layOutMain(main);
layOutPlatform(platform, here, inRoot(here.file));
const tarballs = {
  greenroom: await pack(main, work),
  [packageOf(here)]: await pack(platform, work),
};

let released;
/** Why npm can install nothing, where that is so and may be. */
let skip = false;
try {
  released = await projectWith("released", tarballs);
} catch (error) {
  if (process.env.CI) throw error;
  skip = error.message;
}

describe("the packages that are published", { skip }, () => {
  it("leave the addon to the package of the platform, of which there is one for each", () => {
    const main = path.join(released, "node_modules", "greenroom");
    const installed = JSON.parse(readFileSync(path.join(main, "package.json"), "utf8"));
    const loader = readFileSync(path.join(main, "index.js"), "utf8");

    assert.deepEqual(
      readdirSync(main).filter((name) => name.endsWith(".node")),
      [],
    );
    assert.equal(platforms().length, 8);
    assert.deepEqual(
      installed.optionalDependencies,
      Object.fromEntries(platforms().map((each) => [packageOf(each), manifest.version])),
    );
    for (const each of platforms()) {
      assert.ok(loader.includes(`require('${packageOf(each)}')`), packageOf(each));
      assert.ok(loader.includes(`require('./${each.file}')`), each.file);
    }
  });

  it("are named by the packed manifest only, since a lock cannot hold what is not published", () => {
    assert.equal(manifest.optionalDependencies, undefined);
  });

  for (const version of [undefined, "20.20.2", "22.23.5", "24.22.3"]) {
    it(`run the README's actor, imported and required, on Node.js ${version ?? "of this test"}`, async (t) => {
      const node = version === undefined ? process.execPath : await nodeOf(t, version);
      if (node === undefined) return;
      if (version !== undefined) {
        assert.equal((await run(node, ["--version"])).stdout.trim(), `v${version}`);
      }

      const [imported, required] = await Promise.all([
        runTwice(released, node, "main.mjs", asModule),
        runTwice(released, node, "main.cjs", asScript),
      ]);

      assert.deepEqual(imported, ["1\n", "2\n"]);
      assert.deepEqual(required, ["1\n", "2\n"]);
    });
  }

  it("are one instance, with the same names, whether imported or required", async () => {
    const code = `
      import { createRequire } from "node:module";
      const require = createRequire(import.meta.url);
      for (const entry of ["greenroom", "greenroom/native"]) {
        const [imported, required] = [await import(entry), require(entry)];
        const names = (of) => Object.keys(of).filter((name) => !/^(default|module.exports)$/.test(name)).sort();
        console.log(entry, names(imported).join() === names(required).join(), names(required).length > 5,
          names(required).every((name) => imported[name] === required[name]));
      }`;
    writeFileSync(path.join(released, "same.mjs"), code);

    const { stdout } = await run(process.execPath, ["same.mjs"], { cwd: released });

    assert.equal(stdout, "greenroom true true true\ngreenroom/native true true true\n");
  });

  it("have types for modules, scripts and bundlers", async () => {
    const use = (imports) => `${imports}
      const counter = actor({ state: { n: 0 }, actions: { add: (c, by: number) => (c.state.n += by) } });
      export const answer: Promise<number> =
        setup({ use: { counter } }).client().counter.getOrCreate("a").add(1);
      // @ts-expect-error an argument of the wrong type
      setup({ use: { counter } }).client().counter.getOrCreate("a").add("1");
      export const open: (options?: { path?: string }) => Promise<unknown> = (o) => dispatch.openHost(o);`;
    const imports = `import { actor, setup } from "greenroom";
      import { dispatch } from "greenroom/native";
      import { createClient } from "greenroom/client";
      export { db } from "greenroom/db";
      export const remote: Promise<string> = createClient("http://localhost:1").counter.get().resolve();
      export { testRuntime } from "greenroom/testing";`;
    const required = `import greenroom = require("greenroom");
      import native = require("greenroom/native");
      const { actor, setup } = greenroom;
      const { dispatch } = native;`;
    const types = path.join(released, "types");
    mkdirSync(types);
    writeFileSync(path.join(types, "module.mts"), use(imports));
    writeFileSync(path.join(types, "script.cts"), use(required));
    writeFileSync(path.join(types, "bundled.ts"), use(imports));
    const strict = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "es2022"];
    const nodeTypes = ["--typeRoots", inRoot("node_modules", "@types"), "--types", "node"];
    const [file, ...tsc] = tool("typescript", "tsc");
    const compile = (...args) =>
      run(file, [...tsc, ...strict, ...nodeTypes, ...args], { cwd: types });
    const [older, ...oldest] = tool("typescript-oldest", "tsc");

    await assert.doesNotReject(async () => {
      await Promise.all([
        compile("--module", "node16", "module.mts", "script.cts"),
        run(older, [...oldest, ...strict, ...nodeTypes, "--module", "node16", "module.mts"], {
          cwd: types,
        }),
        compile(
          "--module",
          "esnext",
          "--moduleResolution",
          "bundler",
          "--skipLibCheck",
          "bundled.ts",
        ),
      ]).catch((error) => {
        throw new Error(error.stdout);
      });
    });
  });

  it("show nothing of their inside", async () => {
    const inside = run(process.execPath, ["-e", 'require("greenroom/dist/index.js")'], {
      cwd: released,
    });

    await assert.rejects(inside, /ERR_PACKAGE_PATH_NOT_EXPORTED/);
  });
});

describe("what npm packs in a clone", { skip }, () => {
  it("holds the addon of this machine, and runs the README's actor without another package", async () => {
    const local = await projectWith("local", {
      greenroom: await pack(ROOT, inWork("local-tarball")),
    });

    assert.deepEqual(await runTwice(local, process.execPath, "main.mjs", asModule), ["1\n", "2\n"]);
  });

  it("brings no install script, and leaves a lock that npm ci follows", async () => {
    const folder = await projectWith("locked", {
      greenroom: await pack(ROOT, inWork("locked-tarball")),
    });
    const lock = JSON.parse(readFileSync(path.join(folder, "package-lock.json"), "utf8"));
    const { "": _root, ...packages } = lock.packages;

    await npmIn(folder, "ci");

    assert.deepEqual(Object.keys(packages).sort(), [
      "node_modules/@standard-schema/spec",
      "node_modules/greenroom",
    ]);
    for (const entry of Object.values(packages)) assert.equal(entry.hasInstallScript, undefined);
  });
});

describe("the client", { skip }, () => {
  it("needs no addon, imported or required", async () => {
    const folder = mkdtempSync(inWork("client-"));
    const greenroom = path.join(folder, "node_modules", "greenroom");
    cpSync(path.join(released, "node_modules", "greenroom"), greenroom, { recursive: true });
    rmSync(path.join(greenroom, "index.js"));
    const use = 'console.log(typeof createClient("http://localhost:1").a.get().b)';
    const program = (name, code) => {
      writeFileSync(path.join(folder, name), `${code}; ${use}`);
      return run(process.execPath, [name], { cwd: folder });
    };

    const [imported, required] = await Promise.all([
      program("main.mjs", 'import { createClient } from "greenroom/client"'),
      program("main.cjs", 'const { createClient } = require("greenroom/client")'),
    ]);

    assert.deepEqual([imported.stdout, required.stdout], ["function\n", "function\n"]);
  });
});

describe("an addon that cannot be loaded", { skip }, () => {
  const machine = [process.platform, process.arch, here.libc].filter(Boolean).join(".*");

  /** The project without its addon, or with `content` for it; gives the error of a program there. */
  async function failureWith(content, { code = 'require("greenroom")', env = {} } = {}) {
    const folder = mkdtempSync(inWork("broken-"));
    cpSync(path.join(released, "node_modules"), path.join(folder, "node_modules"), {
      recursive: true,
      filter: (from) => !from.includes("@greenroom"),
    });
    const greenroom = path.join(folder, "node_modules", "greenroom");
    if (content !== undefined) writeFileSync(path.join(greenroom, here.file), content);
    const show = `(async () => { ${code} })().catch(({ name, group, code, message, metadata, cause }) =>
      console.log(JSON.stringify({ name, group, code, message, metadata, cause: String(cause) })));`;
    const options = { cwd: folder, env: { ...process.env, ...env } };
    // Node.js 20 ends a program whose import of a script failed, also when that was caught.
    const { stdout } = await run(process.execPath, ["-e", show], options).catch((error) => error);
    return { ...JSON.parse(stdout), at: path.join(greenroom, here.file) };
  }

  for (const code of ['require("greenroom")', 'await import("greenroom/native")']) {
    it(`names the platform, what was tried, and what to do: ${code}`, async () => {
      const error = await failureWith(undefined, { code });

      assert.equal(`${error.group}.${error.code}`, "addon.not_loadable");
      assert.match(error.message, new RegExp(`^the native addon of greenroom .* ${machine}`));
      assert.ok(error.message.includes(process.version));
      assert.deepEqual(error.metadata.tried.slice(0, 2), [
        { path: error.at, reason: "there is no such file" },
        { path: packageOf(here), reason: "it is not installed" },
      ]);
      for (const { path, reason } of error.metadata.tried) {
        assert.ok(error.message.includes(`tried ${path}: ${reason}`), error.message);
      }
      assert.match(error.message, /--omit=optional.*leave greenroom external/s);
      assert.match(error.cause, /Cannot find native binding/);
    });
  }

  it("that is damaged: with the file and what the system says of it", async () => {
    const error = await failureWith("no addon");

    assert.equal(error.code, "not_loadable");
    assert.equal(error.metadata.tried[0].path, error.at);
    assert.match(
      error.metadata.tried[0].reason,
      /file too short|invalid|not a valid|not a mach-o/i,
    );
    assert.match(error.message, /damaged or made for another platform/);
  });

  it("that is made for another processor: likewise", { skip: here.os !== "linux" }, async () => {
    const content = readFileSync(inRoot(here.file));
    // The field of ELF that names the processor: x86-64 becomes AArch64 and the reverse.
    const MACHINE = 18;
    content.writeUInt16LE(process.arch === "x64" ? 183 : 62, MACHINE);

    const error = await failureWith(content);

    assert.equal(error.metadata.tried[0].path, error.at);
    assert.match(error.message, /damaged or made for another platform/);
  });

  it("from where NAPI_RS_NATIVE_LIBRARY_PATH points: with that path", async () => {
    const error = await failureWith(undefined, {
      env: { NAPI_RS_NATIVE_LIBRARY_PATH: "/nowhere/greenroom.node" },
    });

    assert.deepEqual(error.metadata.tried[0], {
      path: "/nowhere/greenroom.node",
      reason: "there is no such file",
    });
    assert.match(error.message, /correct or unset it/);
  });
});
