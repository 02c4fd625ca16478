// Workflows. What a step did outside of the actor is noted in a file, which outlives the process.

import { appendFileSync } from "node:fs";
import path from "node:path";

import { actor, event, queue, UserError } from "rivetkit";
import { Loop, workflow } from "rivetkit/workflow";

import { note } from "./notes.mjs";

const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Notes in a file beside the actors' storage, and at once. */
const record = (c, what) =>
  appendFileSync(
    path.join(process.env.RIVETKIT_STORAGE_PATH, "record"),
    `${c.key.join("/")} ${what}\n`,
  );

const options = { sleepTimeout: 300 };

const steps = actor({
  state: { sum: 0, done: false },
  events: { done: event() },
  options,
  run: workflow(async (ctx) => {
    const first = await ctx.step("first", async (c) => {
      note(c, "first");
      c.state.sum += 1;
      return { n: 1, big: 2n };
    });
    const second = await ctx.step("second", (c) => {
      note(c, `second ${first.n} ${first.big}`);
      c.state.sum += 10;
      return 10;
    });
    await ctx.step("last", (c) => {
      c.state.done = first.n + second;
      c.broadcast("done", c.state.sum);
    });
  }),
  actions: { get: (c) => ({ ...c.state }) },
});

const sleeper = actor({
  state: { slept: null },
  options,
  run: workflow(async (ctx) => {
    const start = await ctx.step("start", (c) => {
      note(c, "start");
      return Date.now();
    });
    await ctx.sleep("nap", 2_000);
    await ctx.step("end", (c) => {
      note(c, "end");
      c.state.slept = Date.now() - start;
    });
  }),
  onWake: (c) => note(c, "onWake"),
  onSleep: (c) => note(c, "onSleep"),
  actions: { slept: (c) => c.state.slept },
});

const napping = actor({
  options,
  run: workflow(async (ctx) => {
    await ctx.step("before", (c) => record(c, "before"));
    await ctx.sleep("nap", 700);
    await ctx.step("after", (c) => record(c, "after"));
  }),
  actions: { touch: () => {} },
});

const looper = actor({
  state: { rounds: [], result: null },
  options,
  run: workflow(async (ctx) => {
    const result = await ctx.loop({
      name: "rounds",
      state: { n: 0 },
      run: async (inner, state) => {
        await inner.step("round", (c) => {
          c.state.rounds.push(state.n);
        });
        return state.n < 24 ? Loop.continue({ n: state.n + 1 }) : Loop.break(`after ${state.n}`);
      },
    });
    await ctx.step("result", (c) => {
      c.state.result = result;
    });
  }),
  actions: { get: (c) => ({ ...c.state }) },
});

const branches = actor({
  state: { joined: null, won: null },
  options,
  run: workflow(async (ctx) => {
    const joined = await ctx.join("all", {
      a: { run: (branch) => branch.step("a", () => delay(20).then(() => "a")) },
      b: { run: (branch) => branch.step("b", () => 7) },
    });
    const { winner, value } = await ctx.race("one", [
      { name: "slow", run: (branch) => branch.sleep("long", 60_000).then(() => "slow") },
      { name: "quick", run: (branch) => branch.step("quick", () => "quick") },
    ]);
    await ctx.step("keep", (c) => {
      c.state.joined = joined;
      c.state.won = [winner, value];
    });
  }),
  actions: { get: (c) => ({ ...c.state }) },
});

const stubborn = actor({
  state: { tries: 0, answer: null, caught: null, errors: [] },
  options,
  run: workflow(
    async (ctx) => {
      const answer = await ctx.step({
        name: "thrice",
        maxRetries: 5,
        retryBackoffBase: 10,
        retryBackoffMax: 20,
        run: (c) => {
          c.state.tries += 1;
          if (c.state.tries < 3) throw new Error("not yet");
          return "at last";
        },
      });
      const tried = await ctx.tryStep({
        name: "never",
        maxRetries: 1,
        retryBackoffBase: 10,
        run: () => {
          throw new UserError("never", { code: "never" });
        },
      });
      await ctx.step("keep", (c) => {
        c.state.answer = answer;
        c.state.caught = tried.ok;
      });
    },
    { onError: (c) => note(c, "onError") },
  ),
  actions: { get: (c) => ({ ...c.state }) },
});

const undone = actor({
  state: { log: [] },
  options,
  run: workflow(async (ctx) => {
    await ctx.rollbackCheckpoint("from here");
    await ctx.step({
      name: "book",
      run: (c) => {
        c.state.log.push("book");
        return "seat 7";
      },
      rollback: async (c, output) => {
        c.state.log.push(`unbook ${output}`);
      },
    });
    await ctx.step({
      name: "pay",
      maxRetries: 0,
      run: () => {
        throw new Error("no money");
      },
    });
  }),
  actions: { log: (c) => c.state.log },
});

const listener = actor({
  state: { heard: [] },
  queues: { orders: queue() },
  options,
  run: workflow(async (ctx) => {
    await ctx.loop({
      name: "orders",
      run: async (inner) => {
        const message = await inner.queue.next("order", { names: ["orders"] });
        await inner.step("handle", (c) => {
          c.state.heard.push(message.body);
        });
        return Loop.continue(undefined);
      },
    });
  }),
  onWake: (c) => note(c, "onWake"),
  onSleep: (c) => note(c, "onSleep"),
  actions: { heard: (c) => c.state.heard },
});

/** A workflow that a crash finds in the middle of a step: the first try of it never ends. */
const crashing = actor({
  state: { done: [], result: null },
  options: { sleepTimeout: 60_000 },
  run: workflow(async (ctx) => {
    const a = await ctx.step("a", (c) => {
      record(c, "a");
      c.state.done.push("a");
      return "of a";
    });
    const round = await ctx.loop({
      name: "rounds",
      state: 0,
      run: async (inner, n) => {
        await inner.step("round", (c) => {
          record(c, `round ${n}`);
          c.state.done.push(`round ${n}`);
        });
        return n < 2 ? Loop.continue(n + 1) : Loop.break(n);
      },
    });
    const b = await ctx.step({
      name: "b",
      timeout: 600_000,
      run: async (c) => {
        record(c, "b");
        if (process.env.COMPAT_HANG === "1") await new Promise(() => {});
        c.state.done.push("b");
        return "of b";
      },
    });
    await ctx.sleep("pause", 300);
    await ctx.step("c", (c) => {
      record(c, "c");
      c.state.done.push("c");
      c.state.result = [a, round, b];
    });
  }),
  actions: { get: (c) => ({ ...c.state }) },
});

export const actors = {
  steps,
  sleeper,
  looper,
  branches,
  stubborn,
  undone,
  listener,
  napping,
  crashing,
};
