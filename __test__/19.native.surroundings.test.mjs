// What surrounds the runtime in its thread: false timers, slow functions, copies of itself, listeners.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { describe, it, mock } from "node:test";

import { actor, setup } from "../dist/index.js";
import { factoryOf } from "../dist/native/factory.js";
import { dispatch, folder, none, numbers, script, actor as target } from "./support/native.mjs";

const open = (t, use, storage = ":memory:") => {
  const registry = setup({ use, storage, logging: { level: "silent" } });
  t.after(() => registry.shutdown({ deadline: 500 }));
  return registry;
};

describe("false timers", () => {
  it("stop neither the queue nor the turns of the runtime", async (t) => {
    const host = await dispatch.openHost();
    t.after(() => host.shutdown(200));
    host.register("counter", numbers());
    const a = target("counter", "a");
    await host.submit(a, "add", none, 2);
    mock.timers.enable();
    let answer;
    try {
      answer = await host.submit(a, "add", none, 2);
    } finally {
      mock.timers.reset();
    }

    assert.equal(Buffer.from(answer).toString(), "2");
    assert.equal(Buffer.from(await host.submit(a, "add", none, 2)).toString(), "3");
  });

  /** A life with everything that waits for a turn of the loop, a time or a commit. */
  const life = `
    const told = [];
    const parent = actor({ state: { n: 0 }, actions: { go: async (c) => {
      c.state.n += 1;
      return c.client().child.getOrCreate("b").add();
    } } });
    const child = actor({
      state: { n: 0 },
      onStateChange: (_c, state) => told.push(state.n),
      onSleep: () => told.push("slept"),
      actions: {
        add: (c) => ++c.state.n,
        later: async (c) => {
          c.state.n += 1;
          await c.saveState();
          await c.clock.sleep(2);
          return ++c.state.n;
        },
      },
    });
    const use = { parent, child };
    const registry = setup({ use, storage, logging: { level: "silent" } });
    const { parent: parents, child: children } = registry.client();
    const answers = [await parents.getOrCreate("a").go(), await parents.getOrCreate("a").go()];
    answers.push(await children.getOrCreate("b").later());
    await registry.actor(children.getOrCreate("b")).sleep();
    answers.push(await children.getOrCreate("b").add());
    const { drained } = await registry.shutdown();
    return { answers, told, drained };`;
  const lived = {
    answers: [1, 2, 4, 5],
    told: [1, 2, 3, 4, "slept", 5, "slept"],
    drained: 2,
  };

  for (const when of ["before any call", "before the module is loaded"]) {
    it(`set up ${when} stop nothing in the life of an actor`, (t) => {
      const enable = `
        mock.timers.enable();
        performance.now = () => 0;`;
      const module = JSON.stringify(new URL("../dist/index.js", import.meta.url).href);
      const load = `const { actor, setup } = await import(${module});`;
      const source = `
        import { mock } from "node:test";
        ${when === "before any call" ? load + enable : enable + load}
        const live = async (storage) => {${life}};
        console.log(JSON.stringify(await live(${JSON.stringify(folder(t))})));`;
      const { status, stdout, stderr } = spawnSync(
        process.execPath,
        ["--no-warnings", "--input-type=module", "-e", source],
        { encoding: "utf8", timeout: 10_000 },
      );

      assert.equal(stderr, "");
      assert.deepEqual(JSON.parse(stdout), lived);
      assert.equal(status, 0);
    });
  }
});

describe("slow functions", () => {
  it("called one after the other let a timer pass between them", async (t) => {
    const busy = actor({
      actions: {
        work() {
          const end = performance.now() + 10;
          while (performance.now() < end);
        },
      },
    });
    const one = open(t, { busy }).client().busy.getOrCreate("a");
    await one.work();
    let done = 0;
    const passed = new Promise((resolve) => setTimeout(() => resolve(done), 1));

    for (; done < 40; done += 1) await one.work();

    assert.ok((await passed) < 10, `the timer came after ${await passed} calls`);
  });
});

describe("a second copy of the module in the same thread", () => {
  it("is the same environment, and may open the same folder", async (t) => {
    const path = folder(t);
    const require = createRequire(import.meta.url);
    const load = () => {
      for (const file of Object.keys(require.cache)) {
        if (file.includes("/dist/")) delete require.cache[file];
      }
      return require("../dist/index.js");
    };
    const use = (module) => {
      const counter = module.actor({ state: { n: 0 }, actions: { add: (c) => ++c.state.n } });
      const registry = module.setup({
        use: { counter },
        storage: path,
        logging: { level: "silent" },
      });
      t.after(() => registry.shutdown({ deadline: 500 }));
      return registry.client().counter.getOrCreate("a");
    };
    const [first, second] = [load(), load()];
    assert.notEqual(first.setup, second.setup);

    assert.equal(await use(first).add(), 1);
    assert.equal(await use(second).add(), 2);
  });
});

describe("signals", () => {
  it("of the runtime and of callers take as many listeners as there are, without a warning", async (t) => {
    const { code, err } = await script(
      t,
      `const host = await h.dispatch.openHost();
      host.register("counter", h.numbers({ slow: () => new Promise((resolve) => setTimeout(resolve, 20)) }));
      const target = h.actor("counter", "a");
      const bag = await h.awake(host, target);
      const { signal } = new AbortController();
      const many = Array.from({ length: 30 }, () => () => {});
      for (const each of many) bag.abortSignal.addEventListener("abort", each);
      await Promise.all([
        ...many.map(() => host.submit(target, "slow", h.none, 2, { signal })),
        ...many.map(() => h.dispatch.inPlace(bag, () => h.turn(), signal)),
        h.dispatch.inPlace(bag, (scope) => {
          for (const each of many) scope.signal.addEventListener("abort", each);
        }),
      ]);
      await host.shutdown(200);`,
    );

    assert.deepEqual({ code, err }, { code: 0, err: "" });
  });
});

describe("what ended is not kept", () => {
  it("by a handle: a generation that sleeps has no author's side any more", async (t) => {
    const host = await dispatch.openHost();
    t.after(() => host.shutdown(200));
    host.register("counter", numbers());
    const row = await host.ensure(target("counter", "a"), "getOrCreate");
    await host.submit(target("counter", "a"), "add", none, 2);
    const [bag] = [...dispatch.bags.values()].filter((of) => of.identity.actorId === row.id);
    assert.deepEqual(bag.extension, { n: 1 });

    await host.sleep(row.id);

    assert.notEqual(bag.stopped, undefined);
    assert.equal(bag.extension, undefined);
    assert.equal(bag.firstState, undefined);
  });

  it("of a host: its factories, once nothing else runs by them", async () => {
    const factory = numbers();
    const [one, two] = [await dispatch.openHost(), await dispatch.openHost()];
    one.register("counter", factory);
    two.register("counter", factory);

    await one.shutdown(200);
    assert.notEqual(factoryOf(factory.number), undefined);
    await two.shutdown(200);
    assert.equal(factoryOf(factory.number), undefined);
  });
});
