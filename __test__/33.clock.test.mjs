// `c.now` and `c.clock`: the runtime's clock in an author's hands.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { getEventListeners } from "node:events";
import { describe, it } from "node:test";

import { actor } from "../dist/index.js";
import { deferred, inMemory, until } from "./support/registry.mjs";

const DAY = 24 * 60 * 60 * 1_000;

/** Longer than any test. */
const LONG = 60 * DAY;

const abortedError = { group: "actor", code: "aborted" };

/** An actor that runs what a test hands it. */
function runner(config = {}) {
  const given = { body: undefined };
  const definition = actor({
    ...config,
    actions: { run: (c) => given.body(c), ping: () => "pong" },
  });
  const registry = inMemory({ runner: definition });
  const handle = registry.client().runner.getOrCreate("a");
  return {
    registry,
    handle,
    run(body, signal) {
      given.body = body;
      return handle.action({ name: "run", args: [], ...(signal && { signal }) });
    },
  };
}

/** Whether a promise is still open after some turns of the loop. */
async function isOpen(promise) {
  const open = Symbol("open");
  const soon = new Promise((resolve) => setTimeout(resolve, 10, open));
  return (await Promise.race([promise, soon])) === open;
}

describe("c.now", () => {
  it("is the time in milliseconds since the epoch, and that of the clock", async () => {
    const { run } = runner();
    const before = Date.now();

    const [now, same] = await run((c) => [c.now, c.clock.now()]);

    assert.ok(Number.isInteger(now));
    assert.ok(now >= before && now <= Date.now(), `${before} ${now}`);
    assert.ok(same - now < 1_000);
  });

  it("still tells the time when the actor has stopped", async () => {
    const { run, registry, handle } = runner();
    let kept;
    await run((c) => {
      kept = c;
    });
    await registry.actor(handle).sleep();
    const before = Date.now();

    assert.ok(kept.now >= before && kept.now <= Date.now());
  });
});

