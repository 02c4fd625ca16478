// Whether something built is still what its sources would give, decided by content.
//
// A stamp beside the build names the digest of the inputs and of the outputs at the moment it
// ended. Times of files are not looked at: a fresh clone and a change of branch set them all.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { inRoot, ROOT } from "./paths.mjs";

const stampFile = (name) => inRoot("target", ".stamps", `${name}.json`);

/** All files under the given files and folders of the repository, sorted; missing ones are none. */
export function filesUnder(...entries) {
  return entries.flatMap((entry) => {
    const full = path.resolve(ROOT, entry);
    const stat = statSync(full, { throwIfNoEntry: false });
    if (!stat) return [];
    if (!stat.isDirectory()) return [full];
    const names = readdirSync(full).sort();
    return names.flatMap((name) => filesUnder(path.join(full, name)));
  });
}

/** One digest of the names and contents of files, and of whatever else decides the result. */
export function digest(files, ...facts) {
  const hash = createHash("sha256");
  for (const fact of facts) hash.update(`${fact}\0`);
  for (const file of files) {
    const content = readFileSync(file);
    hash.update(`${path.relative(ROOT, file)}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

/** Whether the build `name` ended with exactly these digests. */
export function isFresh(name, inputs, outputs) {
  const file = stampFile(name);
  if (!statSync(file, { throwIfNoEntry: false })) return false;
  const stamp = JSON.parse(readFileSync(file, "utf8"));
  return stamp.inputs === inputs && stamp.outputs === outputs;
}

/** Forgets the stamp: to be called before a build begins, so that one cut short is not fresh. */
export function unstamp(name) {
  rmSync(stampFile(name), { force: true });
}

export function stamp(name, inputs, outputs) {
  mkdirSync(path.dirname(stampFile(name)), { recursive: true });
  writeFileSync(stampFile(name), JSON.stringify({ inputs, outputs }));
}
