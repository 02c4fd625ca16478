/**
 * Which transaction runs the code that asks: by the async context, so that what its function calls
 * and awaits counts as inside, and what other calls of the actor do meanwhile does not.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Live } from "../actors/live";
import { RivetError } from "../errors";
import { once } from "../native-half";

/** What is open, as whoever is inside sees it. */
export interface Open {
  readonly live: Live;
  /** Whether `c.state` is its state, inside. */
  readonly includesState: boolean;
  /** Its state. */
  state: unknown;
  /** Resolves when it is durably committed; rejects when nothing of it is left. */
  left(): Promise<void>;
  /** Resolves when others may go on. */
  readonly over: Promise<void>;
}

/** One for all copies of this module. */
const storage = once("transaction", () => new AsyncLocalStorage<Open>());

/** Runs the function of a transaction. */
export function runInside<T>(open: Open, body: () => T): T {
  return storage.run(open, body);
}

/** The open transaction of an actor, for code that it runs; `undefined` for any other. */
export function insideOf(live: Live): Open | undefined {
  const { transaction } = live;
  if (transaction === undefined) return undefined;
  return storage.getStore() === transaction ? transaction : undefined;
}

/** Refuses code inside of a transaction what would act outside of it, or wait for its end. */
export function refuseInside(live: Live, member: string): void {
  if (insideOf(live) === undefined) return;
  throw new RivetError(
    "actor",
    "inside_transaction",
    `c.${member} is not part of the transaction that this runs in: use tx.${member}`,
    { actor: live.specifier, metadata: { member } },
  );
}

/** What begins a transaction inside of one is told. */
export function nested(live: Live): RivetError {
  return new RivetError(
    "actor",
    "transaction_nested",
    "transactions do not nest: this runs in one of the same actor",
    { actor: live.specifier },
  );
}
