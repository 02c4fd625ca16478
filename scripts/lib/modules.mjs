// The ES modules beside the compiled CommonJS ones.
//
// They only name what those export: whatever way a program goes, there is one instance of the
// package, with one set of classes, symbols and registries.

import { readFileSync, writeFileSync } from "node:fs";
import { StepFailed } from "./steps.mjs";

/** The names that a module compiled by tsc exports. */
function exportsOf(file) {
  const code = readFileSync(file, "utf8");
  const names = new Set();
  for (const [, name] of code.matchAll(/^exports\.(\w+) = /gm)) names.add(name);
  for (const [, name] of code.matchAll(/^Object\.defineProperty\(exports, "(\w+)"/gm))
    names.add(name);
  // The line in which all others are declared: `exports.a = exports.b = void 0`.
  const declared = /^((?:exports\.\w+ = )+)void 0;/m.exec(code)?.[1] ?? "";
  for (const [, name] of declared.matchAll(/exports\.(\w+) = /g)) names.add(name);
  names.delete("__esModule");
  if (names.size === 0) throw new StepFailed(`${file} exports nothing`);
  return [...names].sort();
}

/** Writes `base.mjs` and `base.d.mts` for `base.js` and `base.d.ts`. */
export function writeModule(base) {
  const from = `./${base.split(/[\\/]/).at(-1)}.js`;
  const names = exportsOf(`${base}.js`).join(", ");
  writeFileSync(`${base}.mjs`, `export { ${names} } from "${from}";\n`);
  writeFileSync(`${base}.d.mts`, `export * from "${from}";\n`);
}
