// The database of an actor: raw, migrated, and through Drizzle.

import { eq, sql } from "drizzle-orm";
import { actor } from "rivetkit";
import { db } from "rivetkit/db";
import { db as drizzle, integer, sqliteTable, text } from "rivetkit/db/drizzle";
import { migrations } from "rivetkit/unstable/migrations";

const life = {
  state: { wakes: 0, failed: 0 },
  onWake: (c) => {
    c.state.wakes += 1;
  },
};
const lifeActions = { wakes: (c) => c.state.wakes, rest: (c) => c.sleep() };

/** What a failed query says; the host's own words are within its metadata. */
const told = (error) =>
  `${error.message} ${JSON.stringify(error.metadata ?? {})} ${error.cause ?? ""}`;

const ledger = actor({
  ...life,
  db: db({
    onMigrate: async (access) => {
      await access.execute(`CREATE TABLE IF NOT EXISTS entries (
        id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, amount REAL, data BLOB)`);
    },
  }),
  actions: {
    ...lifeActions,
    add: (c, name, amount) =>
      c.db.execute("INSERT INTO entries (name, amount) VALUES (?, ?) RETURNING id", name, amount),
    all: (c) => c.db.execute("SELECT name, amount FROM entries ORDER BY id"),
    count: async (c) => (await c.db.execute("SELECT count(*) AS n FROM entries"))[0].n,
    named: (c, name) => c.db.execute("SELECT amount FROM entries WHERE name = :name", { name }),
    script: (c) =>
      c.db.execute(
        "INSERT INTO entries (name) VALUES ('s1'); INSERT INTO entries (name) VALUES ('s2')",
      ),
    async types(c) {
      const [row] = await c.db.execute(
        "SELECT ? AS n, ? AS i, ? AS f, ? AS t, ? AS b, ? AS big",
        null,
        7,
        1.5,
        "ü",
        new Uint8Array([1, 2]),
        2 ** 40,
      );
      return row;
    },
    async fails(c, query) {
      return c.db.execute(query).then(() => "fine", told);
    },
    duplicate: (c, name) => c.db.execute("INSERT INTO entries (name) VALUES (?)", name),
    /** Adds two in one transaction, or none. */
    both(c, first, second) {
      return c.db.transaction(async (tx) => {
        await tx.execute("INSERT INTO entries (name) VALUES (?)", first);
        await tx.execute("INSERT INTO entries (name) VALUES (?)", second);
        return (await tx.execute("SELECT count(*) AS n FROM entries"))[0].n;
      });
    },
    async rolledBack(c, name) {
      try {
        await c.db.transaction(async (tx) => {
          await tx.execute("INSERT INTO entries (name) VALUES (?)", name);
          throw new Error("no");
        });
        return "committed";
      } catch (error) {
        return error.message;
      }
    },
    /** A counter that is read and written in transactions which run at the same time. */
    async race(c, count) {
      await c.db.execute("CREATE TABLE IF NOT EXISTS counter (n INTEGER)");
      await c.db.execute("DELETE FROM counter");
      await c.db.execute("INSERT INTO counter VALUES (0)");
      const one = () =>
        c.db.transaction(async (tx) => {
          const [{ n }] = await tx.execute("SELECT n FROM counter");
          await new Promise((resolve) => setTimeout(resolve, 1));
          await tx.execute("UPDATE counter SET n = ?", n + 1);
        });
      await Promise.all(Array.from({ length: count }, one));
      return (await c.db.execute("SELECT n FROM counter"))[0].n;
    },
    /** A hundred at a time: there is a limit to what may wait. */
    async stress(c, count) {
      for (let done = 0; done < count; done += 100) {
        await Promise.all(
          Array.from({ length: 100 }, (_, index) =>
            c.db.execute(
              "INSERT INTO entries (name, amount) VALUES (?, ?)",
              `s${done + index}`,
              done + index,
            ),
          ),
        );
      }
      const [row] = await c.db.execute("SELECT count(*) AS n, sum(amount) AS sum FROM entries");
      return row;
    },
    async large(c, size) {
      await c.db.execute("INSERT INTO entries (name, data) VALUES ('large', zeroblob(?))", size);
      return (await c.db.execute("SELECT length(data) AS n FROM entries WHERE name = 'large'"))[0]
        .n;
    },
    pragma: async (c, version) => {
      if (version !== undefined) await c.db.execute(`PRAGMA user_version = ${version}`);
      return (await c.db.execute("PRAGMA user_version"))[0].user_version;
    },
    /** State and rows that are committed as one. */
    together: (c, name) =>
      c.db
        .transaction(
          async (tx) => {
            c.state.failed += 1;
            await tx.execute("INSERT INTO entries (name) VALUES (?)", name);
            if (name === "bad") throw new Error("not both");
          },
          { experimental: { includeState: true } },
        )
        .then(
          () => "committed",
          (error) => error.message,
        ),
    failed: (c) => c.state.failed,
  },
});

