// biome-ignore-all lint/suspicious/noSparseArray: holes are among what is tested

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor } from "../dist/index.js";
import { deferred, inFolder, inMemory, newFolder, until } from "./support/registry.mjs";

const box = actor({
  state: { n: 0, list: [], when: new Date(1), map: new Map() },
  actions: {
    run: (c, body, ...args) => new Function("c", "args", `return (${body})(c, ...args)`)(c, args),
    state: (c) => c.snapshot(),
    sleep: (c) => c.sleep(),
  },
});

/** Lets the actor sleep, and answers what it remembers when it wakes. */
async function remembered(registry, handle) {
  await registry.actor(handle).sleep();
  return handle.state();
}

describe("state refuses", () => {
  const registry = inMemory({
    box,
    bare: actor({ actions: { read: (c) => c.state, write: (c) => (c.state = 1) } }),
  });
  const { box: boxes, bare } = registry.client();

  it("to be read or written where the actor has none", async () => {
    const expected = { group: "actor", code: "state_not_enabled" };

    await assert.rejects(bare.getOrCreate().read(), expected);
    await assert.rejects(bare.getOrCreate().write(), expected);
  });

  it("what cannot be stored, where it is assigned, and keeps what it had", async () => {
    const handle = boxes.getOrCreate("refuse");
    const bodies = [
      ["(c) => { c.state.list = [{ f() {} }]; }", "Value at state.list[0].f is a function"],
      ["(c) => { c.state.list.push(Symbol()); }", "Value at state.list[0] is a symbol"],
      [
        "(c) => { c.state = { p: Promise.resolve() }; }",
        "Value at state.p is a promise; await it first",
      ],
      ["(c) => { c.state.self = c.state; }", "Value at state.self is part of a cycle"],
    ];

    for (const [body, message] of bodies) await assert.rejects(handle.run(body), { message });

    assert.deepEqual(await remembered(registry, handle), {
      n: 0,
      list: [],
      when: new Date(1),
      map: new Map(),
    });
  });

  it("to be changed inside onStateChange", async () => {
    const errors = [];
    const nosy = actor({
      state: { n: 0, seen: 0 },
      onStateChange: (c, state) => {
        try {
          state.seen += 1;
        } catch (error) {
          errors.push(error);
        }
        c.vars;
      },
      actions: { bump: (c) => (c.state.n += 1) },
    });
    await inMemory({ nosy }).client().nosy.getOrCreate().bump();

    await until(() => errors.length > 0, "onStateChange was called");
    assert.deepEqual([errors[0].group, errors[0].code], ["actor", "state_mutation_reentrant"]);
  });

  it("a first state that cannot be stored, and tells the caller", async () => {
    const { wrong } = inMemory({
      wrong: actor({ createState: () => ({ socket: { close() {} } }), actions: { a() {} } }),
    }).client();

    await assert.rejects(wrong.getOrCreate().a(), {
      message: /Value at state\.socket\.close is a function/,
    });
  });

  it("to hide a cycle that was closed through a kept reference: the generation breaks", async () => {
    const handle = boxes.getOrCreate("cycle");
    await handle.run("(c) => { c.state.n = 1; }");

    await assert.rejects(handle.run("(c) => { const o = {}; c.state.list.push(o); o.up = o; }"), {
      group: "actor",
      code: "state_not_storable",
      message: /state\.list\[0\]\.up is part of a cycle/,
    });

    assert.equal((await handle.state()).n, 1);
  });
});