describe("c.clock.sleep()", () => {
  it("refuses what is no number of milliseconds, never synchronously", async () => {
    const { run } = runner();
    const cases = [[Number.NaN], ["5"], [undefined], [null], [5n]];
    cases.push([5, { signal: {} }], [5, { until: 6 }], [5, null], [5, 6]);

    for (const args of cases) {
      await run(async (c) => {
        const sleep = c.clock.sleep(...args);
        await assert.rejects(sleep, {
          name: "TypeError",
          group: "actor",
          code: "invalid_argument",
        });
      });
    }
  });

  it("resolves when the time has passed, and not before", async () => {
    const { run } = runner();

    const passed = await run(async (c) => {
      const before = c.now;
      await c.clock.sleep(5);
      return c.now - before;
    });

    assert.ok(passed >= 5, `only ${passed} ms`);
  });

  it("takes 0 and less as due at once, and lets the loop turn all the same", async () => {
    const { run } = runner();

    const turned = await run(async (c) => {
      let over = false;
      setTimeout(() => {
        over = true;
      }, 1);
      let times = 0;
      for (; !over; times += 1) await c.clock.sleep(times % 2 === 0 ? 0 : -1_000);
      await c.clock.sleep(-Infinity);
      return times;
    });

    assert.ok(turned > 0);
  });

  it("sleeps for longer than a timer of JavaScript could", async () => {
    const { run } = runner();
    for (const ms of [2 ** 31, LONG, 1e15, Infinity]) {
      const controller = new AbortController();
      const slept = run((c) => c.clock.sleep(ms, { signal: controller.signal }));
      slept.catch(() => {});

      assert.equal(await isOpen(slept), true, `${ms} ms`);

      controller.abort();
      await assert.rejects(slept);
    }
  });

  it("rejects with the reason of its signal at once, and lets go of it", async () => {
    const { run } = runner();
    const controller = new AbortController();
    const { signal } = controller;
    const reason = new Error("enough");
    const slept = run(async (c) => {
      await assert.rejects(c.clock.sleep(LONG, { signal }), reason);
      await assert.rejects(c.clock.sleep(LONG, { signal }), reason);
      return "told";
    });
    await until(() => getEventListeners(signal, "abort").length === 1, "it listens");

    controller.abort(reason);

    assert.equal(await slept, "told");
    assert.equal(getEventListeners(signal, "abort").length, 0);
    const other = new AbortController();
    await run((c) => c.clock.sleep(1, { signal: other.signal }));
    assert.equal(getEventListeners(other.signal, "abort").length, 0);
  });

  it("in an action ends with actor.aborted when the actor begins to stop", async () => {
    const { run, registry, handle } = runner();
    const begun = deferred();
    const slept = run((c) => {
      begun.resolve();
      return c.clock.sleep(LONG);
    });
    slept.catch(() => {});
    await begun.promise;

    await registry.actor(handle).sleep();

    await assert.rejects(slept, abortedError);
    assert.equal(await handle.ping(), "pong");
  });

  it("in an action ends when the call takes too long", async () => {
    const seen = [];
    const { run } = runner({ options: { actionTimeout: 20 } });
    const sleeps = (c) => c.clock.sleep(LONG).catch((error) => seen.push(error));

    // On a machine that is busy a call may time out before it begins.
    for (const end = Date.now() + 5_000; seen.length === 0 && Date.now() < end; ) {
      await assert.rejects(run(sleeps), { code: "action_timed_out" });
      await new Promise((resolve) => setTimeout(resolve, 1));
    }

    assert.equal(seen[0].group, "actor");
    assert.equal(seen[0].code, "aborted");
    assert.match(seen[0].message, /nobody waits for the call/);
  });

  it("in an action ends when the call is given up", async (t) => {
    const { run, handle } = runner();
    // A call that was given up holds the process no longer, and may end only after that.
    const held = setInterval(() => {}, 60_000);
    t.after(() => clearInterval(held));
    const begun = deferred();
    const ended = deferred();
    const controller = new AbortController();
    const { signal } = controller;
    const body = (c) => {
      begun.resolve();
      return c.clock.sleep(LONG).catch(ended.resolve);
    };
    const given = run(body, signal);
    given.catch(() => {});
    await begun.promise;

    controller.abort(new Error("no more"));

    await assert.rejects(given, { message: "no more" });
    assert.equal((await ended.promise).code, "aborted");
    assert.equal(await handle.ping(), "pong");
  });

  it("in run ends it as a stop does: no failure, and the actor sleeps at once", async () => {
    const lines = [];
    const began = [];
    const loops = actor({
      run: async (c) => {
        began.push(c.now);
        while (true) await c.clock.sleep(LONG);
      },
      actions: { ping: () => "pong" },
    });
    const registry = inMemory(
      { loops },
      { logging: { level: "warn", sink: (line) => lines.push(line) } },
    );
    const handle = registry.client().loops.getOrCreate("a");
    await handle.ping();
    await until(() => began.length === 1, "it runs");
    const before = performance.now();

    await registry.actor(handle).sleep();

    assert.ok(performance.now() - before < 5_000, "the grace period was used up");
    assert.deepEqual(lines, []);
    await handle.ping();
    await until(() => began.length === 2, "it runs again");
  });

  it("begun after the stop in run is refused after a turn, so that a loop over it starves nobody", async () => {
    let refused = 0;
    let loop = true;
    const loops = actor({
      run: async (c) => {
        while (loop) await c.clock.sleep(LONG).catch(() => (refused += 1));
      },
      options: { sleepGracePeriod: 30 },
      actions: { ping: () => "pong" },
    });
    const registry = inMemory({ loops });
    const handle = registry.client().loops.getOrCreate("a");
    await handle.ping();

    await registry.actor(handle).sleep();
    assert.ok(refused > 0);
    const before = refused;
    await until(() => refused > before, "it is refused also when the actor has stopped");
    const then = refused;
    await new Promise((resolve) => setTimeout(resolve, 20));
    loop = false;
    assert.ok(
      refused - then < 10,
      `refused ${refused - then} times in 20 ms: nothing slows it down`,
    );
  });

  it("works in onSleep, whose actor has begun to stop", async () => {
    const told = [];
    const tidy = actor({
      onSleep: async (c) => {
        await c.clock.sleep(2);
        told.push(c.aborted);
      },
      actions: { ping: () => "pong" },
    });
    const registry = inMemory({ tidy });
    const handle = registry.client().tidy.getOrCreate("a");
    await handle.ping();

    await registry.actor(handle).sleep();

    assert.deepEqual(told, [true]);
  });

  it("works in every hook of a start", async () => {
    const told = [];
    const nap = (name) => async (c) => {
      await c.clock.sleep(1);
      told.push(name);
      return {};
    };
    const starts = actor({
      onMigrate: nap("onMigrate"),
      createState: nap("createState"),
      onCreate: nap("onCreate"),
      createVars: nap("createVars"),
      onWake: nap("onWake"),
      actions: { ping: () => "pong" },
    });
    const handle = inMemory({ starts }).client().starts.getOrCreate("a");

    await handle.ping();

    assert.deepEqual(told, ["onMigrate", "createState", "onCreate", "createVars", "onWake"]);
  });

  it("does not keep the actor awake, and ends with it", async () => {
    const { run, registry, handle } = runner({ options: { sleepTimeout: 10 } });
    let floating;
    await run((c) => {
      floating = c.clock.sleep(LONG);
      floating.catch(() => {});
    });

    await until(async () => !(await registry.actor(handle).info()).awake, "it sleeps");

    await assert.rejects(floating, abortedError);
  });

  it("ends with a generation that breaks", async () => {
    const spoilt = actor({
      state: { kept: new Map() },
      actions: {
        sleep: (c) => c.clock.sleep(LONG),
        spoil: (c) => {
          c.state.kept.set("f", () => {});
        },
      },
    });
    const handle = inMemory({ spoilt }).client().spoilt.getOrCreate("a");
    const slept = handle.sleep();
    slept.catch(() => {});

    await assert.rejects(handle.spoil(), { code: "state_not_storable" });

    await assert.rejects(slept, { code: "state_not_storable" });
  });
});

describe("a sleep and the end of the process", () => {
  function program(config, rest) {
    const source = `
      import { actor, setup } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url))};
      const sleeper = actor(${config});
      const registry = setup({ use: { sleeper }, storage: ":memory:" });
      const handle = registry.client().sleeper.getOrCreate("a");
      ${rest}`;
    const began = Date.now();
    const args = ["--input-type=module", "-e", source];
    const { status, stdout } = spawnSync(process.execPath, args, {
      encoding: "utf8",
      timeout: 20_000,
    });
    return { status, stdout, took: Date.now() - began };
  }

  for (const way of ["the ordinary way", "in place"]) {
    it(`in an action that somebody awaits hold it: ${way}`, () => {
      const { status, stdout } = program(
        "{ actions: { nap: (c) => c.clock.sleep(50), ping() {} } }",
        `${way === "in place" ? "await handle.ping();" : ""} await handle.nap(); console.log("awake");`,
      );

      assert.deepEqual([status, stdout], [0, "awake\n"]);
    });
  }

  it("in run do not hold it, as run itself does not", () => {
    const { status, stdout, took } = program(
      "{ run: (c) => c.clock.sleep(1e6), actions: { ping() {} } }",
      `await handle.ping(); console.log("done");`,
    );

    assert.deepEqual([status, stdout], [0, "done\n"]);
    assert.ok(took < 15_000);
  });
});
