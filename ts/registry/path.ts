/** Paths of files and folders that are given to a registry. */

import { resolve } from "node:path";
import { describe } from "../definition/keys";

/** Checks a path that `where` takes; makes it absolute, as of now. */
export function readPath(path: unknown, where: string): string {
  if (typeof path !== "string" || path === "" || path.includes("\0")) {
    throw new TypeError(`path of ${where} is ${describe(path)}, not the path of a file`);
  }
  return resolve(path);
}
