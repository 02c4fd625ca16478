import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";

import { setup } from "../../dist/index.js";

const opened = new Set();
const folders = new Set();

after(async () => {
  await Promise.all([...opened].map((registry) => registry.shutdown({ deadline: 2_000 })));
  await Promise.all([...folders].map((folder) => rm(folder, { recursive: true, force: true })));
});

/** Sets up actors in memory, shut down after the tests of the file. */
export function inMemory(use, options = {}) {
  const registry = setup({ use, storage: ":memory:", logging: { level: "silent" }, ...options });
  opened.add(registry);
  return registry;
}

/** A folder that is removed after the tests of the file. */
export async function newFolder() {
  const folder = await mkdtemp(join(tmpdir(), "greenroom-"));
  folders.add(folder);
  return folder;
}

/** Sets up actors in a folder. */
export function inFolder(folder, use, options = {}) {
  return inMemory(use, { storage: folder, ...options });
}

/** Waits until `holds` does, by polling; fails after two seconds. */
export async function until(holds, what) {
  const end = Date.now() + 2_000;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`still not so: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A promise and its ends. */
export function deferred() {
  let resolve;
  let reject;
  const promise = new Promise((a, b) => {
    resolve = a;
    reject = b;
  });
  return { promise, resolve, reject };
}

/** A Standard Schema that runs `check`, which throws or gives the value. */
export function schema(check) {
  return {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value) => {
        const settle = (make) => {
          try {
            return { value: make() };
          } catch (error) {
            return { issues: [{ message: error.message, path: error.path }] };
          }
        };
        const made = settle(() => check(value));
        return made.value instanceof Promise
          ? made.value.then(
              (value) => ({ value }),
              (error) => ({ issues: [{ message: error.message, path: error.path }] }),
            )
          : made;
      },
    },
  };
}
