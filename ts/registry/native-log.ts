/**
 * Lines of the native half.
 *
 * They belong to the environment and not to one registry: the registry that was opened last and is not
 * shut down writes them.
 */

import type { Logging, LogLevel } from "../log";
import { dispatch } from "../native-half";

const open: Logging[] = [];

/** Lets `logging` write the lines of the native half. */
export function takeNativeLines(logging: Logging): void {
  open.push(logging);
  direct();
}

/** Takes back {@link takeNativeLines}. */
export function leaveNativeLines(logging: Logging): void {
  const at = open.indexOf(logging);
  if (at === -1) return;
  open.splice(at, 1);
  direct();
}

function direct(): void {
  const logging = open.at(-1);
  if (logging === undefined || logging.level === "silent") {
    dispatch.setLog(undefined);
    return;
  }
  dispatch.setLog(logging.level === "fatal" ? "error" : logging.level, (line) => {
    const { level, target, message, fields, lost } = line;
    const more = lost === 0 ? fields : { ...fields, lost };
    logging.write(level satisfies LogLevel, { target }, more, message);
  });
}
