// Where things are, and how to run a tool of node_modules without a shell.

import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url)).replace(/[\\/]$/, "");

export const inRoot = (...parts) => path.join(ROOT, ...parts);

/**
 * The command that runs `bin` of an installed package, as `[file, ...args]`.
 *
 * Through `process.execPath`, because the shims in `node_modules/.bin` are shell scripts on one
 * platform and `.cmd` files on another.
 */
export function tool(packageName, bin) {
  const folder = inRoot("node_modules", ...packageName.split("/"));
  const manifest = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
  const file = typeof manifest.bin === "string" ? manifest.bin : manifest.bin[bin];
  return [process.execPath, path.join(folder, file)];
}

/** The version of an installed package. */
export function versionOf(packageName) {
  const file = inRoot("node_modules", ...packageName.split("/"), "package.json");
  return JSON.parse(readFileSync(file, "utf8")).version;
}

/** The command that runs npm, the very one that started this script where there is one. */
export function npm() {
  const running = process.env.npm_execpath;
  if (running?.endsWith(".js")) return [process.execPath, running];
  return process.platform === "win32" ? ["npm.cmd"] : ["npm"];
}
