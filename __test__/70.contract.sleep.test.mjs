// What the contract says of sleep and of the end of an actor, on a clock that stands still.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { bridged } from "./support/bridge.mjs";
import { outcome, Script, still, typed } from "./support/contract.mjs";
import { actor, bytes, none } from "./support/native.mjs";

const target = actor("counter", "a");
const IDLE_MS = 30_000;
const GRACE_MS = 15_000;

/** A host with one type of actors, and one of them awake. */
async function awoken(t, callbacks = {}, config = {}) {
  const stands = await still(t, { counter: typed(callbacks, config) });
  stands.call = async (action, args = none) => {
    const told = outcome(stands.host.submit(target, action, args, 2));
    await stands.rest();
    return told;
  };
  const first = await stands.call("get");
  assert.equal(first.state, "done", String(first.error));
  return Object.assign(stands, { bag: stands.host.live(target) });
}

/** A promise that ends when it is told to. */
function held() {
  let end;
  const promise = new Promise((resolve) => {
    end = () => resolve(null);
  });
  return { promise, end };
}

describe("an idle actor", () => {
  it("falls asleep after its time, and not before", async (t) => {
    const script = new Script();
    const stands = await awoken(t, { onSleep: script.note("onSleep") });

    await stands.pass(IDLE_MS - 1);
    assert.equal(stands.bag.stopped, undefined);
    await stands.pass(1);

    assert.equal(stands.bag.stopped?.outcome, "slept");
    assert.deepEqual(script.calls, ["onSleep"]);
  });

  it("stays awake where it never sleeps", async (t) => {
    const stands = await awoken(t, {}, { noSleep: true });

    await stands.pass(10 * IDLE_MS);

    assert.equal(stands.bag.stopped, undefined);
  });

  for (const [what, begin] of [
    [
      "a promise that it is kept awake for",
      ({ context }, { promise }) => context.keepAwake(promise),
    ],
    ["a task of the runtime", ({ context }, { promise }) => context.registerTask(promise)],
    [
      "a region",
      ({ context }, { promise }) => {
        const region = context.beginKeepAwake();
        promise.then(() => context.endKeepAwake(region));
      },
    ],
    [
      "a callback of a socket",
      ({ context }, { promise }) => {
        const region = context.beginWebsocketCallback();
        promise.then(() => context.endWebsocketCallback(region));
      },
    ],
    [
      "a watcher of its state",
      ({ context }, { promise }) => {
        context.beginOnStateChange();
        promise.then(() => context.endOnStateChange());
      },
    ],
    [
      "a connection",
      ({ context }, { promise }) => {
        context.connectConn(none).then((conn) => promise.then(() => conn.disconnect()));
      },
    ],
  ]) {
    it(`is kept awake by ${what}`, async (t) => {
      const stands = await awoken(t);
      const work = held();
      begin(stands.bag, work);

      await stands.pass(3 * IDLE_MS);
      assert.equal(stands.bag.stopped, undefined);
      work.end();
      await stands.pass(IDLE_MS);

      assert.equal(stands.bag.stopped?.outcome, "slept");
    });
  }

  it("is not kept awake by what its end alone waits for", async (t) => {
    const stands = await awoken(t);
    const work = held();
    stands.bag.context.waitUntil(work.promise);

    await stands.pass(IDLE_MS);
    assert.equal(stands.bag.context.aborted(), true);
    assert.equal(stands.bag.stopped, undefined);
    work.end();
    await stands.rest();

    assert.equal(stands.bag.stopped?.outcome, "slept");
  });

  it("is kept awake by its run handler, unless that waits for messages", async (t) => {
    const work = held();
    let refused;
    const run = async (_, { ctx }) => {
      await work.promise;
      refused = await ctx
        .queue()
        .nextBatch({ names: ["job"] })
        .catch((error) => error);
      throw refused;
    };
    const stands = await awoken(t, { run });

    await stands.pass(3 * IDLE_MS);
    assert.equal(stands.bag.stopped, undefined);
    work.end();
    await stands.pass(IDLE_MS);

    assert.equal(stands.bag.stopped?.outcome, "slept");
    bridged("actor", "aborted")(refused);
  });
});

