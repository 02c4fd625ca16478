// Packages of the npm registry that tests and benchmarks need and the repository does not: installed
// once into a folder under target/, by exact versions, and used from there.

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";

import { inRoot, npm } from "./paths.mjs";

const run = promisify(execFile);
const CACHE = inRoot("target", "test-packages");
const QUIET = ["--no-audit", "--no-fund", "--loglevel=error"];

/** Runs npm in a folder, and no script of a package. */
export const npmIn = (folder, ...args) => runNpm(folder, [...args, "--ignore-scripts"]);

function runNpm(folder, args) {
  const [file, ...before] = npm();
  return run(file, [...before, ...args, ...QUIET], { cwd: folder });
}

const folderOf = (name, packages) => {
  const versions = Object.values(packages)
    .join("-")
    .replaceAll(/[^\w.-]/g, "");
  return path.join(CACHE, `${name}-${versions}`);
};

/** Whether nothing is left to install. */
export const isInstalled = (name, packages) => existsSync(folderOf(name, packages));

/**
 * The folder whose `node_modules` has `packages`, as `{name: version}`. Packages that compile what
 * they are made of do so where `compiles` is set; `overrides` are npm's. Rejects where the registry cannot be reached.
 */
export async function installed(name, packages, { compiles = false, overrides = {} } = {}) {
  const folder = folderOf(name, packages);
  if (existsSync(folder)) return folder;
  mkdirSync(CACHE, { recursive: true });
  // Elsewhere first: a folder that is there is complete, whoever else installs it meanwhile.
  const making = mkdtempSync(path.join(CACHE, ".making-"));
  try {
    const manifest = { private: true, dependencies: packages, overrides };
    writeFileSync(path.join(making, "package.json"), JSON.stringify(manifest));
    await (compiles ? runNpm(making, ["install"]) : npmIn(making, "install"));
    if (!existsSync(folder)) renameSync(making, folder);
    return folder;
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
}
