/** SQL in an actor, as types. */

/** How long a transaction may take, and its name for people. */
export interface TransactionOptions {
  /** A name of 1 to 128 bytes. */
  name?: string | undefined;
  /** Milliseconds above 0 after which it is rolled back. Default 60,000. */
  timeout?: number | undefined;
  /** What RivetKit marks as experimental. */
  experimental?:
    | {
        /**
         * Whether the state belongs to it: `c.state` inside is committed or rolled back with it, and
         * elsewhere assigning to it throws `actor.state_transaction_conflict` meanwhile.
         */
        includeState?: boolean | undefined;
      }
    | undefined;
}

/**
 * An actor's database, on a file of the actor's own.
 *
 * Integers that a `number` cannot hold come out as `bigint`, blobs as `Uint8Array`. Values go in as
 * `null`, `undefined` (null), numbers, bigints, text, booleans (0 or 1) and `Uint8Array`.
 */
export interface RawAccess {
  /**
   * Runs a statement and resolves with its rows when what it wrote is durable. One plain object holds
   * values by name (`:name`, `@name`, `$name`), otherwise they are for the parameters in order. Without
   * values a text may have several statements: the rows are those of the last one that has columns.
   *
   * @throws rejects with SQLite's own text, with `sqlite.*`, and with `storage.*`.
   */
  execute<TRow extends object = Record<string, unknown>>(
    sql: string,
    ...args: unknown[]
  ): Promise<TRow[]>;
  /**
   * Runs `body` in a transaction, which commits when it resolves and is rolled back when it rejects.
   * Everybody else waits meanwhile, `c.db` inside of `body` too: use `tx`. They do not nest.
   *
   * @throws rejects with what `body` threw, with `sqlite.transaction_expired` after `timeout`, and as
   * {@link execute} does.
   */
  transaction<T>(body: (tx: RawAccess) => T | Promise<T>, options?: TransactionOptions): Promise<T>;
  /** Closes the database until the actor starts again. What comes after is refused. */
  close(): Promise<void>;
}

/** What is given as `db` to `actor()`: `db()` of `greenroom/db` makes one. */
export interface DatabaseProvider<Database> {
  /** Makes what the actor's functions see as `c.db`. */
  createClient(raw: RawAccess): Database;
  /** Runs at every start, before anything else of the actor, in a transaction. */
  readonly onMigrate?: ((database: Database) => void | Promise<void>) | undefined;
  /** Whether to warn once of a transaction begun by hand. Default true. */
  readonly warnOnManualTransactions?: boolean | undefined;
}

/** A numbered step of a schema: SQL, or a function. */
export type Migration =
  | { readonly version: number; readonly sql: string; readonly up?: undefined }
  | {
      readonly version: number;
      readonly up: (db: RawAccess) => void | Promise<void>;
      readonly sql?: undefined;
    };

/** A value out of a row. */
export type SqlValue = null | number | bigint | string | Uint8Array;

/** A row by the names of its columns; of two of one name the last counts. */
export type SqlRow = Record<string, SqlValue>;

/** Rows as lists of their values, taken one by one. */
export interface SqlRows<T> extends IterableIterator<T> {
  next(): IteratorResult<T, undefined>;
  [Symbol.iterator](): this;
  /** The rows that were not taken yet. */
  toArray(): T[];
}

/** What a synchronous statement gives: its rows, taken one by one. */
export interface SqlCursor<TRow> extends SqlRows<TRow> {
  /** The only row. @throws `sqlite.not_one_row` when there is none, or another. */
  one(): TRow;
  /** The rows that were not taken yet, as lists of values. */
  raw<T extends readonly SqlValue[] = SqlValue[]>(): SqlRows<T>;
  /** The names of the columns, as SQLite gives them. */
  readonly columnNames: readonly string[];
  /** How many rows were taken so far. */
  readonly rowsRead: number;
  /** How many rows the statement wrote, those of triggers and foreign keys included. */
  readonly rowsWritten: number;
}

/** Statements that run at once, without a promise. */
export interface ActorSql {
  /**
   * Runs a statement on the actor's own file, here and now. What the statements of one turn write is
   * committed together with everything else the turn changed. Bindings are as for
   * {@link RawAccess.execute}; without any, the text may have several statements.
   *
   * The first one of an actor that declares neither `db` nor `migrations` moves it to a file of its own
   * and waits some milliseconds for the disk.
   *
   * @throws SQLite's own text; `sqlite.transaction_open` while a transaction of `c.db` is open;
   * `sqlite.turn_lost` when a statement rolled the turn back, with which the generation ends.
   */
  exec<TRow extends object = SqlRow>(query: string, ...bindings: unknown[]): SqlCursor<TRow>;
}
