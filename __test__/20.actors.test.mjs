// biome-ignore-all lint/suspicious/noSparseArray: holes are among what is tested

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor } from "../dist/index.js";
import { deferred, inMemory, schema, until } from "./support/registry.mjs";

const echo = actor({
  state: { calls: 0 },
  actions: {
    same: (_c, value) => value,
    args: (_c, ...args) => args,
    who: (c) => ({ id: c.actorId, name: c.name, key: c.key, region: c.region, caller: c.caller }),
    now: (c) => c.now,
    group: { inner: { deep: (_c, n) => n + 1 }, leaf: () => "leaf" },
    refuse: () => () => {},
    notAsync: () => {
      throw new Error("at once");
    },
    thenable: () => ({
      get then() {
        throw new Error("then threw");
      },
    }),
    undef: () => {},
  },
});

describe("a call", () => {
  const client = inMemory({ echo }).client();
  const handle = client.echo.getOrCreate("a");

  it("never throws synchronously", async () => {
    const calls = [
      handle.same(() => {}),
      handle.nope(),
      handle.group.nope(),
      handle.nope.deeper(1),
      handle.action({ name: 5 }),
      handle.action(),
      handle.action({ name: "same", args: "x" }),
      client.get("nobody", "k").same(1),
    ];

    const outcomes = await Promise.allSettled(calls);

    assert.deepEqual(new Set(outcomes.map((outcome) => outcome.status)), new Set(["rejected"]));
  });

  it("of an unknown action is refused, naming it, awake or asleep", async () => {
    const expected = { group: "actor", code: "action_not_found", statusCode: 404, public: true };

    await assert.rejects(client.echo.getOrCreate("asleep").nope(), {
      ...expected,
      message: /nope/,
    });
    await handle.same(1);
    await assert.rejects(handle.nope(), { ...expected, message: /nope/ });
    await assert.rejects(handle.group.nope(), { ...expected, message: /group\.nope/ });
    await assert.rejects(handle.unknown.inner(), { ...expected, message: /unknown\.inner/ });
  });

  it("refuses arguments and results that cannot be sent, with the same path on both ways", async () => {
    const first = client.echo.getOrCreate("paths-first");
    for (const way of ["ordinary", "in place"]) {
      await assert.rejects(
        first.same({ a: [1, () => {}] }),
        new TypeError("Value at args[0].a[1] is a function"),
        way,
      );
      await assert.rejects(
        first.refuse(),
        { message: "Value at result is a function", code: "internal_error" },
        way,
      );
      await first.same(1);
    }
  });

  it("of a function that throws at once, or gives a thenable that throws, is rejected", async () => {
    await assert.rejects(handle.notAsync(), { message: "at once" });
    await assert.rejects(handle.thenable(), { message: "then threw" });
  });

  it("passes arguments and results", async () => {
    assert.equal(await handle.same(5), 5);
    assert.equal(await handle.undef(), undefined);
    assert.deepEqual(await handle.args(1, undefined, null, "x"), [1, undefined, null, "x"]);
    assert.deepEqual(await handle.args(), []);
  });

  it("reaches groups, by member and by name", async () => {
    assert.equal(await handle.group.inner.deep(1), 2);
    assert.equal(await handle.group.leaf(), "leaf");
    assert.equal(await handle.action({ name: "group.inner.deep", args: [4] }), 5);
    assert.equal(handle.group, handle.group);
  });

  it("shares nothing with the actor, whichever way", async () => {
    const fresh = client.echo.getOrCreate("copies");
    for (const _way of ["ordinary", "in place"]) {
      const sent = { list: [1], when: new Date(3) };
      const call = fresh.same(sent);
      sent.list.push(2);
      const got = await call;

      assert.deepEqual(got, { list: [1], when: new Date(3) });
      got.list.push(9);
      assert.deepEqual(await fresh.same(sent), { list: [1, 2], when: new Date(3) });
    }
  });

  it("keeps awkward values exact on both ways", async () => {
    const fresh = client.echo.getOrCreate("awkward");
    const values = [
      -0,
      Number.NaN,
      5n,
      undefined,
      new Map([[{ k: 1 }, new Set([1])]]),
      new Uint16Array(0),
      [, 1],
    ];
    for (const _way of ["ordinary", "in place"]) {
      assert.deepEqual(await fresh.same(values), values);
    }
  });

  it("sees its actor and who calls", async () => {
    const { id, ...rest } = await client.echo.getOrCreate(["x", "y"]).who();

    assert.deepEqual(rest, { name: "echo", key: ["x", "y"], region: "", caller: "local" });
    assert.equal(id, await client.echo.get(["x", "y"]).resolve());
    assert.deepEqual((await client.echo.getOrCreate().who()).key, []);
  });

  it("runs no author code before its promise is returned", async () => {
    const order = [];
    const { eager } = inMemory({
      eager: actor({ actions: { go: () => order.push("inside") } }),
    }).client();
    const warm = eager.getOrCreate();
    await warm.go();
    order.length = 0;

    const call = warm.go();
    order.push("outside");
    await call;

    assert.deepEqual(order, ["outside", "inside"]);
  });

  it("begins in the order in which calls were made", async () => {
    const order = [];
    const { ordered } = inMemory({
      ordered: actor({ actions: { go: (_c, n) => order.push(n) } }),
    }).client();
    const target = ordered.getOrCreate();

    await Promise.all(Array.from({ length: 100 }, (_, n) => target.go(n)));

    assert.deepEqual(
      order,
      Array.from({ length: 100 }, (_, n) => n),
    );
  });
});

