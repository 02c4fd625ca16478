/**
 * What the contract's `JsNativeDatabase` and `JsSqliteTransaction` have beyond Rust:
 * promises.
 *
 * 1. A statement commits by itself, or with its transaction; its promise resolves when what
 *    it wrote is durable.
 * 2. Bindings are copied before a call returns.
 * 3. An output that is made later waits for a statement that may write, awaited or not: the answer of
 *    the call that asked for it on this side (`statements`), what else is made in Rust, which knows
 *    what was committed.
 * 4. What runs in a turn is committed at its end, also where the statement threw: it may have
 *    begun the turn's transaction.
 */
import {
  JsNativeDatabase,
  JsSqliteTransaction,
  sqlBatch,
  sqlBegin,
  sqlClose,
  sqlExec,
  sqlExecute,
  sqlInTurn,
  sqlTransaction,
  sqlTransactionEnd,
  sqlTransactionExec,
  sqlTransactionExecute,
  sqlTurnEnded,
} from "../../index.js";
import { invalidArgument } from "./errors.js";
import { bagOf, belongsTo } from "./owner.js";
import {
  isBinding,
  NOTHING_BOUND,
  packPositional,
  Real,
  type SqlBinding,
  type SqlBindings,
  type SqlResult,
  throughRoom,
  unpackResult,
  unpackResults,
} from "./sql-values.js";
import type { OpenStatements } from "./statements.js";

/** A value for a parameter as the contract's callers say it. */
export interface JsBindParam {
  readonly kind: string;
  readonly intValue?: number | bigint | undefined;
  readonly floatValue?: number | undefined;
  readonly textValue?: string | undefined;
  readonly blobValue?: Uint8Array | undefined;
}

/** A statement of a batch. */
export interface JsSqlStatement {
  readonly sql: string;
  readonly params?: readonly JsBindParam[] | null | undefined;
}

declare module "../../index.js" {
  interface JsNativeDatabase {
    /** Runs a text of statements; answers the rows of the last one that has columns. */
    exec(sql: string, asker?: OpenStatements): Promise<SqlResult>;
    /** Runs one statement. */
    execute(sql: string, params?: readonly JsBindParam[] | null): Promise<SqlResult>;
    /** As {@link execute}. */
    query(sql: string, params?: readonly JsBindParam[] | null): Promise<SqlResult>;
    /** As {@link execute}. */
    run(sql: string, params?: readonly JsBindParam[] | null): Promise<SqlResult>;
    /** Runs statements in one transaction, all or none. */
    executeBatch(statements: readonly JsSqlStatement[]): Promise<SqlResult[]>;
    /** Begins a transaction that keeps everybody else out until it ends, at most `timeoutMs`. */
    beginTransaction(timeoutMs?: number | null, name?: string | null): Promise<JsSqliteTransaction>;
    /**
     * Takes nothing more for the rest of the generation, and neither do its keys and values, its
     * queue and its schedule: they reject with `sqlite.transaction_closed`.
     */
    close(): Promise<void>;
    /** Takes no more statements for the rest of the generation. */
    closeStatements(): Promise<void>;
    /**
     * As {@link execute}, with bindings as `sql-values` packs them. `asker`: the statements of the
     * call that asks, which waits for them.
     */
    executePacked(
      sql: string,
      bindings: Uint8Array | null,
      asker?: OpenStatements,
    ): Promise<SqlResult>;
    /**
     * Runs statements here and now, in the turn that is going on. `changes` are the rows that were
     * written, those of triggers and foreign keys included.
     */
    execInTurn(sql: string, bindings: SqlBindings): SqlResult;
  }
  interface JsSqliteTransaction {
    /** Runs one statement within the transaction. */
    execute(sql: string, params?: readonly JsBindParam[] | null): Promise<SqlResult>;
    /** Runs a text of statements within the transaction. */
    exec(sql: string): Promise<SqlResult>;
    /** Ends it with its changes. Resolves when they are durable. */
    commit(): Promise<void>;
    /** Ends it without its changes. */
    rollback(): Promise<void>;
    /** As {@link execute}, with bindings as `sql-values` packs them. */
    executePacked(sql: string, bindings: Uint8Array | null): Promise<SqlResult>;
  }
}

