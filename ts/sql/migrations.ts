/**
 * Numbered steps of a schema, each applied once per actor.
 *
 * 1. The steps are checked when they are given: contiguous from 1, each SQL or a function.
 * 2. The version is stored in the transaction of the steps that reach it.
 * 3. A stored version above the last step is refused: older code must not write what newer made.
 */

import { checkKeys, describe, quoted } from "../definition/keys";
import { RivetError } from "../errors";
import type { Migration, RawAccess } from "../types";

/** What is given to `migrations()`. */
export interface MigrationsOptions {
  /** The table that holds the version. Default `rivetkit_schema_version`. */
  tableName?: string | undefined;
  /** Asked once, when there is no version: that of a schema which was made otherwise, 0 for none. */
  adopt?: ((db: RawAccess) => number | Promise<number>) | undefined;
  /** The steps. */
  migrations: readonly Migration[];
}

/** Brings a database up to the last step. */
export type Migrate = (db: RawAccess) => Promise<void>;

/**
 * The function that brings a database up to the last of `migrations`, for `onMigrate`.
 *
 * @throws TypeError for steps that are not contiguous from 1, or are not SQL or a function.
 */
export function migrations(options: MigrationsOptions): Migrate {
  checkKeys(options, { place: "migrations()", known: ["tableName", "adopt", "migrations"] });
  const steps = checkSteps(options.migrations, "migrations of migrations()");
  const { adopt, tableName = "rivetkit_schema_version" } = options as MigrationsOptions;
  if (typeof tableName !== "string" || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(tableName)) {
    throw new TypeError(`tableName of migrations() is ${describe(tableName)}, not a plain name`);
  }
  if (adopt !== undefined && typeof adopt !== "function") {
    throw new TypeError(`adopt of migrations() is ${describe(adopt)}, not a function`);
  }
  return (db) => bringUp(db, steps, tableName, adopt);
}

/** The checked steps (1). */
export function checkSteps(given: unknown, place: string): readonly Migration[] {
  if (!Array.isArray(given)) throw new TypeError(`${place} is ${describe(given)}, not a list`);
  return given.map((step: unknown, at) => {
    const where = `step ${at + 1} of ${place}`;
    checkKeys(step, { place: where, known: ["version", "sql", "up"] });
    const { version, sql, up } = step;
    if (version !== at + 1) {
      throw new TypeError(`${where} has the version ${describe(version)}: they count from 1`);
    }
    if ((sql === undefined) === (up === undefined)) {
      const given = sql === undefined ? "neither sql nor" : "both sql and";
      throw new TypeError(`${where} has ${given} up: give one of them`);
    }
    if (sql !== undefined && typeof sql !== "string") {
      throw new TypeError(`sql of ${where} is ${describe(sql)}, not text`);
    }
    if (up !== undefined && typeof up !== "function") {
      throw new TypeError(`up of ${where} is ${describe(up)}, not a function`);
    }
    return step as unknown as Migration;
  });
}

async function bringUp(
  db: RawAccess,
  steps: readonly Migration[],
  table: string,
  adopt: MigrationsOptions["adopt"],
): Promise<void> {
  await db.execute(
    `CREATE TABLE IF NOT EXISTS "${table}" (` +
      "id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL CHECK (version >= 0))",
  );
  const [stored] = await db.execute<{ version: number }>(`SELECT version FROM "${table}"`);
  let version = stored?.version;
  if (version === undefined) {
    version = (await adopt?.(db)) ?? 0;
    if (!Number.isInteger(version) || version < 0) {
      throw new TypeError(`adopt of migrations() gave ${describe(version)}, not a version`);
    }
  }
  if (version > steps.length) {
    throw new RivetError(
      "sqlite",
      "schema_newer",
      `the schema has the version ${version} in ${quoted(table)}, and this code knows ${steps.length}`,
      { metadata: { stored: version, known: steps.length } },
    );
  }
  for (const step of steps.slice(version)) {
    if (step.up === undefined) await db.execute(step.sql);
    else await step.up(db);
  }
  if (stored?.version !== steps.length) {
    const target = Math.max(version, steps.length);
    await db.execute(`INSERT OR REPLACE INTO "${table}" (id, version) VALUES (1, ?)`, target);
  }
}
