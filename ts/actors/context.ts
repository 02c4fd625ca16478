/**
 * `c`: what an author's functions get first.
 *
 * 1. Few fields, everything else on the prototype: one is made for each call.
 * 2. What is rarely used (log, client, clock, signals) is made when it is first touched.
 */

import type { Call } from "../calls/call";
import { mayLeave, unlessAborted } from "../calls/departures";
import { copy } from "../codec";
import type { Conn } from "../connections/conn";
import type { Conns } from "../connections/conns";
import { checkKeys } from "../definition/keys";
import { checkedArgument, invalidArgument, RivetError } from "../errors";
import type { Keys } from "../kv";
import type { Logger } from "../log";
import { clockNow, dispatch, unbridged } from "../native-half";
import { Messages } from "../queue";
import type { Cron, Schedule } from "../schedule";
import type { InTurn } from "../sql/in-turn";
import { transact } from "../transaction";
import type { Transaction } from "../transaction/transaction";
import type { ActorTransactionOptions, Caller, SaveOptions } from "../types";
import { Clock } from "./clock";
import type { Live } from "./live";
import { written } from "./written";

export class Context {
  readonly #live: Live;
  readonly #call: Call | undefined;
  #client: object | undefined;
  #clock: Clock | undefined;
  #queue: Messages | undefined;
  #db: unknown;

  constructor(live: Live, call: Call | undefined, clock?: Clock) {
    this.#live = live;
    this.#call = call;
    this.#clock = clock;
  }

