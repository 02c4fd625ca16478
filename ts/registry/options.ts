/** The options of `setup()`. */

import { Definition } from "../definition";
import { checkKeys, describe, type Keys, nearest, quoted } from "../definition/keys";
import { checkActionNames, checkActorName } from "../definition/names";
import { choice } from "../definition/options";
import { Logging, type LoggingOptions } from "../log";
import type { Definitions, TypesOf, WithoutReservedActors } from "../types";

/** What all of the types ask for together. */
type Together<T> = (T extends unknown ? (given: T) => void : never) extends (all: infer All) => void
  ? All
  : never;

/** What the actors of `U` need of `setup()`. */
export type DepsOf<U extends Definitions> = Together<TypesOf<U[keyof U]>["deps"]>;

/** The `deps`: required when an actor needs some. */
export type WithDeps<U extends Definitions> =
  unknown extends DepsOf<U>
    ? {
        /** The second argument of `createVars`. */
        deps?: unknown;
      }
    : {
        /** The second argument of `createVars`. */
        deps: DepsOf<U>;
      };

/** What is given to `setup()`. */
export type SetupOptions<U extends Definitions> = SetupSettings<U> & WithDeps<U>;

/** What is given to `setup()` whatever its actors need. */
export interface SetupSettings<U extends Definitions> {
  /** The actors, by the name under which they are called. */
  use: U & WithoutReservedActors;
  /**
   * Where everything is kept: a folder, which is made when it is missing, or `":memory:"`. Default
   * `GREENROOM_STORAGE`, else the folder `.greenroom` in the current directory.
   */
  storage?: string | undefined;
  /**
   * `"exclusive"` (default): one thread of a process uses a folder, and a second one gets
   * `storage.locked`. `"shared"`: several worker threads serve it together.
   */
  threads?: "exclusive" | "shared" | undefined;
  /** How long to wait for a folder that another process uses, in milliseconds. Default 10,000. */
  lockTimeout?: number | undefined;
  /**
   * What becomes of actors that are awake when the same folder is set up again in this thread, as when a
   * development server evaluates a module anew. `"wake"` (default): they take the new code when they
   * wake the next time. `"now"`: they fall asleep at once, so that the next call runs the new code.
   */
  reload?: "wake" | "now" | undefined;
  /**
   * When a folder that exists is opened. `"start"` (default): as soon as the program is set up, so that
   * what was scheduled runs with nobody to call. `"call"`: when it is first needed, for programs that
   * import a registry which another process or thread runs. Default `GREENROOM_OPENS`, else `"call"` in
   * tests (`NODE_ENV=test`, as Vitest and Jest set it) and in `next build`, else `"start"`.
   */
  opens?: "start" | "call" | undefined;
  /** Which lines are logged, and where to. */
  logging?: LoggingOptions | undefined;
  /**
   * Whether clients over the network read the message of an error that is not meant for them: for
   * development. Default `GREENROOM_EXPOSE_ERRORS=1`, else `false`.
   */
  exposeErrors?: boolean | undefined;
}

/** Options, checked. */
export interface Setup {
  readonly definitions: ReadonlyMap<string, Definition>;
  /** `undefined` for memory. */
  readonly folder: string | undefined;
  readonly threads: "exclusive" | "shared";
  readonly lockTimeout: number;
  readonly reload: "wake" | "now";
  readonly opens: "start" | "call";
  readonly deps: unknown;
  readonly logging: Logging;
  readonly exposeErrors: boolean;
}

const keys: Keys = {
  place: "setup()",
  known: [
    "use",
    "storage",
    "threads",
    "lockTimeout",
    "reload",
    "opens",
    "deps",
    "logging",
    "exposeErrors",
  ],
  later: [
    "endpoint",
    "headers",
    "httpBasePath",
    "httpHost",
    "httpPort",
    "maxIncomingMessageSize",
    "maxOutgoingMessageSize",
    "namespace",
    "noWelcome",
    "serverless",
    "shutdown",
    "staticDir",
    "token",
  ],
};

/** Checks what was given to `setup()`. */
export function readSetup(given: unknown): Setup {
  checkKeys(given, keys);
  return {
    definitions: readDefinitions(given.use),
    folder: readStorage(given.storage ?? process.env.GREENROOM_STORAGE ?? ".greenroom"),
    threads: choice(given, "threads", ["exclusive", "shared"]),
    lockTimeout: readLockTimeout(given.lockTimeout),
    reload: choice(given, "reload", ["wake", "now"]),
    opens: choice(
      { opens: given.opens ?? process.env.GREENROOM_OPENS ?? usualOpens(process.env) },
      "opens",
      ["start", "call"],
    ),
    deps: given.deps,
    logging: new Logging(given.logging),
    exposeErrors: readExposeErrors(given.exposeErrors),
  };
}

/**
 * What imports a registry to build or to test it must not run what is due in the folder that it finds:
 * it ends at once, in the middle of an action that runs at most once.
 */
function usualOpens({ NODE_ENV, NEXT_PHASE }: NodeJS.ProcessEnv): "start" | "call" {
  return NODE_ENV === "test" || NEXT_PHASE === "phase-production-build" ? "call" : "start";
}

function readExposeErrors(given: unknown): boolean {
  const expose = given ?? process.env.GREENROOM_EXPOSE_ERRORS === "1";
  if (typeof expose !== "boolean") {
    throw new TypeError(`exposeErrors of setup() is ${describe(expose)}, not true or false`);
  }
  return expose;
}

function readDefinitions(use: unknown): Map<string, Definition> {
  if (typeof use !== "object" || use === null || Array.isArray(use)) {
    throw new TypeError(`use of setup() is ${describe(use)}, not an object of actors`);
  }
  const out = new Map<string, Definition>();
  for (const [name, given] of Object.entries(use)) {
    checkActorName(name);
    const definition = Definition.from(given);
    if (definition === undefined) {
      const what = describe(given);
      throw new TypeError(
        `use of setup() has ${what} at ${quoted(name)}, not the result of actor()`,
      );
    }
    checkActionNames(name, definition.actions.keys());
    checkActionNames(name, definition.internalActions.keys());
    out.set(name, definition);
  }
  return out;
}

function readStorage(storage: unknown): string | undefined {
  if (typeof storage !== "string" || storage === "" || storage.includes("\0")) {
    throw new TypeError(`storage of setup() is ${describe(storage)}, not a folder or ":memory:"`);
  }
  if (storage === ":memory:") return undefined;
  // Almost ":memory:" would become a folder with a strange name.
  if (storage.startsWith(":")) {
    const near = nearest(storage, [":memory:"]) ?? ":memory:";
    throw new TypeError(`storage of setup() is ${quoted(storage)}: did you mean ${quoted(near)}?`);
  }
  return storage;
}

function readLockTimeout(value: unknown): number {
  const ms = value ?? 10_000;
  if (typeof ms !== "number" || !(ms >= 0) || !Number.isFinite(ms)) {
    throw new TypeError(`lockTimeout of setup() is ${describe(ms)}, not milliseconds from 0`);
  }
  return Math.round(ms);
}
