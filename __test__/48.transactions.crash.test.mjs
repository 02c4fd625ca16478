// c.transaction in a process that is killed: every acknowledged one is there, and each one whole.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

import { newFolder } from "./support/registry.mjs";

const ROUNDS = Number(process.env.GREENROOM_TRANSACTION_ROUNDS ?? 5);
const writer = fileURLToPath(new URL("support/transaction-writer.mjs", import.meta.url));

describe("a process that is killed while it runs transactions", () => {
  for (const kind of ["small", "sql"]) {
    it(`has each of them whole or not at all, in ${kind === "sql" ? "a file" : "the shared store"}`, async () => {
      const folder = await newFolder();
      let least = 0;
      for (let round = 0; round < ROUNDS; round += 1) {
        least = await killed(folder, kind, 100 + 97 * round, least);
      }
      assert(least > ROUNDS, `only ${least} were acknowledged`);
    });
  }
});

/** Runs the writer, kills it, and gives the last number that it acknowledged. */
function killed(folder, kind, after, least) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [writer, folder, String(least), kind]);
    let [out, err] = ["", ""];
    child.stdout.on("data", (data) => {
      if (out === "") setTimeout(() => child.kill("SIGKILL"), after);
      out += data;
    });
    child.stderr.on("data", (data) => {
      err += data;
    });
    child.on("close", (code) => {
      if (code !== null) return reject(new Error(`the writer ended with ${code}: ${err}`));
      // A line that the kill cut off was not acknowledged.
      const whole = out.slice(0, out.lastIndexOf("\n"));
      resolve(Number(whole.split("\n").at(-1)));
    });
  });
}
