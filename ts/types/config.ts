/** What is given to `actor()`, as types. */

import type { StandardSchemaV1 } from "@standard-schema/spec";

import type { ActionInputSchemas, ActionTree, WithoutReservedActions } from "./actions";
import type { Conn, ConnContext, CreateConnStateContext } from "./connections";
import type {
  ActionContext,
  ActorContext,
  CreateContext,
  CreateStateContext,
  CreateVarsContext,
  MigrateContext,
  RequestContext,
} from "./context";
import type { EventConfigs } from "./events";
import type { QueueConfigs } from "./queue";
import type { ActionNames } from "./schedule";
import type { DatabaseProvider, Migration } from "./sql";
import type { UniversalWebSocket } from "./web-socket";

/** Names types that are not to be inferred. Only the compiler looks at it. */
export interface ActorTypes<S, V, I, CP = unknown, CS = unknown> {
  state?: S;
  vars?: V;
  input?: I;
  connParams?: CP;
  connState?: CS;
  database?: unknown;
}

/** Options of an actor. All durations are milliseconds above 0. */
export interface ActorOptions {
  /** The name that people read. */
  name?: string | undefined;
  /** The icon that people see. */
  icon?: string | undefined;
  /** How long `createVars` may take. Default 5,000. */
  createVarsTimeout?: number | undefined;
  /** How long `createConnState` may take. Default 5,000. */
  createConnStateTimeout?: number | undefined;
  /** How long `onBeforeConnect`, and `canSubscribe`, may take. Default 5,000. */
  onBeforeConnectTimeout?: number | undefined;
  /** How long `onConnect`, and `onDisconnect`, may take. Default 5,000. */
  onConnectTimeout?: number | undefined;
  /** How long `onMigrate` may take. Default 30,000. */
  onMigrateTimeout?: number | undefined;
  /** How long the actor may take to stop. Default 15,000. */
  sleepGracePeriod?: number | undefined;
  /** With `durability: "interval"`, the least time between two saves. Default 1,000. */
  stateSaveInterval?: number | undefined;
  /** How long an action may take. Default 60,000. */
  actionTimeout?: number | undefined;
  /** After how long without work the actor sleeps. Default 30,000. */
  sleepTimeout?: number | undefined;
  /** How much may be scheduled at a time, a whole number from 0: one-shots and jobs. Default 1,000. */
  maxSchedules?: number | undefined;
  /** How many clients may be connected at a time, a whole number from 1. Default 65,536. */
  maxConnections?: number | undefined;
  /** Whether raw sockets outlive a sleep of the actor, or what decides that for each. Default false. */
  canHibernateWebSocket?: boolean | ((request: Request) => boolean) | undefined;
  /** Whether it never sleeps by itself. Default false. */
  noSleep?: boolean | undefined;
  /**
   * When an answer may leave. `"reply"` (default): when every change made before it is durable.
   * `"interval"`: at once; the state is saved at most every `stateSaveInterval`.
   */
  durability?: "reply" | "interval" | undefined;
  /** How many messages may wait in the queues of the actor together. Default 1,000. */
  maxQueueSize?: number | undefined;
  /** How long an encoded message may be, in bytes. Default 65,536. */
  maxQueueMessageSize?: number | undefined;
}

/** What one remote client may do. Each is a whole number from 1; what is not given is not limited. */
export interface ClientLimits {
  /** How many messages a second a connection may send in the long run. */
  messagesPerSecond?: number | undefined;
  /** How many of them may come at once. Default as many as in a second. */
  burst?: number | undefined;
  /** How many connections to one actor an address may have. */
  connectionsPerIp?: number | undefined;
}

/** The `run` of an actor: a function, or one with what people see of it. */
export type RunConfig<C> =
  | ((c: C) => void | Promise<void>)
  | { run: (c: C) => void | Promise<void>; name?: string; icon?: string };

