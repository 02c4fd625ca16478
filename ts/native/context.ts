/**
 * What the contract's `ActorContext` has beyond Rust: promises, and JavaScript
 * objects of the generation. Added to the one native class.
 *
 * 1. Promises that are handed over are heard, and their rejections logged, never thrown.
 * 2. Work that is registered after the actor's end is accepted and forgotten.
 */

import type { JsSaveOptions } from "../../index.js";
import * as native from "../../index.js";
import {
  ActorContext,
  awaitDestroyed,
  awaitSave,
  awaitTrackedWork,
  beginRegion,
  endRegion,
} from "../../index.js";
import type { ActorBag } from "./bags.js";
import { deltaOf, hasConnections, type StateDeltaPayload } from "./delta.js";
import { toBridge } from "./errors.js";
import { inspectorToken } from "./inspector-token.js";
import { bagOf, belongsTo } from "./owner.js";
import { logRejected, whenSettled } from "./settle.js";

declare module "../../index.js" {
  interface ActorContext {
    /** Resolves when the save that this asks for is durable. */
    requestSaveAndWait(options?: JsSaveOptions | null): Promise<void>;
    /** Saves what a delta has and resolves when it is durable. */
    saveState(delta: StateDeltaPayload): Promise<void>;
    /**
     * Saves the state, which is asked for, and rows of the actor's workflow in one commit, and
     * resolves when that is durable. Keys come without the prefix that they have in the table.
     */
    saveStateAndWorkflowBatch(
      writes: readonly { key: Uint8Array; value: Uint8Array }[],
    ): Promise<void>;
    /** Resolves when the actor is durably destroyed; never, when this generation ends otherwise. */
    waitForDestroyCompletion(): Promise<void>;
    /** Keeps the actor awake until `promise` has settled. */
    keepAwake(promise: Promise<unknown>): void;
    /** Keeps the actor awake until a task of the runtime has settled. */
    registerTask(promise: Promise<unknown>): void;
    /** Lets the actor's end wait for `promise`, within its grace. */
    waitUntil(promise: Promise<unknown>): void;
    /** Keeps the actor awake; the number ends it, 0 when it could not begin. */
    beginKeepAwake(): number;
    endKeepAwake(region: number): void;
    /** Keeps the actor awake for a callback of a raw socket. */
    beginWebsocketCallback(): number;
    endWebsocketCallback(region: number): void;
    /** Whether the tracked work ended before the grace period did. */
    waitForTrackedShutdownWork(): Promise<boolean>;
    /** Resolves when the tracked work has ended, however long it takes. */
    waitForTrackedShutdownWorkUnbounded(): Promise<void>;
    /** Does nothing: what keeps an actor awake is its work. */
    setPreventSleep(enabled: boolean): void;
    /** Always false. */
    preventSleep(): boolean;
    /**
     * The socket through which other processes reach the actor. There is none: rejects with
     * `actor_runtime_socket.not_enabled`, or `unsupported` where the settings ask for it.
     */
    provisionActorRuntimeSocket(): Promise<{ path: string }>;
    /** Rejects with `inspector.unauthorized` unless `token` is the actor's. */
    verifyInspectorAuth(token?: string | null): Promise<void>;
    /** A signal that fires when the actor begins to stop. */
    abortSignal(): AbortSignal;
    /** One object for all handles on a generation, and none but them. */
    runtimeState(): Record<string, unknown>;
    /** The next `runtimeState` is a new object. */
    clearRuntimeState(): void;
  }
}

/** The numbers of work regions, as the Rust side has them. */
const Region = { KEEP_AWAKE: 0, WAIT_UNTIL: 1, WEBSOCKET_CALLBACK: 3, RUNTIME: 4 } as const;

const SOCKET_REFUSALS = {
  unsupported: "actors have no runtime socket here",
  not_enabled: "the actor runtime socket is not enabled for this type of actors",
} as const;

/** Makes the one handle of a generation; null when it is over. */
export function instanceOf(environment: number, bag: ActorBag): ActorContext | null {
  const context = native.actorContext(environment, bag.actor);
  return context === null ? null : belongsTo(context, bag);
}

