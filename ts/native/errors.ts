/**
 * Errors on their way between JavaScript and Rust: the one place that builds them
 * from records, and the one that makes records of what author code threw.
 *
 * 1. What author code threw is read and never touched: it may be frozen, no error
 *    at all, or throw when it is looked at.
 * 2. A record that cannot be read is an internal error that keeps its text.
 * 3. Expected refusals inside the runtime carry no stack.
 */

/** What every message in the bridge form begins with. */
export const BRIDGE_PREFIX = "__RIVET_ERROR_JSON__:";

const INTERNAL_MESSAGE = "An internal error occurred";

/** The generation that an error comes from. */
export interface ErrorActor {
  actorId: string;
  generation: number;
  key?: string;
  /** The step of starting or stopping that failed. */
  phase?: string;
}

/** An error as it crosses. */
export interface ErrorRecord {
  group: string;
  code: string;
  message: string;
  metadata?: unknown;
  public?: boolean | null;
  statusCode?: number | null;
  rayId?: string | null;
  actor?: ErrorActor | null;
  /** The name under which its environment keeps what was thrown (see `failures.ts`). */
  thrown?: string | null;
}

export interface RivetErrorOptions {
  public?: boolean | undefined;
  statusCode?: number | undefined;
  metadata?: unknown;
  rayId?: string | undefined;
  actor?: ErrorActor | undefined;
  cause?: unknown;
}

/** An error with a stable `group` and `code`. Recognised by its shape, since a program may hold several copies of this class. */
export class RivetError extends Error {
  readonly __type = "RivetError" as const;
  readonly group: string;
  /** Without the group. */
  readonly code: string;
  readonly public: boolean;
  readonly statusCode: number;
  // Declared only: an error without them does not have them.
  declare readonly metadata?: unknown;
  declare readonly rayId?: string;
  declare readonly actor?: ErrorActor;

  constructor(group: string, code: string, message: string, options: RivetErrorOptions = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.group = group;
    this.code = code;
    this.public = options.public ?? false;
    this.statusCode = options.statusCode ?? (this.public ? 400 : 500);
    if (options.metadata !== undefined && options.metadata !== null)
      this.metadata = options.metadata;
    if (options.rayId !== undefined) this.rayId = options.rayId;
    if (options.actor !== undefined) this.actor = options.actor;
  }
}
Object.defineProperty(RivetError.prototype, "name", {
  value: "RivetError",
  configurable: true,
  writable: true,
});

/** Reads a record (2). */
export function readRecord(json: string): ErrorRecord {
  try {
    const value: unknown = JSON.parse(json);
    if (isRecord(value)) return value;
  } catch {
    // Not JSON: kept as text below.
  }
  return internal(json);
}

/** The error of a record; `cause` is what was thrown, where that is at hand. */
export function fromRecord(record: ErrorRecord, cause?: { thrown: unknown }): RivetError {
  return new RivetError(record.group, record.code, record.message, {
    public: record.public ?? undefined,
    statusCode: record.statusCode ?? undefined,
    metadata: record.metadata ?? undefined,
    rayId: record.rayId ?? undefined,
    actor: record.actor ?? undefined,
    ...(cause === undefined ? undefined : { cause: cause.thrown }),
  });
}

/** The error of a record as the contract's callers read it: from its message. */
export function toBridge(record: ErrorRecord): Error {
  const { actor, code, group, message, metadata, rayId, statusCode } = record;
  const bridged = {
    actor: actor ? { actorId: actor.actorId, generation: actor.generation, key: actor.key } : null,
    code,
    group,
    message,
    metadata: metadata ?? null,
    public: record.public ?? null,
    rayId: rayId ?? null,
    statusCode: statusCode ?? null,
  };
  const error = new Error(BRIDGE_PREFIX + JSON.stringify(bridged));
  return Object.assign(error, { group, code, metadata: metadata ?? null });
}

/** What a method of the contract throws that was given what it cannot take. */
export function invalidArgument(argument: string, reason: string): Error {
  return toBridge({
    group: "napi",
    code: "invalid_argument",
    message: `Invalid native argument '${argument}': ${reason}`,
    metadata: { argument, reason },
  });
}

