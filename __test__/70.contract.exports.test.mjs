// What the contract's callers import, and what of it is there only so that nothing fails.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import * as native from "greenroom/native";

import { bridged } from "./support/bridge.mjs";
import { NAMES } from "./support/contract.mjs";
import { actor, awake, bytes, none, numbers, opened, text } from "./support/native.mjs";

const { OutboundCall, WorkflowSpan, WorkflowStepSpan } = native;

describe("greenroom/native", () => {
  it("has the contract's classes by their names", () => {
    const exported = new Map(Object.entries(native));
    const missing = NAMES.filter((name) => typeof exported.get(name) !== "function");

    assert.deepEqual(missing, []);
  });
});

describe("the telemetry sink", () => {
  it("is a function, and is let go of at the end", async () => {
    assert.throws(() => native.setTelemetryLogSink(), bridged("napi", "invalid_argument"));
    const first = () => {};
    const second = () => {};

    native.setTelemetryLogSink(first);
    native.setTelemetryLogSink(second);
    assert.equal(native.telemetryLogSink(), second);
    await native.shutdownTelemetry();
    await native.shutdownTelemetry();

    assert.equal(native.telemetryLogSink(), undefined);
  });
});

describe("spans", () => {
  it("of calls, steps and the author's own are none", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const { context } = await awake(host, actor("counter", "a"));

    assert.equal(context.startCallSpan("other", "act"), null);
    assert.equal(context.startWorkflowStepSpan("step", 1), null);
    assert.equal(context.withApplicationSpan("00-1-2-01", null), context);
    assert.equal(context.withApplicationSpan(), context);
  });

  it("of runs of workflows have a handle on the actor, and outcomes of the contract", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const { context } = await awake(host, actor("counter", "a"));

    const span = await context.startWorkflowSpan();

    assert.ok(span instanceof WorkflowSpan);
    assert.ok(span.ctx().sameActorInstance(context));
    for (const outcome of ["completed", "sleeping", "evicted", "failed", "cancelled"]) {
      await span.finish(outcome);
    }
    await assert.rejects(span.finish("ok"), bridged("napi", "invalid_argument"));
  });

  it("that are never handed out have the contract's methods all the same", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const { context } = await awake(host, actor("counter", "a"));
    const call = new OutboundCall();
    const step = new WorkflowStepSpan(context);

    call.finish();
    call.finish("why");
    for (const outcome of ["ok", "retry", "failed"]) step.finish(outcome, "why");

    assert.equal(call.spanContext(), null);
    assert.equal(step.ctx(), context);
    assert.throws(() => step.finish("completed"), bridged("napi", "invalid_argument"));
  });
});

describe("the trace context of an invocation", () => {
  it("is none where no request has a ray id", async (t) => {
    const seen = [];
    const note = (_bag, _args, { ctx }) => void seen.push(ctx.invocationTraceContext());
    const host = await opened(t, { counter: numbers({ note }) });

    await host.submit(actor("counter", "a"), "note", none, 2);

    assert.deepEqual(seen, [null]);
  });

  it("has the ray id of the request of a connection, in a handle that is equal to all others", async (t) => {
    const seen = [];
    const onConnect = async (_, { ctx, bag }) => {
      seen.push(ctx.invocationTraceContext());
      assert.ok(ctx.sameActorInstance(bag.context) && bag.context.sameActorInstance(ctx));
      assert.equal(ctx.runtimeState(), bag.context.runtimeState());
      assert.equal(text(ctx.state()), "0");
      await ctx.kv().put(bytes("k"), bytes("v"));
    };
    const host = await opened(t, { counter: numbers({}, {}, { onConnect }) });
    const { context } = await awake(host, actor("counter", "a"));
    const request = { method: "GET", uri: "/", headers: { "X-Rivet-Ray-Id": "ray1" } };

    await context.connectConn(none, request);
    await context.connectConn(none);

    assert.deepEqual(seen, [{ rayId: "ray1" }, null]);
    assert.equal(text(await context.kv().get(bytes("k"))), "v");
  });
});

describe("the socket of an actor's runtime", () => {
  it("is refused, whether the settings ask for it or not", async (t) => {
    const asks = numbers({}, { enableActorRuntimeSocket: true });
    const host = await opened(t, { plain: numbers(), asks });
    const plain = await awake(host, actor("plain", "a"));
    const asking = await awake(host, actor("asks", "a"));
    const more = { public: true, statusCode: 400 };

    await assert.rejects(
      plain.context.provisionActorRuntimeSocket(),
      bridged("actor_runtime_socket", "not_enabled", more),
    );
    await assert.rejects(
      asking.context.provisionActorRuntimeSocket(),
      bridged("actor_runtime_socket", "unsupported", more),
    );
  });
});
