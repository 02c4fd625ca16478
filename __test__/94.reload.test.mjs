// A folder that is set up again in the same thread, as by a development server.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { actor } from "../dist/index.js";
import { deferred, inFolder, newFolder, until } from "./support/registry.mjs";

const dist = fileURLToPath(new URL("../dist/index.js", import.meta.url));

/** A counter as an author edits it: each version says which it is. */
const counter = (version, more = {}) =>
  actor({
    state: { n: 0 },
    ...more,
    actions: {
      add(c) {
        c.state.n += 1;
        return `${version} ${c.state.n}`;
      },
      ...more.actions,
    },
  });

const handleOf = (registry, key = "a") => registry.client().counter.getOrCreate(key);

/** Lets the eager opening of what was set up again end. */
const joined = (registry) => registry.list();

describe("setup() refuses", () => {
  it("a reload that it does not know", async () => {
    assert.throws(() => inFolder("/nowhere", { counter: counter("a") }, { reload: "later" }), {
      message: 'option reload is "later", not "wake" or "now"',
    });
  });
});

describe("a second setup of a folder", () => {
  it("is taken by an actor that is awake when it wakes the next time", async () => {
    const folder = await newFolder();
    const one = inFolder(folder, { counter: counter("one") });
    assert.equal(await handleOf(one).add(), "one 1");

    const two = inFolder(folder, { counter: counter("two") });
    assert.equal(await handleOf(two).add(), "one 2");
    await two.actor(handleOf(two)).sleep();

    assert.equal(await handleOf(two).add(), "two 3");
  });

  it("replaces the definitions before anybody calls through it", async () => {
    const folder = await newFolder();
    const one = inFolder(folder, { counter: counter("one") });
    await handleOf(one).add();

    const two = inFolder(folder, { counter: counter("two") });
    await joined(two);

    assert.equal(await handleOf(one, "b").add(), "two 1");
  });

  it("leaves the handles of the first one working, which reach what was added", async () => {
    const folder = await newFolder();
    const one = inFolder(folder, { counter: counter("one") });
    const old = handleOf(one);
    await old.add();

    const more = { actions: { added: (c) => c.state.n * 10 } };
    const two = inFolder(folder, { counter: counter("two", more) }, { reload: "now" });
    await joined(two);

    assert.equal(await old.added(), 10);
    assert.equal(await old.add(), "two 2");
    assert.equal(await handleOf(two).add(), "two 3");
  });

  it("wins over an earlier one that is opened after it", async () => {
    const folder = await newFolder();
    const one = inFolder(folder, { counter: counter("one") });
    const two = inFolder(folder, { counter: counter("two") });

    assert.equal(await handleOf(two).add(), "two 1");
    assert.equal(await handleOf(one, "b").add(), "two 1");
  });

  it("keeps what only the first one has, and each reaches the other's actors by name", async () => {
    const folder = await newFolder();
    const room = actor({ actions: { who: () => "room" } });
    const one = inFolder(folder, { counter: counter("one"), room });
    assert.equal(await one.client().room.getOrCreate("r").who(), "room");

    const two = inFolder(folder, { counter: counter("two") }, { reload: "now" });
    assert.equal(await handleOf(two).add(), "two 1");

    assert.equal(await one.client().room.getOrCreate("other").who(), "room");
    assert.equal(await two.client().getOrCreate("room", "r").who(), "room");
  });

  it("takes definitions that another copy of the module made", async () => {
    const require = createRequire(import.meta.url);
    for (const file of Object.keys(require.cache)) {
      if (file.includes("/dist/")) delete require.cache[file];
    }
    const copy = require(dist);
    assert.notEqual(copy.actor, actor);
    const folder = await newFolder();
    const one = inFolder(folder, { counter: counter("one") });
    await handleOf(one).add();

    const config = { state: { n: 0 }, actions: { add: (c) => `copy ${++c.state.n}` } };
    const made = copy.actor(config);
    const two = copy.setup({ use: { counter: made }, storage: folder, reload: "now" });
    assert.equal(await handleOf(two).add(), "copy 2");
    const three = inFolder(folder, { counter: made }, { reload: "now" });

    assert.equal(await handleOf(three).add(), "copy 3");
    await three.shutdown();
    await two.shutdown();
  });

  it("hands what an actor threw to callers of another copy of the module", async () => {
    const require = createRequire(import.meta.url);
    for (const file of Object.keys(require.cache)) {
      if (file.includes("/dist/")) delete require.cache[file];
    }
    const copy = require(dist);
    const folder = await newFolder();
    const thrown = new RangeError("mine");
    const config = {
      actions: {
        boom() {
          throw thrown;
        },
      },
    };
    const one = inFolder(folder, { bomb: actor(config) });
    await assert.rejects(one.client().bomb.getOrCreate().boom(), { cause: thrown });
    const two = copy.setup({ use: { bomb: copy.actor(config) }, storage: folder });
    await joined(two);

    await assert.rejects(two.client().bomb.getOrCreate().boom(), (error) => {
      assert.equal(error.cause, thrown);
      return true;
    });
    await two.shutdown();
  });

  it("warns when it asks for other threads than the folder is open for", async () => {
    const folder = await newFolder();
    const lines = [];
    await handleOf(inFolder(folder, { counter: counter("one") })).add();

    const logging = { level: "warn", sink: (line) => lines.push(line.msg) };
    const two = inFolder(folder, { counter: counter("two") }, { threads: "shared", logging });
    await joined(two);

    assert.deepEqual(lines, [
      `threads of setup() is "shared", but this thread has ${folder} open as "exclusive": start the program again to change it`,
    ]);
  });
});

