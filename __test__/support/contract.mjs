// Actors as programs written for the contract have them: state that is asked for, saved at intervals.
import { dispatch, NapiActorFactory } from "greenroom/native";

import { bytes, text, turn } from "./native.mjs";

/** What each callback of a type was told, in order, beside what the type is made of. */
export class Script {
  calls = [];

  /** A callback that notes that it was called, with `what` of its payload. */
  note(name, result, what = () => undefined) {
    return async (error, payload) => {
      if (error !== null) throw error;
      const told = what(payload);
      this.calls.push(told === undefined ? name : [name, told]);
      return typeof result === "function" ? result(payload) : result;
    };
  }
}

/** Encodes the state as the contract has it: what changed of connections, and the state itself. */
export async function serializeState(_, { ctx }) {
  const connHibernationRemoved = ctx.takePendingHibernationChanges();
  const connHibernation = ctx
    .dirtyHibernatableConns()
    .map((conn) => ({ connId: conn.id(), bytes: conn.state() }));
  const { value } = ctx.runtimeState();
  const state = value === undefined ? undefined : bytes(value);
  return { ...(state && { state }), connHibernation, connHibernationRemoved };
}

/** Changes the state and asks for a save. */
export async function set(_, { ctx, args }) {
  ctx.runtimeState().value = text(args);
  ctx.requestSave();
  return args;
}

/** The state, read as the contract's callers do: once for each generation. */
export async function get(_, { ctx }) {
  const bag = ctx.runtimeState();
  bag.value ??= text(ctx.state());
  return bytes(bag.value);
}

/** A type with a state of text, which is "first" to begin with. */
export function typed(callbacks = {}, config = {}) {
  const { actions, ...hooks } = callbacks;
  const createState = async () => bytes("first");
  const all = { createState, serializeState, actions: { set, get, ...actions }, ...hooks };
  return new NapiActorFactory(all, { hasState: true, ...config });
}

/** A host whose clock stands still until {@link Still.pass} moves it. */
export class Still {
  constructor(trial, host) {
    this.trial = trial;
    this.host = host;
  }

  /** Resolves when nothing happens any more without time. */
  async rest() {
    for (let idle = 0; idle < 4; idle += 1) {
      if (dispatch.drain()) idle = 0;
      await turn();
    }
  }

  /** Lets time go by, and everything happen that is due meanwhile. */
  async pass(ms) {
    await this.rest();
    for (let left = ms; left !== undefined; ) {
      left = this.trial.step(left);
      await this.rest();
    }
  }
}

export async function still(t, types) {
  const trial = dispatch.openTrial({ now: Date.UTC(2025, 0, 1), seed: 1 });
  const host = await trial.openHost();
  for (const [name, factory] of Object.entries(types)) host.register(name, factory);
  const stands = new Still(trial, host);
  t.after(async () => {
    // A test may have put another one in its place.
    const ended = stands.host.shutdown(200);
    for (let n = 0; n < 10; n += 1) await stands.pass(100);
    await ended;
    trial.close();
  });
  return stands;
}

/** How a promise ended. */
export function outcome(promise) {
  const told = { state: "pending" };
  promise.then(
    (value) => Object.assign(told, { state: "done", value }),
    (error) => Object.assign(told, { state: "failed", error }),
  );
  return told;
}

/** What RivetKit asks its native module for. */
export const NAMES = [
  "ActorContext",
  "CancellationToken",
  "ConnHandle",
  "CoreRegistry",
  "HttpRequestBodyStream",
  "HttpResponseBodyStream",
  "JsActorStateTransaction",
  "JsNativeDatabase",
  "JsSqliteTransaction",
  "Kv",
  "NapiActorFactory",
  "OutboundCall",
  "Queue",
  "QueueMessage",
  "Schedule",
  "WebSocket",
  "WorkflowSpan",
  "WorkflowStepSpan",
  "decodeInspectorRequest",
  "encodeInspectorResponse",
  "setTelemetryLogSink",
  "shutdownTelemetry",
];
