// The contract's classes: handles on generations, tokens, errors in both forms.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import {
  BRIDGE_PREFIX,
  CancellationToken,
  CoreRegistry,
  NapiActorFactory,
  unbridged,
} from "greenroom/native";

import {
  actor,
  awake,
  bagOf,
  bytes,
  dispatch,
  folder,
  none,
  numbers,
  opened,
  text,
  turn,
  until,
} from "./support/native.mjs";

const bridged = (group, code) => (error) => {
  assert.ok(error instanceof Error);
  assert.ok(error.message.startsWith(BRIDGE_PREFIX), error.message);
  const record = JSON.parse(error.message.slice(BRIDGE_PREFIX.length));
  assert.deepEqual(Object.keys(record), [
    "actor",
    "code",
    "group",
    "message",
    "metadata",
    "public",
    "rayId",
    "statusCode",
  ]);
  assert.deepEqual([record.group, record.code], [group, code]);
  assert.deepEqual([error.group, error.code], [group, code]);
  return true;
};

describe("CancellationToken", () => {
  it("calls each listener once, error first, also one that comes late", async () => {
    const token = new CancellationToken();
    const heard = [];
    token.onCancelled((...args) => heard.push(["early", ...args]));
    assert.equal(token.aborted(), false);

    token.cancel();
    token.cancel();
    token.onCancelled((...args) => heard.push(["late", ...args]));
    await turn();

    assert.equal(token.aborted(), true);
    assert.deepEqual(heard, [
      ["early", null],
      ["late", null],
    ]);
  });

  it("takes functions only", () => {
    assert.throws(() => new CancellationToken().onCancelled("x"), TypeError);
  });
});

describe("CoreRegistry", () => {
  it("takes types until it is shut down, and can be shut down twice", async () => {
    const registry = new CoreRegistry();
    registry.register("b", numbers());
    registry.register("a", numbers());
    assert.deepEqual(registry.names(), ["a", "b"]);

    await registry.shutdown();
    await registry.shutdown();

    assert.throws(() => registry.register("c", numbers()), bridged("napi", "invalid_state"));
  });
});

describe("NapiActorFactory", () => {
  it("refuses settings that contradict each other", () => {
    const twice = [
      { id: "x", label: "X", source: "x" },
      { id: "x", label: "X", source: "x" },
    ];

    assert.throws(() => new NapiActorFactory({}, { inspectorTabs: twice }), /occurs twice/);
    assert.throws(
      () => new NapiActorFactory({}, { durability: "never" }),
      bridged("napi", "invalid_argument"),
    );
  });

  it("ignores functions that are undefined and settings that it does not know", () => {
    const made = new NapiActorFactory(
      { onWake: undefined, run: undefined },
      { preloadMaxWorkflowBytes: 1 },
    );

    assert.equal(made.gated, false);
    assert.ok(made.number > 0);
  });
});

