// What the machine can do at all, for the column beside the figures.

import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { installed, isInstalled } from "../scripts/lib/installed.mjs";

/** A plain async function that reads a field, awaited. */
export function plainCall() {
  const state = { count: 0 };
  const read = async (of) => of.count;
  return {
    what: "await of a plain async function",
    operations: 200_000,
    body: async (operations) => {
      for (let i = 0; i < operations; i++) await read(state);
    },
  };
}

/** Pages of 4 KiB appended to a file, each followed by fdatasync: what one durable commit costs at least. */
export function plainSync(folder) {
  const page = Buffer.alloc(4096, 1);
  return {
    what: "4 KiB and fdatasync",
    operations: 400,
    body: (operations) => {
      const descriptor = openSync(path.join(folder, "fdatasync"), "w");
      for (let i = 0; i < operations; i++) {
        writeSync(descriptor, page);
        fdatasyncSync(descriptor);
      }
      closeSync(descriptor);
    },
  };
}

const BETTER_SQLITE = "12.11.1";

/**
 * better-sqlite3, the usual synchronous SQLite of Node.js: a database in `folder` with WAL and
 * `synchronous = FULL`, and `rows` rows in a table `t`. Installed at the first use, which compiles it.
 */
export async function betterSqlite(folder, rows) {
  const packages = { "better-sqlite3": BETTER_SQLITE };
  // What was compiled for one version of Node.js does not load in another.
  const name = `better-sqlite3-${process.versions.modules}`;
  if (!isInstalled(name, packages)) {
    process.stderr.write("installing better-sqlite3, which may take some minutes\n");
  }
  const place = await installed(name, packages, { compiles: true });
  const Database = createRequire(path.join(place, "package.json"))("better-sqlite3");
  const database = new Database(path.join(folder, "better.db"));
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = FULL");
  database.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, b TEXT)");
  const insert = database.prepare("INSERT INTO t (b) VALUES (?)");
  const select = database.prepare("SELECT b FROM t WHERE id = ?");
  database.transaction(() => {
    for (let i = 0; i < rows; i++) insert.run(`row ${i}`);
  })();
  const each = (operations, call) => {
    for (let i = 0; i < operations; i++) call(i);
  };
  const what = "better-sqlite3";
  return {
    insertEach: {
      what: `${what}, WAL and FULL`,
      operations: 400,
      body: (operations) => each(operations, () => insert.run("a row of some length")),
    },
    insertTogether: {
      what: `${what}, in transactions of 5,000`,
      operations: 100_000,
      body: (operations) => {
        for (let left = operations; left > 0; left -= 5_000) {
          database.transaction(() =>
            each(Math.min(left, 5_000), () => insert.run("a row of some length")),
          )();
        }
      },
    },
    select: {
      what,
      operations: 100_000,
      body: (operations) => each(operations, (i) => select.get(1 + (i % rows))),
    },
    close: () => database.close(),
  };
}
