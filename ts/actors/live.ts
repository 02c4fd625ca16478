/**
 * The author's side of one running generation.
 *
 * 1. The state is decoded when it is first touched, and encoded once for each commit.
 * 2. `onStateChange` runs once for each turn that changed the state, and may not change it.
 * 3. While a part that cannot be watched is in the hands of a call, a hook or `run`, the state is
 *    compared with what was stored last whenever a turn or a call ends. Timers may keep such a part
 *    for longer: once one was handed out, every save compares, and so does the last.
 */

import { copy, sameBytes } from "../codec";
import { encodeVersioned } from "../codec/versioned";
import { Desk } from "../connections/desk";
import type { Definition } from "../definition";
import type { ActorSpecifier } from "../errors";
import { messageOf, RivetError } from "../errors";
import { Keys } from "../kv";
import { Logger, type Logging } from "../log";
import { type Bag, dispatch, type NativeQueue, type NativeSchedule } from "../native-half";
import type { Messages } from "../queue";
import { afterwards, Cron, Schedule, type Scheduling } from "../schedule";
import { AuthorsDatabase } from "../sql/author";
import { InTurn } from "../sql/in-turn";
import { adopt, type Owner, seen } from "../state";
import { Line, runTransaction } from "../transaction";
import { merged } from "../transaction/draft";
import { insideOf, refuseInside } from "../transaction/inside";
import type { Transaction } from "../transaction/transaction";
import { Context } from "./context";
import { Natives } from "./natives";
import { isOutdated, readStored } from "./stored";
import { atTurnsEnd } from "./turn";

/** Hears of the author's functions and of their waits; only in a test runtime. */
export interface Noted {
  /** A function begins; call what it returns when it ended. `owner` is its call, or the generation. */
  begin(owner: object, live: Live, what: string): () => void;
  /** A function waits for what only time or another actor can bring. */
  waits<T>(owner: object, live: Live, promise: Promise<T>): Promise<T>;
}

/** What the generations of one registry share. */
export interface Scene {
  readonly logging: Logging;
  /** The second argument of `createVars`. */
  readonly deps: unknown;
  /** Absent outside of tests. */
  readonly noted?: Noted;
  /** A client for the context of an actor. */
  client(origin: Context): object;
}

/** From here on a state is called large: encoding it takes some ten milliseconds. */
const LARGE_BYTES = 1024 * 1024;

export class Live implements Owner {
  readonly called = "state";
  readonly bag: Bag;
  readonly definition: Definition;
  readonly scene: Scene;
  /** What `createVars` made. */
  vars: unknown;
  /** The validated input, between `createState` and `onCreate`. */
  input: { readonly value: unknown } | undefined;
  #context: Context | undefined;
  #root: unknown;
  #loaded = false;
  /** What is stored has an older version than this code. */
  readonly #outdated: boolean;
  /** Changed since it was last encoded. */
  #changed = false;
  /** A part that cannot be watched was handed out (3). */
  #suspected = false;
  #exposed = false;
  /** `onStateChange` is due at the end of this turn. */
  #announces = false;
  #announcing = false;
  /** Calls, hooks and `run`, whose functions have not ended. */
  #running = 0;
  /** The encoded state as the author was last told of it; only while suspected, for (2). */
  #told: Uint8Array | undefined;
  #log: Logger | undefined;
  #kv: Keys | undefined;
  #database: AuthorsDatabase | undefined;
  #sql: InTurn | undefined;
  #natives: Natives | undefined;
  #schedule: Schedule | undefined;
  #cron: Cron | undefined;
  /** The connections, once anybody asked for them. Set by `connections`. */
  desk: Desk | undefined;
  /** The contexts that received messages and may receive more. */
  consumers: Set<Messages> | undefined;
  /** The open transaction. Set by {@link openTransaction}, cleared by its end. */
  transaction: Transaction | undefined;
  #line: Line | undefined;
  /** The encoded state when parts that cannot be watched were first seen beside a transaction. */
  #besides: Uint8Array | undefined;
  /** A large state was warned of, once for the generation. */
  #warned = false;

