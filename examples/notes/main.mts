// Notes in a database of the actor's own, behind Drizzle.
//
//     npm run example -- notes [FOLDER]

import { tmpdir } from "node:os";
import path from "node:path";
import { desc, eq } from "drizzle-orm";
import { actor, setup } from "greenroom";
import { db, integer, sqliteTable, text } from "greenroom/db/drizzle";

const notes = sqliteTable("notes", {
  id: integer("id").primaryKey(),
  text: text("text").notNull(),
  done: integer("done", { mode: "boolean" }).notNull().default(false),
});

const notebook = actor({
  state: { written: 0 },
  db: db({ schema: { notes } }),
  migrations: [
    { version: 1, sql: "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)" },
    { version: 2, sql: "ALTER TABLE notes ADD COLUMN done INTEGER NOT NULL DEFAULT 0" },
  ],
  actions: {
    write: async (c, ...texts: string[]) => {
      const made = await c.db.transaction((tx) =>
        tx
          .insert(notes)
          .values(texts.map((text) => ({ text })))
          .returning(),
      );
      c.state.written += made.length;
      return made.map(({ id }) => id);
    },
    finish: async (c, id: number) => {
      await c.db.update(notes).set({ done: true }).where(eq(notes.id, id));
    },
    latest: (c, count: number) => c.db.select().from(notes).orderBy(desc(notes.id)).limit(count),
    // Without a promise, within the turn.
    open: (c) =>
      c.sql.exec<{ n: number }>("SELECT count(*) AS n FROM notes WHERE NOT done").one().n,
    written: (c) => c.state.written,
  },
});

const storage = process.argv[2] ?? path.join(tmpdir(), "greenroom-example-notes");
const registry = setup({ use: { notebook }, storage });
const book = registry.client().notebook.getOrCreate("mine");

const [first] = await book.write("buy milk", "call Ada");
if (first !== undefined) await book.finish(first);

for (const { id, text, done } of await book.latest(2)) {
  console.log(`${id} ${done ? "x" : " "} ${text}`);
}
console.log(`${await book.open()} of ${await book.written()} are open (kept in ${storage})`);

await registry.shutdown();
