// Calls while actors fall asleep, wake and are destroyed: each is applied as often as it was
// acknowledged, and nobody is left waiting.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { actor, setup } from "greenroom";
import { chance } from "./support/chance.mjs";

const quiet = { level: "silent" };

function registryOf(t, use) {
  const registry = setup({ use, storage: ":memory:", logging: quiet });
  t.after(() => registry.shutdown({ deadline: 1_000 }));
  return registry;
}

describe("an actor that falls asleep all the time", () => {
  it("applies each call exactly once and answers it", async (t) => {
    const random = chance(7);
    const ledger = actor({
      createState: () => ({ applied: {} }),
      actions: {
        apply(c, id) {
          c.state.applied[id] = (c.state.applied[id] ?? 0) + 1;
          if (id % 7 === 0) c.sleep();
        },
        applied: (c) => c.snapshot().applied,
      },
      options: { sleepTimeout: 5 },
    });
    const registry = registryOf(t, { ledger });
    const handle = registry.client().ledger.getOrCreate("storm");

    const calls = [];
    for (let id = 0; id < 1_000; id++) {
      calls.push(handle.apply(id));
      if (id % 20 === 0) await sleep(random() * 8);
      if (id % 50 === 0) calls.push(registry.actor(handle).sleep());
    }
    await Promise.all(calls);

    const applied = await handle.applied();
    const wrong = calls
      .map((_, id) => applied[id])
      .filter((count, id) => id < 1_000 && count !== 1);
    assert.deepEqual(wrong, []);
  });

  it("loses nothing whose flush has resolved, and leaves no flush open", async (t) => {
    const flushed = new Map();
    let open = 0;
    const ticking = actor({
      state: { n: 0 },
      createVars: () => ({ timer: undefined }),
      onWake(c) {
        const tick = async () => {
          let n;
          try {
            n = ++c.state.n;
          } catch {
            // The actor is over, and with it its timer.
            clearInterval(c.vars.timer);
            return;
          }
          open += 1;
          try {
            await c.flush();
            flushed.set(c.key[0], Math.max(n, flushed.get(c.key[0]) ?? 0));
          } catch {
            // Not flushed, and not counted.
          }
          open -= 1;
        };
        c.vars.timer = setInterval(tick, 0);
      },
      actions: {
        count(c) {
          clearInterval(c.vars.timer);
          return c.state.n;
        },
        wake: () => undefined,
      },
    });
    const registry = registryOf(t, { ticking });

    for (let i = 0; i < 15; i++) {
      const handle = registry.client().ticking.getOrCreate(`t${i}`);
      await handle.wake();
      await sleep(10);
      await registry.actor(handle).sleep();
      await sleep(10);
      const count = await handle.count();
      assert.ok(count >= (flushed.get(`t${i}`) ?? 0), `${count} of ${flushed.get(`t${i}`)}`);
    }
    await sleep(50);
    assert.ok(flushed.size > 0);
    assert.equal(open, 0);
  });
});

describe("an actor that is destroyed all the time", () => {
  it("is never alive twice, and every call is answered", async (t) => {
    const random = chance(11);
    const alive = new Set();
    let twice = 0;
    const mortal = actor({
      createState: () => ({ n: 0 }),
      onWake(c) {
        if (alive.has(c.actorId)) twice += 1;
        alive.add(c.actorId);
      },
      onSleep: (c) => void alive.delete(c.actorId),
      onDestroy: (c) => void alive.delete(c.actorId),
      actions: { add: (c) => ++c.state.n, die: (c) => c.destroy() },
      options: { sleepTimeout: 5 },
    });
    const registry = registryOf(t, { mortal });
    const client = registry.client();

    const outcomes = {};
    const calls = [];
    const note = (what) => (outcomes[what] = (outcomes[what] ?? 0) + 1);
    for (let i = 0; i < 800; i++) {
      const handle = i % 3 === 0 ? client.mortal.get("m") : client.mortal.getOrCreate("m");
      const call =
        i % 17 === 0
          ? registry.actor(handle).destroy()
          : i % 13 === 0
            ? handle.die()
            : handle.add();
      calls.push(
        call.then(
          () => note("ok"),
          (error) => note(`${error.group}/${error.code}`),
        ),
      );
      if (i % 10 === 0) await sleep(random() * 3);
    }
    await Promise.all(calls);

    assert.equal(twice, 0);
    assert.ok(outcomes.ok > 0);
    const known = ["ok", "actor/not_found", "actor/destroying", "actor/stopping"];
    assert.deepEqual(
      Object.keys(outcomes).filter((what) => !known.includes(what)),
      [],
    );
  });
});