describe('reload: "now"', () => {
  it("lets calls and onSleep end, keeps the state, and serves the next call by the new code", async () => {
    const folder = await newFolder();
    const gate = deferred();
    const seen = [];
    const old = counter("one", {
      onSleep: (c) => {
        seen.push("slept");
        c.state.n += 100;
      },
      run: async (c) => {
        await new Promise((resolve) => c.abortSignal.addEventListener("abort", resolve));
        seen.push("run ended");
      },
      actions: {
        async slow(c) {
          await gate.promise;
          c.state.n += 10;
          return "finished";
        },
      },
    });
    const one = inFolder(folder, { counter: old });
    await handleOf(one).add();
    const slow = handleOf(one).slow();
    await until(
      async () => (await one.actor(handleOf(one)).info()).holds.length > 0,
      "slow begins",
    );

    const more = { actions: { added: (c) => `added ${c.state.n}` } };
    const two = inFolder(folder, { counter: counter("two", more) }, { reload: "now" });
    await joined(two);
    const next = handleOf(one).add();
    const added = handleOf(two).added();
    gate.resolve();

    assert.equal(await slow, "finished");
    assert.equal(await next, "two 112");
    assert.equal(await added, "added 112");
    assert.deepEqual(seen.sort(), ["run ended", "slept"]);
  });

  it("wakes no actor, and leaves those of other names awake", async () => {
    const folder = await newFolder();
    const room = actor({ actions: { who: () => "room" } });
    const one = inFolder(folder, { counter: counter("one"), room });
    const there = one.client().room.getOrCreate("r");
    await there.who();
    await handleOf(one).add();

    const two = inFolder(folder, { counter: counter("two") }, { reload: "now" });
    await joined(two);
    await until(async () => !(await two.actor(handleOf(two)).info()).awake, "the counter sleeps");

    assert.equal((await two.actor(there).info()).awake, true);
  });
});

describe("shutting down where a folder was set up again", () => {
  it("by the newest puts the actors to sleep, and the one before opens the folder again", async () => {
    const folder = await newFolder();
    const seen = [];
    const one = inFolder(folder, { counter: counter("one") });
    await handleOf(one).add();
    const onSleep = () => void seen.push("slept");
    const two = inFolder(folder, { counter: counter("two", { onSleep }) }, { reload: "now" });
    await handleOf(two).add();

    assert.deepEqual(await two.shutdown(), { drained: 1, notDrained: [] });
    assert.deepEqual(seen, ["slept"]);

    const again = [handleOf(one).add(), handleOf(one, "b").add(), handleOf(one, "c").add()];
    assert.deepEqual(await Promise.all(again), ["one 3", "one 1", "one 1"]);
    assert.equal((await one.shutdown()).drained, 3);
  });

  it("by the one before leaves the newest alone, and refuses its own handles", async () => {
    const folder = await newFolder();
    const one = inFolder(folder, { counter: counter("one") });
    await handleOf(one).add();
    const two = inFolder(folder, { counter: counter("two") });
    await joined(two);

    assert.deepEqual(await one.shutdown(), { drained: 0, notDrained: [] });

    await assert.rejects(handleOf(one).add(), { group: "registry", code: "shut_down" });
    assert.equal(await handleOf(two).add(), "one 2");
  });

  it("leaves the actors of a registry that was shut down able to call, while others stay", async () => {
    const folder = await newFolder();
    const asker = actor({ actions: { ask: (c) => c.client().counter.getOrCreate("a").add() } });
    const one = inFolder(folder, { counter: counter("one"), asker });
    const two = inFolder(folder, { other: counter("two") });
    await two.client().other.getOrCreate("x").add();
    await one.client().asker.getOrCreate("b").ask();

    await one.shutdown();

    assert.equal(await two.client().getOrCreate("asker", "b").ask(), "one 2");
  });
});

