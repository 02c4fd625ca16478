import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { fencesOf } from "../scripts/lib/fences.mjs";
import { digest, filesUnder } from "../scripts/lib/fresh.mjs";
import { glibcFloor, packageOf, platforms } from "../scripts/lib/packages.mjs";
import { execute, StepFailed } from "../scripts/lib/steps.mjs";

const script = (name) => fileURLToPath(new URL(`../scripts/${name}`, import.meta.url));

const exitCode = (...args) =>
  new Promise((resolve) => {
    execFile(process.execPath, args, (error) => resolve(error?.code ?? 0));
  });

describe("the commands", () => {
  it("refuse a group, a part or an example that does not exist", async () => {
    const codes = await Promise.all([
      exitCode(script("test.mjs"), "--only", "nothing"),
      exitCode(script("build.mjs"), "nothing"),
      exitCode(script("example.mjs"), "nothing"),
      exitCode(script("crash.mjs"), "many"),
    ]);

    assert.deepEqual(codes, [2, 2, 2, 2]);
  });
});

describe("a step", () => {
  it("fails with all that the command printed on both streams", async () => {
    const program = "console.log('one'); console.error('two'); process.exitCode = 3";

    await assert.rejects(execute([process.execPath, "-e", program]), (error) => {
      assert(error instanceof StepFailed);
      assert.equal(error.message, "exit code 3");
      assert.match(error.output, /one/);
      assert.match(error.output, /two/);
      return true;
    });
  });

  it("fails when the command does not exist", async () => {
    await assert.rejects(execute(["greenroom-no-such-command"]), {
      message: "greenroom-no-such-command is not installed",
    });
  });

  it("is ended at its time limit together with what it started", async () => {
    const inner = "setInterval(() => {}, 1000)";
    const program = `
      const { spawn } = require("node:child_process");
      const child = spawn(process.execPath, ["-e", ${JSON.stringify(inner)}], { stdio: "inherit" });
      console.log(child.pid);
      setInterval(() => {}, 1000);`;

    const failure = await execute([process.execPath, "-e", program], { limitMs: 1_500 }).catch(
      (error) => error,
    );

    // The output ends only once both processes have closed it, so both are gone.
    assert.equal(failure.message, "still running after 1.5 s");
    assert.match(failure.output, /^\d+\n$/);
  });
});

describe("what is stale", () => {
  let folder;
  before(() => {
    folder = mkdtempSync(path.join(tmpdir(), "greenroom-fresh-"));
  });
  after(() => rmSync(folder, { recursive: true }));

  it("is decided by names and contents and not by times", () => {
    const file = path.join(folder, "a");
    writeFileSync(file, "one");
    const before = digest(filesUnder(folder), "dev");

    utimesSync(file, 1, 1);
    assert.equal(digest(filesUnder(folder), "dev"), before);

    writeFileSync(file, "two");
    assert.notEqual(digest(filesUnder(folder), "dev"), before);
    writeFileSync(file, "one");
    assert.notEqual(digest(filesUnder(folder), "release"), before);
    writeFileSync(path.join(folder, "b"), "");
    assert.notEqual(digest(filesUnder(folder), "dev"), before);
  });

  it("takes a missing file for none", () => {
    assert.deepEqual(filesUnder(path.join(folder, "missing")), []);
  });
});

describe("the samples of a page", () => {
  it("are the fences that say so, with their lines", () => {
    const page = [
      "text",
      "```ts run",
      "one",
      "```",
      "```ts",
      "not looked at",
      "```",
      "```text output",
      "1",
      "```",
      "```ts file=part.ts",
      "two",
      "```",
    ].join("\n");

    assert.deepEqual(fencesOf(page), [
      { language: "ts", run: true, output: false, file: undefined, code: "one\n", line: 2 },
      { language: "text", run: false, output: true, file: undefined, code: "1\n", line: 8 },
      { language: "ts", run: false, output: false, file: "part.ts", code: "two\n", line: 11 },
    ]);
  });
});

describe("the platforms that are published", () => {
  it("are named as npm and the loader name them", () => {
    const named = platforms().map((each) => [each.target, packageOf(each), each.libc]);

    assert.deepEqual(named[1], [
      "x86_64-unknown-linux-musl",
      "@greenroom/native-linux-x64-musl",
      "musl",
    ]);
    assert.deepEqual(named[5], [
      "aarch64-apple-darwin",
      "@greenroom/native-darwin-arm64",
      undefined,
    ]);
    assert.deepEqual(named[6], [
      "x86_64-pc-windows-msvc",
      "@greenroom/native-win32-x64-msvc",
      undefined,
    ]);
  });

  it("need the newest glibc whose symbols the addon asks for", () => {
    const folder = mkdtempSync(path.join(tmpdir(), "greenroom-glibc-"));
    const addon = (content) => {
      writeFileSync(path.join(folder, "addon"), content);
      return glibcFloor(path.join(folder, "addon"));
    };

    assert.equal(addon("\0GLIBC_2.9\0GLIBC_2.17\0GLIBC_2.2.5\0"), "2.17");
    assert.equal(addon("musl"), undefined);
    rmSync(folder, { recursive: true });
  });
});
