// What surrounds the runtime in its thread: false timers, slow functions, copies of itself, listeners.
import assert from "node:assert/strict";
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
