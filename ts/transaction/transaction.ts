/**
 * `tx`: one transaction of an actor, from its beginning to its end.
 *
 * 1. While it is open `c.state` does not change, so that its own copy can take that place.
 * 2. What its function lets out (calls of other actors, `c.fetch`) waits for the commit, and fails when
 *    there is none.
 * 3. Once it has ended nothing of it can be used.
 */

import type { Live } from "../actors/live";
import { copy } from "../codec/copy";
import { encodeVersioned } from "../codec/versioned";
import { messageOf, RivetError } from "../errors";
import { Keys } from "../kv";
import { type NativeStateTransaction, transactions, unbridged } from "../native-half";
import { Cron, Schedule, type Scheduling } from "../schedule";
import { sqlError } from "../sql/errors";
import { InTurn } from "../sql/in-turn";
import { Inside } from "../sql/raw";
import type { RawAccess } from "../types";
import { Draft } from "./draft";
import { nested, type Open } from "./inside";
import { TransactionMessages } from "./messages";

export class Transaction implements Open {
  readonly live: Live;
  readonly includesState: boolean;
  readonly over: Promise<void>;
  readonly #native: NativeStateTransaction;
  #draft: Draft | undefined;
  /** What was not saved when it began: then its own state has to be. */
  #owes = false;
  #isOver = false;
  #durable: Promise<unknown> | undefined;
  /** What waits for its end (2). */
  #leaving: { resolve: () => void; reject: (error: unknown) => void }[] = [];
  #waited = false;
  #end!: () => void;
  #kv: Keys | undefined;
  #sql: InTurn | undefined;
  #db: { readonly client: unknown } | undefined;
  #raw: Inside | undefined;
  #queue: TransactionMessages | undefined;
  #schedule: Schedule | undefined;
  #cron: Cron | undefined;

  constructor(live: Live, native: NativeStateTransaction, includesState: boolean) {
    this.live = live;
    this.includesState = includesState;
    this.#native = native;
    this.over = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** It is open from here on. */
  begin(): void {
    this.#owes = this.live.bag.dirty;
    this.live.openTransaction(this);
  }

  get state(): unknown {
    return this.#state().state;
  }

  set state(value: unknown) {
    this.#state().state = value;
  }

  snapshot(): unknown {
    return copy(this.#state().state, "state");
  }

  get kv(): Keys {
    this.#kv ??= new Keys(() => this.#use().kv(), this.live);
    return this.#kv;
  }

  get sql(): InTurn {
    this.#sql ??= new InTurn(() => this.#use());
    return this.#sql;
  }

  get db(): unknown {
    this.#db ??= { client: this.live.database.within(this.raw, this.live.specifier) };
    return this.#db.client;
  }

  /** Its statements without an ORM. */
  get raw(): RawAccess {
    this.#raw ??= new Inside(this.#use(), this.live);
    return this.#raw;
  }

  get queue(): TransactionMessages {
    this.#queue ??= new TransactionMessages(this.live, () => this.#use().queue());
    return this.#queue;
  }

  get schedule(): Schedule {
    this.#schedule ??= new Schedule(this.#scheduling());
    return this.#schedule;
  }

  get cron(): Cron {
    this.#cron ??= new Cron(this.#scheduling());
    return this.#cron;
  }

  async transaction(): Promise<never> {
    throw nested(this.live);
  }

  left(): Promise<void> {
    this.#waited = true;
    return new Promise((resolve, reject) => {
      this.#leaving.push({ resolve, reject });
    });
  }

  /** Begins the commit, and makes its state the actor's. @throws why nothing of it was committed. */
  commit(): void {
    const { live } = this;
    live.checkUnchanged();
    live.desk?.settle();
    if (this.#owes) this.#state();
    const state = this.#draft?.encoded((root) => encodeState(live, root), live.root);
    this.#durable = transactions.commit(this.#native, state);
    this.#durable.catch(() => {});
    this.#close();
    if (state !== undefined) live.replace(this.#draft?.root);
  }

  /** Resolves when its commit is durable. */
  async durable(): Promise<void> {
    try {
      await this.#durable;
    } catch (error) {
      const plain = unbridged(error);
      this.#settle(plain);
      throw plain;
    }
    this.#settle(undefined);
  }

  /** Ends it without its changes, because of `thrown`. */
  async rollBack(thrown: unknown): Promise<void> {
    const wasOver = this.#isOver;
    this.#close();
    if (!wasOver) this.#queue?.undo();
    // What the function threw is what its caller gets, even when this fails.
    this.live.desk?.reload();
    await this.#native.rollback().catch(() => {});
    // Whoever looked at one meanwhile may have seen what is no more.
    this.live.desk?.reload();
    this.#settle(rolledBack(this.live, thrown));
  }

  /** The error of a call, with what is likely to have led to it. */
  explained(thrown: unknown): unknown {
    const error = sqlError(thrown);
    const isExpired = error instanceof RivetError && error.code === "transaction_expired";
    if (!isExpired || !this.#waited) return error;
    const { group, code, message, metadata, actor } = error;
    const hint =
      "calls and requests made inside leave after the commit: do not wait for them there";
    return new RivetError(group, code, `${message}; ${hint}`, { metadata, actor, cause: error });
  }

  #state(): Draft {
    if (this.#draft === undefined) {
      this.#check();
      const root = this.live.loaded();
      this.#draft = new Draft(root, () => this.#check(), this.#owes);
    }
    return this.#draft;
  }

  #scheduling(): Scheduling {
    return {
      native: () => this.#use().schedule(),
      waits: (promise) => this.live.waits(promise),
    };
  }

  #use(): NativeStateTransaction {
    this.#check();
    return this.#native;
  }

  /** See (3). */
  #check(): void {
    if (!this.#isOver) return;
    throw new RivetError(
      "actor",
      "state_transaction_finished",
      "the transaction has ended: nothing of it can be used any more",
      { actor: this.live.specifier },
    );
  }

  #close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.live.closeTransaction(this);
    this.#end();
  }

  #settle(error: unknown): void {
    const leaving = this.#leaving;
    this.#leaving = [];
    for (const { resolve, reject } of leaving) {
      if (error === undefined) resolve();
      else reject(error);
    }
  }
}

function encodeState(live: Live, root: unknown): Uint8Array {
  try {
    return encodeVersioned(root, live.definition.stateVersion, "state");
  } catch (error) {
    throw new RivetError("actor", "state_not_storable", messageOf(error), {
      actor: live.specifier,
      cause: error,
    });
  }
}

function rolledBack(live: Live, cause: unknown): RivetError {
  return new RivetError(
    "actor",
    "transaction_rolled_back",
    "this was to leave with a transaction that was rolled back",
    { actor: live.specifier, cause },
  );
}
