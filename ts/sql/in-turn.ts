/**
 * `c.sql`: statements that run at once, within the turn.
 *
 * 1. All that the statements of a turn write is committed with everything else that the turn
 *    changed.
 * 2. A cursor has all its rows from the start: it shows what was there when it was made.
 */

import { describe } from "../definition/keys";
import { invalidArgument, RivetError } from "../errors";
import type { NativeDatabase, SqlCell, SqlResult } from "../native-half";
import type { ActorSql, SqlCursor, SqlRow, SqlRows, SqlValue } from "../types";
import { checkArguments } from "./arguments";
import { sqlError } from "./errors";
import { objectOf } from "./raw";

/** What runs statements at once: the database, or a transaction. */
type Runner = Pick<NativeDatabase, "execInTurn">;

export class InTurn implements ActorSql {
  readonly #open: () => Runner;

  constructor(open: () => Runner) {
    this.#open = open;
  }

  exec<TRow extends object = SqlRow>(query: string, ...bindings: unknown[]): SqlCursor<TRow> {
    if (typeof query !== "string") {
      throw invalidArgument(`query of sql.exec() is ${describe(query)}, not text`);
    }
    const checked = checkArguments(bindings, "sql.exec()");
    try {
      return new Cursor<TRow>(this.#open().execInTurn(query, checked));
    } catch (thrown) {
      throw sqlError(thrown);
    }
  }
}

class Cursor<TRow extends object> implements SqlCursor<TRow> {
  readonly columnNames: readonly string[];
  readonly rowsWritten: number;
  readonly #rows: SqlCell[][];
  #at = 0;

  constructor(result: SqlResult) {
    this.columnNames = result.columns;
    this.rowsWritten = result.changes;
    this.#rows = result.rows;
  }

  get rowsRead(): number {
    return this.#at;
  }

  next(): IteratorResult<TRow, undefined> {
    const row = this.#rows[this.#at];
    if (row === undefined) return { done: true, value: undefined };
    this.#at += 1;
    return { done: false, value: objectOf(this.columnNames, row) as TRow };
  }

  [Symbol.iterator](): this {
    return this;
  }

  toArray(): TRow[] {
    return [...this];
  }

  one(): TRow {
    const left = this.#rows.length - this.#at;
    const row = this.#rows[this.#at];
    if (left === 1 && row !== undefined) {
      this.#at += 1;
      return objectOf(this.columnNames, row) as TRow;
    }
    throw new RivetError("sqlite", "not_one_row", `one() found ${left} rows, not one`, {
      metadata: { rows: left },
    });
  }

  raw<T extends readonly SqlValue[] = SqlValue[]>(): SqlRows<T> {
    return new RawRows<T>(() => {
      const row = this.#rows[this.#at];
      if (row !== undefined) this.#at += 1;
      return row;
    });
  }
}

class RawRows<T extends readonly SqlValue[]> implements SqlRows<T> {
  readonly #take: () => SqlCell[] | undefined;

  constructor(take: () => SqlCell[] | undefined) {
    this.#take = take;
  }

  next(): IteratorResult<T, undefined> {
    const row = this.#take();
    if (row === undefined) return { done: true, value: undefined };
    return { done: false, value: row as readonly SqlValue[] as T };
  }

  [Symbol.iterator](): this {
    return this;
  }

  toArray(): T[] {
    return [...this];
  }
}
