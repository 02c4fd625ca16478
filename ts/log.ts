/**
 * Log lines.
 *
 * 1. Quiet by default: warnings and worse, one line of JSON each on stderr, so that standard output
 *    stays the program's own.
 * 2. A sink that throws never disturbs an actor.
 */

import { checkKeys, describe } from "./definition/keys";
import type { ActorLogger } from "./types";

/** The levels, from the noisiest. */
export const levels = ["trace", "debug", "info", "warn", "error", "fatal"] as const;

/** How important a line is. */
export type LogLevel = (typeof levels)[number];

/** One line. */
export interface LogLine {
  readonly level: LogLevel;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly msg?: string;
  readonly [field: string]: unknown;
}

/** Where lines go. */
export type LogSink = (line: LogLine) => void;

/** A logger that takes fields before the message, as pino's does. */
export type BaseLogger = {
  readonly [L in LogLevel]: (fields: object, message?: string) => void;
} & {
  /** The least important level that it writes; asked once. */
  readonly level?: string;
};

/** The `logging` of `setup()`. */
export interface LoggingOptions {
  /** The least important lines that are written. Default `GREENROOM_LOG_LEVEL`, else `"warn"`. */
  level?: LogLevel | "silent" | undefined;
  /** Takes every line of the level. Default: JSON on stderr. Not together with `baseLogger`. */
  sink?: LogSink | undefined;
  /** Writes every line of the level, by default of its own level. Not together with `sink`. */
  baseLogger?: BaseLogger | undefined;
}

/** Where a registry's lines go. */
export class Logging {
  readonly #least: number;
  readonly #sink: LogSink;
  /** The level as it was chosen. */
  readonly level: LogLevel | "silent";

  constructor(given: unknown) {
    const options = given ?? {};
    checkKeys(options, {
      place: "logging of setup()",
      known: ["level", "sink", "baseLogger"],
    });
    const { baseLogger } = options;
    checkBaseLogger(baseLogger);
    const level = options.level ?? (process.env.GREENROOM_LOG_LEVEL || levelOf(baseLogger));
    if (level !== "silent" && !levels.includes(level as LogLevel)) {
      throw new TypeError(
        `level of logging is ${describe(level)}, not one of ${[...levels, "silent"].join(", ")}`,
      );
    }
    if (options.sink !== undefined && typeof options.sink !== "function") {
      throw new TypeError(`sink of logging is ${describe(options.sink)}, not a function`);
    }
    if (options.sink !== undefined && baseLogger !== undefined) {
      throw new TypeError("logging has both sink and baseLogger: give one of them");
    }
    this.level = level as LogLevel | "silent";
    this.#least = level === "silent" ? levels.length : levels.indexOf(level as LogLevel);
    const sink = options.sink as LogSink | undefined;
    this.#sink = baseLogger === undefined ? (sink ?? toStderr) : through(baseLogger);
  }

  /** Writes a line, if its level is wanted. */
  write(level: LogLevel, bound: object, line: object | string, message?: string): void {
    if (levels.indexOf(level) < this.#least) return;
    const time = Date.now();
    const text = typeof line === "string" ? line : message;
    const fields = typeof line === "string" ? undefined : fieldsOf(line);
    const full = { level, time, ...bound, ...fields, ...(text === undefined ? {} : { msg: text }) };
    try {
      this.#sink(full);
    } catch (error) {
      toStderr({ level: "error", time, msg: "the sink of the log failed", err: error });
    }
  }
}

function checkBaseLogger(logger: unknown): asserts logger is BaseLogger | undefined {
  if (logger === undefined) return;
  const missing = levels.filter(
    (level) => typeof (logger as Partial<BaseLogger> | null)?.[level] !== "function",
  );
  if (missing.length === 0) return;
  throw new TypeError(
    `baseLogger of logging is ${describe(logger)} without a method ${missing.join(", ")}`,
  );
}

/** A level that only the logger itself knows is its own to apply. */
function levelOf(logger: BaseLogger | undefined): string {
  if (logger === undefined) return "warn";
  const { level } = logger;
  return level === "silent" || levels.includes(level as LogLevel) ? (level as string) : "trace";
}

/** The time is left to the logger, which writes its own. */
function through(logger: BaseLogger): LogSink {
  return ({ level, time: _, msg, ...fields }) => {
    if (msg === undefined) logger[level](fields);
    else logger[level](fields, msg);
  };
}

/** An error as the whole line is a field of it, as pino does. */
function fieldsOf(line: object): object {
  return line instanceof Error ? { err: line, msg: line.message } : line;
}

function toStderr(line: LogLine): void {
  let text: string;
  try {
    text = JSON.stringify(line, (_key, value) => {
      if (typeof value === "bigint") return value.toString();
      if (!(value instanceof Error)) return value;
      const { name, message, stack, cause } = value;
      return { ...value, name, message, stack, cause };
    });
  } catch {
    text = JSON.stringify({ level: line.level, time: line.time, msg: String(line.msg) });
  }
  process.stderr.write(`${text}\n`);
}

/** Writes lines with bound fields. */
export class Logger implements ActorLogger {
  readonly #logging: Logging;
  readonly #bound: object;

  constructor(logging: Logging, bound: object) {
    this.#logging = logging;
    this.#bound = bound;
  }

  trace(line: object | string, message?: string): void {
    this.#logging.write("trace", this.#bound, line, message);
  }

  debug(line: object | string, message?: string): void {
    this.#logging.write("debug", this.#bound, line, message);
  }

  info(line: object | string, message?: string): void {
    this.#logging.write("info", this.#bound, line, message);
  }

  warn(line: object | string, message?: string): void {
    this.#logging.write("warn", this.#bound, line, message);
  }

  error(line: object | string, message?: string): void {
    this.#logging.write("error", this.#bound, line, message);
  }

  fatal(line: object | string, message?: string): void {
    this.#logging.write("fatal", this.#bound, line, message);
  }

  child(fields: object): Logger {
    return new Logger(this.#logging, { ...this.#bound, ...fields });
  }
}
