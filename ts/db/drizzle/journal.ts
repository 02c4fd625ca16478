/**
 * Migrations as `drizzle-kit` writes them: a journal, and the SQL of each entry.
 *
 * 1. Each entry is applied once, in the order of the journal; what was applied is noted in the
 *    table that Drizzle's own migrator uses.
 */

import { checkKeys, describe, quoted } from "../../definition/keys";
import type { RawAccess } from "../../types";

/** What `drizzle-kit generate` wrote. */
export interface DrizzleMigrations {
  readonly journal: {
    readonly entries: readonly {
      readonly idx: number;
      readonly when: number;
      readonly tag: string;
    }[];
  };
  /** SQL by `m` and the number of the entry in four digits. */
  readonly migrations: Readonly<Record<string, string>>;
}

/** One entry with its statements. */
interface Step {
  readonly tag: string;
  readonly when: number;
  readonly statements: readonly string[];
}

const TABLE = '"__drizzle_migrations"';
const BREAKPOINT = "--> statement-breakpoint";

/** The checked steps, in their order. */
export function readMigrations(given: DrizzleMigrations, place: string): readonly Step[] {
  checkKeys(given, { place: `migrations of ${place}`, known: ["journal", "migrations"] });
  const { journal, migrations } = given as DrizzleMigrations;
  const entries = journal?.entries;
  if (!Array.isArray(entries)) {
    throw new TypeError(`journal of migrations of ${place} is ${describe(journal)}, not a journal`);
  }
  return [...entries]
    .sort((a, b) => a.idx - b.idx)
    .map(({ idx, tag, when }) => {
      const sql = migrations?.[`m${String(idx).padStart(4, "0")}`];
      if (typeof sql !== "string") {
        throw new TypeError(`migrations of ${place} have no SQL for ${quoted(String(tag))}`);
      }
      return { tag, when, statements: sql.split(BREAKPOINT) };
    });
}

/** Applies what was not applied yet (1). */
export async function applyJournal(
  db: Pick<RawAccess, "execute">,
  steps: readonly Step[],
): Promise<void> {
  if (steps.length === 0) return;
  await db.execute(
    `CREATE TABLE IF NOT EXISTS ${TABLE} (id INTEGER PRIMARY KEY, hash text NOT NULL, created_at numeric)`,
  );
  const [last] = await db.execute<{ at: number | null }>(
    `SELECT max(created_at) AS at FROM ${TABLE}`,
  );
  const at = last?.at ?? Number.NEGATIVE_INFINITY;
  for (const { tag, when, statements } of steps.filter((step) => step.when > at)) {
    for (const statement of statements) await db.execute(statement);
    await db.execute(`INSERT INTO ${TABLE} (hash, created_at) VALUES (?, ?)`, tag, when);
  }
}