const databaseMethods = {
  async exec(this: JsNativeDatabase, sql: string, asker?: OpenStatements): Promise<SqlResult> {
    const start = (ticket: number, waits: boolean) => sqlExec(this, sql, waits, ticket);
    return unpackResult(await ask(this, sql, asker, start));
  },
  async executePacked(
    this: JsNativeDatabase,
    sql: string,
    bindings: Uint8Array | null,
    asker?: OpenStatements,
  ): Promise<SqlResult> {
    const start = (ticket: number, waits: boolean) => {
      sqlExecute(this, sql, bindings, waits, ticket);
    };
    return unpackResult(await ask(this, sql, asker, start), sql);
  },
  async execute(
    this: JsNativeDatabase,
    sql: string,
    params?: readonly JsBindParam[] | null,
  ): Promise<SqlResult> {
    return this.executePacked(sql, packedParams(params));
  },
  async query(
    this: JsNativeDatabase,
    sql: string,
    params?: readonly JsBindParam[] | null,
  ): Promise<SqlResult> {
    return this.execute(sql, params);
  },
  async run(
    this: JsNativeDatabase,
    sql: string,
    params?: readonly JsBindParam[] | null,
  ): Promise<SqlResult> {
    return this.execute(sql, params);
  },
  async executeBatch(
    this: JsNativeDatabase,
    statements: readonly JsSqlStatement[],
  ): Promise<SqlResult[]> {
    const texts = statements.map(({ sql }) => sql);
    const bindings = statements.map(({ params }) => packedParams(params) ?? NOTHING_BOUND);
    const start = (ticket: number) => sqlBatch(this, texts, bindings, false, ticket);
    return unpackResults(await wait(this, start));
  },
  async beginTransaction(
    this: JsNativeDatabase,
    timeoutMs?: number | null,
    name?: string | null,
  ): Promise<JsSqliteTransaction> {
    if (typeof timeoutMs === "number" && !(timeoutMs > 0 && Number.isFinite(timeoutMs))) {
      throw invalidArgument("timeoutMs", `${timeoutMs} is not a finite number above 0`);
    }
    const start = (ticket: number) => sqlBegin(this, timeoutMs ?? null, name ?? null, ticket);
    const key = await wait(this, start);
    const text = Buffer.from(key ?? []).toString("utf8");
    return belongsTo(sqlTransaction(this, text), bagOf(this));
  },
  execInTurn(this: JsNativeDatabase, sql: string, bindings: SqlBindings): SqlResult {
    const bag = bagOf(this);
    const { turns } = bag.home;
    if (!bag.usesSql) turns.usedSql(bag, () => sqlTurnEnded(this));
    let result: SqlResult;
    try {
      result = throughRoom(sql, bindings, (room, bound) => sqlInTurn(this, sql, room, bound));
    } catch (thrown) {
      turns.wrote(bag);
      throw thrown;
    }
    // In the place of the id is whether the turn has written.
    if (result.lastInsertRowId === 1) turns.wrote(bag);
    return result;
  },
  async close(this: JsNativeDatabase): Promise<void> {
    await wait(this, (ticket) => sqlClose(this, true, ticket));
  },
  async closeStatements(this: JsNativeDatabase): Promise<void> {
    await wait(this, (ticket) => sqlClose(this, false, ticket));
  },
};

const transactionMethods = {
  async exec(this: JsSqliteTransaction, sql: string): Promise<SqlResult> {
    return unpackResult(await wait(this, (ticket) => sqlTransactionExec(this, sql, ticket)));
  },
  async executePacked(
    this: JsSqliteTransaction,
    sql: string,
    bindings: Uint8Array | null,
  ): Promise<SqlResult> {
    const start = (ticket: number) => sqlTransactionExecute(this, sql, bindings, ticket);
    return unpackResult(await wait(this, start));
  },
  async execute(
    this: JsSqliteTransaction,
    sql: string,
    params?: readonly JsBindParam[] | null,
  ): Promise<SqlResult> {
    return this.executePacked(sql, packedParams(params));
  },
  async commit(this: JsSqliteTransaction): Promise<void> {
    await wait(this, (ticket) => sqlTransactionEnd(this, true, ticket));
  },
  async rollback(this: JsSqliteTransaction): Promise<void> {
    await wait(this, (ticket) => sqlTransactionEnd(this, false, ticket));
  },
};

// Once, also where this module is loaded twice in one environment.
if (!Object.hasOwn(JsNativeDatabase.prototype, "executePacked")) {
  Object.assign(JsNativeDatabase.prototype, databaseMethods);
  Object.assign(JsSqliteTransaction.prototype, transactionMethods);
}

/** One statement that surely only reads: nothing waits for it. */
const READS = /^\s*(?:SELECT|VALUES|EXPLAIN)\b[^;]*;?\s*$/i;

/** Runs what `asker` has to wait for, if there is one and it still does. */
function ask(
  owned: object,
  sql: string,
  asker: OpenStatements | undefined,
  start: (ticket: number, waits: boolean) => void,
): Promise<Uint8Array | null> {
  const waits = asker !== undefined && !asker.closed;
  const answer = wait(owned, (ticket) => start(ticket, waits));
  if (waits && !READS.test(sql)) asker.add(answer);
  return answer;
}

async function wait(owned: object, start: (ticket: number) => void): Promise<Uint8Array | null> {
  const bag = bagOf(owned);
  bag.statements += 1;
  try {
    return await bag.home.tickets.wait(start, { bridged: true });
  } finally {
    bag.statements -= 1;
  }
}

/** Bindings as `sql-values` packs them. */
export function packedParams(params: readonly JsBindParam[] | null | undefined): Uint8Array | null {
  return packPositional((params ?? []).map(bound));
}

function bound(param: JsBindParam, at: number): SqlBinding | Real {
  const value = givenBy(param);
  if (value !== undefined && (value instanceof Real || isBinding(value))) return value;
  throw invalidArgument(
    "params",
    `param ${at} of the kind ${param.kind} has no value that can be bound`,
  );
}

function givenBy(param: JsBindParam): SqlBinding | Real {
  switch (param.kind) {
    case "null":
      return null;
    case "int":
      return whole(param.intValue);
    case "float":
      return typeof param.floatValue === "number" ? new Real(param.floatValue) : undefined;
    case "text":
      return param.textValue;
    case "blob":
      return param.blobValue;
    default:
      throw invalidArgument("params", `${String(param.kind)} is no kind of a param`);
  }
}

/** An integer as it is bound. Callers have made numbers of large ones, of which the nearest counts. */
function whole(value: number | bigint | undefined): SqlBinding {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  if (Number.isNaN(value)) return undefined;
  if (value >= 2 ** 63) return 2n ** 63n - 1n;
  return value < -(2 ** 63) ? -(2n ** 63n) : BigInt(Math.trunc(value));
}
