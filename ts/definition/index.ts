/** A checked definition of a type of actor, ready to be run. */

import type { StandardSchemaV1 } from "@standard-schema/spec";

import { isSchema } from "../schema";
import { checkSteps } from "../sql/migrations";
import type { ActorDefinition, DatabaseProvider, DefinitionTypes, Migration } from "../types";
import { type ActionFunction, flatten, isGroup } from "./actions";
import { type EventRules, readEvents } from "./events";
import { checkFunction, checkKeys, describe, type Keys, nearest, quoted } from "./keys";
import { type Limits, readLimits } from "./limits";
import { type Options, readOptions } from "./options";
import { type QueueRules, readQueues } from "./queues";

/** One of an author's functions. */
export type Hook = (c: unknown, ...args: unknown[]) => unknown;

const hooks = [
  "createState",
  "createVars",
  "migrateState",
  "onMigrate",
  "onCreate",
  "onWake",
  "onSleep",
  "onDestroy",
  "onStateChange",
  "onBeforeActionResponse",
  "onRequest",
  "onWebSocket",
  "createConnState",
  "onBeforeConnect",
  "onConnect",
  "onDisconnect",
] as const;

const keys: Keys = {
  place: "actor()",
  known: [
    "types",
    "state",
    "vars",
    ...hooks,
    "stateVersion",
    "db",
    "migrations",
    "run",
    "actions",
    "internalActions",
    "actionInputSchemas",
    "inputSchema",
    "queues",
    "events",
    "connState",
    "connParamsSchema",
    "limits",
    "options",
  ],
  later: ["inspector"],
};

const runKeys: Keys = {
  place: "run of actor()",
  known: ["run", "name", "icon"],
  later: ["inspector"],
};

/** Marks the definitions of all copies of this module. */
const BRAND = Symbol.for("greenroom.definition");

/** What this copy made of the definitions of others. */
const adopted = new WeakMap<object, Definition>();

/** The runtime's side of a definition. */
export class Definition implements ActorDefinition<DefinitionTypes> {
  /** What was given to `actor()`. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Options with their defaults. */
  readonly options: Options;
  /** Public actions by dotted name. */
  readonly actions: ReadonlyMap<string, ActionFunction>;
  /** Actions for schedules and the actor itself, by dotted name. */
  readonly internalActions: ReadonlyMap<string, ActionFunction>;
  /** Schemas of arguments by dotted name of the action. */
  readonly argumentSchemas: ReadonlyMap<string, StandardSchemaV1>;
  /** Queues by name. */
  readonly queues: ReadonlyMap<string, QueueRules>;
  /** Events by name. */
  readonly events: ReadonlyMap<string, EventRules>;
  /** The schema of what clients pass when they connect. */
  readonly connParamsSchema: StandardSchemaV1 | undefined;
  /** What one remote client may do. */
  readonly limits: Limits;
  /** Whether connections have a state at all. */
  readonly hasConnState: boolean;
  /** The schema of the input. */
  readonly inputSchema: StandardSchemaV1 | undefined;
  /** The author's `run`. */
  readonly run: Hook | undefined;
  /** Whether there is a state at all. */
  readonly hasState: boolean;
  /** The version of the state's shape; 0 when none was given. */
  readonly stateVersion: number;
  /** Whether there are vars at all. */
  readonly hasVars: boolean;
  /** What makes `c.db`. */
  readonly database: DatabaseProvider<unknown> | undefined;
  /** Numbered steps of the schema. */
  readonly migrations: readonly Migration[] | undefined;

  constructor(config: Record<string, unknown>) {
    this.config = config;
    this.options = readOptions(config.options);
    this.actions = flatten(config.actions, "actions");
    this.internalActions = flatten(config.internalActions, "internalActions");
    for (const name of this.internalActions.keys()) {
      if (this.actions.has(name)) {
        throw new TypeError(`${quoted(name)} is in actions and in internalActions of actor()`);
      }
    }
    this.argumentSchemas = readSchemas(config.actionInputSchemas, [
      ...this.actions.keys(),
      ...this.internalActions.keys(),
    ]);
    this.queues = readQueues(config.queues);
    this.events = readEvents(config.events);
    this.limits = readLimits(config.limits);
    this.connParamsSchema = readSchema(config.connParamsSchema, "connParamsSchema");
    this.hasConnState = config.connState !== undefined || config.createConnState !== undefined;
    this.inputSchema = readSchema(config.inputSchema, "inputSchema");
    this.run = readRun(config.run);
    this.hasState = config.state !== undefined || config.createState !== undefined;
    this.stateVersion = readStateVersion(config, this.hasState);
    this.hasVars = config.vars !== undefined || config.createVars !== undefined;
    this.database = readDatabase(config.db);
    this.migrations =
      config.migrations === undefined
        ? undefined
        : checkSteps(config.migrations, "migrations of actor()");
  }

