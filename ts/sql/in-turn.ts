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
import { packArguments } from "./arguments";
import { sqlError } from "./errors";
import { plainCell } from "./raw";

export class InTurn implements ActorSql {
  readonly #open: () => NativeDatabase;
  #native: NativeDatabase | undefined;

  constructor(open: () => NativeDatabase) {
    this.#open = open;
  }

  exec<TRow extends object = SqlRow>(query: string, ...bindings: unknown[]): SqlCursor<TRow> {
    if (typeof query !== "string") {
      throw invalidArgument(`query of sql.exec() is ${describe(query)}, not text`);
    }
    const packed = packArguments(bindings, "sql.exec()");
    try {
      this.#native ??= this.#open();
      return new Cursor<TRow>(this.#native.execInTurn(query, packed));
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
    const row = this.#take();
    return row === undefined
      ? { done: true, value: undefined }
      : { done: false, value: this.#object(row) };
  }

  [Symbol.iterator](): this {
    return this;
  }

  toArray(): TRow[] {
    return [...this];
  }

  one(): TRow {
    const left = this.#rows.length - this.#at;
    const row = left === 1 ? this.#take() : undefined;
    if (row !== undefined) return this.#object(row);
    throw new RivetError("sqlite", "not_one_row", `one() found ${left} rows, not one`, {
      metadata: { rows: left },
    });
  }

  raw<T extends readonly SqlValue[] = SqlValue[]>(): SqlRows<T> {
    return new RawRows<T>(() => this.#take());
  }

  #take(): SqlCell[] | undefined {
    const row = this.#rows[this.#at];
    if (row !== undefined) this.#at += 1;
    return row;
  }

  #object(row: SqlCell[]): TRow {
    const names = this.columnNames;
    return Object.fromEntries(names.map((name, at) => [name, plainCell(row[at] ?? null)])) as TRow;
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
    return { done: false, value: row.map(plainCell) as readonly SqlValue[] as T };
  }

  [Symbol.iterator](): this {
    return this;
  }

  toArray(): T[] {
    return [...this];
  }
}
