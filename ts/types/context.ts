/**
 * What an author's functions see of their actor.
 *
 * 1. No index signature: a misspelt member is an error.
 * 2. The context of a `createX` does not mention what `createX` returns, so that it can be inferred.
 *
 * All contexts have the same type parameters, in RivetKit's order. Those of connections, database,
 * events and queues are there for the members that belong to them. Last come the actions, of which
 * schedules know the names.
 */

import type { Client } from "./client";
import type { Conn, ConnectionsContext } from "./connections";
import type { AllActionsOf, AnyActorDefinition, AnyRegistry, TypesOf } from "./definition";
import type { ActorKv } from "./kv";
import type { ActorQueue } from "./queue";
import type { ActorCron, ActorSchedule } from "./schedule";
import type { ActorSql } from "./sql";
import type { ActorTransaction, ActorTransactionOptions } from "./transaction";

/** Who called an action: over the network, another actor, this process, or a schedule. */
export type Caller = "client" | "actor" | "local" | "schedule";

/** When a state is to be saved. */
export interface SaveOptions {
  /** Now, without waiting for other changes. */
  immediate?: boolean | undefined;
  /** At the latest after so many milliseconds. */
  maxWait?: number | undefined;
}

/** Writes one line at a level: fields with an optional `msg`, or the message itself. */
export type LogMethod = (line: object | string, message?: string) => void;

/** The log of one actor, bound with its id, name, key and generation. */
export interface ActorLogger {
  readonly trace: LogMethod;
  readonly debug: LogMethod;
  readonly info: LogMethod;
  readonly warn: LogMethod;
  readonly error: LogMethod;
  readonly fatal: LogMethod;
  /** A log that adds `fields` to each line. */
  child(fields: object): ActorLogger;
}

/** How a sleep on the clock ends early. */
export interface SleepOptions {
  /** Ends the sleep when it fires: the sleep rejects with its reason. */
  signal?: AbortSignal | undefined;
}

/** The runtime's clock: that of the machine, or in a test the one that the test moves. */
export interface ActorClock {
  /** The time, in milliseconds since the epoch. */
  now(): number;
  /**
   * Resolves when `ms` milliseconds have passed on this clock, never earlier. 0 and less are due at
   * once, yet the event loop turns before; `Infinity` waits for the signal or the actor's end. Fractions
   * count as a whole millisecond. It may be longer than the timers of JavaScript can wait.
   *
   * A sleep keeps neither the actor awake nor the process alive; the action or `run` that waits for it
   * does as it would without: a call that somebody awaits holds the process, `run` does not (where a
   * timer of Node.js would).
   *
   * @throws rejects with `actor.aborted` when the actor begins to stop, and in an action also when that
   * call is given up or timed out. In `onSleep` and `onDestroy` only at the end of their grace period.
   * In `run` let it end the function, or ask `c.aborted` in the loop.
   * @throws rejects with the signal's reason when that fires, and with `actor.invalid_argument` when
   * `ms` is no number.
   */
  sleep(ms: number, options?: SleepOptions): Promise<void>;
}

/** Members of every context. */
export interface BaseContext<Actions = never> {
  /** The id, which stays over generations. */
  readonly actorId: string;
  /** The name of the actor's type: its key in `use`. */
  readonly name: string;
  /** What tells the actors of one name apart. */
  readonly key: string[];
  /** Where it runs; empty when embedded. */
  readonly region: string;
  /** Its log. */
  readonly log: ActorLogger;
  /** Its keys and values. */
  readonly kv: ActorKv;
  /** SQL on a file of its own, at once and without a promise. */
  readonly sql: ActorSql;
  /** What it does once, later. */
  readonly schedule: ActorSchedule<Actions>;
  /** What it does again and again. */
  readonly cron: ActorCron<Actions>;
  /** The runtime's time, in milliseconds since the epoch: the same as `clock.now()`. */
  readonly now: number;
  /** The runtime's clock. */
  readonly clock: ActorClock;
  /** Fires when the actor begins to stop, and inside an action also when that call is given up. */
  readonly abortSignal: AbortSignal;
  /** Whether {@link abortSignal} has fired. */
  readonly aborted: boolean;
  /**
   * Saves the state. Resolves when it is durable, in every form.
   *
   * @throws rejects when it could not be stored.
   */
  saveState(options?: SaveOptions): Promise<void>;
  /** Resolves when everything that was changed before is durable. */
  flush(): Promise<void>;
  /**
   * The global `fetch`, as an output of this actor: the request leaves once everything that the actor
   * changed before is durable. The global one does not wait.
   *
   * @throws rejects with `storage.*` when that could not be stored, and as `fetch` does.
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Keeps the actor awake until `promise` settles, and returns it. */
  keepAwake<T>(promise: Promise<T>): Promise<T>;
  /** Delays the end of the actor's sleep until `promise` settles. It does not prevent sleep. */
  waitUntil(promise: Promise<unknown>): void;
  /**
   * Puts the actor to sleep.
   *
   * @throws `actor.starting`, `actor.stopping`
   */
  sleep(): void;
  /**
   * Destroys the actor and all it stored.
   *
   * @throws `actor.starting`, `actor.stopping`
   */
  destroy(): void;
  /** Calls other actors of the registry. Inside an action the chain of calls goes along. */
  client<R extends AnyRegistry>(): Client<R>;
}

