/**
 * `greenroom/register`: lets programs that use RivetKit run on greenroom, without a change to either:
 * `node --import greenroom/register app.js`.
 *
 * Only the native module that RivetKit asks for is another one. Where Node.js has hooks that run in the
 * thread which resolves, those are used; before 22.15 they run beside it.
 */
import * as nodeModule from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { NATIVE_MODULE } from "./names.js";

interface Hooks {
  resolve(
    specifier: string,
    context: { readonly conditions: readonly string[] },
    next: (specifier: string, context: object) => { url: string },
  ): { url: string; shortCircuit?: boolean };
}

const urlOf = (file: string) => pathToFileURL(join(__dirname, "..", "native", file)).href;

/** Newer than the declarations that this is compiled with. */
const { registerHooks } = nodeModule as { registerHooks?: (hooks: Hooks) => void };

if (registerHooks === undefined) {
  nodeModule.register(pathToFileURL(join(__dirname, "hooks.mjs")), {
    data: { name: NATIVE_MODULE, url: urlOf("index.mjs") },
  });
} else {
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier !== NATIVE_MODULE) return next(specifier, context);
      const isRequired = context.conditions.includes("require");
      return { url: urlOf(isRequired ? "index.js" : "index.mjs"), shortCircuit: true };
    },
  });
}