/** What a method of the contract throws that was called when it cannot be. */
export function invalidState(state: string, reason: string): Error {
  return toBridge({
    group: "napi",
    code: "invalid_state",
    message: `Invalid native state '${state}': ${reason}`,
    metadata: { state, reason },
  });
}

/** A plain error of one that a native class threw; anything else as it is. */
export function unbridged(thrown: unknown): unknown {
  const record = bridgedRecord(thrown);
  return record === undefined ? thrown : fromRecord(record);
}

/** The record of whatever author code threw (1). */
export function recordOf(thrown: unknown): ErrorRecord {
  try {
    return bridgedRecord(thrown) ?? brandedRecord(thrown) ?? internal(textOf(thrown));
  } catch {
    return internal("something was thrown that cannot be looked at");
  }
}

/** The bytes of a record. A metadata that cannot be written is left out. */
export function encodeRecord(record: ErrorRecord): Uint8Array {
  let json: string;
  try {
    json = JSON.stringify(record);
  } catch {
    json = JSON.stringify({ ...record, metadata: null });
  }
  return Buffer.from(json, "utf8");
}

/** A refusal that the runtime itself expects and handles (3). */
export function withoutStack(record: ErrorRecord): RivetError {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return fromRecord(record);
  } finally {
    Error.stackTraceLimit = limit;
  }
}

function internal(text: string): ErrorRecord {
  return {
    group: "core",
    code: "internal_error",
    message: INTERNAL_MESSAGE,
    metadata: { error: text },
  };
}

function isRecord(value: unknown): value is ErrorRecord {
  if (typeof value !== "object" || value === null) return false;
  const { group, code, message } = value as Record<string, unknown>;
  return typeof group === "string" && typeof code === "string" && typeof message === "string";
}

function bridgedRecord(thrown: unknown): ErrorRecord | undefined {
  const text =
    typeof thrown === "string"
      ? thrown
      : typeof thrown === "object" && thrown !== null
        ? messageOf(thrown)
        : undefined;
  const at = text === undefined ? -1 : text.indexOf(BRIDGE_PREFIX);
  if (text === undefined || at < 0) return undefined;
  try {
    const value: unknown = JSON.parse(text.slice(at + BRIDGE_PREFIX.length));
    return isRecord(value) ? written(value) : undefined;
  } catch {
    return undefined;
  }
}

function messageOf(thrown: object): string | undefined {
  const { message, reason } = thrown as { message?: unknown; reason?: unknown };
  if (typeof message === "string") return message;
  return typeof reason === "string" ? reason : undefined;
}

function brandedRecord(thrown: unknown): ErrorRecord | undefined {
  if (typeof thrown !== "object" || thrown === null || !isRecord(thrown)) return undefined;
  const brand = (thrown as { __type?: unknown }).__type;
  return brand === "RivetError" || brand === "ActorError" ? written(thrown) : undefined;
}

/** Only what a record has, with values that the Rust side accepts. */
function written(value: ErrorRecord): ErrorRecord {
  const status = value.statusCode;
  const valid =
    typeof status === "number" && Number.isInteger(status) && status >= 0 && status <= 65_535;
  return {
    group: value.group,
    code: value.code,
    message: value.message,
    metadata: value.metadata ?? null,
    public: typeof value.public === "boolean" ? value.public : null,
    statusCode: valid ? status : null,
    rayId: typeof value.rayId === "string" ? value.rayId : null,
    actor: isActor(value.actor) ? value.actor : null,
  };
}

function isActor(value: unknown): value is ErrorActor {
  if (typeof value !== "object" || value === null) return false;
  const { actorId, generation, key, phase } = value as Record<string, unknown>;
  return (
    typeof actorId === "string" &&
    Number.isSafeInteger(generation) &&
    (key === undefined || typeof key === "string") &&
    (phase === undefined || typeof phase === "string")
  );
}

function textOf(thrown: unknown): string {
  if (thrown instanceof Error) {
    const name = thrown.name === "Error" ? "" : `${thrown.name}: `;
    return `${name}${thrown.message}`;
  }
  if (typeof thrown === "string") return thrown;
  if (typeof thrown === "object" && thrown !== null) {
    try {
      return `an object was thrown: ${JSON.stringify(thrown)}`;
    } catch {
      return "an object was thrown";
    }
  }
  return `${String(thrown)} was thrown`;
}