const methods = {
  async requestSaveAndWait(this: ActorContext, options?: JsSaveOptions | null): Promise<void> {
    const { immediate = false, maxWaitMs = -1 } = options ?? {};
    const start = (ticket: number) => awaitSave(this, immediate, maxWaitMs, ticket);
    await bagOf(this).home.tickets.wait(start, { bridged: true });
  },
  async saveState(this: ActorContext, given: StateDeltaPayload): Promise<void> {
    const bag = bagOf(this);
    if (bag.stopped !== undefined) {
      throw toBridge({ group: "actor", code: "stopping", message: "actor is stopping" });
    }
    const delta = deltaOf(given);
    const begun = !hasConnections(delta) && native.commit(bag.actor, delta.state ?? null) >= 0;
    const start = (ticket: number) => {
      if (begun) native.awaitFlushed(this, ticket);
      // Where a state transaction is open, it waits for the end of that.
      else native.awaitSaved(this, delta, ticket);
    };
    await bag.home.tickets.wait(start, { bridged: true });
  },
  async saveStateAndWorkflowBatch(
    this: ActorContext,
    writes: readonly { key: Uint8Array; value: Uint8Array }[],
  ): Promise<void> {
    const keys = writes.map(({ key }) => key);
    const values = writes.map(({ value }) => value);
    const start = (ticket: number) => native.saveWithWorkflow(this, keys, values, ticket);
    await bagOf(this).home.tickets.wait(start, { bridged: true });
  },
  async waitForDestroyCompletion(this: ActorContext): Promise<void> {
    const start = (ticket: number) => awaitDestroyed(this, ticket);
    const told = await bagOf(this).home.tickets.wait(start, { bridged: true, holds: false });
    // Nothing refers to it any more, so it goes with whoever waits.
    if (told?.[0] !== 1) await new Promise<never>(() => {});
  },
  keepAwake(this: ActorContext, promise: Promise<unknown>): void {
    track(bagOf(this), Region.KEEP_AWAKE, promise);
  },
  registerTask(this: ActorContext, promise: Promise<unknown>): void {
    track(bagOf(this), Region.RUNTIME, promise);
  },
  waitUntil(this: ActorContext, promise: Promise<unknown>): void {
    track(bagOf(this), Region.WAIT_UNTIL, promise);
  },
  beginKeepAwake(this: ActorContext): number {
    return beginRegion(bagOf(this).actor, Region.KEEP_AWAKE);
  },
  endKeepAwake(this: ActorContext, region: number): void {
    endRegion(bagOf(this).actor, region);
  },
  beginWebsocketCallback(this: ActorContext): number {
    return beginRegion(bagOf(this).actor, Region.WEBSOCKET_CALLBACK);
  },
  endWebsocketCallback(this: ActorContext, region: number): void {
    endRegion(bagOf(this).actor, region);
  },
  async waitForTrackedShutdownWork(this: ActorContext): Promise<boolean> {
    const start = (ticket: number) => awaitTrackedWork(this, ticket, true);
    const drained = await bagOf(this).home.tickets.wait(start, { bridged: true });
    return drained?.[0] === 1;
  },
  async waitForTrackedShutdownWorkUnbounded(this: ActorContext): Promise<void> {
    const start = (ticket: number) => awaitTrackedWork(this, ticket, false);
    await bagOf(this).home.tickets.wait(start, { bridged: true });
  },
  setPreventSleep(): void {},
  preventSleep(): boolean {
    return false;
  },
  async provisionActorRuntimeSocket(this: ActorContext): Promise<never> {
    const code = bagOf(this).factory.wantsRuntimeSocket ? "unsupported" : "not_enabled";
    throw toBridge({
      group: "actor_runtime_socket",
      code,
      message: SOCKET_REFUSALS[code],
      public: true,
      statusCode: 400,
    });
  },
  async verifyInspectorAuth(this: ActorContext, token?: string | null): Promise<void> {
    native.checkInspectorToken(this, token, inspectorToken());
  },
  abortSignal(this: ActorContext): AbortSignal {
    // Not by `AbortSignal.any`: that keeps every signal that anybody listened to until the actor stops, also
    // those of invocations that ended long ago.
    const follower = new AbortController();
    bagOf(this).follow(this, follower);
    return follower.signal;
  },
  runtimeState(this: ActorContext): Record<string, unknown> {
    return bagOf(this).runtimeState;
  },
  clearRuntimeState(this: ActorContext): void {
    bagOf(this).clearRuntimeState();
  },
};

// Once, also where this module is loaded twice in one environment.
if (!Object.hasOwn(ActorContext.prototype, "runtimeState")) {
  Object.assign(ActorContext.prototype, methods);
  const stateNative = ActorContext.prototype.state;
  ActorContext.prototype.state = function state(): Buffer {
    const { patched } = bagOf(this);
    return patched === undefined ? stateNative.call(this) : Buffer.from(patched);
  };
  const kvNative = ActorContext.prototype.kv;
  ActorContext.prototype.kv = function kv(): native.Kv {
    return belongsTo(kvNative.call(this), bagOf(this));
  };
  const sqlNative = ActorContext.prototype.sql;
  ActorContext.prototype.sql = function sql(): native.JsNativeDatabase {
    return belongsTo(sqlNative.call(this), bagOf(this));
  };
  const queueNative = ActorContext.prototype.queue;
  ActorContext.prototype.queue = function queue(): native.Queue {
    return belongsTo(queueNative.call(this), bagOf(this));
  };
  const requestNative = ActorContext.prototype.requestSave;
  ActorContext.prototype.requestSave = function requestSave(options?: JsSaveOptions | null): void {
    requestNative.call(this, options);
    const bag = bagOf(this);
    bag.home.turns.asked(bag);
  };
}

function track(bag: ActorBag, kind: number, promise: Promise<unknown>): void {
  const region = beginRegion(bag.actor, kind);
  const end = () => {
    if (region !== 0) endRegion(bag.actor, region);
  };
  const rejected = (thrown: unknown) => {
    end();
    logRejected(bag, thrown);
  };
  whenSettled(promise, end, rejected);
}
