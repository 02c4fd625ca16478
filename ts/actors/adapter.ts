/**
 * Turns a definition into the callbacks of the contract's actor factory.
 *
 * 1. A hook that nobody wrote is not handed over, so that nothing crosses for it.
 * 2. Whatever an author threw crosses as one of our errors, made here.
 * 3. An action ends as many microtasks after its function as one that is called in place, so that the
 *    ends of both ways come in their order.
 */

import { Call } from "../calls/call";
import { copy, decode, encode } from "../codec";
import { decodeInput } from "../codec/input";
import { encodeRemote } from "../codec/remote";
import {
  type ConnectionPayload,
  connectionHooks,
  type Head,
  requestOf,
} from "../connections/hooks";
import { readRemote } from "../connections/remote";
import { CLOSED, MESSAGE, OPENED, type Sockets } from "../connections/sockets";
import type { Definition, Hook } from "../definition";
import { describe } from "../definition/keys";
import { callersError, isRivetErrorCode, messageOf } from "../errors";
import {
  type Bag,
  callers,
  crossing,
  NapiActorFactory,
  type NativeConnection,
  type NativeContext,
} from "../native-half";
import { giveBack } from "../queue/give-back";
import { encodeRemoteAnswer, readSent } from "../queue/remote";
import { encodeAnswer, runSend, type SendArguments } from "../queue/send";
import { validate } from "../schema";
import type { Caller, ScheduledFireInfo } from "../types";
import { actionNotFound, forCaller, runAction } from "./action";
import { Clock } from "./clock";
import { Context } from "./context";
import { INSPECT, inspect } from "./inspection";
import { Live, type Scene } from "./live";
import { answerRequest } from "./request";

/** Stands before the name of an internal action that the actor itself asks for the ordinary way. */
export const INTERNAL_MARK = "\u0000";

/** What callbacks get, as far as it is used. */
interface Payload extends Partial<ConnectionPayload> {
  readonly ctx: NativeContext;
  readonly bag: Bag;
  readonly input?: Uint8Array | null;
  readonly isNew?: boolean;
  readonly args?: Uint8Array;
  readonly caller?: number;
  /** Of an action: why it runs, if a schedule calls. */
  readonly fire?: ScheduledFireInfo | undefined;
  /** Of an action: fires when nobody waits for it any more. */
  readonly signal: AbortSignal;
}

type Callback = (error: null, payload: Payload) => Promise<unknown>;

/** Makes the factory of a definition for one registry. */
export function makeFactory(definition: Definition, scene: Scene): NapiActorFactory {
  return new NapiActorFactory(callbacksOf(definition, scene), settingsOf(definition));
}

/** The author's side of the generation behind a bag. */
export function liveOf(bag: Bag): Live | undefined {
  return bag.extension instanceof Live ? bag.extension : undefined;
}

function settingsOf(definition: Definition): object {
  const { options, limits } = definition;
  return {
    ...(options.name === undefined ? {} : { name: options.name }),
    ...(options.icon === undefined ? {} : { icon: options.icon }),
    hasState: definition.hasState,
    hasDatabase: hasDatabase(definition),
    opensDatabase: hasDatabase(definition),
    ownValues: true,
    connectsRequests: definition.hook("onRequest") !== undefined,
    warnsOfManualTransactions: definition.database?.warnOnManualTransactions !== false,
    durability: options.durability,
    restartsRun: true,
    // Upwards, so that a part of a millisecond does not become no time at all.
    createVarsTimeoutMs: Math.ceil(options.createVarsTimeout),
    createConnStateTimeoutMs: Math.ceil(options.createConnStateTimeout),
    onBeforeConnectTimeoutMs: Math.ceil(options.onBeforeConnectTimeout),
    onConnectTimeoutMs: Math.ceil(options.onConnectTimeout),
    onMigrateTimeoutMs: Math.ceil(options.onMigrateTimeout),
    sleepGracePeriodMs: Math.ceil(options.sleepGracePeriod),
    stateSaveIntervalMs: Math.ceil(options.stateSaveInterval),
    actionTimeoutMs: Math.ceil(options.actionTimeout),
    sleepTimeoutMs: Math.ceil(options.sleepTimeout),
    maxSchedules: options.maxSchedules,
    maxConnections: options.maxConnections,
    hibernatesConnections: true,
    ...(typeof options.canHibernateWebSocket === "function"
      ? {}
      : { canHibernateWebsocket: options.canHibernateWebSocket }),
    messagesPerSecond: limits.messagesPerSecond,
    messageBurst: limits.burst,
    connectionsPerIp: limits.connectionsPerIp,
    noSleep: options.noSleep,
    maxQueueSize: options.maxQueueSize,
    maxQueueMessageSize: options.maxQueueMessageSize,
    queuePolicies: policiesOf(definition),
    actions: [...definition.actions.keys()].sort().map((name) => ({ name })),
  };
}

