// ES modules that a browser loads as they are: the client and all that it imports.
//
// They are compiled a second time because browsers know neither CommonJS nor names of files without
// their endings. Whatever a browser has not is refused here, so nobody finds out in a page.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { inRoot } from "./paths.mjs";
import { StepFailed } from "./steps.mjs";

const require = createRequire(import.meta.url);

const SPECIFIER = /^(import |(?:import|export)[^;"'()=]* from )"([^"]+)";$/gm;

/** The module that `specifier` names in `module`; both without an ending, from `ts/`. */
function resolve(module, specifier) {
  if (!specifier.startsWith(".")) {
    throw new StepFailed(`ts/${module}.ts imports ${specifier}, which no browser has`);
  }
  const found = path.posix.join(path.posix.dirname(module), specifier);
  return existsSync(inRoot("ts", `${found}.ts`)) ? found : `${found}/index`;
}

/** Writes `entry`, a module of `ts/`, and all that it imports to `dist/esm/`. */
export function writeBrowserModules(entry) {
  // Not before it is needed: on a new machine the packages come later.
  const ts = require("typescript");
  const compilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ES2022,
    isolatedModules: true,
    verbatimModuleSyntax: false,
    removeComments: true,
  };
  const waiting = [entry];
  const done = new Set(waiting);
  for (let module = waiting.pop(); module !== undefined; module = waiting.pop()) {
    const source = readFileSync(inRoot("ts", `${module}.ts`), "utf8");
    const { outputText } = ts.transpileModule(source, { compilerOptions });
    const code = outputText.replace(SPECIFIER, (_, before, specifier) => {
      const imported = resolve(module, specifier);
      if (!done.has(imported)) waiting.push(imported);
      done.add(imported);
      const relative = path.posix.relative(path.posix.dirname(module), imported);
      return `${before}"${relative.startsWith(".") ? relative : `./${relative}`}.js";`;
    });
    if (/\brequire\(|\bprocess\./.test(code)) {
      throw new StepFailed(`ts/${module}.ts uses what only Node.js has`);
    }
    const file = inRoot("dist", "esm", `${module}.js`);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, code);
  }
  writeFileSync(inRoot("dist", "esm", "package.json"), '{ "type": "module" }\n');
}
