/**
 * Reads a stored state, and brings one of an older version to the shape of this definition.
 *
 * 1. A state of a newer version than the definition knows is never shown to an author's function: the
 *    start is refused, and nothing that is stored changes.
 * 2. `migrateState` gets a copy of its own. When it throws, the start fails, and the next one begins
 *    again with what is stored. Nothing is no state: who forgot to return one would lose what is stored.
 */

import { copy } from "../codec";
import { decodeVersioned, versionOf } from "../codec/versioned";
import type { Definition } from "../definition";
import { type ActorSpecifier, RivetError } from "../errors";

/** A state, and whether it differs from what is stored. */
export interface Stored {
  readonly state: unknown;
  readonly migrated: boolean;
}

/**
 * Whether the state of an actor that wakes has to be migrated. Looks at the version only.
 *
 * @param bytes what is stored; none for a new actor.
 * @throws `actor.state_version_newer` when the version is newer than the definition's (1).
 */
export function isOutdated(
  bytes: Uint8Array,
  definition: Definition,
  actor: ActorSpecifier,
): boolean {
  if (bytes.length === 0) return false;
  const version = versionOf(bytes);
  const { stateVersion } = definition;
  if (version <= stateVersion) return version < stateVersion;
  throw new RivetError(
    "actor",
    "state_version_newer",
    `the stored state has version ${version}, newer than version ${stateVersion} of this code`,
    { metadata: { stored: version, supported: stateVersion }, actor },
  );
}

/**
 * @throws as {@link isOutdated}; `actor.state_migration_missing` when the state is older and there is
 *   no `migrateState`; and whatever `migrateState` throws.
 */
export function readStored(
  bytes: Uint8Array,
  definition: Definition,
  actor: ActorSpecifier,
): Stored {
  const outdated = isOutdated(bytes, definition, actor);
  const { version, value } = decodeVersioned(bytes);
  if (!outdated) return { state: value, migrated: false };
  const { stateVersion } = definition;
  const migrate = definition.hook("migrateState");
  if (migrate === undefined) {
    throw new RivetError(
      "actor",
      "state_migration_missing",
      `the stored state has version ${version}, and this code has no migrateState that makes it version ${stateVersion}`,
      { metadata: { stored: version, supported: stateVersion }, actor },
    );
  }
  const made: unknown = migrate(value, version);
  if (made === undefined) {
    throw new TypeError(
      `migrateState returned nothing for a state of version ${version}: it returns the new state`,
    );
  }
  // A promise is refused here as any other value that cannot be kept.
  return { state: copy(made, "state"), migrated: true };
}
