/** One actor, as whoever runs the registry sees it. */

import { reachOf } from "../calls/handle";
import { checkKeys, describe } from "../definition/keys";
import { RivetError } from "../errors";
import type { Hold, Host, ListedActor } from "../native-half";
import { readPath } from "./path";

/** What is known of an actor. */
export interface ActorInfo {
  readonly actorId: string;
  readonly name: string;
  readonly key: string[];
  /** When it was created, in milliseconds since the epoch. */
  readonly createdAt: number;
  /** Whether it is awake. */
  readonly awake: boolean;
  /** Why it is awake. */
  readonly holds: readonly Hold[];
}

/** How an actor is exported. */
export interface ExportOptions {
  /** Whether a file that has the name is replaced, once the copy is whole. Default false. */
  replace?: boolean | undefined;
}

/** Looks at one actor and moves it. */
export interface ManagedActor {
  /**
   * What is known of it.
   *
   * @throws rejects with `actor.not_found`
   */
  info(): Promise<ActorInfo>;
  /** Puts it to sleep and resolves when it sleeps. One that does not run is left alone. */
  sleep(): Promise<void>;
  /** Destroys it and all it stored; false when it did not exist. */
  destroy(): Promise<boolean>;
  /**
   * Copies it, awake or asleep, with everything it has changed so far into one SQLite file, which
   * appears when it is whole and on the disk.
   *
   * @throws rejects with `actor.not_found`, and with `storage.exists` where a file has the name.
   */
  export(path: string, options?: ExportOptions): Promise<void>;
}

/** Prepares the management of the actor that `which` names: an id or a handle. */
export function manage(host: () => Promise<Host>, which: unknown): ManagedActor {
  const reach = reachOf(which);
  if (typeof which !== "string" && reach === undefined) {
    throw new TypeError(`an actor is named by its id or a handle, not ${describe(which)}`);
  }
  // A handle by key is looked up, and never creates what is to be managed.
  const id = async (): Promise<string> => {
    if (reach === undefined) return which as string;
    const { target } = reach;
    if ("id" in target) return target.id;
    return (await (await host()).ensure({ name: target.name, key: target.key }, "get")).id;
  };
  const known = async (): Promise<string | undefined> => {
    try {
      return await id();
    } catch (error) {
      if ((error as { code?: unknown }).code === "not_found") return undefined;
      throw error;
    }
  };
  return {
    async info() {
      const actorId = await id();
      const found = await (await host()).info(actorId);
      if (found === null) throw notFound(actorId);
      return infoOf(found);
    },
    async sleep() {
      const actorId = await known();
      if (actorId !== undefined) await (await host()).sleep(actorId);
    },
    async destroy() {
      const actorId = await known();
      return actorId !== undefined && (await host()).destroy({ id: actorId });
    },
    async export(path, options = {}) {
      const file = readPath(path, "export()");
      checkKeys(options, { place: "options of export()", known: ["replace"] });
      const replace = options.replace ?? false;
      if (typeof replace !== "boolean") {
        throw new TypeError(`replace of export() is ${describe(replace)}, not true or false`);
      }
      const actorId = await id();
      await (await host()).export(actorId, file, replace);
    },
  };
}

/** An actor of a list. */
export function infoOf(found: ListedActor): ActorInfo {
  return {
    actorId: found.id,
    name: found.name,
    key: found.key.map(String),
    createdAt: found.createdAt,
    awake: found.awake,
    holds: (found as { holds?: readonly Hold[] }).holds ?? [],
  };
}

function notFound(actorId: string): RivetError {
  return new RivetError("actor", "not_found", `actor ${actorId} does not exist`, {
    public: true,
    statusCode: 404,
    metadata: { actorId },
  });
}