  /** The generation and the call behind a context, and its messages once it asked for them. */
  static inside(context: Context): {
    readonly live: Live;
    readonly call: Call | undefined;
    readonly queue: Messages | undefined;
  } {
    return { live: context.#live, call: context.#call, queue: context.#queue };
  }

  get state(): unknown {
    return this.#live.state;
  }

  set state(value: unknown) {
    this.#live.state = value;
  }

  snapshot(): unknown {
    return copy(this.#live.state, "state");
  }

  get vars(): unknown {
    return this.#live.vars;
  }

  set vars(value: unknown) {
    this.#live.vars = value;
  }

  get actorId(): string {
    return this.#live.bag.identity.actorId;
  }

  get name(): string {
    return this.#live.bag.identity.name;
  }

  get key(): string[] {
    return this.#live.bag.identity.key.map(String);
  }

  get region(): string {
    return this.#live.bag.identity.region;
  }

  get log(): Logger {
    return this.#live.log;
  }

  get kv(): Keys {
    return this.#live.kv;
  }

  get db(): unknown {
    if (this.#db !== undefined) return this.#db;
    const call = this.#live.definition.options.durability === "reply" ? this.#call : undefined;
    const asker = call && (() => call.statements);
    this.#db = this.#live.database.client(this.#live.specifier, asker);
    return this.#db;
  }

  get sql(): InTurn {
    return this.#live.sql;
  }

  get schedule(): Schedule {
    return this.#live.schedule;
  }

  get cron(): Cron {
    return this.#live.cron;
  }

  get queue(): Messages {
    this.#queue ??= new Messages(this.#live, this.#call);
    return this.#queue;
  }

  get now(): number {
    return clockNow(this.#live.bag);
  }

  get clock(): Clock {
    this.#clock ??= new Clock(this.#live, this.#call);
    return this.#clock;
  }

  get conn(): Conn | undefined {
    return this.#call?.conn;
  }

  get conns(): Conns {
    return this.#live.connections.all;
  }

  broadcast(name: string, ...args: unknown[]): void {
    this.#live.connections.broadcast(name, args);
  }

  get caller(): Caller | undefined {
    return this.#call?.caller;
  }

  get abortSignal(): AbortSignal {
    return this.#call === undefined ? this.#live.bag.abortSignal : this.#call.signal;
  }

  get aborted(): boolean {
    return this.abortSignal.aborted;
  }

  saveState(options: SaveOptions = {}): Promise<void> {
    return written(() => this.#save(options));
  }

  async #save(options: SaveOptions): Promise<void> {
    const { immediate, maxWait } = readSaveOptions(options);
    const { bag, definition } = this.#live;
    // With every answer waiting for its changes, nothing is gained by waiting for others.
    if (definition.options.durability === "reply") return this.flush();
    const saved = bag.context.requestSaveAndWait({
      immediate,
      ...(maxWait === undefined ? {} : { maxWaitMs: maxWait }),
    });
    await this.#live.waits(plainly(saved), this.#call);
  }

  flush(): Promise<void> {
    return written(async () => {
      this.#live.recheck();
      const statements = this.#call?.statementsEnded();
      if (statements !== undefined) await this.#live.waits(statements, this.#call);
      await this.#live.waits(plainly(dispatch.flush(this.#live.bag)), this.#call);
    });
  }

  /** Of `onRequest`, and of hooks of connections. */
  get request(): Request | undefined {
    return this.#call?.request;
  }

  async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const leaves = mayLeave(this.#live, this.#call);
    if (leaves === undefined) return fetch(input, init);
    // Now, because the caller may change them while it waits.
    const request = new Request(input, init);
    await unlessAborted(leaves, request.signal);
    return fetch(request);
  }

  transaction<T>(
    body: (tx: Transaction) => T | Promise<T>,
    options?: ActorTransactionOptions,
  ): Promise<T> {
    return transact(this.#live, body, options, this.#call ?? this.#live);
  }

  keepAwake<T>(promise: Promise<T>): Promise<T> {
    checkPromise(promise, "keepAwake");
    const ended = quiet(promise);
    this.#live.bag.context.keepAwake(ended);
    this.#note("keepAwake", ended);
    return this.#live.waits(promise, this.#call);
  }

  waitUntil(promise: Promise<unknown>): void {
    checkPromise(promise, "waitUntil");
    const logged = promise.then(undefined, (error: unknown) => {
      this.#live.log.error({ msg: "a promise given to waitUntil was rejected", err: error });
    });
    this.#live.bag.context.waitUntil(logged);
    this.#note("waitUntil", logged);
  }

  sleep(): void {
    plainlySync(() => this.#live.bag.context.sleep());
  }

  destroy(): void {
    plainlySync(() => this.#live.bag.context.destroy());
  }

  /** Work that goes on beside its function, or after it. */
  #note(what: string, ended: Promise<unknown>): void {
    const over = this.#live.scene.noted?.begin(this.#call ?? this.#live, this.#live, what);
    if (over !== undefined) void ended.then(over);
  }

  client(): object {
    this.#client ??= this.#live.scene.client(this);
    return this.#client;
  }
}

const saveKeys = { place: "options of saveState()", known: ["immediate", "maxWait"] };

function readSaveOptions(options: SaveOptions): {
  immediate: boolean;
  maxWait: number | undefined;
} {
  checkedArgument(() => checkKeys(options, saveKeys));
  const { immediate, maxWait } = options;
  if (maxWait !== undefined && !(typeof maxWait === "number" && maxWait >= 0)) {
    throw new RivetError(
      "actor",
      "invalid_argument",
      `maxWait of saveState is ${String(maxWait)}, not milliseconds from 0`,
    );
  }
  return { immediate: immediate === true, maxWait };
}

function checkPromise(promise: unknown, method: string): void {
  if (typeof (promise as { then?: unknown } | undefined)?.then !== "function") {
    throw invalidArgument(`${method} takes a promise`);
  }
}

/** The same moment without the outcome, which is the author's. */
function quiet(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => null,
    () => null,
  );
}

/** Errors of the native half with their fields. */
async function plainly<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw unbridged(error);
  }
}

function plainlySync(body: () => void): void {
  try {
    body();
  } catch (error) {
    throw unbridged(error);
  }
}
