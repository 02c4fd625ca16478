// `greenroom/testing`: a clock that stands still.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it, mock } from "node:test";

import { actor } from "../dist/index.js";
import { testRuntime } from "../dist/testing.js";
import { deferred } from "./support/registry.mjs";
import { counter, HOUR, runtime, START, sleeper } from "./support/testing.mjs";

describe("testRuntime()", () => {
  it("refuses what it does not know, and values of the wrong kind", () => {
    const refused = [
      [{ use: { counter }, storage: "x" }, /unknown key "storage" of testRuntime\(\)/],
      [{ use: { counter }, seed: -1 }, /seed of testRuntime\(\) is -1/],
      [{ use: { counter }, now: "today" }, /now of testRuntime\(\) is "today"/],
      [{ use: { counter }, now: new Date(Number.NaN) }, /now of testRuntime\(\)/],
      [{ use: { counter }, stallTimeout: -1 }, /stallTimeout of testRuntime\(\) is -1/],
      [{ use: { counter: {} } }, /not the result of actor\(\)/],
      [undefined, /testRuntime\(\) takes an object/],
    ];
    for (const [options, message] of refused) {
      assert.throws(() => testRuntime(options), { name: "TypeError", message });
    }
  });

  it("stands still until it is told to go on", async (t) => {
    const { client, clock } = runtime(t, { sleeper }, { now: new Date("2030-05-01T00:00:00Z") });
    const began = clock.now();
    assert.equal(began, Date.UTC(2030, 4, 1));
    const napped = client.sleeper.getOrCreate("a").nap(1_000);

    await clock.advance(999);
    assert.equal(clock.now(), began + 999);
    await clock.advance(1);

    assert.equal(await napped, began + 1_000);
  });

  it("shares nothing with another one", async (t) => {
    const [one, other] = [runtime(t, { counter }), runtime(t, { counter })];

    await one.client.counter.getOrCreate("a").increment();
    await one.clock.advance("1 day");

    assert.equal(await other.client.counter.getOrCreate("a").get(), 0);
    assert.equal(other.clock.now(), START);
  });

  it("hands deps to createVars", async (t) => {
    const asks = actor({
      createVars: (_c, deps) => ({ answer: deps.answer }),
      actions: { ask: (c) => c.vars.answer },
    });

    const { client } = runtime(t, { asks }, { deps: { answer: 42 } });

    assert.equal(await client.asks.getOrCreate().ask(), 42);
  });
});

