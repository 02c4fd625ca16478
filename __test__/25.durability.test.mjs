import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

import { actor } from "../dist/index.js";
import { inMemory, newFolder, until } from "./support/registry.mjs";

const relay = fileURLToPath(new URL("support/relay.mjs", import.meta.url));
const program = fileURLToPath(new URL("support/durable.mjs", import.meta.url));

/** Runs the program on a folder; with durability interval nothing is saved before ten minutes. */
function run(folder, durability, ...steps) {
  return runWith({}, folder, durability, ...steps);
}

function runWith(env, folder, durability, ...steps) {
  return start(program, env, folder, durability, ...steps);
}

function start(file, env, ...args) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [file, ...args], {
      env: { ...process.env, ...env },
    });
    let out = "";
    let err = "";
    child.stdout.on("data", (data) => (out += data));
    child.stderr.on("data", (data) => (err += data));
    child.on("close", (code, signal) => {
      resolve({ code, signal, said: out.split("\n").filter(Boolean).map(Number), err });
    });
  });
}

describe("what was acknowledged survives kill -9", () => {
  const kept = {
    "an answer, with durability reply": ["reply", ["add", "add", "add", "kill"], 3],
    "a read that saw a change which nobody waited for": [
      "reply",
      ["read", "unawaited", "read", "kill"],
      1,
    ],
    "saveState()": ["interval", ["save-now", "kill"], 1],
    "saveState with a deadline": ["interval", ["save-soon", "kill"], 1],
    "flush(), with durability reply": ["reply", ["flush", "kill"], 1],
    "saveState(), with durability reply": ["reply", ["save", "save-soon", "save-now", "kill"], 3],
  };
  for (const [name, [durability, steps, expected]] of Object.entries(kept)) {
    it(name, async () => {
      const folder = await newFolder();
      const { signal, said } = await run(folder, durability, ...steps);
      assert.equal(signal, "SIGKILL");
      assert.equal(said.at(-1), expected);

      assert.deepEqual((await run(folder, durability, "read")).said, [expected]);
    });
  }

  for (const durability of ["reply", "interval"]) {
    for (const step of ["late-flush", "late-save"]) {
      it(`a change of a map after an await: ${step}, with durability ${durability}`, async () => {
        const folder = await newFolder();
        const { signal, said, err } = await run(folder, durability, step);
        assert.deepEqual([signal, said, err], ["SIGKILL", [1], ""]);

        assert.deepEqual((await run(folder, durability, "size")).said, [1]);
      });
    }
  }

  it("a map that was changed back while the change was on its way", async () => {
    const folder = await newFolder();
    const { signal, said } = await run(folder, "reply", "back");
    assert.deepEqual([signal, said], ["SIGKILL", [0]]);

    assert.deepEqual((await run(folder, "reply", "size")).said, [0]);
  });

  it("and with durability interval an answer alone is no promise", async () => {
    const folder = await newFolder();
    assert.deepEqual((await run(folder, "interval", "add", "add", "kill")).said, [1, 2]);

    assert.deepEqual((await run(folder, "interval", "read")).said, [0]);
  });
});