/** Runs a program that has `actor`, `setup` and an empty `folder`; gives how it ended. */
async function program(code, ...flags) {
  const folder = mkdtempSync(join(tmpdir(), "greenroom-reload-"));
  const source = `
    const { actor, setup } = require(${JSON.stringify(dist)});
    const folder = ${JSON.stringify(folder)};
    (async () => { ${code} })();`;
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [
      ...flags,
      "-e",
      source,
    ]).catch((error) => error);
    return { stdout, stderr };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

describe("a program that is set up again and again", () => {
  it("listens to each signal once, and drains what runs by then before it ends by the signal", async () => {
    const { stdout, stderr } = await program(`
      const make = (n) => setup({
        storage: folder,
        reload: "now",
        use: { one: actor({ onSleep: () => console.log("slept " + n), actions: { hi: () => n } }) },
      });
      const first = make(0);
      first.drainOnSignals();
      await first.client().one.getOrCreate("a").hi();
      let last = first;
      for (let n = 1; n <= 20; n++) {
        last = make(n);
        if (n % 2) last.drainOnSignals();
        await last.list();
      }
      await last.client().one.getOrCreate("a").hi();
      console.log(process.listenerCount("SIGTERM"));
      process.on("exit", () => console.log("not by the signal"));
      process.kill(process.pid, "SIGTERM");
      setTimeout(() => {}, 60_000);`);

    assert.equal(stderr, "");
    assert.deepEqual(stdout.trim().split("\n"), ["slept 0", "1", "slept 20"]);
  });

  it("keeps no registry, no definition and no folder of those that were replaced", async () => {
    const { stdout, stderr } = await program(
      `
      const { factoryOf } = require(${JSON.stringify(join(dist, "..", "native", "factory.js"))});
      const fds = () => require("node:fs").readdirSync("/proc/self/fd").length;
      let freed = 0;
      const registryGone = new FinalizationRegistry(() => { freed += 1; });
      const reload = async (n) => {
        const bulk = new Array(50_000).fill(n);
        const one = actor({ state: {}, actions: { hi: () => bulk.length } });
        const registry = setup({ storage: folder, reload: "now", use: { one } });
        registry.drainOnSignals();
        registryGone.register(registry);
        await registry.client().one.getOrCreate("a").hi();
      };
      const settled = async () => {
        for (let i = 0; i < 20; i++) {
          await new Promise((resolve) => setTimeout(resolve, 5));
          gc();
        }
        return process.memoryUsage().heapUsed / 2 ** 20;
      };
      for (let n = 0; n < 20; n++) await reload(n);
      const [heap, open] = [await settled(), fds()];
      for (let n = 0; n < 200; n++) await reload(n);
      const grown = (await settled()) - heap;
      let factories = 0;
      for (let n = 0; n < 10_000; n++) if (factoryOf(n)) factories += 1;
      console.log(JSON.stringify({ freed, factories, fds: fds() - open, grown }));
      process.exit();`,
      "--expose-gc",
    );

    assert.equal(stderr, "");
    const { freed, factories, fds, grown } = JSON.parse(stdout);
    assert.ok(freed >= 218, `${freed} of 219 registries were freed`);
    assert.deepEqual({ factories, fds }, { factories: 1, fds: 0 });
    // Each keeps 400 KB; all of them would be 80 MB.
    assert.ok(grown < 2, `the heap grew by ${grown.toFixed(1)} MiB`);
  });
});