  /** The definition that `given` is, also where another copy of this module made it. */
  static from(given: unknown): Definition | undefined {
    if (given instanceof Definition) return given;
    if (typeof given !== "object" || given === null || !(BRAND in given)) return undefined;
    let own = adopted.get(given);
    if (own === undefined) {
      own = defineActor((given as { config?: unknown }).config);
      adopted.set(given, own);
    }
    return own;
  }

  get [BRAND](): boolean {
    return true;
  }

  /** One of the author's functions; `undefined` when it was not written. */
  hook(name: (typeof hooks)[number]): Hook | undefined {
    return this.config[name] as Hook | undefined;
  }

  /** An action by its dotted name, of the public ones, or of all. */
  action(name: string, internal: boolean): ActionFunction | undefined {
    return this.actions.get(name) ?? (internal ? this.internalActions.get(name) : undefined);
  }
}

/** Checks what was given to `actor()`. */
export function defineActor(config: unknown): Definition {
  checkKeys(config, keys);
  for (const [one, other] of [
    ["state", "createState"],
    ["vars", "createVars"],
    ["connState", "createConnState"],
  ] as const) {
    if (config[one] !== undefined && config[other] !== undefined) {
      throw new TypeError(`actor() has both ${one} and ${other}: give one of them`);
    }
  }
  for (const name of hooks) checkFunction(config[name], name, "actor()");
  return new Definition(config);
}

/** The largest version: what fits in four bytes. */
const MAX_STATE_VERSION = 2 ** 32 - 1;

function readStateVersion(config: Record<string, unknown>, hasState: boolean): number {
  const { stateVersion: version, migrateState } = config;
  if (version === undefined) {
    if (migrateState === undefined) return 0;
    throw new TypeError("actor() has migrateState without stateVersion: give both");
  }
  if (
    !Number.isInteger(version) ||
    !((version as number) >= 1 && (version as number) <= MAX_STATE_VERSION)
  ) {
    throw new TypeError(
      `stateVersion of actor() is ${describe(version)}, not a whole number from 1 to ${MAX_STATE_VERSION}`,
    );
  }
  if (!hasState) throw new TypeError("actor() has stateVersion without state or createState");
  return version as number;
}

function readDatabase(given: unknown): DatabaseProvider<unknown> | undefined {
  if (given === undefined) return undefined;
  const { createClient } = (given ?? {}) as { createClient?: unknown };
  if (typeof createClient !== "function") {
    throw new TypeError(`db of actor() is ${describe(given)}, not what db() of greenroom/db gives`);
  }
  return given as DatabaseProvider<unknown>;
}

function readRun(run: unknown): Hook | undefined {
  if (run === undefined || typeof run === "function") return run as Hook | undefined;
  checkKeys(run, runKeys);
  if (typeof run.run !== "function") {
    throw new TypeError(`run of run of actor() is ${describe(run.run)}, not a function`);
  }
  return run.run as Hook;
}

function readSchema(schema: unknown, place: string): StandardSchemaV1 | undefined {
  if (schema === undefined) return undefined;
  if (!isSchema(schema)) {
    throw new TypeError(`${place} of actor() is ${describe(schema)}, not a Standard Schema`);
  }
  return schema;
}

function readSchemas(tree: unknown, names: readonly string[]): Map<string, StandardSchemaV1> {
  const out = new Map<string, StandardSchemaV1>();
  if (tree === undefined) return out;
  if (!isGroup(tree)) {
    throw new TypeError(`actionInputSchemas of actor() is ${describe(tree)}, not an object`);
  }
  const visit = (group: Record<string, unknown>, prefix: string): void => {
    for (const [key, value] of Object.entries(group)) {
      const name = prefix + key;
      if (value === undefined) continue;
      // A schema may be a function with properties, or a plain object.
      if (isGroup(value) && !isSchema(value)) {
        visit(value, `${name}.`);
        continue;
      }
      if (!names.includes(name)) {
        const near = nearest(name, names);
        const hint = near === undefined ? "" : `: did you mean ${quoted(near)}?`;
        throw new TypeError(`actionInputSchemas names no action ${quoted(name)}${hint}`);
      }
      if (out.has(name)) throw new TypeError(`actionInputSchemas has ${quoted(name)} twice`);
      out.set(name, readSchema(value, `actionInputSchemas ${quoted(name)}`) as StandardSchemaV1);
    }
  };
  visit(tree, "");
  return out;
}
