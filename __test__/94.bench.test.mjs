// The benchmark runs, whatever it finds: what is measured by hand would otherwise rot.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { asTable, atLeast, atMost, partOfReference, row } from "../benches/table.mjs";

const program = fileURLToPath(new URL("../benches/main.mjs", import.meta.url));

const bench = (...args) =>
  new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], (error, out, err) => {
      resolve({ code: error?.code ?? 0, out, err });
    });
  });

describe("the benchmark", () => {
  it("refuses a group of rows and an option that do not exist", async () => {
    const [group, option] = await Promise.all([bench("--only", "calls,nothing"), bench("--fast")]);

    assert.equal(group.code, 2);
    assert.match(group.err, /unknown group nothing/);
    assert.equal(option.code, 2);
  });

  it("measures every row once in its quick mode", { timeout: 240_000 }, async () => {
    const { code, out, err } = await bench("--quick");

    assert.equal(code, 0, err);
    const rows = out.split("\n").filter((line) => line.startsWith("| "));
    assert.equal(rows.length, 2 + 47, out);
    for (const line of rows.slice(2)) {
      const [, work, measured, , , reference] = line.split("|").map((cell) => cell.trim());
      assert.match(measured, /\d/, work);
      assert.match(reference, /\d/, work);
      assert.doesNotMatch(measured, /NaN|Infinity|^0\/s/, work);
    }
    assert.match(out, /these figures mean nothing/);
  });
});

describe("a row of the benchmark", () => {
  const measured = { work: "x", unit: "rate", samples: [90, 100, 200], cpus: [4, 5, 9] };
  const reference = { what: "y", unit: "rate", samples: [100, 130, 200] };

  it("shows the median, the range and the median of its reference", () => {
    const { measured: shown, range, cpu, reference: beside } = row({ ...measured, reference });

    assert.deepEqual([shown, range, cpu, beside], ["100/s", "90/s – 200/s", "5.0", "y: 130/s"]);
  });

  it("reaches a rate only with the CPU time that goes with it", () => {
    const reached = (target) => row({ ...measured, target }).reached;

    assert.equal(reached(atLeast(100, 5)), "yes");
    assert.equal(reached(atLeast(101, 5)), "NO");
    assert.equal(reached(atLeast(100, 4.9)), "NO");
    assert.equal(reached(atMost("rate", 99)), "NO");
  });

  it("is compared with the reference of the same moment", () => {
    const reached = (part) =>
      row({ ...measured, reference, target: partOfReference(part) }).reached;

    // 90 %, 77 % and 100 %.
    assert.equal(reached(0.9), "yes");
    assert.equal(reached(0.91), "NO");
  });

  it("takes its place in a table whose columns are as wide as they must be", () => {
    const lines = asTable([row({ ...measured, reference })]).split("\n");

    assert.equal(lines.length, 3);
    assert.equal(new Set(lines.map((line) => line.length)).size, 1);
  });
});
