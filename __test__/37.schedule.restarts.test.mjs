// What is scheduled outlives its process: programs that end, are killed, and start again.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, it } from "node:test";

import { newFolder } from "./support/registry.mjs";

const layer = new URL("../dist/index.js", import.meta.url).href;

/** A program on `folder` whose actor prints what runs; `body` comes after its `setup()`. */
async function program(folder, body, { actions = "", env = {} } = {}) {
  const file = join(await newFolder(), "program.mjs");
  await writeFile(
    file,
    `
    import { actor, setup } from ${JSON.stringify(layer)};
    const say = (line) => process.stdout.write(line + "\\n");
    const it = actor({
      state: { ran: [] },
      actions: {
        later: (c, ms, ...args) => c.schedule.after(ms, { action: "fire", args }),
        often: async (c, count) => {
          for (let n = 0; n < count; n += 1) await c.schedule.after(0, "fire", n);
        },
        ran: (c) => c.state.ran,
        dead: (c) => c.schedule.dead.list(),
        ${actions}
      },
      internalActions: {
        fire: (c, word, why) => {
          c.state.ran.push(word);
          say("fired " + word + " " + why.kind);
        },
        slow: async (c) => {
          say("slow began");
          await new Promise((resolve) => setTimeout(resolve, 60_000));
        },
      },
    });
    const registry = setup({ use: { it }, storage: ${JSON.stringify(folder)} });
    const handle = () => registry.client().it.getOrCreate("k");
    ${body}
    `,
  );
  const child = spawn(process.execPath, [file], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, NODE_ENV: "production", ...env },
  });
  const lines = [];
  let errors = "";
  let heard = () => {};
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    heard();
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    errors += text;
  });
  const ended = once(child, "close").then(([code]) => ({ code, lines, errors }));
  const limit = setTimeout(() => child.kill("SIGKILL"), 20_000);
  ended.then(() => clearTimeout(limit));
  /** Resolves once a line begins with `start`. */
  const line = (start) =>
    new Promise((resolve, reject) => {
      heard = () => {
        if (lines.some((each) => each.startsWith(start))) resolve();
      };
      heard();
      ended.then(() => reject(new Error(`no ${start} among ${lines}\n${errors}`)));
    });
  return { child, lines, line, ended };
}

const STAYS = "setInterval(() => {}, 1_000);";

describe("a program that only sets up", () => {
  it("runs what was due while none ran, with nobody to call", async () => {
    const folder = await newFolder();
    const first = await program(folder, `await handle().later(800, "x"); process.exit(0);`);
    assert.deepEqual(await first.ended, { code: 0, lines: [], errors: "" });

    const second = await program(folder, STAYS);
    await second.line("fired x at");

    second.child.kill("SIGKILL");
    await second.ended;
    assert.deepEqual(second.lines, ["fired x at"]);
  });

  it("opens nothing where there is no store, nor where it waits for a call, as in tests and builds", async () => {
    const folder = await newFolder();
    // Due by the time that the others look.
    const first = await program(folder, `await handle().later(400, "x"); process.exit(0);`);
    assert.deepEqual((await first.ended).lines, []);
    const look = `
      import { setTimeout } from "node:timers/promises";
      await setTimeout(800);
      say("looked");
      process.exit(0);
    `;

    for (const env of [
      { GREENROOM_OPENS: "call" },
      { NODE_ENV: "test" },
      { NODE_ENV: "production", NEXT_PHASE: "phase-production-build" },
    ]) {
      const waits = await program(folder, look, { env });
      assert.deepEqual((await waits.ended).lines, ["looked"], JSON.stringify(env));
    }
    const asked = await program(folder, STAYS, {
      env: { NODE_ENV: "test", GREENROOM_OPENS: "start" },
    });
    await asked.line("fired x at");
    asked.child.kill("SIGKILL");
    await asked.ended;
    const empty = await program(join(folder, "none"), `${look}`);

    assert.deepEqual((await empty.ended).lines, ["looked"]);
  });

  it("ends when it has nothing else to do, whatever is pending", async () => {
    const folder = await newFolder();
    const first = await program(folder, `await handle().later(3_600_000, "x");`);
    assert.equal((await first.ended).code, 0);

    const second = await program(folder, "");

    assert.deepEqual(await second.ended, { code: 0, lines: [], errors: "" });
  });

  it("says so and goes on when another process has the folder, and calls wait for it", async () => {
    const folder = await newFolder();
    const owner = await program(folder, `await handle().ran(); say("open"); ${STAYS}`);
    await owner.line("open");
    const other = await program(
      folder,
      `
      const { setTimeout } = await import("node:timers/promises");
      await setTimeout(400);
      say("calls");
      say(JSON.stringify(await handle().ran()));
      process.exit(0);
      `,
    );
    await other.line("calls");
    owner.child.kill("SIGKILL");

    const { code, lines } = await other.ended;

    assert.deepEqual([code, lines], [0, ["calls", "[]"]]);
    await owner.ended;
  });
});

describe("a process that is killed", () => {
  it("while an action of a one-shot runs leaves it dead, as interrupted", async () => {
    const folder = await newFolder();
    const first = await program(folder, `await handle().begin(); ${STAYS}`, {
      actions: `begin: (c) => c.schedule.after(0, "slow"),`,
    });
    await first.line("slow began");
    first.child.kill("SIGKILL");
    await first.ended;

    const second = await program(
      folder,
      `const [dead] = await handle().dead();
       say([dead.action, dead.attempts, dead.error.group, dead.error.code].join(" "));
       process.exit(0);`,
    );

    assert.deepEqual((await second.ended).lines, ["slow 1 schedule interrupted"]);
  });

  it("again and again, runs each one-shot at most once and loses none", async () => {
    const folder = await newFolder();
    const make = await program(folder, `await handle().often(200); process.exit(0);`);
    await make.ended;
    for (let round = 0; round < 5; round += 1) {
      const some = await program(folder, STAYS);
      await Promise.race([some.line("fired"), some.ended, pause(400)]).catch(() => {});
      await pause(round * 3);
      some.child.kill("SIGKILL");
      await some.ended;
    }

    const last = await program(
      folder,
      `
      const { setTimeout } = await import("node:timers/promises");
      const seen = async () => [await handle().ran(), await handle().dead()];
      for (let n = 0; n < 200; n += 1) {
        const [ran, dead] = await seen();
        if (new Set([...ran, ...dead.map((each) => each.args[0])]).size >= 200) break;
        await setTimeout(20);
      }
      const [ran, dead] = await seen();
      const either = new Set([...ran, ...dead.map((each) => each.args[0])]);
      say(JSON.stringify([ran.length - new Set(ran).size, either.size]));
      process.exit(0);
      `,
    );

    const { lines, errors } = await last.ended;
    const result = lines.find((line) => line.startsWith("["));
    // One that was interrupted may have stored what it did, a commit before its end.
    assert.equal(result, "[0,200]", errors);
  });
});

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