describe("calls between actors", () => {
  const ping = actor({
    state: { seen: [] },
    actions: {
      down: async (c, depth) => {
        if (depth === 0) return [c.caller];
        const next = c.client().ping.getOrCreate(`d${depth}`);
        return [c.caller, ...(await next.down(depth - 1))];
      },
      self: async (c, n) =>
        n === 0
          ? c.caller
          : c
              .client()
              .ping.getOrCreate(c.key)
              .self(n - 1),
      forged: (c) =>
        c
          .client()
          .ping.getOrCreate("other")
          .action({ name: "\0secret", args: [1] }),
      hidden: (c) => c.client().ping.getForId(c.actorId).secret(2),
      hiddenByKey: (c) => c.client().ping.getOrCreate(c.key).secret(3),
    },
    internalActions: { secret: (c, n) => [c.caller, n * 2] },
  });
  const client = inMemory({ ping }).client();

  it("refuse an internal action to anyone but the actor itself", async () => {
    const expected = { group: "actor", code: "action_not_found" };
    await assert.rejects(client.ping.getOrCreate("cold").secret(1), expected);
    await client.ping.getOrCreate("warm").down(0);
    await assert.rejects(client.ping.getOrCreate("warm").secret(1), expected);
    await assert.rejects(
      client.ping.getOrCreate("warm").action({ name: "secret", args: [1] }),
      expected,
    );
    await assert.rejects(
      client.ping.getOrCreate("cold2").action({ name: "\0secret", args: [1] }),
      expected,
    );
  });

  it("refuse an internal action to another actor, also under its inner name", async () => {
    const expected = { group: "actor", code: "action_not_found" };

    await assert.rejects(client.ping.getOrCreate("forger").forged(), expected);
    await client.ping.getOrCreate("other").down(0);
    await assert.rejects(client.ping.getOrCreate("forger").forged(), expected);
  });

  it("let the actor itself ask for an internal action", async () => {
    assert.deepEqual(await client.ping.getOrCreate("h").hidden(), ["actor", 4]);
    assert.deepEqual(await client.ping.getOrCreate("h").hiddenByKey(), ["actor", 6]);
  });

  it("say that an actor calls", async () => {
    assert.deepEqual(await client.ping.getOrCreate("top").down(2), ["local", "actor", "actor"]);
  });

  it("go on beyond the depth at which they run in place", async () => {
    const result = await client.ping.getOrCreate("deep").down(80);

    assert.equal(result.length, 81);
    assert.equal(await client.ping.getOrCreate("own").self(100), "actor");
  });
});

