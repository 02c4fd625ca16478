// Packages of the npm registry that tests need and the repository does not: installed once into a
// folder under target/, by exact versions, and used from there.
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";

import { inRoot, npm } from "../../scripts/lib/paths.mjs";

const run = promisify(execFile);
const CACHE = inRoot("target", "test-packages");

/** Runs npm in a folder. */
export function npmIn(folder, ...args) {
  const [file, ...before] = npm();
  const quiet = ["--no-audit", "--no-fund", "--loglevel=error", "--ignore-scripts"];
  return run(file, [...before, ...args, ...quiet], { cwd: folder });
}

/**
 * The folder whose `node_modules` has `packages`, as `{name: version}`. Where the registry cannot be
 * reached that is a failure; without `CI` set the test is skipped instead, with the reason.
 */
export async function packagesFor(t, name, packages) {
  const versions = Object.values(packages)
    .join("-")
    .replaceAll(/[^\w.-]/g, "");
  const folder = path.join(CACHE, `${name}-${versions}`);
  if (existsSync(folder)) return folder;
  mkdirSync(CACHE, { recursive: true });
  // Elsewhere first: a folder that is there is complete, whoever else installs it meanwhile.
  const making = mkdtempSync(path.join(CACHE, ".making-"));
  try {
    const manifest = { private: true, dependencies: packages };
    writeFileSync(path.join(making, "package.json"), JSON.stringify(manifest));
    await npmIn(making, "install");
    if (!existsSync(folder)) renameSync(making, folder);
    return folder;
  } catch (error) {
    if (process.env.CI) throw error;
    t.skip(`${name} could not be installed: ${error.message}`);
    return undefined;
  } finally {
    rmSync(making, { recursive: true, force: true });
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