describe("a call of an actor to another one", () => {
  it("leaves when what its caller changed before is durable", async () => {
    const folder = await newFolder();
    const { signal } = await start(relay, {}, folder, "send");
    assert.equal(signal, "SIGKILL");

    assert.deepEqual((await start(relay, {}, folder, "read")).said, [1, 1]);
  });

  const log = actor({
    state: { seen: [] },
    actions: {
      note: (c, what) => {
        c.state.seen.push(what.name ?? what);
      },
      read: (c) => c.state.seen,
    },
  });

  it("keeps its order and carries what its arguments were when it was made", async () => {
    const source = actor({
      state: { n: 0 },
      actions: {
        pass: async (c) => {
          const to = c.client().log.getOrCreate("k");
          await to.read();
          const calls = [to.note("a")];
          c.state.n += 1;
          const what = { name: "b" };
          calls.push(to.note(what));
          what.name = "changed";
          calls.push(to.note("c"));
          await c.flush();
          calls.push(c.client().log.getOrCreate("k").note("d"));
          await Promise.all(calls);
          return to.read();
        },
      },
    });
    const client = inMemory({ log, source }).client();
    assert.deepEqual(await client.source.getOrCreate("k").pass(), ["a", "b", "c", "d"]);
  });

  for (const hook of ["onCreate", "onWake", "onSleep", "run"]) {
    it(`also leaves from ${hook}`, { timeout: 5_000 }, async () => {
      const source = actor({
        state: { n: 0 },
        [hook]: async (c) => {
          c.state.n += 1;
          await c.client().log.getOrCreate("k").note(hook);
        },
        actions: { wake: () => {} },
      });
      const registry = inMemory({ log, source });
      const client = registry.client();
      const handle = client.source.getOrCreate("k");
      await handle.wake();
      if (hook === "onSleep") await registry.actor(handle).sleep();
      await until(async () => (await client.log.getOrCreate("k").read()).length === 1, hook);
    });
  }

  it("to itself does not wait", async () => {
    const own = actor({
      state: { n: 0 },
      actions: {
        outer: (c) => {
          c.state.n += 1;
          return c.client().own.getOrCreate("k").inner();
        },
        inner: (c) => c.state.n,
      },
    });
    assert.equal(await inMemory({ own }).client().own.getOrCreate("k").outer(), 1);
  });
});

describe("what changed survives a clean end", () => {
  for (const durability of ["reply", "interval"]) {
    it(`by running out of work, with durability ${durability}`, async () => {
      const folder = await newFolder();
      // What is dirty holds the process until it is saved.
      const env = { SAVE_INTERVAL: "300" };
      const { code, err } = await runWith(env, folder, durability, "add", "add", "unawaited");
      assert.deepEqual([code, err], [0, ""]);

      assert.deepEqual((await run(folder, durability, "read")).said, [3]);
    });

    for (const end of ["shutdown", "exit"]) {
      it(`by ${end}, what a timer changed in a map, with durability ${durability}`, async () => {
        const folder = await newFolder();
        await run(folder, durability, "timed", end);

        assert.deepEqual((await run(folder, durability, "size")).said, [1]);
      });
    }

    it(`by process.exit(), with durability ${durability}`, async () => {
      const folder = await newFolder();
      await run(folder, durability, "add", "add", "exit");

      assert.deepEqual((await run(folder, durability, "read")).said, [2]);
    });

    it(`by shutdown(), with durability ${durability}`, async () => {
      const folder = await newFolder();
      const { said } = await run(folder, durability, "add", "shutdown", "kill");
      assert.deepEqual(said, [1, 1]);

      assert.deepEqual((await run(folder, durability, "read")).said, [1]);
    });
  }
});

describe("saveState", () => {
  const saver = actor({
    state: { n: 0 },
    actions: {
      save: (c, options) => c.saveState(options),
      code: (c, options) => c.saveState(options).catch(({ group, code }) => `${group}.${code}`),
      flush: (c) => c.flush(),
    },
  });
  const handle = inMemory({ saver }).client().saver.getOrCreate();

  it("refuses a time that is none", async () => {
    await assert.rejects(handle.save({ maxWait: "soon" }), {
      message: /maxWait of saveState is soon/,
    });
    await assert.rejects(handle.save({ maxWait: -1 }), { message: /maxWait of saveState is -1/ });
    await assert.rejects(handle.save({ immedate: true }), {
      message: 'unknown key "immedate" of options of saveState(): did you mean "immediate"?',
    });
    assert.equal(await handle.code({ immedate: true }), "actor.invalid_argument");
  });

  it("resolves when nothing changed", async () => {
    assert.equal(await handle.save(), undefined);
    assert.equal(await handle.flush(), undefined);
  });
});
