// c.schedule and c.cron: what an actor does later.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor } from "../dist/index.js";
import { inFolder, inMemory, newFolder, schema, until } from "./support/registry.mjs";

/** `run(body)` calls `body(c)` as an action of one actor; `fired` is what its schedules ran. */
function inside(config = {}, open = inMemory) {
  let next;
  const fired = [];
  const note =
    (name) =>
    (c, ...args) => {
      fired.push({ name, caller: c.caller, args });
    };
  const it = actor({
    state: { n: 0 },
    ...config,
    actions: {
      run: (c) => next(c),
      note: note("note"),
      group: { inner: note("group.inner") },
      ...config.actions,
    },
    internalActions: { hidden: note("hidden"), ...config.internalActions },
  });
  const registry = open({ it });
  const handle = registry.client().it.getOrCreate("k");
  const run = (body) => {
    next = body;
    return handle.run();
  };
  return { run, fired, registry, handle };
}

describe("c.schedule refuses", () => {
  const refused = [
    ["a delay that is no number", (c) => c.schedule.after("1", "note"), "invalid_argument"],
    ["a delay that is not finite", (c) => c.schedule.after(Number.NaN, "note"), "invalid_time"],
    ["a moment that is not finite", (c) => c.schedule.at(Infinity, "note"), "invalid_time"],
    ["no action", (c) => c.schedule.after(1), "invalid_argument"],
    ["an action that is no name", (c) => c.schedule.after(1, 5), "invalid_argument"],
    [
      "an unknown option",
      (c) => c.schedule.after(1, { action: "note", retries: 1 }),
      "invalid_argument",
    ],
    [
      "arguments behind the object",
      (c) => c.schedule.after(1, { action: "note" }, 1),
      "invalid_argument",
    ],
    [
      "arguments that are no list",
      (c) => c.schedule.at(1, { action: "note", args: 1 }),
      "invalid_argument",
    ],
    [
      "an argument that cannot be encoded",
      (c) => c.schedule.after(1, "note", () => {}),
      "invalid_argument",
    ],
    ["an empty key", (c) => c.schedule.after(1, { action: "note", key: "" }), "invalid_key"],
    [
      "a key that is half a character",
      (c) => c.schedule.after(1, { action: "note", key: "\ud800" }),
      "invalid_argument",
    ],
    [
      "no attempts",
      (c) => c.schedule.after(1, { action: "note", retry: { maxAttempts: 0 } }),
      "invalid_retry",
    ],
    [
      "half an attempt",
      (c) => c.schedule.after(1, { action: "note", retry: { maxAttempts: 1.5 } }),
      "invalid_argument",
    ],
    [
      "a backoff that is no number",
      (c) =>
        c.schedule.after(1, {
          action: "note",
          retry: { maxAttempts: 2, backoff: { initial: "1s" } },
        }),
      "invalid_argument",
    ],
    ["an id that is no string", (c) => c.schedule.cancel(5), "invalid_argument"],
    [
      "an empty name",
      (c) => c.cron.set({ name: "", expression: "* * * * *", action: "note" }),
      "invalid_name",
    ],
    [
      "six fields",
      (c) => c.cron.set({ name: "a", expression: "* * * * * *", action: "note" }),
      "invalid_cron_expression",
    ],
    [
      "an unknown zone",
      (c) =>
        c.cron.set({ name: "a", expression: "* * * * *", timezone: "Mars/Base", action: "note" }),
      "invalid_timezone",
    ],
    [
      "a short interval",
      (c) => c.cron.every({ name: "a", interval: 4_999, action: "note" }),
      "invalid_interval",
    ],
    [
      "a history that is too long",
      (c) => c.cron.every({ name: "a", interval: 5_000, action: "note", maxHistory: 1_001 }),
      "invalid_max_history",
    ],
    [
      "a history of half a fire",
      (c) => c.cron.every({ name: "a", interval: 5_000, action: "note", maxHistory: 1.5 }),
      "invalid_argument",
    ],
    ["a limit that is not whole", (c) => c.cron.history("a", { limit: 1.5 }), "invalid_argument"],
    ["a limit of 0", (c) => c.cron.history("a", { limit: 0 }), "invalid_max_history"],
    ["an unknown option of a history", (c) => c.cron.history("a", { max: 1 }), "invalid_argument"],
  ];
  for (const [what, body, code] of refused) {
    it(what, async () => {
      const { run } = inside();
      const group = code === "invalid_argument" ? "actor" : "schedule";

      const error = await run(async (c) => {
        // Never thrown at once, always the promise's.
        const promise = body(c);
        return promise.then(
          () => undefined,
          (caught) => ({ group: caught.group, code: caught.code }),
        );
      });

      assert.deepEqual(error, { group, code });
    });
  }

  it("everything after the end, when another generation changes what is stored", async () => {
    const { run, registry, handle } = inside();
    let left;
    await run(async (c) => {
      left = c;
      await c.schedule.after(60_000, "note");
      await c.cron.every({ name: "a", interval: 5_000, action: "note" });
    });
    await registry.actor(handle).sleep();
    const calls = {
      after: () => left.schedule.after(1, "note"),
      get: () => left.schedule.get("x"),
      list: () => left.schedule.list(),
      cancel: () => left.schedule.cancel("x"),
      dead: () => left.schedule.dead.list(),
      "cron.get": () => left.cron.get("a"),
      "cron.list": () => left.cron.list(),
      "cron.history": () => left.cron.history("a"),
      "cron.delete": () => left.cron.delete("a"),
    };

    for (const [name, call] of Object.entries(calls)) {
      await assert.rejects(call(), { group: "actor", code: "stopping" }, name);
    }
  });

  it("more schedules than maxSchedules, of both kinds together", async () => {
    const { run } = inside({ options: { maxSchedules: 2 } });

    const error = await run(async (c) => {
      await c.schedule.after(60_000, "note");
      await c.cron.every({ name: "a", interval: 5_000, action: "note" });
      return c.schedule.after(60_000, "note").catch(({ code, metadata }) => ({ code, metadata }));
    });

    assert.deepEqual(error, { code: "max_schedules_exceeded", metadata: { maximum: 2 } });
  });
});