/** An actor that does not ask for a database has one. */
const undeclared = actor({
  actions: { one: async (c) => (await c.db.execute("SELECT 1 AS one"))[0].one },
});

const migrated = actor({
  ...life,
  db: db({
    onMigrate: migrations({
      migrations: [
        { version: 1, sql: "CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (1)" },
        {
          version: 2,
          up: (access) => access.execute("ALTER TABLE a ADD COLUMN y INTEGER DEFAULT 2"),
        },
      ],
    }),
  }),
  actions: {
    ...lifeActions,
    rows: (c) => c.db.execute("SELECT * FROM a"),
    version: (c) => c.db.execute("SELECT * FROM rivetkit_schema_version"),
  },
});

const unmigrated = actor({
  db: db({
    onMigrate: async (access) => {
      await access.execute("CREATE TABLE t (x)");
      throw new Error("the migration fails");
    },
  }),
  actions: { get: () => 1 },
});

const people = sqliteTable("people", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  name: text("name").notNull().unique(),
  age: integer("age"),
});

const register = actor({
  ...life,
  db: drizzle({
    schema: { people },
    migrations: {
      journal: {
        entries: [
          { idx: 0, when: 1, tag: "0000_start", breakpoints: true },
          { idx: 1, when: 2, tag: "0001_age", breakpoints: true },
        ],
      },
      migrations: {
        m0000:
          "CREATE TABLE people (id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name TEXT NOT NULL);\n--> statement-breakpoint\nCREATE UNIQUE INDEX people_name ON people (name);",
        m0001: "ALTER TABLE people ADD age INTEGER;",
      },
    },
  }),
  actions: {
    ...lifeActions,
    add: (c, name, age) => c.db.insert(people).values({ name, age }).returning(),
    all: (c) => c.db.select().from(people).orderBy(people.id),
    find: (c, name) => c.db.query.people.findFirst({ where: eq(people.name, name) }),
    update: (c, name, age) => c.db.update(people).set({ age }).where(eq(people.name, name)),
    remove: (c, name) => c.db.delete(people).where(eq(people.name, name)),
    raw: (c) => c.db.execute("SELECT count(*) AS n FROM people"),
    sql: (c) => c.db.get(sql`SELECT max(age) AS oldest FROM people`),
    both: (c, first, second) =>
      c.db
        .transaction(async (tx) => {
          await tx.insert(people).values({ name: first });
          await tx.insert(people).values({ name: second });
        })
        .then(
          () => "committed",
          () => "rolled back",
        ),
    async race(c, count) {
      await c.db.insert(people).values({ name: "counter", age: 0 });
      await Promise.all(
        Array.from({ length: count }, () =>
          c.db.transaction(async (tx) => {
            const [{ age }] = await tx.select().from(people).where(eq(people.name, "counter"));
            await tx
              .update(people)
              .set({ age: age + 1 })
              .where(eq(people.name, "counter"));
          }),
        ),
      );
      const [{ age }] = await c.db.select().from(people).where(eq(people.name, "counter"));
      return age;
    },
  },
});

export const actors = { ledger, undeclared, migrated, unmigrated, register };
