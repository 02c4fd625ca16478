/**
 * What the contract's `JsActorStateTransaction` has beyond Rust: promises. What the author's layer
 * stands on is below them.
 *
 * 1. While one is open nothing of its actor is saved; what waits is saved when it has ended.
 * 2. What is changed through it is part of it, and of no turn.
 */
import {
  ActorContext,
  JsActorStateTransaction,
  type Kv,
  type Queue,
  type Schedule,
  stateTransactionBegin,
  stateTransactionBeginSql,
  stateTransactionCommit,
  stateTransactionEnded,
  stateTransactionExec,
  stateTransactionExecute,
  stateTransactionNow,
  stateTransactionRollBack,
} from "../../index.js";
import { deltaOf, type StateDeltaPayload } from "./delta.js";
import { invalidArgument } from "./errors.js";
import { bagOf, belongsTo, planned } from "./owner.js";
import { type JsBindParam, packedParams } from "./sql.js";
import { type SqlBindings, type SqlResult, throughRoom, unpackResult } from "./sql-values.js";

declare module "../../index.js" {
  interface ActorContext {
    /** Begins a transaction that commits together with the state. It waits for its turn. */
    beginStateTransaction(timeoutMs?: number | null): Promise<JsActorStateTransaction>;
  }
  interface JsActorStateTransaction {
    /** Runs one statement within the transaction. */
    execute(sql: string, params?: readonly JsBindParam[] | null): Promise<SqlResult>;
    /** Commits the statements and what a delta has together. Resolves when that is durable. */
    commit(delta: StateDeltaPayload): Promise<void>;
    /** Ends it without its changes; once it has ended this does nothing. */
    rollback(): Promise<void>;
    /** As {@link execute}, with bindings as `sql-values` packs them, and without a budget. */
    executePacked(sql: string, bindings: Uint8Array | null): Promise<SqlResult>;
    /** Runs a text of statements within the transaction. */
    exec(sql: string): Promise<SqlResult>;
    /** Runs statements here and now within the transaction. */
    execInTurn(sql: string, bindings: SqlBindings): SqlResult;
  }
}

const contextMethods = {
  async beginStateTransaction(
    this: ActorContext,
    timeoutMs?: number | null,
  ): Promise<JsActorStateTransaction> {
    if (typeof timeoutMs === "number" && !(timeoutMs > 0 && Number.isFinite(timeoutMs))) {
      throw invalidArgument("timeoutMs", `${timeoutMs} is not a finite number above 0`);
    }
    const { transaction, opened } = open(this, timeoutMs ?? undefined);
    await opened;
    try {
      await wait(transaction, (ticket) => stateTransactionBeginSql(transaction, ticket));
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
    return transaction;
  },
};

const methods = {
  async execute(
    this: JsActorStateTransaction,
    sql: string,
    params?: readonly JsBindParam[] | null,
  ): Promise<SqlResult> {
    const bindings = packedParams(params);
    const start = (ticket: number) => stateTransactionExecute(this, sql, bindings, true, ticket);
    return unpackResult(await wait(this, start));
  },
  async executePacked(
    this: JsActorStateTransaction,
    sql: string,
    bindings: Uint8Array | null,
  ): Promise<SqlResult> {
    const start = (ticket: number) => stateTransactionExecute(this, sql, bindings, false, ticket);
    return unpackResult(await wait(this, start));
  },
  async exec(this: JsActorStateTransaction, sql: string): Promise<SqlResult> {
    const start = (ticket: number) => stateTransactionExec(this, sql, ticket);
    return unpackResult(await wait(this, start));
  },
  execInTurn(this: JsActorStateTransaction, sql: string, bindings: SqlBindings): SqlResult {
    return throughRoom(sql, bindings, (room, bound) => stateTransactionNow(this, sql, room, bound));
  },
  async commit(this: JsActorStateTransaction, given: StateDeltaPayload): Promise<void> {
    const delta = deltaOf(given);
    const start = (ticket: number) => void stateTransactionCommit(this, delta, false, ticket);
    try {
      await wait(this, start);
    } finally {
      goOn(this);
    }
  },
  async rollback(this: JsActorStateTransaction): Promise<void> {
    await wait(this, (ticket) => stateTransactionRollBack(this, ticket));
    goOn(this);
  },
};

// Once, also where this module is loaded twice in one environment.
if (!Object.hasOwn(JsActorStateTransaction.prototype, "executePacked")) {
  Object.assign(ActorContext.prototype, contextMethods);
  Object.assign(JsActorStateTransaction.prototype, methods);
  const { kv, queue, schedule } = JsActorStateTransaction.prototype;
  JsActorStateTransaction.prototype.kv = function ofKeys(): Kv {
    return planned(kv.call(this), bagOf(this));
  };
  JsActorStateTransaction.prototype.queue = function ofMessages(): Queue {
    return planned(queue.call(this), bagOf(this));
  };
  JsActorStateTransaction.prototype.schedule = function ofSchedules(): Schedule {
    return planned(schedule.call(this), bagOf(this));
  };
}

/** Begins a transaction, and hears when it is open: at once where {@link JsActorStateTransaction.isOpen}. */
export function open(
  context: ActorContext,
  timeoutMs: number | undefined,
): { readonly transaction: JsActorStateTransaction; readonly opened: Promise<unknown> } {
  const bag = bagOf(context);
  let begun: JsActorStateTransaction | undefined;
  const start = (ticket: number) => {
    begun = stateTransactionBegin(context, timeoutMs ?? null, ticket);
  };
  const opened = bag.home.tickets.wait(start, { bridged: true });
  // Whoever finds it open does not wait.
  opened.catch(() => {});
  const transaction = belongsTo(begun as unknown as JsActorStateTransaction, bag);
  return { transaction, opened };
}

/**
 * Commits with the encoded state, if it changed: the actor has no other state to save. What is
 * returned resolves when it is durable.
 *
 * @throws why nothing of it was committed.
 */
export function commit(
  transaction: JsActorStateTransaction,
  state: Uint8Array | undefined,
): Promise<unknown> {
  const bag = bagOf(transaction);
  const delta = state === undefined ? {} : { state };
  let number = 0;
  let refused: { readonly error: unknown } | undefined;
  const start = (ticket: number) => {
    try {
      number = stateTransactionCommit(transaction, delta, true, ticket);
    } catch (error) {
      refused = { error };
      throw error;
    }
  };
  const durable = bag.home.tickets.wait(start, { bridged: true });
  if (refused !== undefined) {
    durable.catch(() => {});
    throw (refused as { readonly error: unknown }).error;
  }
  bag.home.turns.committing(bag, number);
  return durable;
}

/** Resolves when it ends; rejects when nobody asked for that, as at its deadline. */
export function ended(transaction: JsActorStateTransaction): Promise<unknown> {
  const start = (ticket: number) => stateTransactionEnded(transaction, ticket);
  return bagOf(transaction).home.tickets.wait(start, { bridged: true, holds: false });
}

/** Saves what could not be saved while it was open (1). */
export function goOn(transaction: JsActorStateTransaction): void {
  const bag = bagOf(transaction);
  bag.home.turns.retry(bag);
}

function wait(owned: object, start: (ticket: number) => void): Promise<Uint8Array | null> {
  return bagOf(owned).home.tickets.wait(start, { bridged: true });
}
