/** How long an end may take. */

import { checkKeys, describe } from "../definition/keys";

/** The `deadline` of what is given to `method`, in milliseconds; `usual` without one. */
export function readDeadline(options: object, method: string, usual: number): number {
  checkKeys(options, { place: `options of ${method}`, known: ["deadline"] });
  const ms = (options as { deadline?: unknown }).deadline ?? usual;
  if (typeof ms !== "number" || !(ms >= 0) || ms > 2 ** 31 - 1) {
    throw new TypeError(`deadline of ${method} is ${describe(ms)}, not milliseconds from 0`);
  }
  return Math.round(ms);
}
