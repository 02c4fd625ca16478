/**
 * `greenroom/db/drizzle`: `c.db` as a database of Drizzle. Needs `drizzle-orm` beside greenroom.
 *
 * 1. Rows cross as lists of values, so columns of one name in a join stay apart.
 * 2. A transaction is one of the actor's, not `BEGIN` by hand: it keeps others out.
 */

import { drizzle, type SqliteRemoteDatabase } from "drizzle-orm/sqlite-proxy";
import { checkFunction, checkKeys, describe } from "../../definition/keys";
import { valuesOf } from "../../sql/raw";
import type { DatabaseProvider, RawAccess, TransactionOptions } from "../../types";
import { applyJournal, type DrizzleMigrations, readMigrations } from "./journal";

export {
  alias,
  check,
  foreignKey,
  index,
  integer,
  primaryKey,
  type SQLiteTable,
  sqliteTable,
  sqliteTableCreator,
  text,
  unique,
  uniqueIndex,
} from "drizzle-orm/sqlite-core";
export type { DrizzleMigrations } from "./journal";

/** A schema of Drizzle: its tables and relations by name. */
export type Schema = Record<string, unknown>;

/** What `c.db` is. */
export type DrizzleDatabase<S extends Schema = Record<string, never>> = Omit<
  SqliteRemoteDatabase<S>,
  "transaction" | "batch"
> & {
  /** As `transaction` of `greenroom/db`. */
  transaction<T>(
    body: (tx: DrizzleDatabase<S>) => T | Promise<T>,
    options?: TransactionOptions,
  ): Promise<T>;
  /** As `execute` of `greenroom/db`. */
  execute: RawAccess["execute"];
  /** As `close` of `greenroom/db`. */
  close: RawAccess["close"];
};

/** What is given to `db()`. */
export interface DrizzleOptions<S extends Schema> {
  /** Tables and relations, for `db.query`. */
  schema?: S | undefined;
  /** What `drizzle-kit generate` wrote: the default export of its `migrations.js`. */
  migrations?: DrizzleMigrations | undefined;
  /** Runs after the migrations, at every start, in the same transaction. */
  onMigrate?: ((db: DrizzleDatabase<S>) => void | Promise<void>) | undefined;
  /** Whether to warn once of a transaction begun by hand. Default true. */
  warnOnManualTransactions?: boolean | undefined;
}

/**
 * Gives an actor a database behind Drizzle: `actor({ db: db({ schema }), ... })`.
 *
 * @throws TypeError naming the option that is wrong.
 */
export function db<S extends Schema = Record<string, never>>(
  options: DrizzleOptions<S> = {},
): DatabaseProvider<DrizzleDatabase<S>> {
  const place = "db() of greenroom/db/drizzle";
  const known = ["schema", "migrations", "onMigrate", "warnOnManualTransactions"];
  checkKeys(options, { place, known, later: ["profiling"] });
  const given = options as DrizzleOptions<S>;
  const { schema, onMigrate, warnOnManualTransactions: warns } = given;
  checkFunction(onMigrate, "onMigrate", place);
  if (warns !== undefined && typeof warns !== "boolean") {
    throw new TypeError(
      `warnOnManualTransactions of ${place} is ${describe(warns)}, not true or false`,
    );
  }
  const steps = given.migrations === undefined ? [] : readMigrations(given.migrations, place);
  const createClient = (raw: RawAccess) => clientOf(raw, schema);
  if (steps.length === 0 && onMigrate === undefined) {
    return { createClient, warnOnManualTransactions: warns };
  }
  return {
    createClient,
    warnOnManualTransactions: warns,
    onMigrate: async (client) => {
      await applyJournal(client, steps);
      await onMigrate?.(client);
    },
  };
}

/** A configuration for `drizzle-kit`, with what suits an actor. */
export function defineConfig<C extends object>(
  config: C,
): { dialect: "sqlite"; driver: "durable-sqlite" } & C {
  return { dialect: "sqlite", driver: "durable-sqlite", ...config };
}

function clientOf<S extends Schema>(raw: RawAccess, schema: S | undefined): DrizzleDatabase<S> {
  const run = async (sql: string, params: unknown[], method: string) => {
    const rows = await valuesOf(raw, sql, params);
    // Of a single row Drizzle wants its values, and nothing where there is none.
    return { rows: (method === "get" ? rows[0] : rows) as unknown[] };
  };
  const client = drizzle<S>(run, schema === undefined ? {} : { schema });
  const transaction = <T>(
    body: (tx: DrizzleDatabase<S>) => T | Promise<T>,
    options?: TransactionOptions,
  ) => raw.transaction((tx) => body(clientOf(tx, schema)), options);
  return Object.assign(client, {
    transaction,
    execute: raw.execute.bind(raw),
    close: raw.close.bind(raw),
  }) as unknown as DrizzleDatabase<S>;
}
