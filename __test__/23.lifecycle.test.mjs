import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor } from "../dist/index.js";
import { deferred, inFolder, inMemory, newFolder, schema, until } from "./support/registry.mjs";

/** An actor that notes the order of its hooks. */
function noting(order, more = {}) {
  const note = (name) => (c) => {
    order.push(name);
    return c.name;
  };
  return actor({
    createState: (c, input) => {
      order.push("createState");
      return { input, id: c.actorId };
    },
    createVars: (c) => {
      order.push("createVars");
      return { fromState: c.state.input };
    },
    onMigrate: (_c, isNew) => order.push(`onMigrate ${isNew}`),
    onCreate: (c, input) => order.push(`onCreate ${input} ${c.state.input}`),
    onWake: note("onWake"),
    onSleep: note("onSleep"),
    onDestroy: note("onDestroy"),
    run: note("run"),
    actions: {
      vars: (c) => c.vars,
      state: (c) => c.state,
      sleep: (c) => c.sleep(),
      destroy: (c) => c.destroy(),
    },
    ...more,
  });
}

describe("a state that changes while its actor stops", () => {
  for (const durability of ["reply", "interval"]) {
    it(`is kept or refused, with durability ${durability}`, async () => {
      const codes = new Set();
      let kept = 0;
      const busy = actor({
        state: { n: 0 },
        onSleep: () => new Promise((resolve) => setTimeout(resolve, 10)),
        actions: {
          // Each turn of the loop changes the state until it is refused.
          go: (c) => {
            const tick = () => {
              try {
                c.state.n += 1;
                kept = c.state.n;
                setImmediate(tick);
              } catch (error) {
                codes.add(`${error.group}.${error.code}`);
              }
            };
            tick();
          },
          read: (c) => c.state.n,
        },
        options: { durability, stateSaveInterval: 2 },
      });
      const registry = inFolder(await newFolder(), { busy });
      const handle = registry.client().busy.getOrCreate();
      for (let round = 0; round < 10; round += 1) {
        await handle.go();
        await registry.actor(handle).sleep();

        assert.equal(await handle.read(), kept);
      }
      // Which of the two depends on whether the loop turned between the last save and the end.
      assert.ok(codes.size > 0);
      for (const code of codes) assert.match(code, /^actor\.(stopping|stopped)$/);
    });
  }
});

describe("starting", () => {
  it("fails for whoever waits when a hook throws, naming the hook, and is tried again", async () => {
    for (const hook of ["createState", "onCreate", "createVars", "onWake", "onMigrate"]) {
      let fails = true;
      const flaky = actor({
        ...(hook === "createState" ? {} : { state: {} }),
        [hook]: () => {
          if (fails) throw new Error(`${hook} failed`);
          return {};
        },
        actions: { ok: () => "ok" },
      });
      const handle = inMemory({ flaky }).client().flaky.getOrCreate();

      await assert.rejects(handle.ok(), { message: `${hook} failed`, code: "internal_error" });
      fails = false;
      assert.equal(await handle.ok(), "ok");
    }
  });

  it("refuses sleep and destroy", async () => {
    const errors = [];
    const eager = actor({
      state: {},
      onCreate: (c) => {
        for (const stop of ["sleep", "destroy"]) {
          try {
            c[stop]();
          } catch (error) {
            errors.push(`${error.group}.${error.code}`);
          }
        }
      },
      actions: { ok: () => true },
    });
    await inMemory({ eager }).client().eager.getOrCreate().ok();

    assert.deepEqual(errors, ["actor.starting", "actor.starting"]);
  });

  it("refuses an input that its schema refuses, before the actor exists", async () => {
    const checked = actor({
      inputSchema: schema(async (value) => {
        if (typeof value !== "number") throw new Error("a number, please");
        return value + 1;
      }),
      createState: (_c, input) => ({ input }),
      onCreate: (c, input) => {
        c.state.again = input;
      },
      actions: { state: (c) => c.state },
    });
    const { checked: actors } = inMemory({ checked }).client();
    const expected = { code: "validation_error", message: "Invalid input", public: true };

    await assert.rejects(actors.create("a", { input: "x" }), expected);
    await assert.rejects(actors.getOrCreate("a", { createWithInput: "x" }).state(), expected);
    await assert.rejects(actors.get("a").state(), { code: "not_found" });
    await assert.rejects(actors.getOrCreate("none").state(), expected);
    const made = await actors.create("a", { input: 1 });
    assert.deepEqual(await made.state(), { input: 2, again: 2 });
  });

  it("runs the hooks in order, once each", async () => {
    const order = [];
    const registry = inMemory({ life: noting(order) });
    const handle = registry.client().life.getOrCreate("k", { createWithInput: "in" });

    assert.deepEqual(await handle.vars(), { fromState: "in" });
    assert.deepEqual(order, [
      "onMigrate true",
      "createState",
      "onCreate in in",
      "createVars",
      "onWake",
      "run",
    ]);
    order.length = 0;
    await registry.actor(handle).sleep();
    assert.deepEqual(order, ["onSleep"]);
    order.length = 0;
    assert.equal((await handle.state()).input, "in");
    assert.deepEqual(order, ["onMigrate false", "createVars", "onWake", "run"]);
    order.length = 0;
    assert.equal(await registry.actor(handle).destroy(), true);
    assert.deepEqual(order, ["onDestroy"]);
  });

  it("gives createVars the deps, and each actor its own copy of a literal", async () => {
    const dep = { open: true };
    const registry = inMemory(
      {
        one: actor({
          createVars: (_c, deps) => ({ deps }),
          actions: { same: (c) => c.vars.deps === dep },
        }),
        two: actor({ vars: { list: [] }, actions: { push: (c) => c.vars.list.push(1) } }),
        three: actor({ actions: { read: (c) => c.vars, write: (c) => (c.vars = 3) } }),
      },
      { deps: dep },
    );
    const { one, two, three } = registry.client();

    assert.equal(await one.getOrCreate().same(), true);
    assert.equal(await two.getOrCreate("a").push(), 1);
    assert.equal(await two.getOrCreate("b").push(), 1);
    assert.equal(await three.getOrCreate().read(), undefined);
    await three.getOrCreate().write();
    assert.equal(await three.getOrCreate().read(), 3);
  });

  it("keeps what hooks change in the state", async () => {
    const folder = await newFolder();
    const count = actor({
      state: { created: 0, woken: 0, slept: 0 },
      onCreate: (c) => {
        c.state.created += 1;
      },
      onWake: (c) => {
        c.state.woken += 1;
      },
      onSleep: async (c) => {
        await null;
        c.state.slept += 1;
      },
      actions: { read: (c) => c.state },
    });
    const first = inFolder(folder, { count });
    await first.client().count.getOrCreate().read();
    await first.shutdown();

    const second = inFolder(folder, { count });
    assert.deepEqual(await second.client().count.get().read(), { created: 1, woken: 2, slept: 1 });
  });
});

