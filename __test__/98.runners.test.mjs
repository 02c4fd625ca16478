// `greenroom/testing` within test runners that load modules in their own ways.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, it } from "node:test";
import { promisify } from "node:util";

import { ROOT } from "../scripts/lib/paths.mjs";
import { packagesFor } from "./support/packages.mjs";

const run = promisify(execFile);
const LIMIT_MS = 120_000;

/** The same tests for both, which has `test` and `expect` as globals or imports. */
const body = `
const counter = actor({
  state: { count: 0 },
  options: { actionTimeout: 1e9 },
  actions: {
    increment: (c) => ++c.state.count,
    async later(c, ms) {
      await c.clock.sleep(ms);
      return [c.now, new Uint8Array([1]), new Map([["a", new Date(0)]])];
    },
    fail() { throw new UserError("no", { code: "no" }); },
  },
});
test("time, a crash and an error", async () => {
  const runtime = testRuntime({ use: { counter }, logging: { level: "silent" } });
  const handle = runtime.client.counter.getOrCreate("a");
  expect(await handle.increment()).toBe(1);
  const began = runtime.clock.now();
  const later = handle.later(3600000);
  await runtime.clock.advance("30 days");
  const [at, bytes, map] = await later;
  expect(at - began).toBe(3600000);
  expect(Array.from(bytes)).toEqual([1]);
  expect(map.get("a").getTime()).toBe(0);
  await runtime.crash();
  expect(await handle.increment()).toBe(2);
  await expect(handle.fail()).rejects.toMatchObject({ group: "user", code: "no" });
  await runtime.close();
});
const mailer = actor({
  queues: { mail: queue({ maxDeliveries: 3, backoff: { initial: 60000, max: 60000 } }) },
  db: db({ onMigrate: (raw) => raw.execute("CREATE TABLE IF NOT EXISTS sent (text TEXT, big INTEGER, bytes BLOB)") }),
  onCreate: (c) => c.cron.set({ name: "nightly", expression: "0 3 * * *", action: "night" }),
  run: async (c) => {
    for await (const message of c.queue.iter({ completable: true })) {
      if (message.deliveryCount === 1) { await message.nack({ error: new Error("busy") }); continue; }
      c.sql.exec("INSERT INTO sent VALUES (?, ?, ?)", message.body.text, 2n ** 60n, new Uint8Array([1, 2]));
      await message.complete();
    }
  },
  actions: {
    sent: (c) => c.db.execute("SELECT * FROM sent"),
    night: async (c) => { await c.kv.put("night", String(c.now)); },
    lastNight: (c) => c.kv.get("night"),
  },
});
test("a queue, a cron job and SQL over a crash", async () => {
  const runtime = testRuntime({ use: { mailer }, logging: { level: "silent" } });
  const handle = runtime.client.mailer.getOrCreate("a");
  await handle.send("mail", { text: "hello" });
  await runtime.clock.advance("30 seconds");
  expect(await handle.sent()).toEqual([]);
  await runtime.crash();
  await runtime.clock.advance("1 day");
  const [row] = await handle.sent();
  expect([row.text, row.big, Array.from(row.bytes)]).toEqual(["hello", 2n ** 60n, [1, 2]]);
  expect(await handle.lastNight()).toBe(String(Date.UTC(2025, 0, 1, 3)));
  await runtime.restart();
  expect((await handle.sent()).length).toBe(1);
  await runtime.close();
});
`;

/** Runs a runner on the test, in a project that has this package. */
async function tested(folder, name, source, command) {
  const project = mkdtempSync(path.join(folder, "project-"));
  try {
    mkdirSync(path.join(project, "node_modules"));
    symlinkSync(ROOT, path.join(project, "node_modules", "greenroom"), "junction");
    writeFileSync(path.join(project, "package.json"), JSON.stringify({ private: true }));
    writeFileSync(path.join(project, name), source);
    const bin = path.join(folder, "node_modules", ...command[0]);
    const options = { cwd: project, timeout: LIMIT_MS, env: { ...process.env, CI: "1" } };
    return await run(process.execPath, [bin, ...command.slice(1)], options).catch((error) => error);
  } finally {
    rmSync(project, { recursive: true, force: true });
  }
}

describe("greenroom/testing", () => {
  it("works under Vitest", { timeout: 2 * LIMIT_MS }, async (t) => {
    const folder = await packagesFor(t, "vitest", { vitest: "3.2.4" });
    if (folder === undefined) return;
    const source = `
      import { expect, test } from "vitest";
      import { actor, queue, UserError } from "greenroom";
      import { db } from "greenroom/db";
      import { testRuntime } from "greenroom/testing";
      ${body}`;

    const { stdout, stderr } = await tested(folder, "a.test.mjs", source, [
      ["vitest", "vitest.mjs"],
      "run",
    ]);

    assert.match(stdout, /2 passed/, stdout + stderr);
  });

  it("works under Jest", { timeout: 2 * LIMIT_MS }, async (t) => {
    const folder = await packagesFor(t, "jest", { jest: "30.2.0" });
    if (folder === undefined) return;
    const source = `
      const { actor, queue, UserError } = require("greenroom");
      const { db } = require("greenroom/db");
      const { testRuntime } = require("greenroom/testing");
      ${body}`;

    const { stdout, stderr } = await tested(folder, "a.test.js", source, [
      ["jest", "bin", "jest.js"],
      "--watchman=false",
    ]);

    assert.match(stderr, /2 passed/, stdout + stderr);
  });
});