/** The database, for all contexts. */
export interface DatabaseContext<DB> {
  /**
   * What `db` of `actor()` gives.
   *
   * @throws `actor.database_not_configured` when the actor has none.
   */
  readonly db: DB;
}

/** The state, for all contexts after `createState`. */
export interface StateContext<S, Actions = never, DB = unknown>
  extends BaseContext<Actions>,
    DatabaseContext<DB> {
  /**
   * The actor's state. Changes at any depth are noticed; assigning refuses what cannot be stored.
   *
   * @throws `actor.state_not_enabled` when the actor has none.
   */
  state: S;
  /** A plain copy of the state, for `structuredClone`, `postMessage` and the like. */
  snapshot(): S;
}

/** Of `createState`. */
export interface CreateStateContext<Actions = never, Database = unknown>
  extends BaseContext<Actions>,
    DatabaseContext<Database> {}

/** Of `onCreate`. */
export interface CreateContext<
  State = unknown,
  _ConnParams = unknown,
  _ConnState = unknown,
  _Vars = unknown,
  _Input = unknown,
  Database = unknown,
  _Events = unknown,
  Queues = unknown,
  Actions = never,
> extends StateContext<State, Actions, Database> {
  /** Its messages. */
  readonly queue: ActorQueue<Queues>;
}

/** Of `createVars`. */
export interface CreateVarsContext<
  State = unknown,
  _ConnParams = unknown,
  _ConnState = unknown,
  _Vars = unknown,
  _Input = unknown,
  Database = unknown,
  _Events = unknown,
  Queues = unknown,
  Actions = never,
> extends StateContext<State, Actions, Database> {
  /** Its messages. */
  readonly queue: ActorQueue<Queues>;
}

/** Of everything else. */
export interface ActorContext<
  State = unknown,
  ConnParams = unknown,
  ConnState = unknown,
  Vars = unknown,
  _Input = unknown,
  Database = unknown,
  Events = unknown,
  Queues = unknown,
  Actions = never,
> extends StateContext<State, Actions, Database>,
    ConnectionsContext<ConnParams, ConnState, Events> {
  /** Its messages. */
  readonly queue: ActorQueue<Queues>;
  /** What lives as long as the generation, and is never stored. */
  vars: Vars;
  /**
   * Runs `body`, and commits all that it changed through `tx` when it resolves, or nothing when it
   * rejects. Resolves when that is durable. What the turn changed before is committed first.
   *
   * Others wait, or conflict: assigning to `c.state` throws `actor.state_transaction_conflict` while one
   * is open, `c.sql.exec` throws `sqlite.transaction_open`, and everything else is stored when it has
   * ended. Calls and requests made inside leave after the commit, so `body` must not wait for them.
   *
   * @throws rejects with what `body` threw; `sqlite.transaction_expired` after `timeout`;
   * `actor.transaction_nested` inside of another one; `actor.state_transaction_conflict` when the state
   * changed unnoticed; and as what `tx` has does.
   */
  transaction<T>(
    body: (tx: ActorTransaction<State, Database, Queues, Actions>) => T | Promise<T>,
    options?: ActorTransactionOptions,
  ): Promise<T>;
}

/** Of actions. */
export interface ActionContext<
  State = unknown,
  ConnParams = unknown,
  ConnState = unknown,
  Vars = unknown,
  Input = unknown,
  Database = unknown,
  Events = unknown,
  Queues = unknown,
  Actions = never,