describe("an actor at work", () => {
  it("stays awake for keepAwake, and its end waits for waitUntil", async () => {
    const order = [];
    const gates = { awake: deferred(), until: deferred() };
    const busy = actor({
      state: {},
      actions: {
        work: (c) => {
          assert.equal(c.keepAwake(gates.awake.promise), gates.awake.promise);
          c.waitUntil(gates.until.promise.then(() => order.push("waited")));
        },
      },
      onSleep: () => order.push("onSleep"),
      options: { sleepTimeout: 20 },
    });
    const registry = inMemory({ busy });
    const handle = registry.client().busy.getOrCreate();
    await handle.work();
    const { holds, awake } = await registry.actor(handle).info();

    assert.equal(awake, true);
    assert.ok(holds.length > 0);
    await new Promise((resolve) => setTimeout(resolve, 80));
    assert.equal((await registry.actor(handle).info()).awake, true);
    gates.awake.resolve();
    await until(() => order.includes("onSleep"), "it goes to sleep");
    gates.until.resolve();
    await until(async () => !(await registry.actor(handle).info()).awake, "it sleeps");
    assert.deepEqual(order, ["onSleep", "waited"]);
  });

  it("survives rejections of what it was given to wait for, and logs the second", async () => {
    const lines = [];
    const fragile = actor({
      state: {},
      actions: {
        go: (c) => {
          c.keepAwake(Promise.reject(new Error("a"))).catch(() => {});
          c.waitUntil(Promise.reject(new Error("b")));
          return "alive";
        },
        wrong: (c) => c.waitUntil(5),
      },
    });
    const registry = inMemory(
      { fragile },
      { logging: { level: "error", sink: (line) => lines.push(line) } },
    );
    const handle = registry.client().fragile.getOrCreate();

    assert.equal(await handle.go(), "alive");
    await assert.rejects(handle.wrong(), { message: "waitUntil takes a promise" });
    await until(() => lines.length === 1, "one line");
    assert.equal(lines[0].err.message, "b");
  });

  it("runs `run` beside its actions until it stops", async () => {
    const seen = [];
    const looping = actor({
      state: { ticks: 0 },
      run: {
        run: async (c) => {
          while (!c.aborted) {
            c.state.ticks += 1;
            await new Promise((resolve) => {
              const timer = setTimeout(resolve, 5);
              c.abortSignal.addEventListener(
                "abort",
                () => {
                  clearTimeout(timer);
                  resolve();
                },
                { once: true },
              );
            });
          }
          seen.push("ended");
        },
      },
      actions: { ticks: (c) => c.state.ticks },
    });
    const registry = inMemory({ looping });
    const handle = registry.client().looping.getOrCreate();

    await until(async () => (await handle.ticks()) > 2, "it ticks");
    await registry.actor(handle).sleep();
    assert.deepEqual(seen, ["ended"]);
  });

  it("sleeps and is destroyed by itself", async () => {
    const order = [];
    const registry = inMemory({ life: noting(order) });
    const handle = registry.client().life.getOrCreate("self");
    await handle.sleep();
    await until(async () => !(await registry.actor(handle).info()).awake, "it sleeps");
    const id = await handle.resolve();
    await handle.destroy();
    await until(
      () =>
        registry
          .actor(id)
          .info()
          .then(
            () => false,
            (error) => error.code === "not_found",
          ),
      "it is gone",
    );

    assert.ok(order.includes("onSleep") && order.includes("onDestroy"));
    assert.notEqual(await handle.resolve(), id);
  });

  it("finds its state closed once it stopped", async () => {
    let kept;
    const leaky = actor({
      state: { n: 0 },
      actions: {
        leak: (c) => {
          kept = c;
        },
      },
    });
    const registry = inMemory({ leaky });
    const handle = registry.client().leaky.getOrCreate();
    await handle.leak();
    await registry.actor(handle).sleep();

    assert.throws(() => (kept.state.n = 1), { group: "actor", code: "stopped" });
    assert.equal(kept.aborted, true);
  });
});
