/**
 * The database of one generation as its author declared it.
 *
 * 1. The schema is brought up to date before anything else of the actor runs, first by the
 *    provider, then by the numbered steps, each in one transaction.
 * 2. What is asked for through a client that all calls share belongs to none of them: every output
 *    waits for it.
 */

import type { Waiter } from "../actors/waiter";
import { type ActorSpecifier, RivetError } from "../errors";
import type { NativeDatabase, OpenStatements } from "../native-half";
import type { DatabaseProvider, Migration, RawAccess } from "../types";
import { migrations } from "./migrations";
import { Database, type WithState } from "./raw";

/** How long the making of a schema may take, in milliseconds. */
const MIGRATION_TIMEOUT = 5 * 60_000;

/** What was declared. */
export interface Declared {
  readonly provider: DatabaseProvider<unknown> | undefined;
  readonly steps: readonly Migration[] | undefined;
}

export class AuthorsDatabase {
  readonly #declared: Declared;
  readonly #raw: Database;
  #client: unknown;
  #made = false;

  constructor(
    declared: Declared,
    native: () => NativeDatabase,
    waiter: Waiter,
    withState: WithState,
  ) {
    this.#declared = declared;
    this.#raw = new Database(native, waiter, withState);
  }

  /**
   * What `c.db` is; for a call whose answer waits for its own statements one of its own, unless a
   * client costs something to make, as with an ORM (2).
   */
  client(actor: ActorSpecifier, asker?: () => OpenStatements): unknown {
    const provider = this.#provider(actor);
    if (!this.#made) {
      this.#client = provider.createClient(this.#raw);
      this.#made = true;
    }
    const isPlain = this.#client === this.#raw;
    return isPlain && asker !== undefined ? this.#raw.of(asker()) : this.#client;
  }

  /** What `tx.db` is, on the statements of a transaction. */
  within(raw: RawAccess, actor: ActorSpecifier): unknown {
    return this.#provider(actor).createClient(raw);
  }

  #provider(actor: ActorSpecifier): DatabaseProvider<unknown> {
    const { provider } = this.#declared;
    if (provider !== undefined) return provider;
    throw new RivetError(
      "actor",
      "database_not_configured",
      "this actor has no database: give it db of greenroom/db",
      { actor, public: true },
    );
  }

  /** Makes the schema (1). */
  async migrate(): Promise<void> {
    const { provider, steps } = this.#declared;
    if (provider?.onMigrate !== undefined) {
      await this.#inOne(async (tx) => provider.onMigrate?.(provider.createClient(tx)));
    }
    if (steps !== undefined) await this.#inOne(migrations({ migrations: steps }));
  }

  #inOne(body: (tx: RawAccess) => void | Promise<void>): Promise<void> {
    return this.#raw.transaction(body, { timeout: MIGRATION_TIMEOUT });
  }
}