> extends ActorContext<
    State,
    ConnParams,
    ConnState,
    Vars,
    Input,
    Database,
    Events,
    Queues,
    Actions
  > {
  /** Who called. */
  readonly caller: Caller;
  /** The client that called over a connection; undefined for every other call. */
  readonly conn: Conn<ConnParams, ConnState, Events> | undefined;
}

/** Of `onRequest`. */
export interface RequestContext<
  State = unknown,
  ConnParams = unknown,
  ConnState = unknown,
  Vars = unknown,
  Input = unknown,
  Database = unknown,
  Events = unknown,
  Queues = unknown,
  Actions = never,
> extends ActionContext<
    State,
    ConnParams,
    ConnState,
    Vars,
    Input,
    Database,
    Events,
    Queues,
    Actions
  > {
  /** What is answered. */
  readonly request: Request;
}
/** Of `onBeforeActionResponse`: that of the action. */
export type {
  ActionContext as BeforeActionResponseContext,
  ActionContextOf as BeforeActionResponseContextOf,
};

/** The types of an actor, by name, for {@link Context}. */
export interface ContextTypes {
  state?: unknown;
  params?: unknown;
  connState?: unknown;
  vars?: unknown;
  database?: unknown;
  events?: unknown;
  queues?: unknown;
  /** The tree of actions that schedules may name, such as `{tick(n: number): void}`. */
  actions?: unknown;
}

/**
 * The context of an actor with the given types, for a helper that the actor itself calls:
 * `typeof actor` inside its own definition would be a cycle.
 */
export type Context<T extends ContextTypes = Record<never, never>> = ActorContext<
  T["state"],
  T["params"],
  T["connState"],
  T["vars"],
  unknown,
  T["database"],
  T["events"],
  T["queues"],
  "actions" extends keyof T ? T["actions"] : never
>;

/** Of any function of the given definition but `createState`, `createVars` and `onCreate`. */
export type ActorContextOf<D extends AnyActorDefinition> = ActorContext<
  TypesOf<D>["state"],
  TypesOf<D>["connParams"],
  TypesOf<D>["connState"],
  TypesOf<D>["vars"],
  TypesOf<D>["input"],
  TypesOf<D>["db"],
  TypesOf<D>["events"],
  TypesOf<D>["queues"],
  AllActionsOf<D>
>;
/** Of the given definition's actions. */
export type ActionContextOf<D extends AnyActorDefinition> = ActionContext<
  TypesOf<D>["state"],
  TypesOf<D>["connParams"],
  TypesOf<D>["connState"],
  TypesOf<D>["vars"],
  TypesOf<D>["input"],
  TypesOf<D>["db"],
  TypesOf<D>["events"],
  TypesOf<D>["queues"],
  AllActionsOf<D>
>;
/** Of the given definition's `onCreate`. */
export type CreateContextOf<D extends AnyActorDefinition> = CreateContext<
  TypesOf<D>["state"],
  unknown,
  unknown,
  unknown,
  TypesOf<D>["input"],
  TypesOf<D>["db"],
  unknown,
  TypesOf<D>["queues"],
  AllActionsOf<D>
>;
/** Of the given definition's `createVars`. */
export type CreateVarsContextOf<D extends AnyActorDefinition> = CreateVarsContext<
  TypesOf<D>["state"],
  unknown,
  unknown,
  unknown,
  TypesOf<D>["input"],
  TypesOf<D>["db"],
  unknown,
  TypesOf<D>["queues"],
  AllActionsOf<D>
>;

/** Of `onMigrate`. */
export type MigrateContext<State = unknown, Actions = never, Database = unknown> = StateContext<
  State,
  Actions,
  Database
>;
/** Of `onMigrate` of the given definition. */
export type MigrateContextOf<D extends AnyActorDefinition> = MigrateContext<
  TypesOf<D>["state"],
  AllActionsOf<D>,
  TypesOf<D>["db"]
>;

export type {
  ActorContext as DestroyContext,
  ActorContext as RunContext,
  ActorContext as SleepContext,
  ActorContext as StateChangeContext,
  ActorContext as WakeContext,
  ActorContextOf as DestroyContextOf,
  ActorContextOf as RunContextOf,
  ActorContextOf as SleepContextOf,
  ActorContextOf as StateChangeContextOf,
  ActorContextOf as WakeContextOf,
};
