// Answers of one actor reach whoever called in the order in which its functions ended, whichever way
// each call took and whatever they wait for.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import * as layer from "../dist/index.js";
import {
  actor,
  add,
  awake,
  bytes,
  dispatch,
  folder,
  numbers,
  opened,
  text,
  turn,
  until,
} from "./support/native.mjs";

/** All orders of a list. */
function orders(list) {
  if (list.length < 2) return [list];
  return list.flatMap((first) => {
    const rest = list.filter((other) => other !== first);
    return orders(rest).map((order) => [first, ...order]);
  });
}

/** Functions that wait until the test ends them, in an order of its own. */
function ends() {
  const waiting = new Map();
  return {
    waiting,
    wait: (name) => new Promise((resolve) => waiting.set(name, resolve)),
    /** Ends them one after the other, `apart` microtasks apart, within one turn of the loop. */
    async end(order, apart = 20) {
      for (const name of order) {
        waiting.get(name)();
        for (let hop = 0; hop < apart; hop += 1) await null;
      }
    },
  };
}

/** Notes when each of `calls` is answered. */
async function answered(calls) {
  const order = [];
  await Promise.all(
    Object.entries(calls).map(([name, call]) =>
      call.then(
        () => order.push(name),
        () => order.push(name),
      ),
    ),
  );
  return order;
}

const names = ["ordinary 1", "in place 1", "ordinary 2", "in place 2"];

describe("answers that wait for one commit", () => {
  for (const changes of [true, false]) {
    it(`leave in the order in which they were made: ${changes ? "with" : "without"} changes`, async (t) => {
      const { waiting, wait, end } = ends();
      const work = async (bag, name) => {
        await wait(name);
        if (changes) add(bag, 1);
      };
      const host = await opened(t, { counter: numbers({ work }) }, { path: folder(t) });
      for (const [n, order] of orders(names).entries()) {
        const target = actor("counter", n);
        const bag = await awake(host, target);
        const calls = {};
        for (const name of names.filter((name) => name.startsWith("ordinary"))) {
          calls[name] = host.submit(target, "work", bytes(name), 2);
        }
        await until(() => waiting.size === 2, "the ordinary ones to begin");
        for (const name of names.filter((name) => name.startsWith("in place"))) {
          calls[name] = dispatch.inPlace(bag, () => work(bag, name));
        }
        await until(() => waiting.size === 4, "all to begin");
        await turn();

        const result = answered(calls);
        await end(order);

        assert.deepEqual(await result, order);
        waiting.clear();
        if (changes) assert.equal(text(bag.context.state()), "4");
      }
    });
  }

  for (const apart of [0, 1, 20]) {
    it(`keep that order through the author's layer, failures among them, ${apart} microtasks apart`, async (t) => {
      const { waiting, wait, end } = ends();
      const counter = layer.actor({
        state: { n: 0 },
        actions: {
          work: async (c, name) => {
            await wait(name);
            c.state.n += 1;
            if (name.endsWith("2")) throw new layer.UserError(name);
          },
          ping: () => {},
        },
      });
      const logging = { level: "silent" };
      const registry = layer.setup({ use: { counter }, storage: folder(t), logging });
      t.after(() => registry.shutdown({ deadline: 500 }));
      const { counter: counters } = registry.client();
      await counters.getOrCreate("first").ping();
      for (const [n, order] of orders(names).entries()) {
        const handle = counters.getOrCreate(`k${n}`);
        // What is called before the actor lives takes the ordinary way.
        const calls = {};
        for (const name of names.filter((name) => name.startsWith("ordinary"))) {
          calls[name] = handle.work(name);
        }
        await until(() => waiting.size === 2, "the ordinary ones to begin");
        for (const name of names.filter((name) => name.startsWith("in place"))) {
          calls[name] = handle.work(name);
        }
        await until(() => waiting.size === 4, "all to begin");
        await turn();

        const result = answered(calls);
        await end(order, apart);

        assert.deepEqual(await result, order);
        waiting.clear();
      }
    });
  }

  it("keep it also where a call was held up until the folder was open", async (t) => {
    for (let round = 0; round < 5; round += 1) {
      const { waiting, wait, end } = ends();
      const counter = layer.actor({
        state: { n: 0 },
        actions: {
          work: async (c, name) => {
            await wait(name);
            c.state.n += 1;
          },
        },
      });
      const logging = { level: "silent" };
      const registry = layer.setup({ use: { counter }, storage: folder(t), logging });
      t.after(() => registry.shutdown({ deadline: 500 }));
      const handle = registry.client().counter.getOrCreate("a");
      const calls = { "held up": handle.work("held up") };
      await registry.list();
      calls.later = handle.work("later");
      await until(() => waiting.size === 2, "both to begin");

      const result = answered(calls);
      await end(["held up", "later"], 0);

      assert.deepEqual(await result, ["held up", "later"]);
    }
  });
});

describe("an answer in place behind one of the ordinary way", () => {
  it("leaves when the caller of that one has given up", async (t) => {
    const { waiting, wait, end } = ends();
    const work = async (bag, name) => {
      await wait(name);
      add(bag, 1);
    };
    const host = await opened(t, { counter: numbers({ work }) }, { path: folder(t) });
    const target = actor("counter", "a");
    const bag = await awake(host, target);
    const controller = new AbortController();
    const { signal } = controller;
    const given = host.submit(target, "work", bytes("ordinary 1"), 2, { signal });
    given.catch(() => {});
    await until(() => waiting.size === 1);
    const placed = dispatch.inPlace(bag, () => work(bag, "in place 1"));
    await until(() => waiting.size === 2);

    await end(["ordinary 1", "in place 1"]);
    controller.abort(new Error("no more"));

    await assert.rejects(given, { message: "no more" });
    await placed;
    assert.equal(bag.holdsOutputs, false);
  });

  it("fails with it when the generation breaks", async (t) => {
    const { waiting, wait, end } = ends();
    const work = async (bag, name) => {
      await wait(name);
      add(bag, 1);
    };
    const encodeState = (bag) => {
      if (bag.extension.n > 0) throw new Error("cannot be stored");
      return bytes(bag.extension.n);
    };
    const factory = numbers({ work }, {}, { encodeState });
    const host = await opened(t, { counter: factory }, { path: folder(t) });
    const target = actor("counter", "a");
    const bag = await awake(host, target);
    const ordinary = host.submit(target, "work", bytes("ordinary 1"), 2);
    await until(() => waiting.size === 1);
    const placed = dispatch.inPlace(bag, () => work(bag, "in place 1"));
    await until(() => waiting.size === 2);

    const failed = Promise.allSettled([ordinary, placed]);
    await end(["ordinary 1", "in place 1"]);

    for (const { reason } of await failed) {
      assert.equal(reason.metadata.error, "cannot be stored");
    }
  });
});