describe("state remembers", () => {
  it("changes at any depth, over a sleep and a new process's worth of registry", async () => {
    const folder = await newFolder();
    const first = inFolder(folder, { box });
    const handle = first.client().box.getOrCreate("deep");
    await handle.run("(c) => { c.state.list.push({ a: [1] }); }");
    await handle.run("(c) => { c.state.list[0].a.push(2); c.state.n++; }");

    const expected = { n: 1, list: [{ a: [1, 2] }], when: new Date(1), map: new Map() };
    assert.deepEqual(await remembered(first, handle), expected);
    await first.shutdown();
    const second = inFolder(folder, { box });
    assert.deepEqual(await second.client().box.get("deep").state(), expected);
  });

  it("changes of what cannot be watched", async () => {
    const registry = inMemory({ box });
    const handle = registry.client().box.getOrCreate("raw");
    await handle.run("(c) => { c.state.when.setTime(77); c.state.map.set('k', new Set([1])); }");
    await handle.run("(c) => { c.state.map.get('k').add(2); }");

    const { when, map } = await remembered(registry, handle);
    assert.deepEqual([when, map], [new Date(77), new Map([["k", new Set([1, 2])]])]);
  });

  it("a change of what cannot be watched that comes after an await", async () => {
    const registry = inMemory({ box });
    const handle = registry.client().box.getOrCreate("late");
    await handle.run(
      "async (c) => { const { map } = c.state; await new Promise((r) => setTimeout(r, 20)); map.set('late', 1); }",
    );

    assert.deepEqual((await remembered(registry, handle)).map, new Map([["late", 1]]));
  });

  it("what run changes in a map, over a sleep", async () => {
    for (const durability of ["reply", "interval"]) {
      const added = deferred();
      const running = actor({
        state: { map: new Map() },
        run: async (c) => {
          const { map } = c.state;
          await new Promise((resolve) => setTimeout(resolve, 20));
          if (map.size === 0) map.set("run", 1);
          added.resolve();
          await new Promise((resolve) => c.abortSignal.addEventListener("abort", resolve));
        },
        actions: { size: (c) => c.state.map.size, ping: () => "pong" },
        options: { durability, stateSaveInterval: 600_000 },
      });
      const registry = inMemory({ running });
      const handle = registry.client().running.getOrCreate();
      await handle.ping();
      await added.promise;
      await registry.actor(handle).sleep();

      assert.equal(await handle.size(), 1, durability);
    }
  });

  it("a state that was replaced, and one that is no object", async () => {
    const registry = inMemory({ box });
    const handle = registry.client().box.getOrCreate("whole");
    await handle.run("(c) => { c.state = { ...c.state, n: 5 }; c.state.list.push(1); }");
    assert.deepEqual((await remembered(registry, handle)).list, [1]);
    await handle.run("(c) => { c.state = 'text'; }");

    assert.equal(await remembered(registry, handle), "text");
  });

  it("the value of a property that is defined again without one", async () => {
    const registry = inMemory({ box });
    const handle = registry.client().box.getOrCreate("defined");
    await handle.run("(c) => { Object.defineProperty(c.state, 'n', { enumerable: true }); }");
    await handle.run("(c) => { Object.defineProperty(c.state, 'n', { value: c.state.n + 7 }); }");

    assert.equal((await remembered(registry, handle)).n, 7);
  });

  it("awkward values exactly", async () => {
    const registry = inMemory({ box });
    const handle = registry.client().box.getOrCreate("awkward");
    await handle.run(
      '(c) => { c.state = JSON.parse(\'{"__proto__":{"x":1},"constructor":2}\'); c.state.z = -0; c.state.u = undefined; c.state.big = 2n ** 70n; c.state.holes = [, 1]; }',
    );

    const state = await remembered(registry, handle);
    assert.deepEqual(Object.keys(state), ["__proto__", "constructor", "z", "u", "big", "holes"]);
    assert.ok(Object.is(state.z, -0));
    assert.equal(state.big, 2n ** 70n);
    assert.deepEqual(state.holes, [, 1]);
  });

  it("what a timer changes outside of any call", async () => {
    const registry = inMemory({ box });
    const handle = registry.client().box.getOrCreate("timer");
    await handle.run("(c) => { setTimeout(() => { c.state.n = 9; }, 10); }");
    await until(async () => (await handle.state()).n === 9, "the timer ran");

    assert.equal((await remembered(registry, handle)).n, 9);
  });
});

