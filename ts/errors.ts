/**
 * The errors that callers see.
 *
 * 1. They are recognised by their shape, because two copies of this module, the native layer and
 *    RivetKit's own classes all make them. `instanceof` looks at the shape too.
 * 2. An error that an author threw is never changed: callers get one of ours with it as `cause`.
 */

import { withoutStack } from "./codec/parts";

/** Which generation of which actor an error came from. */
export interface ActorSpecifier {
  readonly actorId: string;
  readonly generation: number;
  readonly key?: string | undefined;
  /** The step of starting or stopping that failed. */
  readonly phase?: string | undefined;
}

/** What an error carries beside group, code and message. */
export interface RivetErrorOptions {
  /** Whether remote clients may read message and metadata. Default false. */
  public?: boolean | undefined;
  /** The HTTP status. Default 400 for public errors, 500 for others. */
  statusCode?: number | undefined;
  /** Named values for programs. */
  metadata?: unknown;
  /** The id of the request. */
  rayId?: string | undefined;
  /** The actor in which it happened. */
  actor?: ActorSpecifier | undefined;
  /** What was thrown. */
  cause?: unknown;
}

/** An error of a stable `group` and `code`. */
export class RivetError extends Error {
  /** Marks the shape. */
  readonly __type = "RivetError";
  readonly group: string;
  /** Without the group. */
  readonly code: string;
  readonly public: boolean;
  readonly statusCode: number;
  // Declared only: an error without them has no such property, as one from the native half.
  declare readonly metadata?: unknown;
  declare readonly rayId?: string;
  declare readonly actor?: ActorSpecifier;

  constructor(group: string, code: string, message: string, options: RivetErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.group = group;
    this.code = code;
    this.public = options.public ?? false;
    this.statusCode = options.statusCode ?? (this.public ? 400 : 500);
    if (options.metadata !== undefined) this.metadata = options.metadata;
    if (options.rayId !== undefined) this.rayId = options.rayId;
    if (options.actor !== undefined) this.actor = options.actor;
  }

  // A class that an author derives inherits this and is told apart as any other.
  static override [Symbol.hasInstance](this: unknown, value: unknown): boolean {
    // biome-ignore-start lint/complexity/noThisInStatic: `this` is the class that is asked about
    if (this === RivetError) return isRivetError(value);
    if (this === UserError) return UserError.is(value);
    return Function.prototype[Symbol.hasInstance].call(this, value);
    // biome-ignore-end lint/complexity/noThisInStatic: see above
  }

  /** Whether a value has the shape of this class. */
  static isRivetError(value: unknown): value is RivetError {
    return isRivetError(value);
  }

  /** The same as {@link RivetError.isRivetError}. */
  static isActorError(value: unknown): value is RivetError {
    return isRivetError(value);
  }
}

Object.defineProperty(RivetError.prototype, "name", {
  value: "RivetError",
  writable: true,
  configurable: true,
});

/** The same class under its older name. */
export { RivetError as ActorError };

/** What a {@link UserError} carries beside its message. */
export interface UserErrorOptions {
  /** Default `user_error`. */
  code?: string | undefined;
  /** Named values for programs. */
  metadata?: unknown;
  /** What was thrown. */
  cause?: unknown;
}

/** An error for the caller of an action: its message and metadata reach remote clients. */
export class UserError extends RivetError {
  constructor(message: string, options: UserErrorOptions = {}) {
    super("user", options.code ?? "user_error", message, {
      public: true,
      metadata: options.metadata,
      cause: options.cause,
    });
  }

  /** Whether a value is an error of group `user`, wherever it was made. */
  static is(value: unknown): value is UserError {
    return isRivetError(value) && value.group === "user";
  }
}

/** Whether a value has the shape of a {@link RivetError}. */
export function isRivetError(value: unknown): value is RivetError {
  if (typeof value !== "object" || value === null) return false;
  try {
    const { __type, group, code, message } = value as Record<string, unknown>;
    return (
      (__type === "RivetError" || __type === "ActorError") &&
      typeof group === "string" &&
      typeof code === "string" &&
      typeof message === "string"
    );
  } catch {
    return false;
  }
}

/** Whether a value is an error of the given group and code. */
export function isRivetErrorCode(value: unknown, group: string, code: string): boolean {
  return isRivetError(value) && value.group === group && value.code === code;
}

/** What the caller gets for whatever an author's function threw, with what `carry` makes of its metadata. */
export function callersError(
  thrown: unknown,
  actor: ActorSpecifier | undefined,
  carry: (metadata: unknown) => unknown = plain,
): RivetError {
  return withoutStack(() => {
    if (isRivetError(thrown)) {
      return new RivetError(thrown.group, thrown.code, thrown.message, {
        public: thrown.public,
        statusCode: thrown.statusCode,
        metadata: carry(thrown.metadata),
        rayId: thrown.rayId,
        actor: thrown.actor ?? actor,
        cause: thrown,
      });
    }
    return new RivetError("rivetkit", "internal_error", messageOf(thrown), {
      actor,
      cause: thrown,
    });
  });
}

/** `actor.invalid_argument`, as the TypeError that it is. */
export function invalidArgument(message: string): TypeError {
  return Object.assign(new TypeError(message), { group: "actor", code: "invalid_argument" });
}

/** Refuses text that becomes other text once it is stored, as UTF-8: two of them could become the same. */
export function checkStorable(text: string, what: string): void {
  if (!/\p{Surrogate}/u.test(text)) return;
  throw invalidArgument(`${what} has half of a surrogate pair: ${JSON.stringify(text)}`);
}

/** Runs `check` of our own; its TypeError becomes {@link invalidArgument}. */
export function checkedArgument(check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw Object.assign(error, { group: "actor", code: "invalid_argument" });
  }
}

/** What `read` gives; its TypeError, if it throws one, becomes {@link invalidArgument}. */
export function readingArgument<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    // Only what the walk itself made: what a getter threw is its author's.
    if (error instanceof TypeError && error.message.startsWith("Value at ")) {
      throw Object.assign(error, { group: "actor", code: "invalid_argument" });
    }
    throw error;
  }
}

/** The text of whatever was thrown. */
export function messageOf(thrown: unknown): string {
  try {
    if (thrown instanceof Error) return thrown.message;
    return String(thrown);
  } catch {
    return "a value that cannot be shown was thrown";
  }
}

/** Metadata as it would arrive over a wire: what JSON cannot carry is left out. */
function plain(metadata: unknown): unknown {
  if (metadata === undefined || metadata === null) return undefined;
  try {
    const text = JSON.stringify(metadata, (_key, value) =>
      typeof value === "bigint" ? value.toString() : value,
    );
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
