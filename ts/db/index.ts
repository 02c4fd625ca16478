/**
 * `greenroom/db`: SQL for actors.
 *
 * `db()` gives an actor `c.db`; `migrations()` brings its schema up to date.
 */

import { checkFunction, checkKeys, describe } from "../definition/keys";
import type { DatabaseProvider, RawAccess } from "../types";

export { type Migrate, type MigrationsOptions, migrations } from "../sql/migrations";
export type { DatabaseProvider, Migration, RawAccess, TransactionOptions } from "../types";

/** What is given to `db()`. */
export interface DatabaseOptions {
  /**
   * Makes the schema. Runs at every start, before the state is there, in one transaction of at most
   * five minutes: when it rejects, nothing of it is kept and the start fails.
   */
  onMigrate?: ((db: RawAccess) => void | Promise<void>) | undefined;
  /** Whether to warn once of a transaction begun by hand with `BEGIN`. Default true. */
  warnOnManualTransactions?: boolean | undefined;
}

/**
 * Gives an actor a database of its own: `actor({ db: db(), ... })`.
 *
 * @throws TypeError naming the option that is wrong.
 */
export function db(options: DatabaseOptions = {}): DatabaseProvider<RawAccess> {
  const place = "db()";
  checkKeys(options, {
    place,
    known: ["onMigrate", "warnOnManualTransactions"],
    later: ["profiling"],
  });
  const { onMigrate, warnOnManualTransactions } = options as DatabaseOptions;
  checkFunction(onMigrate, "onMigrate", place);
  if (warnOnManualTransactions !== undefined && typeof warnOnManualTransactions !== "boolean") {
    const shown = describe(warnOnManualTransactions);
    throw new TypeError(`warnOnManualTransactions of ${place} is ${shown}, not true or false`);
  }
  return { createClient: (raw) => raw, onMigrate, warnOnManualTransactions };
}
