/**
 * `c.db` without an ORM: statements, and transactions that span turns.
 *
 * 1. No method throws: what is wrong with an argument is the promise's.
 * 2. A transaction ends when its function does. What that threw is what its caller gets, even
 *    when the rollback fails too.
 */

import type { Waiter } from "../actors/waiter";
import { checkKeys, describe } from "../definition/keys";
import { checkedArgument, invalidArgument, RivetError } from "../errors";
import type { NativeDatabase, OpenStatements, SqlCell, SqlResult } from "../native-half";
import type { RawAccess, TransactionOptions } from "../types";
import { packArguments, packList } from "./arguments";
import { sqlError } from "./errors";

/** What runs statements: the database, or a transaction of it. */
type Runner = Pick<NativeDatabase, "executePacked" | "exec">;

/** The names that may stand before a transaction's. */
const transactionKeys = ["name", "timeout", "experimental"];

abstract class Access implements RawAccess {
  protected readonly waiter: Waiter;

  constructor(waiter: Waiter) {
    this.waiter = waiter;
  }

  async execute<TRow extends object = Record<string, unknown>>(
    sql: string,
    ...args: unknown[]
  ): Promise<TRow[]> {
    if (typeof sql !== "string") {
      throw invalidArgument(`sql of db.execute() is ${describe(sql)}, not text`);
    }
    const bindings = packArguments(args, "db.execute()");
    const isScript = args.length === 0 && sql.replace(/[;\s]+$/, "").includes(";");
    try {
      const runner = this.runner();
      const done = isScript
        ? runner.exec(sql, this.asker)
        : runner.executePacked(sql, bindings, this.asker);
      return rowsOf(await this.waiter.waits(done)) as TRow[];
    } catch (thrown) {
      throw sqlError(thrown);
    }
  }

  /** Runs one statement; its rows are lists of values. */
  async values(sql: string, params: readonly unknown[]): Promise<unknown[][]> {
    const bindings = packList(params, "a statement of the ORM");
    try {
      const asked = this.runner().executePacked(sql, bindings, this.asker);
      const { rows } = await this.waiter.waits(asked);
      return rows;
    } catch (thrown) {
      throw sqlError(thrown);
    }
  }

  /** The statements of the call whose client this is. */
  protected get asker(): OpenStatements | undefined {
    return undefined;
  }

  protected abstract runner(): Runner;
  abstract transaction<T>(
    body: (tx: RawAccess) => T | Promise<T>,
    options?: TransactionOptions,
  ): Promise<T>;
  abstract close(): Promise<void>;
}

/** How long a transaction may take when nothing is said, in milliseconds. */
const TIMEOUT = 60_000;

/** Runs a transaction to which the state belongs. */
export type WithState = <T>(body: (tx: RawAccess) => T | Promise<T>, timeout: number) => Promise<T>;

/** The database of one generation. */
export class Database extends Access {
  readonly #native: () => NativeDatabase;
  readonly #withState: WithState;
  readonly #asker: OpenStatements | undefined;

  constructor(
    native: () => NativeDatabase,
    waiter: Waiter,
    withState: WithState,
    asker?: OpenStatements,
  ) {
    super(waiter);
    this.#native = native;
    this.#withState = withState;
    this.#asker = asker;
  }

  /** The same for one call. */
  of(asker: OpenStatements): Database {
    return new Database(this.#native, this.waiter, this.#withState, asker);
  }

  protected override get asker(): OpenStatements | undefined {
    return this.#asker;
  }

  protected runner(): Runner {
    return this.#native();
  }

  async transaction<T>(
    body: (tx: RawAccess) => T | Promise<T>,
    options: TransactionOptions = {},
  ): Promise<T> {
    if (typeof body !== "function") {
      throw invalidArgument(`db.transaction() takes a function, not ${describe(body)}`);
    }
    const { name, timeout, includeState } = readOptions(options);
    if (includeState) return this.#withState(body, timeout ?? TIMEOUT);
    const native = await plainly(this.waiter.waits(this.#native().beginTransaction(timeout, name)));
    let result: T;
    try {
      result = await body(new Inside(native, this.waiter));
    } catch (thrown) {
      // One that expired, or that a statement ended, needs none (2).
      await native.rollback().catch(() => {});
      throw thrown;
    }
    await plainly(this.waiter.waits(native.commit()));
    return result;
  }

  async close(): Promise<void> {
    await plainly(this.#native().closeStatements());
  }
}

/** A transaction as `tx`. */
export class Inside extends Access {
  readonly #native: Runner;

  constructor(native: Runner, waiter: Waiter) {
    super(waiter);
    this.#native = native;
  }

  protected runner(): Runner {
    return this.#native;
  }

  async transaction<T>(): Promise<T> {
    throw new RivetError(
      "sqlite",
      "transaction_nested",
      "transactions do not nest: use this one, or SAVEPOINT and RELEASE within it",
    );
  }

  async close(): Promise<void> {
    throw invalidArgument("a transaction cannot close its database");
  }
}

/** The rows of a statement as lists of values, for an ORM above `raw`. */
export function valuesOf(
  raw: RawAccess,
  sql: string,
  params: readonly unknown[],
): Promise<unknown[][]> {
  if (raw instanceof Access) return raw.values(sql, params);
  throw new TypeError("not a database that greenroom made");
}

/** Rows as objects. */
export function rowsOf(result: SqlResult): Record<string, unknown>[] {
  return result.rows.map((row) => objectOf(result.columns, row));
}

/** A row as an object; of two columns of one name the last counts. */
export function objectOf(columns: readonly string[], row: SqlCell[]): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (let at = 0; at < columns.length; at += 1) {
    const name = columns[at] as string;
    const value = row[at] as SqlCell;
    if (name === "__proto__") Object.defineProperty(object, name, { value, ...OWN });
    else object[name] = value;
  }
  return object;
}

const OWN = { configurable: true, enumerable: true, writable: true };

interface ReadOptions {
  readonly name: string | undefined;
  readonly timeout: number | undefined;
  readonly includeState: boolean;
}

function readOptions(given: TransactionOptions): ReadOptions {
  const place = "options of db.transaction()";
  checkedArgument(() => {
    checkKeys(given, { place, known: transactionKeys });
    const { experimental } = given as TransactionOptions;
    if (experimental !== undefined) {
      checkKeys(experimental, { place: `experimental of ${place}`, known: ["includeState"] });
    }
  });
  const { name, timeout } = given as TransactionOptions;
  if (name !== undefined && typeof name !== "string") {
    throw invalidArgument(`name of ${place} is ${describe(name)}, not text`);
  }
  if (timeout !== undefined && !(Number.isFinite(timeout) && timeout > 0)) {
    throw invalidArgument(`timeout of ${place} is ${describe(timeout)}, not milliseconds above 0`);
  }
  const includeState = (given as TransactionOptions).experimental?.includeState === true;
  return { name, timeout, includeState };
}

async function plainly<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (thrown) {
    throw sqlError(thrown);
  }
}