describe("ActorContext", () => {
  it("knows who it is", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const { context, identity } = await awake(host, actor("counter", "a", 7));

    assert.equal(context.actorId(), identity.actorId);
    assert.equal(context.name(), "counter");
    assert.equal(context.region(), "");
    assert.deepEqual(context.key(), [
      { kind: "string", stringValue: "a" },
      { kind: "number", numberValue: 7 },
    ]);
  });

  it("is one instance per generation, and another one after a sleep", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const target = actor("counter", "a");
    const first = await awake(host, target);
    const again = await awake(host, target);
    const before = first.context;
    assert.equal(again.context, before);
    assert.equal(bagOf(before), first);
    before.runtimeState().secret = 1;

    await host.sleep(first.identity.actorId);
    const second = await awake(host, target);

    assert.notEqual(second.context, before);
    assert.equal(before.sameActorInstance(before), true);
    assert.equal(before.sameActorInstance(second.context), false);
    assert.deepEqual(second.context.runtimeState(), {});
    assert.equal(before.runtimeState().secret, 1, "usable after the end");
    assert.equal(before.actorId(), second.context.actorId());
  });

  it("gives one runtime state to all until it is cleared", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const { context } = await awake(host, actor("counter", "a"));
    const state = context.runtimeState();

    assert.equal(context.runtimeState(), state);
    context.clearRuntimeState();
    assert.notEqual(context.runtimeState(), state);
  });

  it("gives the state as it was last saved, as a copy", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const target = actor("counter", "a");
    const { context } = await awake(host, target);
    assert.equal(text(context.state()), "0");

    await host.submit(target, "add", bytes(42), 2);
    const state = context.state();
    assert.equal(text(state), "42");
    state.fill(0);

    assert.equal(text(context.state()), "42");
  });

  it("saves through the contract's way: asked for, and a promise", async (t) => {
    const path = folder(t);
    const asked = [];
    const callbacks = {
      createState: async () => bytes("first"),
      serializeState: async (_, { ctx, reason }) => {
        asked.push(reason);
        return { state: Buffer.from(String(ctx.runtimeState().value)) };
      },
      actions: {
        set: async (_, { ctx, args }) => {
          ctx.runtimeState().value = text(args);
          await ctx.requestSaveAndWait({ immediate: true });
          return bytes(text(ctx.state()));
        },
        get: async (_, { ctx }) => bytes(text(ctx.state())),
      },
    };
    const host = await opened(
      t,
      { old: new NapiActorFactory(callbacks, { hasState: true }) },
      { path },
    );
    const target = actor("old", "a");

    assert.equal(text(await host.submit(target, "set", bytes("x"), 2)), "x");
    const { identity, context } = await awake(host, target);
    context.runtimeState().value = "y";
    await context.saveState({ state: bytes("z") });
    assert.equal(text(context.state()), "z");
    await host.sleep(identity.actorId);

    assert.equal(asked[0], "save");
    assert.match(text(await host.submit(target, "get", none, 2)), /^[yz]$/);
  });

  it("stays awake for regions and promises, and forgets those that come after its end", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const target = actor("counter", "a");
    const bag = await awake(host, target);
    const { context } = bag;
    const holds = async () =>
      (await host.info(bag.identity.actorId)).holds.map(({ what, count }) => `${what} ${count}`);
    let release;
    const promise = new Promise((resolve) => {
      release = resolve;
    });

    context.keepAwake(promise);
    context.waitUntil(promise);
    context.registerTask(promise);
    const region = context.beginKeepAwake();
    const socket = context.beginWebsocketCallback();
    assert.ok(region > 0 && socket > 0);
    assert.equal((await holds()).length, 4, String(await holds()));

    release();
    context.endKeepAwake(region);
    context.endWebsocketCallback(socket);
    context.endWebsocketCallback(socket);
    await until(async () => (await holds()).length === 0);

    await host.sleep(bag.identity.actorId);
    assert.equal(context.beginKeepAwake(), 0);
    context.keepAwake(Promise.resolve());
    context.waitUntil(Promise.reject(new Error("late")));
    await turn();
  });

  it("hears the rejection of a promise that it tracks, and lets it end there", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const bag = await awake(host, actor("counter", "a"));
    const lines = [];
    dispatch.setLog("warn", (line) => lines.push(line));
    t.after(() => dispatch.setLog(undefined));

    bag.context.keepAwake(Promise.reject(new Error("mine")));
    await until(() => lines.length > 0);

    assert.equal(lines[0].message, "a tracked promise was rejected");
    assert.equal(lines[0].fields.error, "mine");
  });

  it("asks to sleep, and tells its signals and hooks", async (t) => {
    const seen = [];
    const callbacks = {
      async onSleep(_, { ctx, bag }) {
        seen.push(ctx.aborted(), signal.aborted, bag.abortReason);
        // A repetition changes nothing.
        ctx.sleep();
        seen.push(await ctx.waitForTrackedShutdownWork());
        seen.push(await ctx.waitForTrackedShutdownWorkUnbounded());
      },
    };
    const host = await opened(t, { counter: numbers({}, {}, callbacks) });
    const bag = await awake(host, actor("counter", "a"));
    const { context } = bag;
    const signal = context.abortSignal();
    assert.ok(signal instanceof AbortSignal);
    assert.notEqual(context.abortSignal(), signal);
    assert.equal(signal.aborted, false);

    context.sleep();
    await until(() => bag.stopped !== undefined);

    assert.deepEqual(seen, [true, true, "sleep", true, undefined]);
    assert.equal(bag.stopped.outcome, "slept");
    assert.ok(context.abortSignal().aborted);
  });

  it("refuses to sleep before it has started", async (t) => {
    let refused;
    const callbacks = {
      onWake(_, { ctx }) {
        try {
          ctx.sleep();
        } catch (error) {
          refused = error;
        }
      },
    };
    const host = await opened(t, { counter: numbers({}, {}, callbacks) });
    await awake(host, actor("counter", "a"));

    bridged("actor", "starting")(refused);
    assert.equal(unbridged(refused).code, "starting");
  });

  it("destroys itself, and says when that is done", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const target = actor("counter", "a");
    const bag = await awake(host, target);
    await host.submit(target, "add", bytes(3), 2);

    bag.context.destroy();
    assert.equal(bag.context.destroyRequested(), true);
    assert.throws(() => bag.context.destroy(), bridged("actor", "stopping"));
    const alive = setInterval(() => {}, 1_000);
    await bag.context.waitForDestroyCompletion();
    clearInterval(alive);

    assert.equal(bag.stopped?.outcome ?? "destroyed", "destroyed");
    assert.equal(await host.info(bag.identity.actorId), null);
    assert.equal(text(await host.submit(target, "get", none, 2)), "0");
  });

  it("that only sleeps leaves nothing that waits for its destruction", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const bag = await awake(host, actor("counter", "a"));
    const { tickets } = bag.home;
    const before = tickets.size;
    let told = false;
    bag.context.waitForDestroyCompletion().then(
      () => (told = true),
      () => (told = true),
    );
    assert.equal(tickets.size, before + 1);

    await host.sleep(bag.identity.actorId);
    await until(() => tickets.size === before, "the ticket to go");

    await turn();
    assert.equal(told, false);
  });

  it("knows its run handler", async (t) => {
    let runs = 0;
    const callbacks = {
      run: (_, { ctx }) => {
        runs += 1;
        return new Promise((resolve) =>
          ctx.abortSignal().addEventListener("abort", () => resolve(true)),
        );
      },
    };
    const host = await opened(t, { runner: numbers({}, {}, callbacks), plain: numbers() });
    const running = await awake(host, actor("runner", "a"));
    const plain = await awake(host, actor("plain", "a"));
    await until(() => runs === 1);

    assert.equal(running.context.runHandlerActive(), true);
    assert.equal(plain.context.runHandlerActive(), false);
    assert.throws(() => plain.context.restartRunHandler(), bridged("napi", "invalid_state"));
    running.context.restartRunHandler();
    await until(() => runs === 2);
  });
});
