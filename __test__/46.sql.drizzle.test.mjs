// `greenroom/db/drizzle`: Drizzle above an actor's own file.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eq } from "drizzle-orm";

import { db, defineConfig, integer, sqliteTable, text } from "../dist/db/drizzle/index.js";
import { actor } from "../dist/index.js";
import { inFolder, inMemory, newFolder } from "./support/registry.mjs";

const users = sqliteTable("users", {
  id: integer("id").primaryKey(),
  name: text("name").notNull(),
});
const posts = sqliteTable("posts", {
  id: integer("id").primaryKey(),
  author: integer("author").notNull(),
  name: text("name").notNull(),
});
const schema = { users, posts };

const first = {
  journal: { entries: [{ idx: 0, when: 1, tag: "0000_first", breakpoints: true }] },
  migrations: {
    m0000:
      "CREATE TABLE `users` (`id` integer PRIMARY KEY, `name` text NOT NULL);\n" +
      "--> statement-breakpoint\n" +
      "CREATE TABLE `posts` (`id` integer PRIMARY KEY, `author` integer NOT NULL, `name` text NOT NULL);",
  },
};
const second = {
  journal: { entries: [...first.journal.entries, { idx: 1, when: 2, tag: "0001_second" }] },
  migrations: { ...first.migrations, m0001: "INSERT INTO users (name) VALUES ('root')" },
};

const kind = (migrations) =>
  actor({
    db: db({ schema, migrations }),
    actions: {
      add: (c, name) => c.db.insert(users).values({ name }).returning(),
      names: async (c) => (await c.db.select().from(users)).map(({ name }) => name),
      get: (c, id) => c.db.select().from(users).where(eq(users.id, id)).get(),
      post: (c, author, name) => c.db.insert(posts).values({ author, name }).run(),
      joined: (c) => c.db.select().from(posts).innerJoin(users, eq(posts.author, users.id)),
      query: (c) => c.db.query.users.findMany({ columns: { name: true } }),
      raw: (c) => c.db.execute("SELECT count(*) AS n FROM users"),
      fail: (c) =>
        c.db.transaction(async (tx) => {
          await tx.insert(users).values({ name: "gone" });
          throw new Error("on purpose");
        }),
      both: (c) =>
        c.db.transaction(async (tx) => {
          await tx.insert(users).values({ name: "a" });
          await tx.insert(users).values({ name: "b" });
          return tx.select().from(users);
        }),
      sleep: (c) => c.sleep(),
    },
  });

describe("db() of greenroom/db/drizzle", () => {
  it("refuses options that it does not know, and migrations without their SQL", () => {
    assert.throws(() => db({ shcema: {} }), /did you mean "schema"/);
    assert.throws(() => db({ migrations: { journal: {}, migrations: {} } }), /not a journal/);
    const { journal } = first;
    assert.throws(() => db({ migrations: { journal, migrations: {} } }), /no SQL for "0000_first"/);
  });

  it("inserts, selects, joins and queries", async () => {
    const handle = inMemory({ store: kind(first) })
      .client()
      .store.getOrCreate("a");
    assert.deepEqual(await handle.add("ann"), [{ id: 1, name: "ann" }]);
    assert.deepEqual(await handle.get(1), { id: 1, name: "ann" });
    assert.equal(await handle.get(2), undefined);
    await handle.post(1, "hello");
    assert.deepEqual(await handle.joined(), [
      { posts: { id: 1, author: 1, name: "hello" }, users: { id: 1, name: "ann" } },
    ]);
    assert.deepEqual(await handle.query(), [{ name: "ann" }]);
    assert.deepEqual(await handle.raw(), [{ n: 1 }]);
  });

  it("keeps all of a transaction or nothing", async () => {
    const handle = inMemory({ store: kind(first) })
      .client()
      .store.getOrCreate("a");
    await assert.rejects(handle.fail());
    assert.deepEqual(await handle.names(), []);
    assert.equal((await handle.both()).length, 2);
    assert.deepEqual(await handle.names(), ["a", "b"]);
  });

  it("applies each migration once", async () => {
    const folder = await newFolder();
    const before = inFolder(folder, { store: kind(first) });
    assert.deepEqual(await before.client().store.getOrCreate("a").names(), []);
    await before.shutdown();
    const after = inFolder(folder, { store: kind(second) });
    const handle = after.client().store.getOrCreate("a");
    assert.deepEqual(await handle.names(), ["root"]);
    await handle.sleep();
    assert.deepEqual(await handle.names(), ["root"]);
  });

  it("has a configuration for drizzle-kit", () => {
    assert.deepEqual(defineConfig({ schema: "./schema.ts", out: "./drizzle" }), {
      dialect: "sqlite",
      driver: "durable-sqlite",
      schema: "./schema.ts",
      out: "./drizzle",
    });
  });
});