describe("clock.advance()", () => {
  it("refuses what is no duration, and does nothing", async (t) => {
    const { clock } = runtime(t, { counter });
    for (const wrong of [-1, Number.NaN, Infinity, "soon", "3 parsecs", "1", "-1 day", null]) {
      await assert.rejects(clock.advance(wrong), { name: "TypeError", message: /advance\(\)/ });
    }
    assert.equal(clock.now(), START);
  });

  it("takes numbers and words", async (t) => {
    const { clock } = runtime(t, { counter });
    const lengths = { "5 ms": 5, "1 second": 1_000, "2 minutes": 120_000, "1.5 hours": 1.5 * HOUR };
    Object.assign(lengths, { "30 days": 720 * HOUR, "1 week": 168 * HOUR, "0 days": 0 });
    for (const [words, ms] of Object.entries(lengths)) {
      const before = clock.now();
      await clock.advance(words);
      assert.equal(clock.now() - before, ms, words);
    }
  });

  it("stops at everything on its way, in order, equal moments in the order of waiting", async (t) => {
    const woken = [];
    const naps = actor({
      actions: {
        async nap(c, name, ms) {
          await c.clock.sleep(ms);
          woken.push([name, c.now - START]);
        },
      },
    });
    const { client, clock } = runtime(t, { naps });
    const naming = { c: 300, a: 100, b: 200, a2: 100, late: 1_000 };
    const open = Object.entries(naming).map(([name, ms]) =>
      client.naps.getOrCreate(name.at(0)).nap(name, ms),
    );
    await clock.advance(0);

    await clock.advance(500);

    const expected = [
      ["a", 100],
      ["a2", 100],
      ["b", 200],
      ["c", 300],
    ];
    assert.deepEqual(woken, expected);
    await clock.advance(500);
    await Promise.all(open);
    assert.deepEqual(woken.at(-1), ["late", 1_000]);
  });

  it("runs an hourly loop for a year, each hour once", async (t) => {
    const hours = [];
    const hourly = actor({
      options: { noSleep: true },
      run: async (c) => {
        for (;;) {
          await c.clock.sleep(HOUR);
          hours.push(c.now);
        }
      },
      actions: { ping: () => "pong" },
    });
    const { client, clock } = runtime(t, { hourly });
    await client.hourly.getOrCreate().ping();

    await clock.advance("365 days");

    assert.equal(hours.length, 8_760);
    assert.ok(hours.every((at, n) => at === START + (n + 1) * HOUR));
  });

  it("lets time stand still while a function works for real", async (t) => {
    const seen = [];
    const reads = actor({
      options: { actionTimeout: 24 * HOUR },
      actions: {
        async work(c) {
          for (let n = 0; n < 20; n += 1) await readFile(new URL(import.meta.url));
          await new Promise((resolve) => setTimeout(resolve, 20));
          seen.push(c.now - START);
          await c.clock.sleep(HOUR);
          seen.push(c.now - START);
          await new Promise((resolve) => setTimeout(resolve, 20));
          await c.clock.sleep(HOUR);
          seen.push(c.now - START);
        },
      },
    });
    const { client, clock } = runtime(t, { reads });
    const worked = client.reads.getOrCreate().work();

    await clock.advance("1 day");

    await worked;
    assert.deepEqual(seen, [0, HOUR, 2 * HOUR]);
  });

  it("knows that a function waits for another actor, which waits on the clock", async (t) => {
    const chain = actor({
      actions: {
        async next(c, depth) {
          await c.clock.sleep(1_000);
          if (depth === 0) return c.now - START;
          return c
            .client()
            .chain.getOrCreate(String(depth))
            .next(depth - 1);
        },
      },
    });
    const { client, clock } = runtime(t, { chain });
    const end = client.chain.getOrCreate("first").next(49);

    await clock.advance("50 seconds");

    assert.equal(await end, 50_000);
  });

  it("waits for work in keepAwake and waitUntil, which may wait on the clock themselves", async (t) => {
    const seen = [];
    const works = actor({
      actions: {
        async kept(c) {
          await c.keepAwake(c.clock.sleep(1_000));
          await c.keepAwake(new Promise((resolve) => setTimeout(resolve, 20)));
          seen.push(["kept", c.now - START]);
        },
        background(c) {
          const work = async () => {
            await new Promise((resolve) => setTimeout(resolve, 20));
            seen.push(["real", c.now - START]);
            await c.clock.sleep(500);
            seen.push(["slept", c.now - START]);
          };
          c.waitUntil(work());
        },
      },
    });
    const { client, clock } = runtime(t, { works });
    const works1 = client.works.getOrCreate("a");
    await works1.background();
    const kept = works1.kept();

    await clock.advance("1 hour");

    await kept;
    assert.deepEqual(seen, [
      ["real", 0],
      ["slept", 500],
      ["kept", 1_000],
    ]);
  });

  it("with 0 does what is on its way, and no time passes", async (t) => {
    const saved = [];
    const slow = actor({
      state: { n: 0 },
      actions: {
        async work(c) {
          await new Promise((resolve) => setTimeout(resolve, 10));
          c.state.n += 1;
          saved.push(c.state.n);
        },
      },
    });
    const { client, clock } = runtime(t, { slow });
    const open = [1, 2, 3].map(() => client.slow.getOrCreate().work());

    await clock.advance(0);

    assert.deepEqual(saved, [1, 2, 3]);
    assert.equal(clock.now(), START);
    await Promise.all(open);
  });

  it("rejects when a function works for too long, naming it, and can go on afterwards", async (t) => {
    const gate = deferred();
    const stuck = actor({ actions: { wait: () => gate.promise, ping: () => "pong" } });
    const { client, clock } = runtime(t, { stuck }, { stallTimeout: 50 });
    const waits = client.stuck.getOrCreate(["room", "7"]).wait();

    await assert.rejects(clock.advance("1 day"), (error) => {
      assert.equal(`${error.group}.${error.code}`, "testing.stalled");
      assert.match(error.message, /^wait of stuck \["room","7"\] works for more than 50 ms/);
      assert.equal(error.metadata.function, "wait");
      assert.ok(error.metadata.holds.length > 0);
      return true;
    });
    assert.equal(clock.now(), START);

    gate.resolve("free");
    await clock.advance(1_000);
    assert.equal(await waits, "free");
    assert.equal(clock.now(), START + 1_000);
  });

  it("called again while it runs goes on where that ends", async (t) => {
    const { clock } = runtime(t, { counter });

    await Promise.all([clock.advance(10), clock.advance("1 hour"), clock.advance(0)]);

    assert.equal(clock.now(), START + HOUR + 10);
  });

  it("moves nothing but the runtime: false timers may stand beside it", async (t) => {
    mock.timers.enable({ apis: ["setTimeout", "setInterval", "setImmediate", "Date"] });
    t.after(() => mock.timers.reset());
    const { client, clock } = runtime(t, { sleeper });
    const napped = client.sleeper.getOrCreate().nap(HOUR);

    await clock.advance("2 hours");

    assert.equal(await napped, START + HOUR);
    assert.equal(Date.now(), 0);
  });

  it("lets actions time out", async (t) => {
    const times = actor({
      options: { actionTimeout: 5_000 },
      actions: { nap: (c, ms) => c.clock.sleep(ms) },
    });
    const { client, clock } = runtime(t, { times });
    const late = assert.rejects(client.times.getOrCreate("a").nap(HOUR), {
      code: "action_timed_out",
    });

    await clock.advance(5_000);

    await late;
  });
});

describe("awake() and evict()", () => {
  it("tell who is awake and why, and put one to sleep", async (t) => {
    const tidy = [];
    const tidies = actor({
      onSleep: async (c) => {
        await c.clock.sleep(10);
        tidy.push(c.key);
      },
      actions: { nap: (c, ms) => c.clock.sleep(ms), ping: () => "pong" },
    });
    const test = runtime(t, { tidies });
    assert.deepEqual(await test.awake(), []);
    const [one, two] = ["one", "two"].map((key) => test.client.tidies.getOrCreate(key));
    await one.ping();
    const napping = two.nap(1_000);
    await test.clock.advance(0);

    const found = await test.awake();
    assert.deepEqual(
      found.map(({ name, key, holds }) => [name, key, holds.length]),
      [
        ["tidies", ["one"], 0],
        ["tidies", ["two"], 1],
      ],
    );

    await test.evict(one);
    assert.deepEqual(tidy, [["one"]]);
    assert.deepEqual(
      (await test.awake()).map(({ key }) => key),
      [["two"]],
    );
    await test.clock.advance(1_000);
    await napping;
  });

  it("know the sleep timeout by the clock", async (t) => {
    const test = runtime(t, { counter });
    await test.client.counter.getOrCreate("a").increment();

    await test.clock.advance(29_999);
    assert.equal((await test.awake()).length, 1);
    await test.clock.advance(1);

    assert.deepEqual(await test.awake(), []);
  });
});
