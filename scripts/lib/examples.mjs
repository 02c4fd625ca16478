// What there is under examples/, and how one is run.

import { existsSync, readdirSync } from "node:fs";
import { inRoot, tool } from "./paths.mjs";

/** How `npm test` runs an example that would take long otherwise. */
export const QUICK = {
  wordcount: ["--kills", "2", inRoot("README.md"), inRoot("LICENSE"), inRoot("package-lock.json")],
};

/** Examples that serve until they are ended: tests of their own run them. */
export const LASTING = new Set(["chat"]);

export const examples = readdirSync(inRoot("examples"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)
  .sort();

/** The command that compiles the examples written in TypeScript. */
export const compile = () => [...tool("typescript", "tsc"), "-p", inRoot("examples")];

/** The command that runs one example, once they are compiled. */
export function command(name, args) {
  const plain = inRoot("examples", name, "main.mjs");
  const compiled = inRoot("target", "examples", name, "main.mjs");
  return [process.execPath, existsSync(plain) ? plain : compiled, ...args];
}
