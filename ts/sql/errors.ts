/** The errors of an author's SQL. */

import { type ActorSpecifier, RivetError } from "../errors";
import { unbridged } from "../native-half";

/** A plain error of what the native half threw: of a statement, in SQLite's own words. */
export function sqlError(thrown: unknown): unknown {
  const error = unbridged(thrown);
  if (!(error instanceof RivetError)) return error;
  const { group, code, metadata, actor } = error;
  if (group === "core" && code === "internal_error") {
    const { error: text } = (metadata ?? {}) as { error?: unknown };
    if (typeof text === "string") {
      return new RivetError(group, code, text, { metadata, actor, cause: error });
    }
  }
  if (group === "sqlite" && code === "transaction_closed") return closed(actor);
  return error;
}

/** What is said of a database that was closed. */
export function closed(actor: ActorSpecifier | undefined): RivetError {
  const message = "Database is closed: its actor has stopped, or closed it";
  return new RivetError("sqlite", "transaction_closed", message, { actor });
}
