import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { differences } from "../examples/wordcount/compare.mjs";
import { planChunks, readChunk } from "../examples/wordcount/corpus.mjs";
import { byLetter, count } from "../examples/wordcount/words.mjs";

const MAIN = fileURLToPath(new URL("../examples/wordcount/main.mjs", import.meta.url));

const run = (...args) =>
  new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], (error, stdout, stderr) => {
      resolve({ code: error?.code ?? 0, stdout, stderr });
    });
  });

describe("the demo", () => {
  let folder;
  const file = (name, text) => {
    const full = path.join(folder, name);
    writeFileSync(full, text);
    return full;
  };
  before(() => {
    folder = mkdtempSync(path.join(tmpdir(), "greenroom-demo-test-"));
  });
  after(() => rmSync(folder, { recursive: true }));

  it("refuses a number of kills that is none", async () => {
    const { code, stderr } = await run("--kills", "some");

    assert.equal(code, 2);
    assert.match(stderr, /--kills and --seed are whole numbers, not some/);
  });

  it("refuses a file that is not there", async () => {
    const { code, stderr } = await run("no-such-file");

    assert.equal(code, 2);
    assert.match(stderr, /there is no no-such-file/);
  });

  it("counts a text through kills and agrees with a plain count", async () => {
    const text = file("text", "Éa constructor __proto__ tuna's tuna 東京 x1y\n".repeat(4_000));

    const { code, stdout, stderr } = await run(text, "--kills", "3", "--seed", "7");

    assert.equal(code, 0, stderr);
    assert.match(stdout, /^t +8,000 +1 +tuna \(8,000\)$/m);
    assert.match(stdout, /^e +4,000 +1 +éa \(4,000\)$/m);
    assert.match(stdout, /survived 3 restarts/);
    assert.match(stdout, /every word agrees with a plain count/);
  });

  it("names every word whose count differs", () => {
    const expected = [
      ["both", 2],
      ["lost", 1],
    ];
    const actual = [
      ["both", 3],
      ["new", 1],
    ];

    assert.deepEqual(differences(expected, actual), [
      "both: counted 3, should be 2",
      "lost: counted 0, should be 1",
      "new: counted 1, should be 0",
    ]);
  });

  it("cuts a text into chunks that lose no word and split none", () => {
    const text = `${"naïve 東京 ".repeat(5_000)}${"w".repeat(9_000)} end`;
    const long = file("long", text);

    const chunks = planChunks([long, file("empty", ""), file("short", "end")], text.length);
    const counted = new Map();
    for (const part of chunks.flatMap(readChunk)) count(part, counted);

    const plain = count(readFileSync(long, "utf8"), new Map());
    plain.set("end", 2);
    assert(chunks.length > 50, `${chunks.length} chunks`);
    assert.deepEqual(new Map(counted), plain);
    assert.deepEqual(byLetter(counted).get("other"), [["東京", 5_000]]);
  });
});