describe("a one-shot", () => {
  it("runs its action with exact arguments, and with why it runs behind them", async () => {
    const { run, fired } = inside();
    const given = [1n, new Map([["a", new Date(5)]]), undefined, new Uint8Array([0, 255])];
    const id = await run((c) => c.schedule.after(1, "note", ...given));

    await until(() => fired.length === 1, "it ran");

    const { caller, args } = fired[0];
    const { scheduledAt, firedAt, ...why } = args.pop();
    assert.deepEqual(args, given);
    assert.equal(caller, "schedule");
    assert.deepEqual(why, { kind: "at", id, attempt: 1 });
    assert(firedAt >= scheduledAt && scheduledAt > Date.now() - 60_000);
  });

  it("reaches internal actions and groups, and takes the object form", async () => {
    const { run, fired } = inside();
    await run(async (c) => {
      await c.schedule.at(0, { action: "hidden", args: ["a"] });
      await c.schedule.at(-1, "group.inner", "b");
    });

    await until(() => fired.length === 2, "both ran");

    assert.deepEqual(fired.map(({ name, args }) => [name, args[0]]).sort(), [
      ["group.inner", "b"],
      ["hidden", "a"],
    ]);
  });

  it("has its arguments checked, and why it runs left alone", async () => {
    let seen;
    const { run } = inside({
      actions: {
        checked: (_c, ...args) => {
          seen = args;
        },
      },
      actionInputSchemas: { checked: schema(([n]) => [n * 2]) },
    });

    await run((c) => c.schedule.after(0, "checked", 21));

    await until(() => seen !== undefined, "it ran");
    const [n, why, ...rest] = seen;
    assert.deepEqual([n, why.kind, rest], [42, "at", []]);
  });

  it("is read, listed and cancelled", async () => {
    const { run, fired } = inside();
    const seen = await run(async (c) => {
      const late = await c.schedule.at(9e12, "note", { deep: [1] });
      const soon = await c.schedule.at(8e12, { action: "hidden" });
      return {
        one: await c.schedule.get(late),
        none: await c.schedule.get("nothing"),
        all: (await c.schedule.list()).map(({ id }) => [soon, late].indexOf(id)),
        cancelled: [await c.schedule.cancel(late), await c.schedule.cancel(late)],
        left: (await c.schedule.list()).map(({ action, args, runAt }) => ({ action, args, runAt })),
      };
    });

    const { id: _, ...one } = seen.one;
    assert.deepEqual(one, { action: "note", args: [{ deep: [1] }], runAt: 9e12 });
    assert.equal(seen.none, undefined);
    assert.deepEqual(seen.all, [0, 1]);
    assert.deepEqual(seen.cancelled, [true, false]);
    assert.deepEqual(seen.left, [{ action: "hidden", args: [], runAt: 8e12 }]);
    assert.equal(fired.length, 0);
  });

  it("with a key is one however often it is asked for", async () => {
    const { run } = inside();
    const [first, second, count] = await run(async (c) => [
      await c.schedule.at(9e12, { action: "note", key: "k" }),
      await c.schedule.at(8e12, { action: "note", key: "k" }),
      (await c.schedule.list()).length,
    ]);

    assert.equal(first, second);
    assert.equal(count, 1);
  });

  it("that fails is tried again, and is dead when all attempts are used up", async () => {
    const attempts = [];
    const { run } = inside({
      actions: {
        fails: (_c, word, { attempt }) => {
          attempts.push([word, attempt]);
          throw new Error("no");
        },
      },
    });
    const retry = { maxAttempts: 3, backoff: { initial: 1, max: 2 } };
    const id = await run((c) => c.schedule.after(0, { action: "fails", args: ["w"], retry }));

    await until(() => run(async (c) => (await c.schedule.dead.list()).length === 1), "it is dead");

    assert.deepEqual(attempts, [
      ["w", 1],
      ["w", 2],
      ["w", 3],
    ]);
    const [dead] = await run((c) => c.schedule.dead.list());
    assert.deepEqual(
      [dead.id, dead.kind, dead.action, dead.args, dead.attempts, dead.error.code],
      [id, "at", "fails", ["w"], 3, "internal_error"],
    );
    assert.deepEqual(
      await run(async (c) => [
        await c.schedule.dead.retry(id),
        await c.schedule.dead.retry(id),
        (await c.schedule.dead.list()).length,
      ]),
      [true, false, 0],
    );
    await until(() => attempts.length === 6, "it was tried from the beginning");
    await until(() => run(async (c) => (await c.schedule.dead.list()).length === 1), "dead again");
    assert.deepEqual(
      await run(async (c) => [await c.schedule.dead.delete(id), await c.schedule.dead.list()]),
      [true, []],
    );
  });

  it("is stored with the state of its turn, or not at all", async () => {
    const folder = await newFolder();
    const first = inside({}, (use) => inFolder(folder, use));
    await first.run((c) => {
      c.state.n = 1;
      // Nobody waits for it: the end of the turn stores both.
      void c.schedule.at(9e12, "note");
    });
    await first.registry.shutdown();

    const second = inside({}, (use) => inFolder(folder, use));
    const seen = await second.run(async (c) => [c.state.n, (await c.schedule.list()).length]);

    assert.deepEqual(seen, [1, 1]);
  });

  it("can be asked for in every hook, onSleep too", async () => {
    const ran = [];
    const { run, registry, handle } = inside({
      state: undefined,
      createState: async (c) => {
        await c.schedule.after(0, "mark", "createState");
        return { n: 0 };
      },
      onCreate: (c) => void c.schedule.after(0, "mark", "onCreate"),
      onWake: (c) => void c.schedule.after(0, "mark", "onWake"),
      onSleep: (c) => void c.schedule.after(0, "mark", "onSleep"),
      actions: { mark: (_c, word) => void ran.push(word) },
    });
    await run(() => {});
    await until(() => ran.length === 3, "those of the start ran");
    await registry.actor(handle).sleep();

    await until(() => ran.includes("onSleep"), "that of onSleep woke the actor");

    assert.deepEqual([...new Set(ran)].sort(), ["createState", "onCreate", "onSleep", "onWake"]);
  });
});

