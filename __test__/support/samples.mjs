// Samples of the documentation that are run with the framework that they are for.

import { readFileSync } from "node:fs";
import { fencesOf } from "../../scripts/lib/fences.mjs";
import { inRoot } from "../../scripts/lib/paths.mjs";

/** The sample of a page that is marked `file=name` or `test=name`. */
export function sample(page, name) {
  const fences = fencesOf(readFileSync(inRoot("docs", page), "utf8"));
  const found = fences.find(({ file, test }) => file === name || test === name);
  if (found === undefined) throw new Error(`docs/${page} has no sample ${name}`);
  return found.code;
}
