// The methods of a registry: looking at actors, ending them, lists, and opening its folder.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, it } from "node:test";

import { actor } from "../dist/index.js";
import { inFolder, inMemory, newFolder } from "./support/registry.mjs";

const note = actor({
  createState: (_c, input) => ({ text: input ?? "" }),
  actions: {
    read: (c) => c.state.text,
    write: (c, text) => {
      c.state.text = text;
    },
    append: (c, text) => (c.state.text += text),
    destroy: (c) => c.destroy(),
  },
});

describe("the registry", () => {
  it("refuses to manage what is no actor", async () => {
    const registry = inMemory({ note });

    assert.throws(() => registry.actor(5), {
      message: "an actor is named by its id or a handle, not 5",
    });
    await assert.rejects(registry.list({ limit: 0 }), /limit of list\(\) is 0/);
    await assert.rejects(registry.list({ cursor: "x" }), /cursor of list\(\) is "x"/);
    await assert.rejects(registry.list({ nam: "x" }), /did you mean "name"/);
    const missing = registry.client().note.get("missing");
    await assert.rejects(registry.actor(missing).info(), { code: "not_found" });
    assert.equal(await registry.actor(missing).destroy(), false);
    await registry.actor(missing).sleep();
  });

  it("never creates an actor by managing it", async () => {
    const registry = inMemory({ note });

    await assert.rejects(registry.actor(registry.client().note.getOrCreate("x")).info(), {
      code: "not_found",
    });
    assert.deepEqual((await registry.list()).actors, []);
  });

  it("lists actors, by name, by the beginning of their key and in parts", async () => {
    const registry = inMemory({ note, other: note });
    const client = registry.client();
    for (const key of [
      ["a", "1"],
      ["a", "2"],
      ["b", "1"],
    ])
      await client.note.create(key);
    await client.other.getOrCreate("z").read();

    const all = await registry.list();
    assert.deepEqual(
      all.actors.map(({ name, key, awake }) => [name, key, awake]),
      [
        ["note", ["a", "1"], false],
        ["note", ["a", "2"], false],
        ["note", ["b", "1"], false],
        ["other", ["z"], true],
      ],
    );
    assert.equal((await registry.list({ name: "other" })).actors.length, 1);
    assert.deepEqual(
      (await registry.list({ name: "note", keyPrefix: "a" })).actors.map(({ key }) => key[1]),
      ["1", "2"],
    );
    const part = await registry.list({ limit: 3 });
    const rest = await registry.list({ limit: 3, cursor: part.cursor });
    assert.deepEqual([part.actors.length, rest.actors.length, rest.cursor], [3, 1, undefined]);
  });

  it("says when an actor was created", async () => {
    const registry = inMemory({ note });
    const before = Date.now();
    const handle = await registry.client().note.create("when");
    const { createdAt, actorId, name, key } = await registry.actor(handle).info();

    assert.ok(createdAt >= before - 1 && createdAt <= Date.now() + 1);
    assert.deepEqual([actorId, name, key], [await handle.resolve(), "note", ["when"]]);
  });

  it("tells every caller when the storage cannot be opened, and tries again", async () => {
    const folder = await newFolder();
    const registry = inFolder(`${folder}/file/below`, { note });
    const { writeFile, rm } = await import("node:fs/promises");
    await writeFile(`${folder}/file`, "no folder");
    const handle = registry.client().note.getOrCreate("x");

    await Promise.all([
      assert.rejects(handle.read()),
      assert.rejects(handle.read()),
      assert.rejects(registry.list()),
    ]);
    await rm(`${folder}/file`);
    assert.equal(await handle.read(), "");
  });

  it("shares a folder with a second setup, which replaces the definitions from the next wake", async () => {
    const folder = await newFolder();
    const first = inFolder(folder, { note });
    await first.client().note.getOrCreate("k").write("kept");
    const loud = actor({
      ...note.config,
      actions: { ...note.config.actions, read: (c) => c.state.text.toUpperCase() },
    });
    const second = inFolder(`${folder}/../${folder.split("/").at(-1)}`, { note: loud });

    assert.equal(await second.client().note.get("k").read(), "kept");
    await second.actor(second.client().note.get("k")).sleep();
    assert.equal(await first.client().note.get("k").read(), "KEPT");
  });
});

describe("while the folder is held elsewhere", () => {
  it("a call ends with its signal, and a shutdown at its deadline", async () => {
    const folder = await newFolder();
    await inFolder(folder, { note }).client().note.getOrCreate("k").read();
    // A program of its own; it ends when its opening has given up.
    const program = `
      import { actor, setup } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url))};
      const note = actor({ actions: { read: () => {} } });
      const registry = setup({
        use: { note },
        storage: ${JSON.stringify(folder)},
        lockTimeout: 2_000,
        logging: { level: "silent" },
      });
      const client = registry.client();
      const began = performance.now();
      const signal = AbortSignal.timeout(50);
      const made = client.note.getOrCreate("made", { signal, createWithInput: "x" });
      const calls = [
        client.note.getOrCreate("k", { signal }).read(),
        made.read(),
        made.resolve(),
        client.note.create("new", { signal }),
      ];
      for (const { reason } of await Promise.allSettled(calls)) console.log(reason?.name);
      console.log(JSON.stringify(await registry.shutdown({ deadline: 50 })));
      console.log(performance.now() - began < 1_500);
      await client.note.getOrCreate("k").read().catch((error) => console.log(error.code));`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program]);
    let said = "";
    child.stdout.on("data", (data) => (said += data));
    const [code] = await once(child, "close");
    assert.deepEqual(
      [code, said.trim().split("\n")],
      [0, [...Array(4).fill("TimeoutError"), '{"drained":0,"notDrained":[]}', "true", "shut_down"]],
    );
  });
});