describe("a recurring job", () => {
  it("is set, read, listed, replaced and deleted", async () => {
    const { run } = inside();
    const seen = await run(async (c) => {
      await c.cron.set({
        name: "daily",
        expression: "0 9 * * *",
        timezone: "Europe/Berlin",
        action: "note",
        args: [1n],
        maxHistory: 3,
      });
      await c.cron.every({ name: "tick", interval: 5_000, action: "hidden" });
      await c.cron.every({
        name: "tick",
        interval: 6_000,
        action: "note",
        retry: { maxAttempts: 2 },
      });
      const all = await c.cron.list();
      return {
        daily: await c.cron.get("daily"),
        none: await c.cron.get("nothing"),
        all: all.map(({ name, kind, action }) => [name, kind, action]).sort(),
        tick: (await c.cron.get("tick")).interval,
        history: await c.cron.history("daily", { limit: 5 }),
        deleted: [await c.cron.delete("tick"), await c.cron.delete("tick")],
        now: c.now,
      };
    });

    const { nextRunAt, ...daily } = seen.daily;
    assert(nextRunAt > seen.now);
    assert.deepEqual(daily, {
      name: "daily",
      kind: "cron",
      action: "note",
      args: [1n],
      expression: "0 9 * * *",
      timezone: "Europe/Berlin",
      maxHistory: 3,
    });
    assert.deepEqual(seen.all, [
      ["daily", "cron", "note"],
      ["tick", "every", "note"],
    ]);
    assert.deepEqual([seen.tick, seen.none, seen.history], [6_000, undefined, []]);
    assert.deepEqual(seen.deleted, [true, false]);
  });
});

describe("an internal action", () => {
  it("is reached by the actor itself and by nobody else", async () => {
    const { run, handle, fired } = inside();

    await assert.rejects(handle.hidden("x"), { group: "actor", code: "action_not_found" });
    await run(async (c) => {
      const self = c.client().it.get(c.key);
      await self.hidden("self");
    });

    assert.deepEqual(fired, [{ name: "hidden", caller: "actor", args: ["self"] }]);
  });
});
