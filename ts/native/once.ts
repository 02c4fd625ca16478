/**
 * What there is once per environment, however many copies of this version of the module are loaded in
 * it. Copies of other versions have their own: they need not understand each other.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const { version } = JSON.parse(
  readFileSync(join(__dirname, "..", "..", "package.json"), "utf8"),
) as { version: string };

/** What the first copy made under this name. */
export function once<T>(name: string, make: () => T): T {
  const slot = Symbol.for(`greenroom.${name}.${version}`);
  const shared = globalThis as { [slot: symbol]: unknown };
  if (shared[slot] === undefined) {
    Object.defineProperty(globalThis, slot, { value: make(), enumerable: false });
  }
  return shared[slot] as T;
}