/** Infers the names at the top of a tree: that takes no look at the functions themselves. */
type Named<N extends string> = { readonly [K in N]?: unknown };

/** The context of a hook within a definition: of its actions it knows the names. */
type HookContext<S, V, I, N extends string, Q, DB, CP, CS, E> = ActorContext<
  S,
  CP,
  CS,
  V,
  I,
  DB,
  E,
  Q,
  ActionNames<NoInfer<N>>
>;

/** The same of an action. */
type CallContext<S, V, I, N extends string, Q, DB, CP, CS, E> = ActionContext<
  S,
  CP,
  CS,
  V,
  I,
  DB,
  E,
  Q,
  ActionNames<NoInfer<N>>
>;

/** The context of a function that runs before a connection is there. */
type OpeningContext<S, V, I, N extends string, Q, DB, E> = CreateConnStateContext<
  S,
  unknown,
  unknown,
  V,
  I,
  DB,
  E,
  Q,
  ActionNames<NoInfer<N>>
>;

/** The context of a hook of a connection. */
type ConnectedContext<S, V, I, N extends string, Q, DB, CP, CS, E> = ConnContext<
  S,
  CP,
  CS,
  V,
  I,
  DB,
  E,
  Q,
  ActionNames<NoInfer<N>>
>;

/** The same of `onRequest`. */
type AnswerContext<S, V, I, N extends string, Q, DB, CP, CS, E> = RequestContext<
  S,
  CP,
  CS,
  V,
  I,
  DB,
  E,
  Q,
  ActionNames<NoInfer<N>>
>;

/** What is given to `actor()`. */
export interface ActorConfig<
  S,
  V,
  I,
  In,
  A,
  IA,
  D,
  N extends string = string,
  Q = unknown,
  DB = unknown,
  CP = unknown,
  CS = unknown,
  E = unknown,
  SP = CP,
