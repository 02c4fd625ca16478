// Packages of the npm registry that tests need and the repository does not.
import path from "node:path";

import { installed } from "../../scripts/lib/installed.mjs";

export { npmIn } from "../../scripts/lib/installed.mjs";

/**
 * The folder whose `node_modules` has `packages`, as `{name: version}`, with the options of `installed`. Where the registry cannot be
 * reached that is a failure; without `CI` set the test is skipped instead, with the reason.
 */
export async function packagesFor(t, name, packages, options = {}) {
  try {
    return await installed(name, packages, options);
  } catch (error) {
    if (process.env.CI) throw error;
    t.skip(`${name} could not be installed: ${error.message}`);
    return undefined;
  }
}

/** The program of another version of Node.js; undefined where none is made for this machine. */
export async function nodeOf(t, version) {
  const systems = { linux: "linux", darwin: "darwin", win32: "win" };
  const name = `node-${systems[process.platform]}-${process.arch}`;
  const folder = await packagesFor(t, `node-${version.split(".")[0]}`, { [name]: version });
  const file = process.platform === "win32" ? "bin/node.exe" : "bin/node";
  return folder && path.join(folder, "node_modules", name, file);
}
