// Signals that fire when an actor begins to stop: who is told, and how long they are kept.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { actor, awake, none, numbers, opened, turn, until } from "./support/native.mjs";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");

const CALLER = 1;

describe("abortSignal of the contract", () => {
  it("is let go of when the call is over that asked for it", async (t) => {
    const signals = [];
    const ask = (_, __, { ctx }) => {
      const signal = ctx.abortSignal();
      signal.addEventListener("abort", () => {});
      signals.push(new WeakRef(signal));
      return 0;
    };
    const host = await opened(t, { counter: numbers({ ask }) });
    const target = actor("counter", "a");

    for (let i = 0; i < 50; i++) await host.submit(target, "ask", none, CALLER);
    // What a loop has touched lives until the loop has turned.
    await turn();
    collect();

    const kept = signals.filter((signal) => signal.deref() !== undefined);
    assert.ok(kept.length < 5, `${kept.length} are kept`);
  });

  it("fires for calls that go on, and for what belongs to no call", async (t) => {
    const fired = [];
    const listen = (name, ctx) =>
      ctx.abortSignal().addEventListener("abort", () => fired.push(name));
    let end;
    const callbacks = {
      onWake: (_, { ctx }) => listen("hook", ctx),
    };
    const wait = (_, __, { ctx }) => {
      listen("call", ctx);
      return new Promise((resolve) => {
        end = resolve;
      });
    };
    const host = await opened(t, { counter: numbers({ wait }, {}, callbacks) });
    const target = actor("counter", "a");
    const bag = await awake(host, target);
    const called = host.submit(target, "wait", none, CALLER);
    await until(() => end !== undefined);
    collect();

    bag.context.sleep();
    await until(() => fired.length === 2, "both are told");

    assert.deepEqual(fired.sort(), ["call", "hook"]);
    end(0);
    await called;
  });

  it("has fired where the actor has begun to stop", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const bag = await awake(host, actor("counter", "a"));
    const { context } = bag;

    context.sleep();
    await until(() => bag.stopped !== undefined);

    assert.equal(context.abortSignal().aborted, true);
  });
});