describe("the schema of arguments", () => {
  const checked = actor({
    actions: {
      add: (_c, a, b) => a + b,
      g: { up: (_c, text) => text.toUpperCase() },
    },
    actionInputSchemas: {
      add: schema((args) => {
        if (!args.every((n) => typeof n === "number"))
          throw Object.assign(new Error("numbers, please"), { path: [{ key: 0 }] });
        return args.map((n) => n * 10);
      }),
      "g.up": schema(async ([text]) => {
        if (typeof text !== "string") throw new Error("text, please");
        return [text.trim()];
      }),
    },
  });
  const handle = inMemory({ checked }).client().checked.getOrCreate();

  it("refuses with its issues", async () => {
    await assert.rejects(handle.add("1", 2), {
      group: "actor",
      code: "validation_error",
      public: true,
      message: "Invalid action `add` arguments",
      metadata: { issues: [{ message: "numbers, please", path: [0] }] },
    });
    await assert.rejects(handle.g.up(5), { code: "validation_error" });
  });

  it("replaces the arguments, at once or later", async () => {
    assert.equal(await handle.add(1, 2), 30);
    assert.equal(await handle.g.up(" a "), "A");
  });
});

describe("onBeforeActionResponse", () => {
  it("may replace what an action answers", async () => {
    const { loud } = inMemory({
      loud: actor({
        actions: { say: (_c, text) => text, fail: () => "x" },
        onBeforeActionResponse: async (c, name, args, output) => {
          if (name === "fail") throw new Error("not today");
          return `${c.name} ${name} ${args.length} ${output}!`;
        },
      }),
    }).client();

    assert.equal(await loud.getOrCreate().say("hi"), "loud say 1 hi!");
    await assert.rejects(loud.getOrCreate().fail(), { message: "not today" });
  });
});

describe("a timeout", () => {
  const slow = actor({
    state: { late: false },
    actions: {
      hang: (c) =>
        new Promise((resolve) =>
          c.abortSignal.addEventListener("abort", () => {
            c.state.late = true;
            resolve("late");
          }),
        ),
      spin: () => {
        const end = Date.now() + 120;
        while (Date.now() < end);
        return "too late";
      },
      late: (c) => c.state.late,
      quick: () => "quick",
    },
    options: { actionTimeout: 50 },
  });
  const expected = { group: "actor", code: "action_timed_out", statusCode: 408, public: true };

  it("answers on both ways, fires the signal, and lets the function end", async () => {
    const handle = inMemory({ slow }).client().slow.getOrCreate();
    for (const _way of ["ordinary", "in place"]) {
      await assert.rejects(handle.hang(), expected);
      await until(() => handle.late(), "the function ended");
    }
  });

  it("is the answer of a busy loop that took too long, on both ways", async () => {
    const handle = inMemory({ slow }).client().slow.getOrCreate();

    await assert.rejects(handle.spin(), expected);
    assert.equal(await handle.quick(), "quick");
    await assert.rejects(handle.spin(), expected);
  });
});

describe("a signal", () => {
  const gate = deferred();
  const aborted = [];
  const waits = actor({
    actions: {
      wait: async (c) => {
        c.abortSignal.addEventListener("abort", () => aborted.push(c.actorId));
        await gate.promise;
      },
      ready: () => true,
    },
  });
  const client = inMemory({ waits }).client();

  it("that has fired refuses at once", async () => {
    const signal = AbortSignal.abort(new Error("never mind"));

    await assert.rejects(client.waits.getOrCreate("x").action({ name: "wait", args: [], signal }), {
      message: "never mind",
    });
    await assert.rejects(client.waits.getOrCreate("x", { signal }).ready(), {
      message: "never mind",
    });
  });

  it("gives a call up on both ways, and fires the action's own", async () => {
    const handle = client.waits.getOrCreate("y");
    for (const _way of ["ordinary", "in place"]) {
      const controller = new AbortController();
      aborted.length = 0;
      const call = handle.action({ name: "wait", args: [], signal: controller.signal });
      await handle.ready();
      controller.abort(new Error("enough"));

      await assert.rejects(call, { message: "enough" });
      await until(() => aborted.length === 1, "the action heard of it");
    }
    gate.resolve();
  });
});