/** Whether the actor gets a file of its own as it starts. */
function hasDatabase(definition: Definition): boolean {
  return definition.database !== undefined || definition.migrations !== undefined;
}

function policiesOf(definition: Definition): object[] {
  const policies: object[] = [];
  for (const [name, { maxDeliveries, backoff }] of definition.queues) {
    if (maxDeliveries === undefined && backoff === undefined) continue;
    policies.push({
      name,
      maxDeliveries,
      backoffInitialMs: backoff?.initial,
      backoffMaxMs: backoff?.max,
    });
  }
  return policies;
}

function callbacksOf(definition: Definition, scene: Scene): Record<string, unknown> {
  const live = (payload: Payload): Live => {
    const { bag } = payload;
    bag.extension ??= new Live(bag, definition, scene);
    return bag.extension as Live;
  };
  const hook = (name: string, body: (live: Live, payload: Payload) => unknown): Callback => {
    return async (_error, payload) => {
      const at = live(payload);
      try {
        return await at.during(name, () => body(at, payload));
      } catch (thrown) {
        throw forCaller(thrown, at, payload.conn?.isRemote() === true);
      }
    };
  };
  const ending = (name: "onSleep" | "onDestroy"): Callback | undefined => {
    const written = definition.hook(name);
    const clock = (at: Live): Clock => new Clock(at, undefined, true);
    return written && hook(name, (at) => written(new Context(at, undefined, clock(at))));
  };
  const onWake = definition.hook("onWake");
  const onMigrate = definition.hook("onMigrate");
  const onCreate = definition.hook("onCreate");
  const run = definition.run;
  return {
    createState: definition.hasState ? hook("createState", createState) : undefined,
    onCreate:
      onCreate &&
      hook("onCreate", async (at, { input }) => onCreate(at.context, await inputOf(at, input))),
    // Every start of an actor with a state has to look at its version.
    createVars:
      definition.hasVars || definition.hasState ? hook("createVars", createVars) : undefined,
    onMigrate:
      onMigrate === undefined && !hasDatabase(definition)
        ? undefined
        : hook("onMigrate", async (at, { isNew }) => {
            await at.database.migrate();
            await onMigrate?.(at.context, isNew === true);
          }),
    onWake: onWake && hook("onWake", (at) => onWake(at.context)),
    onSleep: ending("onSleep"),
    onDestroy: ending("onDestroy"),
    run: run && runner(run, live),
    ...connectionHooks(definition, (name, body) =>
      hook(name, (at, payload) => body(at, payload as ConnectionPayload)),
    ),
    actions: actionsOf(definition, live),
    hibernatesWebSocket: choiceOf(definition),
    settleConnections: (bag: Bag) => liveOf(bag)?.desk?.settle(),
    encodeState: definition.hasState ? (bag: Bag) => liveOf(bag)?.encode() : undefined,
    suspectsState: definition.hasState ? (bag: Bag) => liveOf(bag)?.exposed === true : undefined,
  };
}

/** What decides which raw sockets outlive a sleep, if the author wrote it. */
function choiceOf({ options }: Definition): ((head: Head) => boolean) | undefined {
  const chooses = options.canHibernateWebSocket;
  if (typeof chooses !== "function") return undefined;
  return (head) => {
    const chosen: unknown = chooses(requestOf(head));
    if (typeof chosen === "boolean") return chosen;
    throw new TypeError(`canHibernateWebSocket gave ${describe(chosen)}, not true or false`);
  };
}

/** `run` may hold what it was handed for as long as the actor lives. */
function runner(run: Hook, live: (payload: Payload) => Live): Callback {
  return async (_error, payload) => {
    const at = live(payload);
    // One for each time that it runs: what the last one had to complete is not this one's.
    const context = new Context(at, undefined);
    try {
      await at.during("run", () => run(context));
    } catch (thrown) {
      await giveBack(at, context.queue, thrown);
      if (!isRivetErrorCode(thrown, "actor", "aborted")) {
        at.log.error({ msg: `run failed: ${messageOf(thrown)}`, err: thrown });
      }
      throw callersError(thrown, at.specifier);
    } finally {
      context.queue.end();
    }
    return true;
  };
}