describe("the end of a generation", () => {
  it("waits for its work, at most as long as its grace", async (t) => {
    const script = new Script();
    const seen = [];
    const onSleep = async (_, { ctx }) => {
      seen.push(await ctx.waitForTrackedShutdownWork());
      script.calls.push("onSleep");
    };
    const stands = await awoken(t, { onSleep });
    stands.bag.context.waitUntil(new Promise(() => {}));
    stands.bag.context.sleep();

    await stands.pass(GRACE_MS - 1);
    assert.equal(stands.bag.stopped, undefined);
    await stands.pass(1);

    assert.equal(stands.bag.stopped?.outcome, "slept");
    assert.deepEqual(seen, [false]);
  });

  it("tells onSleep when the work has ended in time, and stores what that changed", async (t) => {
    const seen = [];
    const work = held();
    const onSleep = async (_, { ctx }) => {
      seen.push(await ctx.waitForTrackedShutdownWork());
      await ctx.waitForTrackedShutdownWorkUnbounded();
      ctx.runtimeState().value = "changed";
      await ctx.requestSaveAndWait({ immediate: true });
      ctx.clearRuntimeState();
    };
    const stands = await awoken(t, { onSleep });
    stands.bag.context.waitUntil(work.promise);
    stands.bag.context.sleep();
    await stands.pass(GRACE_MS / 2);
    work.end();
    await stands.rest();

    assert.deepEqual([seen, stands.bag.stopped?.outcome], [[true], "slept"]);
    assert.equal((await stands.call("get")).value?.toString(), "changed");
  });

  it("lets calls in while it falls asleep, and none while it is destroyed", async (t) => {
    const works = [];
    const hold = () => {
      const work = held();
      works.push(work);
      return work.promise;
    };
    const stands = await awoken(t, { onSleep: hold, onDestroy: hold });
    stands.bag.context.sleep();
    await stands.rest();
    const sleeping = await stands.call("get");
    works.shift().end();
    await stands.rest();
    assert.equal(sleeping.state, "done");
    await stands.call("get");
    const next = stands.host.live(target);
    next.context.destroy();
    await stands.rest();

    assert.throws(() => next.context.destroy(), bridged("actor", "stopping"));
    assert.equal(next.context.destroyRequested(), true);
    works.shift().end();
    await stands.rest();

    assert.equal(next.stopped?.outcome, "destroyed");
  });

  it("refuses to begin before the start has ended", async (t) => {
    const refused = [];
    const onWake = async (_, { ctx }) => {
      for (const end of [() => ctx.sleep(), () => ctx.destroy()]) {
        try {
          end();
        } catch (error) {
          refused.push(error);
        }
      }
    };
    await awoken(t, { onWake });

    assert.equal(refused.length, 2);
    for (const error of refused) bridged("actor", "starting")(error);
  });
});

describe("a run handler", () => {
  it("that fails or ends leaves its actor alive", async (t) => {
    const run = async () => {
      throw new Error("no");
    };
    const stands = await awoken(t, { run });

    assert.equal(stands.bag.context.runHandlerActive(), false);
    assert.equal((await stands.call("get")).state, "done");
    await stands.pass(IDLE_MS);
    assert.equal(stands.bag.stopped?.outcome, "slept");
  });

  it("is woken at the moment that it asked for, once, or again where it asks for that", async (t) => {
    const results = [true, false, true];
    const woken = [];
    const run = async (_, { ctx }) => {
      woken.push(stands?.trial.now);
      const first = woken.length === 1;
      if (first) await ctx.setRunWakeAt(START + 3_600_000);
      return results[woken.length - 1] ?? true;
    };
    const START = Date.UTC(2025, 0, 1);
    let stands;
    stands = await awoken(t, { run });
    await stands.pass(IDLE_MS);
    assert.equal(stands.bag.stopped?.outcome, "slept");

    await stands.pass(3_600_000 - IDLE_MS);
    const again = stands.host.live(target);
    await stands.pass(1_000);

    assert.ok(again !== undefined && again !== stands.bag);
    // Its second time asked for a third, which came at once.
    assert.deepEqual(woken.slice(1, 3), [START + 3_600_000, START + 3_600_000]);
    assert.equal(woken.length, 3);
  });

  it("is begun again on request, and refuses where there is none", async (t) => {
    let runs = 0;
    const run = async () => {
      runs += 1;
      return true;
    };
    const stands = await awoken(t, { run });
    stands.bag.context.restartRunHandler();
    await stands.rest();
    assert.equal(runs, 2);

    const plain = await awoken(t);
    assert.throws(() => plain.bag.context.restartRunHandler(), bridged("napi", "invalid_state"));
  });
});

describe("a save that is asked for", () => {
  it("comes within its interval, at once, or by the time that it may take", async (t) => {
    const asked = [];
    const serializeState = async (_, { ctx, reason }) => {
      asked.push([reason, stands?.trial.now - START]);
      return { state: bytes(ctx.runtimeState().value ?? "x"), connHibernation: [] };
    };
    const START = Date.UTC(2025, 0, 1);
    let stands;
    stands = await awoken(t, { serializeState }, { noSleep: true });
    const { context } = stands.bag;
    await stands.pass(5_000);
    asked.length = 0;

    context.requestSave();
    context.requestSave({ immediate: false });
    await stands.pass(0);
    context.requestSave();
    await stands.pass(999);
    const within = asked.splice(0).map(([, at]) => at);
    await stands.pass(1_000);
    asked.length = 0;
    context.requestSave({ immediate: true });
    await stands.rest();
    const atOnce = asked.splice(0);
    context.requestSave({ maxWaitMs: 100 });
    await stands.pass(100);

    assert.ok(within.length <= 2 && within[0] <= 6_000, String(within));
    assert.equal(atOnce.length, 1);
    assert.equal(asked.length, 1);
  });
});
