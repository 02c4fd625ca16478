/** The options of an actor, with their defaults. */

import { checkKeys, describe, type Keys } from "./keys";

/** What `options` of an actor means. Durations are milliseconds. */
export interface Options {
  readonly name: string | undefined;
  readonly icon: string | undefined;
  readonly createVarsTimeout: number;
  readonly createConnStateTimeout: number;
  readonly onBeforeConnectTimeout: number;
  readonly onConnectTimeout: number;
  readonly onMigrateTimeout: number;
  readonly sleepGracePeriod: number;
  readonly stateSaveInterval: number;
  readonly actionTimeout: number;
  readonly sleepTimeout: number;
  readonly maxSchedules: number;
  /** How many clients may be connected. */
  readonly maxConnections: number;
  readonly noSleep: boolean;
  /** Or what decides for each socket. */
  readonly canHibernateWebSocket: boolean | ((request: Request) => boolean);
  readonly durability: "reply" | "interval";
  /** How many messages may wait. */
  readonly maxQueueSize: number;
  /** In bytes. */
  readonly maxQueueMessageSize: number;
}

/** Milliseconds of each duration that is not given. */
const durations = {
  createVarsTimeout: 5_000,
  createConnStateTimeout: 5_000,
  onBeforeConnectTimeout: 5_000,
  onConnectTimeout: 5_000,
  onMigrateTimeout: 30_000,
  sleepGracePeriod: 15_000,
  stateSaveInterval: 1_000,
  actionTimeout: 60_000,
  sleepTimeout: 30_000,
};

/** Each size that is not given. */
const sizes = { maxConnections: 65_536, maxQueueSize: 1_000, maxQueueMessageSize: 65_536 };

/** The largest size: what fits in four bytes. */
const MAX_SIZE = 2 ** 32 - 1;

/** The longest duration: some 24 days, what a timer of JavaScript can wait. */
const MAX_DURATION = 2 ** 31 - 1;

const keys: Keys = {
  place: "options of actor()",
  known: [
    ...Object.keys(durations),
    ...Object.keys(sizes),
    "name",
    "icon",
    "maxSchedules",
    "noSleep",
    "canHibernateWebSocket",
    "durability",
  ],
  later: ["connectionLivenessInterval", "connectionLivenessTimeout", "enableActorRuntimeSocket"],
  ignored: [
    "onDestroyTimeout",
    "preloadMaxConnectionsBytes",
    "preloadMaxWorkflowBytes",
    "waitUntilTimeout",
  ],
};

/** Checks options and fills in what is not given. */
export function readOptions(given: unknown): Options {
  const options = given ?? {};
  checkKeys(options, keys);
  for (const key of keys.ignored ?? []) {
    if (options[key] !== undefined) warnOnce(key);
  }
  return {
    name: text(options, "name"),
    icon: text(options, "icon"),
    createVarsTimeout: duration(options, "createVarsTimeout"),
    createConnStateTimeout: duration(options, "createConnStateTimeout"),
    onBeforeConnectTimeout: duration(options, "onBeforeConnectTimeout"),
    onConnectTimeout: duration(options, "onConnectTimeout"),
    onMigrateTimeout: duration(options, "onMigrateTimeout"),
    sleepGracePeriod: duration(options, "sleepGracePeriod"),
    stateSaveInterval: duration(options, "stateSaveInterval"),
    actionTimeout: duration(options, "actionTimeout"),
    sleepTimeout: duration(options, "sleepTimeout"),
    maxSchedules: count(options, "maxSchedules", 1_000),
    maxConnections: size(options, "maxConnections"),
    noSleep: choice(options, "noSleep", [false, true]),
    canHibernateWebSocket:
      choiceOfSockets(options) ?? choice(options, "canHibernateWebSocket", [false, true]),
    durability: choice(options, "durability", ["reply", "interval"]),
    maxQueueSize: size(options, "maxQueueSize"),
    maxQueueMessageSize: size(options, "maxQueueMessageSize"),
  };
}

function choiceOfSockets({ canHibernateWebSocket: given }: Record<string, unknown>) {
  return typeof given === "function" ? (given as (request: Request) => boolean) : undefined;
}

function duration(options: Record<string, unknown>, key: keyof typeof durations): number {
  const value = options[key] ?? durations[key];
  if (typeof value !== "number" || !(value > 0) || value > MAX_DURATION) {
    throw new TypeError(
      `option ${key} is ${describe(value)}, not milliseconds above 0 and up to ${MAX_DURATION}`,
    );
  }
  return value;
}

/** The largest count: what fits in four bytes. */
const MAX_COUNT = 2 ** 32 - 1;

function count(options: Record<string, unknown>, key: string, without: number): number {
  const value = options[key] ?? without;
  if (typeof value !== "number" || !Number.isInteger(value) || value < 0 || value > MAX_COUNT) {
    throw new TypeError(`option ${key} is ${describe(value)}, not a whole number from 0`);
  }
  return value;
}

function size(options: Record<string, unknown>, key: keyof typeof sizes): number {
  const value = options[key] ?? sizes[key];
  if (!Number.isInteger(value) || (value as number) < 1 || (value as number) > MAX_SIZE) {
    throw new TypeError(
      `option ${key} is ${describe(value)}, not a whole number from 1 to ${MAX_SIZE}`,
    );
  }
  return value as number;
}

function text(options: Record<string, unknown>, key: string): string | undefined {
  const value = options[key];
  if (value !== undefined && typeof value !== "string") {
    throw new TypeError(`option ${key} is ${describe(value)}, not a string`);
  }
  return value;
}

/** One of `values`; the first is the default. */
export function choice<const V extends readonly unknown[]>(
  options: Record<string, unknown>,
  key: string,
  values: V,
): V[number] {
  const value = options[key] ?? values[0];
  if (!values.includes(value)) {
    const allowed = values.map(describe).join(" or ");
    throw new TypeError(`option ${key} is ${describe(value)}, not ${allowed}`);
  }
  return value;
}

const warned = new Set<string>();

function warnOnce(key: string): void {
  if (warned.has(key)) return;
  warned.add(key);
  process.emitWarning(`option ${key} of actor() has no effect`, "GreenroomWarning");
}
