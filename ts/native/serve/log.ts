/**
 * Lines of the log where RivetKit runs on this: to stderr, in the form `key=value` that its own module has.
 *
 * From which level on, the variables say that RivetKit has for it: `RIVET_LOG_LEVEL`, `LOG_LEVEL`, `RUST_LOG`,
 * else `warn`.
 */
import { clockNow } from "../../../index.js";
import type { LogLevel } from "../dispatch.js";
import { dispatch } from "../environment.js";
import { once } from "../once.js";

const LEVELS: readonly LogLevel[] = ["trace", "debug", "info", "warn", "error"];
const VARIABLES = ["RIVET_LOG_LEVEL", "LOG_LEVEL", "RUST_LOG"];
const USUAL: LogLevel = "warn";

/** The level that was asked for; undefined for none at all, and the usual one for what is none. */
export function levelOf(env: NodeJS.ProcessEnv): LogLevel | undefined {
  const given = VARIABLES.map((name) => env[name]).find((value) => value);
  const text = (given ?? USUAL).toLowerCase();
  if (text === "silent" || text === "off" || text === "none") return undefined;
  return LEVELS.find((level) => level === text) ?? USUAL;
}

/** Has what is logged beside JavaScript written, once in an environment. */
export function startLogging(): void {
  once("contractLog", () => {
    const level = levelOf(process.env);
    if (level !== undefined) {
      dispatch.setLog(level, ({ level, target, message, fields }) =>
        logLine(level, message, { target, ...fields }),
      );
    }
    return { level };
  });
}

/** Writes a line, if its level was asked for. */
export function logLine(level: LogLevel, message: string, fields: Record<string, unknown>): void {
  const from = levelOf(process.env);
  if (from === undefined || LEVELS.indexOf(level) < LEVELS.indexOf(from)) return;
  // Of no generation: the time of the machine.
  const ts = new Date(clockNow(0)).toISOString();
  const parts = Object.entries({ ts, level, message, ...fields })
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name}=${written(value)}`);
  process.stderr.write(`${parts.join(" ")}\n`);
}

/** An error with what caused it. */
export function textOf(thrown: unknown): string {
  const texts: string[] = [];
  for (let at = thrown; at !== undefined && texts.length < 8; at = (at as Error).cause) {
    if (!(at instanceof Error)) {
      texts.push(String(at));
      break;
    }
    texts.push(at.stack ?? at.message);
  }
  return texts.join("\nCaused by: ");
}

/** In quotes where it would not be read as one word. */
function written(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return /^[\w.:+-]+$/.test(text) ? text : JSON.stringify(text);
}
