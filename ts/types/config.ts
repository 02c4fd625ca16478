/** What is given to `actor()`, as types. */

import type { StandardSchemaV1 } from "@standard-schema/spec";

import type { ActionInputSchemas, ActionTree, WithoutReservedActions } from "./actions";
import type {
  ActionContext,
  ActorContext,
  CreateContext,
  CreateStateContext,
  CreateVarsContext,
  MigrateContext,
  RequestContext,
} from "./context";
import type { QueueConfigs } from "./queue";
import type { ActionNames } from "./schedule";
import type { DatabaseProvider, Migration } from "./sql";

/** Names types that are not to be inferred. Only the compiler looks at it. */
export interface ActorTypes<S, V, I> {
  state?: S;
  vars?: V;
  input?: I;
  connParams?: unknown;
  connState?: unknown;
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

/** The `run` of an actor: a function, or one with what people see of it. */
export type RunConfig<C> =
  | ((c: C) => void | Promise<void>)
  | { run: (c: C) => void | Promise<void>; name?: string; icon?: string };

/** Infers the names at the top of a tree: that takes no look at the functions themselves. */
type Named<N extends string> = { readonly [K in N]?: unknown };

/** The context of a hook within a definition: of its actions it knows the names. */
type HookContext<S, V, I, N extends string, Q, DB> = ActorContext<
  S,
  unknown,
  unknown,
  V,
  I,
  DB,
  unknown,
  Q,
  ActionNames<NoInfer<N>>
>;

/** The same of an action. */
type CallContext<S, V, I, N extends string, Q, DB> = ActionContext<
  S,
  unknown,
  unknown,
  V,
  I,
  DB,
  unknown,
  Q,
  ActionNames<NoInfer<N>>
>;

/** The same of `onRequest`. */
type AnswerContext<S, V, I, N extends string, Q, DB> = RequestContext<
  S,
  unknown,
  unknown,
  V,
  I,
  DB,
  unknown,
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
> {
  /** Types that are not to be inferred, such as `{} as {state: S}`. */
  types?: ActorTypes<S, V, I>;
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
  onWake?: (c: HookContext<S, V, I, N, Q, DB>) => void | Promise<void>;
  /** When the actor goes to sleep. */
  onSleep?: (c: HookContext<S, V, I, N, Q, DB>) => void | Promise<void>;
  /** When the actor is destroyed. */
  onDestroy?: (c: HookContext<S, V, I, N, Q, DB>) => void | Promise<void>;
  /** Runs beside the actions from start to stop. */
  run?: RunConfig<HookContext<S, V, I, N, Q, DB>>;
  /** Once for each turn that changed the state. It must not change the state itself. */
  onStateChange?: (c: HookContext<S, V, I, N, Q, DB>, state: S) => void;
  /** May replace what an action answers. */
  onBeforeActionResponse?: <Out>(
    c: HookContext<S, V, I, N, Q, DB>,
    name: string,
    args: unknown[],
    output: Out,
  ) => Out | Promise<Out>;
  /**
   * Answers a request over HTTP below `/request` of the actor. Its signal fires when the client goes. The
   * answer waits for the changes before it, and each piece of a body that comes in pieces does, too.
   */
  onRequest?: (
    c: AnswerContext<S, V, I, N, Q, DB>,
    request: Request,
  ) => Response | Promise<Response>;
  /** Queues by name: what `queue()` returns, its options, or the schema of their messages. */
  queues?: Q & QueueConfigs<NoInfer<Q>>;
  /** What callers may ask for. Groups are plain objects. */
  actions?: A & ActionTree<CallContext<S, V, I, N, Q, DB>> & WithoutReservedActions & Named<N>;
  /** What only schedules and the actor itself may ask for. */
  internalActions?: IA &
    ActionTree<CallContext<S, V, I, N, Q, DB>> &
    WithoutReservedActions &
    Named<N>;
  /** Checks and may change the arguments of actions. */
  actionInputSchemas?: ActionInputSchemas<NoInfer<A>>;
  /** Options. */
  options?: ActorOptions;
}