  constructor(bag: Bag, definition: Definition, scene: Scene) {
    this.bag = bag;
    this.definition = definition;
    this.scene = scene;
    // Before any function of the author's could see, or replace, what it does not understand.
    this.#outdated =
      this.definition.hasState && isOutdated(bag.storedState(), definition, this.specifier);
  }

  /** Brings a state of an older version to the shape of this code. */
  migrate(): void {
    if (this.#outdated) this.#load();
  }

  /** Given to lifecycle hooks and `run`; made for the first of them. */
  get context(): Context {
    this.#context ??= new Context(this, undefined);
    return this.#context;
  }

  /** Names the generation in errors. */
  get specifier(): ActorSpecifier {
    return this.bag.specifier;
  }

  /** The log, bound to the actor. */
  get log(): Logger {
    const { actorId, name, key, generation } = this.bag.identity;
    this.#log ??= new Logger(this.scene.logging, {
      actorId,
      actorName: name,
      actorKey: key.map(String),
      generation,
    });
    return this.#log;
  }

  /** The author's keys and values. */
  get kv(): Keys {
    this.#kv ??= new Keys(() => this.#outside("kv").kv, this);
    return this.#kv;
  }

  /** The author's database. */
  get database(): AuthorsDatabase {
    const { database: provider, migrations: steps } = this.definition;
    this.#database ??= new AuthorsDatabase(
      { provider, steps },
      () => this.#outside("db").sql,
      this,
      (body, timeout) =>
        runTransaction(this, (tx) => body(tx.raw), { timeout, includesState: true }),
    );
    return this.#database;
  }

  /** The connections. */
  get connections(): Desk {
    this.desk ??= new Desk(this);
    return this.desk;
  }

  /** Statements within the turn. */
  get sql(): InTurn {
    this.#sql ??= new InTurn(() => this.#native.sql);
    return this.#sql;
  }

  /** What it does once, later. */
  get schedule(): Schedule {
    this.#schedule ??= new Schedule(this.#scheduling("schedule"));
    return this.#schedule;
  }

  #scheduling(member: "schedule" | "cron"): Scheduling {
    return { native: () => this.#laterNative(member), waits: (promise) => this.waits(promise) };
  }

  /** What it does again and again. */
  get cron(): Cron {
    this.#cron ??= new Cron(this.#scheduling("cron"));
    return this.#cron;
  }

  /** The messages, for the queues of its contexts. */
  get queue(): NativeQueue {
    return this.#native.queue;
  }

  /** A context receives messages. */
  consume(consumer: Messages): void {
    this.consumers ??= new Set();
    if (this.consumers.has(consumer)) return;
    for (const known of this.consumers) if (known.isOver) this.consumers.delete(known);
    this.consumers.add(consumer);
  }

  /** The state behind its proxies. */
  get root(): unknown {
    return this.#root;
  }

  /** The state as the author sees it. */
  get state(): unknown {
    const within = this.transaction?.includesState === true ? insideOf(this) : undefined;
    if (within !== undefined) return within.state;
    this.#load();
    return seen(this.#root, this);
  }

  set state(value: unknown) {
    const within = this.transaction?.includesState === true ? insideOf(this) : undefined;
    if (within !== undefined) {
      within.state = value;
      return;
    }
    this.#enabled();
    this.permit();
    const root = adopt(value, this);
    this.change();
    this.#root = root;
    this.#loaded = true;
  }

  /** Sets the first state, which the native half stores by itself. It is taken over, not copied. */
  begin(state: unknown): Uint8Array {
    const bytes = encodeVersioned(state, this.definition.stateVersion, "state");
    this.#root = adopt(state, this);
    this.#loaded = true;
    return bytes;
  }

  /** Who waits for the transactions of this generation. */
  get line(): Line {
    this.#line ??= new Line();
    return this.#line;
  }

  /** The state as it is kept, for a copy. */
  loaded(): unknown {
    this.#load();
    return this.#root;
  }

  openTransaction(transaction: Transaction): void {
    this.transaction = transaction;
    if (this.#exposed) this.#noteBesides();
  }

  closeTransaction(transaction: Transaction): void {
    if (this.transaction !== transaction) return;
    this.transaction = undefined;
    this.#besides = undefined;
  }

  /** @throws `actor.state_transaction_conflict` when the state changed unnoticed since the open transaction began. */
  checkUnchanged(): void {
    if (this.#besides !== undefined && !sameBytes(this.#encoded(), this.#besides)) {
      throw this.#conflict();
    }
  }

  /** A transaction that commits puts its state in the place of this one. */
  replace(state: unknown): void {
    this.#root = merged(this.#root, copy(state, "state"));
    this.#changed = false;
    if (this.#announces || this.definition.hook("onStateChange") === undefined) return;
    this.#announces = true;
    atTurnsEnd(this);
  }

  #noteBesides(): void {
    if (!this.#loaded) return;
    // Bytes of their own: those of the encoder lie in a buffer that they would keep.
    this.#besides = new Uint8Array(this.#encoded());
  }

  #conflict(): RivetError {
    return new RivetError(
      "actor",
      "state_transaction_conflict",
      "the state cannot be changed while a transaction of the actor is open: use tx.state in it",
      { actor: this.specifier },
    );
  }

  get #native(): Natives {
    this.#natives ??= new Natives(() => this.bag.context);
    return this.#natives;
  }

  /** The native half for what a transaction has of its own. */
  #outside(member: string): Natives {
    refuseInside(this, member);
    return this.#native;
  }

  /** The schedules; while a transaction is open what would change them waits for its end. */
  #laterNative(member: string): NativeSchedule {
    const native = this.#outside(member).schedule;
    const { transaction } = this;
    return transaction === undefined ? native : afterwards(native, transaction.over);
  }

  permit(): void {
    if (this.transaction !== undefined) throw this.#conflict();
    if (this.#announcing) {
      throw new RivetError(
        "actor",
        "state_mutation_reentrant",
        "the state cannot be changed inside onStateChange",
        { actor: this.specifier },
      );
    }
    if (this.bag.sealed && this.bag.stopped === undefined) {
      throw new RivetError(
        "actor",
        "stopping",
        "the state of an actor cannot be changed after its last save",
        { actor: this.specifier },
      );
    }
    if (this.bag.stopped !== undefined) {
      throw new RivetError(
        "actor",
        "stopped",
        "the state of an actor that stopped cannot be changed",
        {
          actor: this.specifier,
        },
      );
    }
  }

  change(): void {
    this.permit();
    this.#changed = true;
    dispatch.changed(this.bag);
    if (!this.#announces && this.definition.hook("onStateChange") !== undefined) {
      this.#announces = true;
      atTurnsEnd(this);
    }
  }

  suspect(): void {
    if (this.bag.stopped !== undefined) return;
    this.#exposed = true;
    if (this.transaction !== undefined && this.#besides === undefined) this.#noteBesides();
    if (!this.#suspected) {
      this.#suspected = true;
      // An announcement that is due takes note itself.
      if (!this.#announces && !this.#announcing) this.#noteTold();
    }
    dispatch.changed(this.bag);
  }

  /** Whether a part that cannot be watched was ever handed out. */
  get exposed(): boolean {
    return this.#exposed;
  }

  /** Before a save that is waited for: what may have changed unnoticed is compared with it. */
  recheck(): void {
    if (this.#exposed) this.suspect();
    this.desk?.settle();
  }

  /**
   * Runs an author's function, called `what`, as one of the calls and hooks of this generation; `owner`
   * is its call.
   */
  async during<T>(what: string, body: () => T | Promise<T>, owner: object = this): Promise<T> {
    this.#running += 1;
    const ended = this.scene.noted?.begin(owner, this, what);
    try {
      return await body();
    } finally {
      this.#running -= 1;
      ended?.();
      this.desk?.settle();
      // What it holds may have changed since the turn in which it was handed out.
      if (this.#suspected) this.suspect();
    }
  }

  /**
   * Notes a wait for what only time, another actor or another function of this one can bring. `owner` as
   * in {@link during}; one of unknown owner is noted as the generation's.
   */
  waits<T>(promise: Promise<T>, owner: object = this): Promise<T> {
    const { noted } = this.scene;
    return noted === undefined ? promise : noted.waits(owner, this, promise);
  }

  /**
   * The state for a commit; `undefined` when it is what was stored last. Asking again before the
   * commit could begin gives the same answer.
   */
  encode(): Uint8Array | undefined {
    if (!this.#loaded) return undefined;
    const bytes = this.#encoded();
    const { bag } = this;
    // What is on its way is not stored yet, and may differ from what is stored.
    const onItsWay = bag.inFlight !== 0 || bag.handedOver;
    const changed = this.#changed || onItsWay || !sameBytes(bytes, bag.storedState());
    this.#changed = false;
    if (this.#suspected) {
      // Not `changed`: what is stored may be behind what the author was told.
      if (this.#told !== undefined && !sameBytes(bytes, this.#told)) this.#announces = true;
      if (this.#running === 0) this.#trust();
    }
    this.announce();
    return changed ? bytes : undefined;
  }

  /** Tells the author that the state changed, if that is due (2). */
  announce(): void {
    if (!this.#announces) return;
    this.#announces = false;
    const hook = this.definition.hook("onStateChange");
    if (hook === undefined || this.bag.stopped !== undefined) return;
    const native = this.bag.context;
    native.beginOnStateChange();
    this.#announcing = true;
    try {
      // Nobody waits for the promise of an async hook, but its rejection is heard.
      const ended: unknown = hook(this.context, seen(this.#root, this));
      if (ended instanceof Promise) ended.catch((error: unknown) => this.#failedToTell(error));
    } catch (error) {
      this.#failedToTell(error);
    } finally {
      this.#announcing = false;
      native.endOnStateChange();
      if (this.#suspected) this.#noteTold();
    }
  }

  #failedToTell(error: unknown): void {
    this.log.error({ msg: `onStateChange failed: ${messageOf(error)}`, err: error });
  }

  /** Nothing that cannot be watched is in an author's hands any more. */
  #trust(): void {
    this.#suspected = false;
    this.#told = undefined;
  }

  /** Notes what the author knows of the state, to tell him of changes that no proxy announces. */
  #noteTold(): void {
    if (this.definition.hook("onStateChange") === undefined || !this.#loaded) return;
    try {
      // Bytes of their own: those of the encoder lie in a buffer that they would keep.
      this.#told = new Uint8Array(this.#encoded());
    } catch {
      // The commit of this turn meets the same, and breaks the generation with it.
      this.#told = undefined;
    }
  }

  /** What came into the state behind the proxies' back is refused here, and breaks the generation. */
  #encoded(): Uint8Array {
    try {
      const bytes = encodeVersioned(this.#root, this.definition.stateVersion, "state");
      if (bytes.length > LARGE_BYTES && !this.#warned) {
        this.#warned = true;
        this.log.warn({
          msg: `the state has ${bytes.length} bytes, and encoding it holds the thread at each commit`,
        });
      }
      return bytes;
    } catch (error) {
      throw new RivetError("actor", "state_not_storable", messageOf(error), {
        actor: this.specifier,
        cause: error,
      });
    }
  }

  #load(): void {
    if (this.#loaded) return;
    this.#enabled();
    const { state, migrated } = readStored(this.bag.storedState(), this.definition, this.specifier);
    this.#root = typeof state === "object" && state !== null ? adopt(state, this) : state;
    this.#loaded = true;
    if (!migrated) return;
    this.#changed = true;
    dispatch.changed(this.bag);
  }

  #enabled(): void {
    if (this.definition.hasState) return;
    throw new RivetError(
      "actor",
      "state_not_enabled",
      "this actor has no state: give it state or createState",
      { actor: this.specifier },
    );
  }
}
