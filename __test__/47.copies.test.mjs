// Copies: of an actor as a file, of a file as an actor, and of all actors.

import assert from "node:assert/strict";
import {
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";

import { db } from "../dist/db/index.js";
import { actor, queue } from "../dist/index.js";
import { deferred, inFolder, inMemory, newFolder, until } from "./support/registry.mjs";

const fired = [];

/** Keeps what a schedule runs in the middle. */
const middle = deferred();

/** An actor that has something of each kind. */
const holder = actor({
  createState: (_c, input) => ({ n: input ?? 0 }),
  db: db({
    onMigrate: (db) => db.execute("CREATE TABLE IF NOT EXISTS entries (n INTEGER)"),
  }),
  queues: { jobs: queue() },
  actions: {
    async fill(c, n) {
      // One turn: together in every copy.
      c.state.n = n;
      c.sql.exec("INSERT INTO entries VALUES (?)", n);
      await c.kv.put("n", String(n));
    },
    async enqueue(c, body) {
      await c.queue.send("jobs", body);
    },
    async take(c) {
      return (await c.queue.tryNext())?.body;
    },
    later: (c, at) => c.schedule.at(at, "fire", "later"),
    planned: async (c) => (await c.schedule.list()).map(({ runAt }) => runAt),
    begin: (c) => c.schedule.after(0, "hang"),
    hang: (c) => {
      fired.push([c.key[0], "hang"]);
      return middle.promise;
    },
    dead: async (c) =>
      (await c.schedule.dead.list()).map(({ action, error }) => [action, error.code]),
    fire: (c, what) => void fired.push([c.key[0], what]),
    async held(c) {
      const rows = c.sql.exec("SELECT n FROM entries ORDER BY n").toArray();
      return { n: c.state.n, kv: await c.kv.get("n"), rows: rows.map(({ n }) => n) };
    },
  },
});

/** An actor that stays in the shared store, and saves when it likes. */
const small = actor({
  state: { n: 0 },
  actions: { add: (c, by) => (c.state.n += by), read: (c) => c.state.n },
  options: { durability: "interval", stateSaveInterval: 600_000 },
});

const use = { holder, small };
const held = (n) => ({ n, kv: String(n), rows: [n] });

async function copyOf(registry, key, n) {
  const handle = registry.client().holder.getOrCreate(key);
  await handle.fill(n);
  const path = join(await newFolder(), "copy.db");
  await registry.actor(handle).export(path);
  return path;
}

describe("registry.actor().export()", () => {
  it("refuses what is no path, no option and no actor", async () => {
    const registry = inMemory(use);
    const folder = await newFolder();
    const path = join(folder, "copy.db");
    const managed = registry.actor(await registry.client().small.create("a"));

    await assert.rejects(managed.export(), /path of export\(\) is undefined, not the path/);
    await assert.rejects(managed.export(""), /path of export\(\) is ""/);
    await assert.rejects(managed.export(path, { replac: true }), /did you mean "replace"/);
    await assert.rejects(managed.export(path, { replace: 1 }), /replace of export\(\) is 1/);
    await assert.rejects(registry.actor(registry.client().small.get("b")).export(path), {
      group: "actor",
      code: "not_found",
    });
    assert.deepEqual(readdirSync(folder), []);
  });

  it("names the path that it cannot write", async () => {
    const folder = await newFolder();
    const registry = inFolder(join(folder, "data"), use);
    const managed = registry.actor(await registry.client().small.create("a"));
    const refused = async (path, code) => {
      const error = await managed.export(path).then(assert.fail, (error) => error);
      assert.deepEqual([error.group, error.code, error.metadata.path], ["storage", code, path]);
    };

    await refused(join(folder, "missing", "copy.db"), "io");
    await refused(folder, "exists");
    await refused(join(folder, "data", "actors.db"), "reserved");
    writeFileSync(join(folder, "mine"), "mine");
    await refused(join(folder, "mine"), "exists");
    assert.equal(readFileSync(join(folder, "mine"), "utf8"), "mine");
    assert.deepEqual(readdirSync(folder).sort(), ["data", "mine"]);
  });

  it("replaces a file only where it is asked to", async () => {
    const registry = inMemory(use);
    const path = await copyOf(registry, "a", 1);
    const handle = registry.client().holder.get("a");
    await handle.fill(2);

    await assert.rejects(registry.actor(handle).export(path), { code: "exists" });
    await registry.actor(handle).export(path, { replace: true });

    const fork = await registry.import(path, { name: "holder", key: "b" });
    assert.equal((await fork.held()).n, 2);
  });

  it("has what a live actor has not saved yet, and does not put it to sleep", async () => {
    const registry = inFolder(await newFolder(), use);
    const handle = registry.client().small.getOrCreate("a");
    await handle.add(5);
    const path = join(await newFolder(), "copy.db");

    await registry.actor(handle).export(path);

    assert.equal((await registry.actor(handle).info()).awake, true);
    const fork = await registry.import(path, { name: "small", key: "b" });
    assert.equal(await fork.read(), 5);
  });

  it("copies an actor that sleeps without waking it", async () => {
    const registry = inFolder(await newFolder(), use);
    const handle = registry.client().holder.getOrCreate("a");
    await handle.fill(3);
    await registry.actor(handle).sleep();
    const path = join(await newFolder(), "copy.db");

    await registry.actor(handle).export(path);

    assert.equal((await registry.actor(handle).info()).awake, false);
    assert.deepEqual(readdirSync(join(path, "..")), ["copy.db"]);
    assert.deepEqual(
      await (await registry.import(path, { name: "holder", key: "b" })).held(),
      held(3),
    );
  });

  it("works from an action of the actor itself", async () => {
    const path = join(await newFolder(), "copy.db");
    let registry;
    const self = actor({
      state: { n: 0 },
      actions: {
        async save(c) {
          c.state.n = 7;
          await registry.actor(c.actorId).export(path);
        },
        read: (c) => c.state.n,
      },
    });
    registry = inFolder(await newFolder(), { self });

    await registry.client().self.getOrCreate("a").save();

    assert.equal(await (await registry.import(path, { name: "self", key: "b" })).read(), 7);
  });
});

describe("registry.import()", () => {
  it("refuses what is no path and no name, a name without a definition, and a key that exists", async () => {
    const registry = inMemory(use);
    const path = await copyOf(registry, "a", 1);

    await assert.rejects(registry.import(5, { name: "holder" }), /path of import\(\) is 5/);
    await assert.rejects(registry.import(path), /options of import\(\) takes an object/);
    await assert.rejects(registry.import(path, {}), /name of import\(\) is undefined/);
    await assert.rejects(registry.import(path, { name: "holder", id: "x" }), /unknown key "id"/);
    await assert.rejects(registry.import(path, { name: "holder", key: 5 }), {
      code: "invalid_argument",
    });
    await assert.rejects(registry.import(path, { name: "nobody", key: "b" }), {
      group: "actor",
      code: "not_registered",
    });
    await assert.rejects(registry.import(path, { name: "holder", key: "a" }), {
      group: "actor",
      code: "already_exists",
    });
    assert.equal((await registry.list()).actors.length, 1);
  });

  it("refuses files that are not copies of actors, by their path", async () => {
    const folder = await newFolder();
    const registry = inFolder(folder, use);
    const copy = await copyOf(registry, "a", 1);
    const refused = async (path, code) => {
      const imported = registry.import(path, { name: "holder", key: "b" });
      const error = await imported.then(assert.fail, (error) => error);
      assert.deepEqual([error.group, error.code, error.metadata.path], ["storage", code, path]);
    };
    const file = (name, content) => {
      const path = join(copy, "..", name);
      writeFileSync(path, content);
      return path;
    };
    const bytes = readFileSync(copy);

    await refused(join(copy, "..", "missing.db"), "io");
    await refused(file("text.db", "no database"), "not_an_actor");
    await refused(file("empty.db", ""), "not_an_actor");
    await refused(file("half.db", bytes.subarray(0, bytes.length / 2)), "corrupt");
    await refused(join(folder, "actors.db"), "reserved");
    assert.equal((await registry.list()).actors.length, 1);
  });

  it("makes an actor that goes its own way from then on", async () => {
    const registry = inFolder(await newFolder(), use);
    const path = await copyOf(registry, "a", 1);
    const original = registry.client().holder.get("a");

    const fork = await registry.import(path, { name: "holder", key: ["b", "c"] });
    await fork.fill(9);

    assert.notEqual(await fork.resolve(), await original.resolve());
    assert.deepEqual((await registry.actor(fork).info()).key, ["b", "c"]);
    assert.deepEqual(await fork.held(), { n: 9, kv: "9", rows: [1, 9] });
    assert.deepEqual(await original.held(), held(1));
  });

  it("goes from a folder into memory and into another folder, and stays after a restart", async () => {
    const from = inFolder(await newFolder(), use);
    const path = await copyOf(from, "a", 4);
    await from.shutdown();

    const memory = await inMemory(use).import(path, { name: "holder", key: "a" });
    assert.deepEqual(await memory.held(), held(4));
    const folder = await newFolder();
    const first = inFolder(folder, use);
    await first.import(path, { name: "holder", key: "a" });
    await first.shutdown();
    assert.deepEqual(await inFolder(folder, use).client().holder.get("a").held(), held(4));
  });

  it("keeps messages, and the times of schedules", async () => {
    const registry = inFolder(await newFolder(), use);
    const original = registry.client().holder.getOrCreate("a");
    const at = Date.now() + 1_000_000;
    await original.enqueue({ job: 1 });
    await original.later(at);
    const path = join(await newFolder(), "copy.db");
    await registry.actor(original).export(path);

    const fork = await registry.import(path, { name: "holder", key: "b" });

    assert.deepEqual(await fork.planned(), [at]);
    assert.deepEqual(await fork.take(), { job: 1 });
    assert.equal(await fork.take(), undefined);
    assert.deepEqual(await original.take(), { job: 1 });
  });

  it("finds what was under way as after a crash", async () => {
    const registry = inFolder(await newFolder(), use);
    const original = registry.client().holder.getOrCreate("hangs");
    await original.begin();
    await until(() => fired.some(([key]) => key === "hangs"), "the action has begun");
    const path = join(await newFolder(), "copy.db");
    await registry.actor(original).export(path);

    const fork = await registry.import(path, { name: "holder", key: "fork that hangs" });

    assert.deepEqual(await fork.dead(), [["hang", "interrupted"]]);
    middle.resolve();
    assert.deepEqual(await original.dead(), []);
    assert.ok(!fired.some(([key]) => key === "fork that hangs"));
  });

  it("runs what is due in the copy with nobody calling", async () => {
    const registry = inFolder(await newFolder(), use);
    const path = join(await newFolder(), "copy.db");
    // On a busy machine it may be due before it is copied: then another one, with more time.
    for (let ms = 200; !existsSync(path); ms *= 2) {
      const original = registry.client().holder.getOrCreate(`due in ${ms}`);
      await original.later(Date.now() + ms);
      await registry.actor(original).export(`${path}.${ms}`);
      if (fired.some(([key]) => key === `due in ${ms}`)) continue;
      renameSync(`${path}.${ms}`, path);
      await until(() => fired.some(([key]) => key === `due in ${ms}`), "the original fired");
    }

    await registry.import(path, { name: "holder", key: "fork" });

    await until(() => fired.some(([key]) => key === "fork"), "the fork fires, too late and yet");
    assert.deepEqual(
      fired.filter(([key]) => key === "fork"),
      [["fork", "later"]],
    );
  });
});

describe("registry.backup()", () => {
  it("refuses what is no path, a folder that has something, and the storage's own", async () => {
    const folder = await newFolder();
    const registry = inFolder(folder, use);
    await registry.client().small.create("a");

    await assert.rejects(registry.backup(), /path of backup\(\) is undefined/);
    const full = await newFolder();
    writeFileSync(join(full, "mine"), "x");
    await assert.rejects(registry.backup(full), { group: "storage", code: "not_empty" });
    await assert.rejects(registry.backup(folder), { group: "storage", code: "reserved" });
    assert.deepEqual(readdirSync(full), ["mine"]);
  });

  it("makes a folder that opens, while actors go on", async () => {
    const registry = inFolder(await newFolder(), use);
    const client = registry.client();
    const keys = Array.from({ length: 20 }, (_, n) => String(n));
    await Promise.all(keys.map((key) => client.holder.getOrCreate(key).fill(1)));
    await Promise.all(keys.map((key) => client.small.getOrCreate(key).add(1)));
    let going = true;
    const busy = keys.map(async (key) => {
      for (let n = 2; going; n++) {
        await client.holder.get(key).fill(n);
        if (n % 5 === 0) await client.small.getOrCreate(`${key}-${n}`).add(1);
      }
    });
    const copy = join(await newFolder(), "below", "copy");

    const report = await registry.backup(copy);
    going = false;
    await Promise.all(busy);

    assert.equal(report.files, 20);
    assert.ok(report.actors >= 40, `${report.actors} actors`);
    assert.ok(report.bytes >= statSync(join(copy, "actors.db")).size);
    assert.ok(!existsSync(join(copy, "actors.db.tmp")));
    const restored = inFolder(copy, use).client();
    for (const key of keys) {
      const { n, kv, rows } = await restored.holder.get(key).held();
      assert.ok(n >= 1);
      assert.deepEqual([String(n), rows.length], [kv, n], `actor ${key} is of one moment`);
    }
  });

  it("writes what is in memory into a folder", async () => {
    const registry = inMemory(use);
    await registry.client().holder.getOrCreate("a").fill(6);
    const copy = join(await newFolder(), "copy");

    await registry.backup(copy);

    assert.deepEqual(await inFolder(copy, use).client().holder.get("a").held(), held(6));
  });

  it("refuses after the shutdown, as the others do", async () => {
    const registry = inMemory(use);
    const path = await copyOf(registry, "a", 1);
    const managed = registry.actor(registry.client().holder.get("a"));
    await registry.shutdown();

    for (const late of [
      registry.backup(join(path, "..", "late")),
      registry.import(path, { name: "holder", key: "b" }),
      managed.export(join(path, "..", "late.db")),
    ]) {
      await assert.rejects(late, { group: "registry", code: "shut_down" });
    }
  });
});
