// The ES modules beside the compiled CommonJS ones.
//
// They only name what those export: whatever way a program goes, there is one instance of the
// package, with one set of classes, symbols and registries.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
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

/**
 * The types of a module. One whose types come from a package with two sets of declarations, one for
 * each kind of module, must name those of its own kind: a program that mixes them does not compile.
 */
function typesOf(base, from) {
  const declared = readFileSync(`${base}.d.ts`, "utf8");
  if (!/from "drizzle-orm/.test(declared)) return `export * from "${from}";\n`;
  return declared.replace(/ from "(\.[^"]*)"/g, (_, relative) => {
    const file = path.join(path.dirname(base), relative);
    return ` from "${relative}${existsSync(`${file}.d.ts`) ? "" : "/index"}.js"`;
  });
}

/** Writes `base.mjs` and `base.d.mts` for `base.js` and `base.d.ts`. */
export function writeModule(base) {
  const from = `./${base.split(/[\\/]/).at(-1)}.js`;
  const names = exportsOf(`${base}.js`).join(", ");
  writeFileSync(`${base}.mjs`, `export { ${names} } from "${from}";\n`);
  writeFileSync(`${base}.d.mts`, typesOf(base, from));
}