describe("state", () => {
  it("is each actor's own, also where it began as one literal", async () => {
    const { box: boxes } = inMemory({ box }).client();
    await boxes.getOrCreate("a").run("(c) => { c.state.list.push(1); c.state.map.set(1, 1); }");

    assert.deepEqual(await boxes.getOrCreate("b").state(), {
      n: 0,
      list: [],
      when: new Date(1),
      map: new Map(),
    });
  });

  it("is each actor's own, also where createState returns shared objects", async () => {
    const defaults = { seen: [], map: new Map() };
    const sharing = actor({
      createState: () => ({ defaults, again: defaults }),
      actions: {
        mark: (c) => {
          c.state.defaults.seen.push(c.key[0]);
          c.state.defaults.map.set(1, 1);
        },
        state: (c) => c.snapshot(),
      },
    });
    const { sharing: actors } = inMemory({ sharing }).client();
    await actors.getOrCreate("a").mark();

    const untouched = { seen: [], map: new Map() };
    assert.deepEqual(await actors.getOrCreate("a").state(), {
      defaults: { seen: ["a"], map: new Map([[1, 1]]) },
      again: untouched,
    });
    assert.deepEqual((await actors.getOrCreate("b").state()).defaults, untouched);
    assert.deepEqual(defaults, untouched);
  });

  it("gives a snapshot that is plain and apart", async () => {
    const handle = inMemory({ box }).client().box.getOrCreate();
    const result = await handle.run(`(c) => {
      const copy = structuredClone(c.snapshot());
      copy.list.push(1);
      return [copy.list.length, c.state.list.length];
    }`);

    assert.deepEqual(result, [1, 0]);
  });

  it("tells onStateChange once for each turn that changed it", async () => {
    const told = [];
    const watched = actor({
      state: { n: 0, set: new Set() },
      onStateChange: (c, state) => told.push([c.name, state.n, state.set.size]),
      actions: {
        twice: (c) => {
          c.state.n += 1;
          c.state.n += 1;
        },
        over: async (c) => {
          c.state.n = 10;
          // The loop has turned; a timer may fire before it has on a busy machine.
          await new Promise((resolve) => setImmediate(resolve));
          c.state.n = 20;
        },
        add: (c) => c.state.set.add(1) && undefined,
        read: (c) => c.state.n,
      },
    });
    for (const durability of ["reply", "interval"]) {
      told.length = 0;
      const definition = actor({ ...watched.config, options: { durability } });
      const handle = inMemory({ watched: definition }).client().watched.getOrCreate();
      await handle.read();
      await handle.twice();
      await until(() => told.length === 1, `${durability}: told of one turn`);
      await handle.over();
      await until(() => told.length === 3, `${durability}: told of two turns`);

      assert.deepEqual(told, [
        ["watched", 2, 0],
        ["watched", 10, 0],
        ["watched", 20, 0],
      ]);
      if (durability === "reply") {
        await handle.add();
        assert.deepEqual(told[3], ["watched", 20, 1]);
      }
    }
  });

  it("that cannot be encoded breaks its generation only, also with onStateChange", async () => {
    for (const durability of ["reply", "interval"]) {
      const watched = actor({
        state: { n: 0, map: new Map() },
        onStateChange: (_c, state) => state.map.size,
        actions: {
          spoil: (c) => {
            c.state.map.set("f", () => {});
            c.state.n += 1;
          },
          save: (c) => c.flush(),
          state: (c) => c.snapshot(),
        },
        options: { durability },
      });
      const registry = inMemory({ watched });
      const handle = registry.client().watched.getOrCreate();
      await handle.state();
      const refused = { group: "actor", code: "state_not_storable" };
      const spoiling = handle.spoil();
      if (durability === "reply") await assert.rejects(spoiling, refused);
      else {
        await spoiling;
        await assert.rejects(handle.save(), refused);
      }

      assert.deepEqual(await handle.state(), { n: 0, map: new Map() });
    }
  });

  for (const [how, onStateChange] of Object.entries({
    throws: () => {
      throw new Error("oh no");
    },
    rejects: async () => {
      throw new Error("oh no");
    },
  })) {
    it(`survives an onStateChange that ${how}, and logs it`, async () => {
      const lines = [];
      const noisy = actor({
        state: { n: 0 },
        onStateChange,
        actions: { bump: (c) => (c.state.n += 1) },
      });
      const registry = inMemory(
        { noisy },
        { logging: { level: "error", sink: (line) => lines.push(line) } },
      );
      const handle = registry.client().noisy.getOrCreate("k");

      assert.equal(await handle.bump(), 1);
      await until(() => lines.length > 0, "the error was logged");
      assert.equal(lines[0].msg, "onStateChange failed: oh no");
      assert.deepEqual(
        [lines[0].actorName, lines[0].actorKey, lines[0].level],
        ["noisy", ["k"], "error"],
      );
    });
  }
});