async function createState(live: Live, payload: Payload): Promise<Uint8Array> {
  // Checked also where nothing reads it: a wrong input must not create an actor.
  const input = await inputOf(live, payload.input);
  const create = live.definition.hook("createState");
  if (create === undefined) return live.begin(copy(live.definition.config.state, "state"));
  // What it returns may hold objects of the module, which other actors get as well.
  return live.begin(copy(await create(live.context, input), "state"));
}

async function createVars(live: Live): Promise<void> {
  live.migrate();
  if (!live.definition.hasVars) return;
  const create = live.definition.hook("createVars");
  live.vars =
    create === undefined
      ? cloneVars(live.definition.config.vars)
      : await create(live.context, live.scene.deps);
}

/** Vars are never stored, so that a value which cannot be copied is shared as it is. */
function cloneVars(vars: unknown): unknown {
  try {
    return copy(vars, "vars");
  } catch {
    return vars;
  }
}

/** What the creator passed, checked once for `createState` and `onCreate`. */
async function inputOf(live: Live, bytes: Uint8Array | null | undefined): Promise<unknown> {
  if (live.input === undefined) {
    const given = decodeInput(bytes);
    const schema = live.definition.inputSchema;
    live.input = { value: schema === undefined ? given : await validate(schema, given, "input") };
  }
  return live.input.value;
}

function actionsOf(
  definition: Definition,
  live: (payload: Payload) => Live,
): Record<string, Callback> {
  const out: Record<string, Callback> = Object.create(null);
  for (const name of definition.actions.keys()) {
    out[name] = (_error, payload) => callAction(live(payload), name, false, payload);
  }
  out[crossing.SEND] = async (_error, payload) => {
    const at = live(payload);
    const remote = callerOf(payload) === "client";
    const args = remote ? readSent(payload.args, at) : (decode(payload.args) as SendArguments);
    const call = callOf(at, payload);
    const answer = await runSend(at, call, args, () => new Context(at, call));
    return remote ? encodeRemoteAnswer(answer) : encodeAnswer(answer);
  };
  out[INSPECT] = async (_error, payload) => {
    const at = live(payload);
    try {
      return inspect(at, payload.args ?? new Uint8Array());
    } catch (thrown) {
      throw forCaller(thrown, at);
    }
  };
  if (definition.hook("onRequest") !== undefined) {
    out[crossing.REQUEST] = (_error, payload) => {
      const at = live(payload);
      return answerRequest(at, callOf(at, payload), payload);
    };
  }
  if (definition.hook("onWebSocket") !== undefined) {
    const socketCall = (take: (sockets: Sockets, payload: Payload) => Promise<undefined>) => {
      return (_error: null, payload: Payload) => take(live(payload).connections.sockets, payload);
    };
    const argsOf = (payload: Payload): Uint8Array => payload.args ?? new Uint8Array();
    out[OPENED] = socketCall((sockets, payload) => {
      // They come over connections only.
      return sockets.opened(payload.conn as NativeConnection, argsOf(payload));
    });
    out[MESSAGE] = socketCall((sockets, payload) => sockets.message(argsOf(payload)));
    out[CLOSED] = socketCall((sockets, payload) => sockets.closed(argsOf(payload)));
  }
  for (const name of definition.internalActions.keys()) {
    const only = (caller: Caller): Callback => {
      return (_error, payload) => {
        const at = live(payload);
        if (callerOf(payload) !== caller) throw actionNotFound(name, at);
        return callAction(at, name, true, payload);
      };
    };
    out[name] = only("schedule");
    out[INTERNAL_MARK + name] = only("actor");
  }
  return out;
}

function callerOf(payload: Payload): Caller {
  return callers[payload.caller ?? 0] ?? "client";
}

/** No async function: what came later in place would end before it, and be answered before it (3). */
function callAction(
  live: Live,
  name: string,
  internal: boolean,
  payload: Payload,
): Promise<Uint8Array> {
  const remote = callerOf(payload) === "client";
  const args = remote ? readRemote(payload.args, "args", live.specifier) : decode(payload.args);
  const call = callOf(live, payload);
  const list = Array.isArray(args) ? args : [];
  const carry = (output: unknown): Uint8Array =>
    remote ? encodeRemote(output, "result") : encode(output, "result");
  return runAction(live, call, name, internal, list, carry);
}

/** The call behind what was taken, with the connection over which it came. */
function callOf(live: Live, payload: Payload): Call {
  const call = new Call(live, callerOf(payload), undefined, payload);
  if (payload.conn) call.conn = live.connections.of(payload.conn);
  return call;
}
