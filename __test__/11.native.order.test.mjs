// Both ways of calling keep one order, and nothing runs on the caller's stack.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import {
  actor,
  awake,
  bytes,
  dispatch,
  none,
  numbers,
  opened,
  text,
  turn,
} from "./support/native.mjs";

/** A small generator whose seed a failure names. */
function generator(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
}

describe("calls in place, queued and with bytes", () => {
  for (let seed = 1; seed <= 12; seed += 1) {
    it(`begin in the order of acceptance, in any mix (seed ${seed})`, async (t) => {
      const begun = [];
      const mark = async (_, args) => {
        begun.push(Number(args));
        if (Number(args) % 3 === 0) await turn();
      };
      const host = await opened(t, { marker: numbers({ mark }) });
      const target = actor("marker", seed);
      const bag = await awake(host, target);
      const random = generator(seed);

      const calls = [];
      let inPlace = 0;
      for (let n = 0; n < 400; n += 1) {
        const way = random(6);
        const run = () => mark(bag, String(n));
        const placed = way < 4 ? dispatch.inPlace(bag, run) : undefined;
        if (placed !== undefined) inPlace += 1;
        const queued = way === 4 ? dispatch.queued(bag, run) : undefined;
        calls.push(placed ?? queued ?? host.submit(target, "mark", bytes(n), 2));
        if (random(6) === 0) await null;
        if (random(25) === 0) await turn();
        if (random(80) === 0) await Promise.all(calls);
      }
      await Promise.all(calls);

      assert.deepEqual(
        begun,
        calls.map((_, n) => n),
      );
      assert.ok(inPlace > 10, `only ${inPlace} of 400 went in place`);
      assert.ok(inPlace < 400);
    });
  }

  it("run no author code before the call has given its promise back", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const bag = await awake(host, actor("counter", "a"));
    const events = [];

    const call = dispatch.inPlace(bag, () => events.push("body"));
    events.push("returned");
    await call;

    assert.deepEqual(events, ["returned", "body"]);
  });

  it("run a call that an action makes after the action's own synchronous part", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const bag = await awake(host, actor("counter", "a"));
    const events = [];

    await dispatch.inPlace(bag, () => {
      const inner = dispatch.inPlace(bag, () => events.push("inner"));
      events.push("outer");
      return inner;
    });

    assert.deepEqual(events, ["outer", "inner"]);
  });

  it("refuse to go in place while older work has not begun", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const target = actor("counter", "a");
    const bag = await awake(host, target);

    const queued = host.submit(target, "add", none, 2);
    const overtaking = dispatch.inPlace(bag, () => 1);
    await queued;

    assert.equal(overtaking, undefined);
    assert.equal(await dispatch.inPlace(bag, () => 1), 1);
  });

  it("see each other's changes in order", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const target = actor("counter", "a");
    const bag = await awake(host, target);

    const first = host.submit(target, "add", bytes(5), 2);
    await turn();
    const second = dispatch.inPlace(bag, () => bag.extension.n);

    assert.equal(text(await first), "5");
    assert.equal((await second) ?? (await dispatch.inPlace(bag, () => bag.extension.n)), 5);
  });
});