> {
  /** Types that are not to be inferred, such as `{} as {state: S}`. */
  types?: ActorTypes<S, V, I, CP, CS>;
  /** Gives the actor `c.db`, on a file of its own: `db()` of `greenroom/db`. */
  db?: DatabaseProvider<DB>;
  /** Numbered steps of the schema, from 1, each applied once, at the start, in one transaction. */
  migrations?: readonly Migration[];
  /** The first state, copied for each actor. Not together with `createState`. */
  state?: S;
  /** Makes the first state. */
  createState?: (c: CreateStateContext<ActionNames<NoInfer<N>>, DB>, input: I) => S | Promise<S>;
  /**
   * The version of the state's shape: a whole number from 1. A state stored without one has 0. A start
   * that finds a newer one than this is refused (`actor.state_version_newer`).
   */
  stateVersion?: number;
  /**
   * Makes a state of {@link stateVersion} from one that was stored with the version `from`. Runs when an
   * actor with an older state wakes, before `createVars`; its result is stored with the new version in
   * one commit.
   */
  migrateState?: (old: unknown, from: number) => NoInfer<S>;
  /** Checks and may change what a creator passes. */
  inputSchema?: StandardSchemaV1<In, I>;
  /** What lives as long as a generation, copied for each. Not together with `createVars`. */
  vars?: V;
  /** Makes what lives as long as a generation. `deps` are those of `setup()`, which asks for them. */
  createVars?: (
    c: CreateVarsContext<S, unknown, unknown, unknown, I, DB, unknown, Q, ActionNames<NoInfer<N>>>,
    deps: D,
  ) => V | Promise<V>;
  /** Before anything else, on every start. A new actor has no state yet. */
  onMigrate?: (
    c: MigrateContext<S, ActionNames<NoInfer<N>>, DB>,
    isNew: boolean,
  ) => void | Promise<void>;
  /** Once in an actor's life, after its first state. */
  onCreate?: (
    c: CreateContext<S, unknown, unknown, unknown, I, DB, unknown, Q, ActionNames<NoInfer<N>>>,
    input: I,
  ) => void | Promise<void>;
  /** On every start, new or not. */
  onWake?: (c: HookContext<S, V, I, N, Q, DB, CP, CS, E>) => void | Promise<void>;
  /** When the actor goes to sleep. */
  onSleep?: (c: HookContext<S, V, I, N, Q, DB, CP, CS, E>) => void | Promise<void>;
  /** When the actor is destroyed. */
  onDestroy?: (c: HookContext<S, V, I, N, Q, DB, CP, CS, E>) => void | Promise<void>;
  /** Runs beside the actions from start to stop. */
  run?: RunConfig<HookContext<S, V, I, N, Q, DB, CP, CS, E>>;
  /** Once for each turn that changed the state. It must not change the state itself. */
  onStateChange?: (c: HookContext<S, V, I, N, Q, DB, CP, CS, E>, state: S) => void;
  /** May replace what an action answers. */
  onBeforeActionResponse?: <Out>(
    c: CallContext<S, V, I, N, Q, DB, CP, CS, E>,
    name: string,
    args: unknown[],
    output: Out,
  ) => Out | Promise<Out>;
  /**
   * Answers a request over HTTP below `/request` of the actor. Its signal fires when the client goes. The
   * answer waits for the changes before it, and each piece of a body that comes in pieces does, too.
   */
  onRequest?: (
    c: AnswerContext<S, V, I, N, Q, DB, CP, CS, E>,
    request: Request,
  ) => Response | Promise<Response>;
  /**
   * Takes a socket that speaks no protocol of ours. Whoever throws has it closed. With
   * `options.canHibernateWebSocket` it is handed over again when the actor wakes.
   */
  onWebSocket?: (
    c: ConnectedContext<S, V, I, N, Q, DB, CP, CS, E>,
    socket: UniversalWebSocket,
  ) => void | Promise<void>;
  /** Checks and may change what a client passes when it connects. */
  connParamsSchema?: StandardSchemaV1<SP, CP>;
  /** Whether a client may connect: whoever throws refuses it. The client is not connected yet. */
  onBeforeConnect?: (c: OpeningContext<S, V, I, N, Q, DB, E>, params: CP) => void | Promise<void>;
  /** The first state of each connection, copied for it. Not together with `createConnState`. */
  connState?: CS;
  /** Makes the first state of a connection. */
  createConnState?: (c: OpeningContext<S, V, I, N, Q, DB, E>, params: CP) => CS | Promise<CS>;
  /** A client is connected, and is told so when this has ended. Whoever throws refuses it. */
  onConnect?: (
    c: ConnectedContext<S, V, I, N, Q, DB, CP, CS, E>,
    conn: Conn<CP, CS, E>,
  ) => void | Promise<void>;
  /** A client is gone: `c.conns` has it no more. */
  onDisconnect?: (
    c: ConnectedContext<S, V, I, N, Q, DB, CP, CS, E>,
    conn: Conn<CP, CS, E>,
  ) => void | Promise<void>;
  /** Events by name: what `event()` returns, its options, or the schema of their payload. */
  events?: E & EventConfigs<NoInfer<E>>;
  /** Queues by name: what `queue()` returns, its options, or the schema of their messages. */
  queues?: Q & QueueConfigs<NoInfer<Q>>;
  /** What callers may ask for. Groups are plain objects. */
  actions?: A &
    ActionTree<CallContext<S, V, I, N, Q, DB, CP, CS, E>> &
    WithoutReservedActions &
    Named<N>;
  /** What only schedules and the actor itself may ask for. */
  internalActions?: IA &
    ActionTree<CallContext<S, V, I, N, Q, DB, CP, CS, E>> &
    WithoutReservedActions &
    Named<N>;
  /** Checks and may change the arguments of actions. */
  actionInputSchemas?: ActionInputSchemas<NoInfer<A>>;
  /** What one remote client may do; a connection that does more is closed with code 1008. */
  limits?: ClientLimits;
  /** Options. */
  options?: ActorOptions;
}
