// c.kv: an actor's keys and values.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, it } from "node:test";

import { actor } from "../dist/index.js";
import { inFolder, inMemory, newFolder } from "./support/registry.mjs";

/** `run(body)` calls `body(c)` as an action of one actor in memory. */
function inside(config = {}, registry = undefined) {
  let next;
  const it = actor({
    state: { n: 0 },
    actions: { run: (c) => next(c) },
    ...config,
  });
  const opened = registry?.({ it }) ?? inMemory({ it });
  const handle = opened.client().it.getOrCreate("k");
  const run = (body) => {
    next = body;
    return handle.run();
  };
  return { run, registry: opened, handle };
}

const bytes = (...numbers) => Uint8Array.from(numbers);

describe("keys and values", () => {
  it("are text by default, and bytes when asked for", async () => {
    const { run } = inside();
    const seen = await run(async (c) => {
      await c.kv.put("name", "Ünï");
      await c.kv.put("raw", bytes(0, 255, 1));
      await c.kv.put("buffer", bytes(1, 2).buffer);
      return [
        await c.kv.get("name"),
        await c.kv.get("name", { type: "binary" }),
        await c.kv.get("raw", { type: "binary" }),
        await c.kv.get("raw", { type: "arrayBuffer" }),
        await c.kv.get("buffer", { type: "binary" }),
        await c.kv.get("missing"),
        await c.kv.get("", { type: "text" }),
      ];
    });

    assert.deepEqual(seen, [
      "Ünï",
      new TextEncoder().encode("Ünï"),
      bytes(0, 255, 1),
      bytes(0, 255, 1).buffer,
      bytes(1, 2),
      null,
      null,
    ]);
  });

  it("are one key space, whichever method they go through", async () => {
    const { run } = inside();
    const seen = await run(async (c) => {
      await c.kv.batchPut([[new TextEncoder().encode("a"), bytes(49)]]);
      await c.kv.put(bytes(98), "2");
      const both = [await c.kv.get("a"), await c.kv.batchGet([bytes(98), bytes(99)])];
      await c.kv.batchDelete([bytes(97)]);
      return [...both, await c.kv.list("")];
    });

    assert.deepEqual(seen, ["1", [bytes(50), null], [["b", "2"]]]);
  });

  it("are listed by prefix and by range, in both directions and in part", async () => {
    const { run } = inside();
    const seen = await run(async (c) => {
      for (const key of ["a:1", "a:2", "a:3", "b:1"]) await c.kv.put(key, key.toUpperCase());
      await c.kv.put(bytes(0xff, 0xff), "last");
      await c.kv.put(bytes(0xff, 0xff, 0), "after it");
      return {
        prefix: await c.kv.listPrefix("a:"),
        reverse: await c.kv.list("a:", { reverse: true, limit: 2 }),
        none: await c.kv.list("a:", { limit: 0 }),
        range: await c.kv.listRange("a:2", "b:1"),
        inverted: await c.kv.listRange("b", "a"),
        last: await c.kv.listPrefix(bytes(0xff, 0xff), { keyType: "binary", type: "binary" }),
        all: (await c.kv.list("")).length,
      };
    });

    const utf8 = (text) => new TextEncoder().encode(text);
    assert.deepEqual(seen, {
      prefix: [
        ["a:1", "A:1"],
        ["a:2", "A:2"],
        ["a:3", "A:3"],
      ],
      reverse: [
        ["a:3", "A:3"],
        ["a:2", "A:2"],
      ],
      none: [],
      range: [
        ["a:2", "A:2"],
        ["a:3", "A:3"],
      ],
      inverted: [],
      last: [
        [bytes(0xff, 0xff), utf8("last")],
        [bytes(0xff, 0xff, 0), utf8("after it")],
      ],
      all: 6,
    });
  });

  it("are deleted one by one and by range", async () => {
    const { run } = inside();
    const seen = await run(async (c) => {
      await Promise.all(["a", "b", "c", "d"].map((key) => c.kv.put(key, key)));
      await c.kv.delete("a");
      await c.kv.delete("nothing");
      await c.kv.deleteRange("b", "d");
      await c.kv.deleteRange("z", "a");
      return c.kv.list("");
    });
    assert.deepEqual(seen, [["d", "d"]]);
  });

  it("are seen by a read that does not wait for the write", async () => {
    const { run } = inside();
    const seen = await run((c) => {
      void c.kv.put("a", "1");
      const first = c.kv.get("a");
      void c.kv.put("a", "2");
      void c.kv.put("b", "3");
      void c.kv.delete("b");
      return Promise.all([first.then((value) => typeof value), c.kv.get("a"), c.kv.get("b")]);
    });
    assert.deepEqual(seen, ["string", "2", null]);
  });

  it("keep what was handed in, whatever becomes of it afterwards", async () => {
    const { run } = inside();
    const seen = await run(async (c) => {
      const value = bytes(1, 2, 3);
      const put = c.kv.put("a", value);
      value.fill(9);
      await put;
      const one = await c.kv.get("a", { type: "binary" });
      one.fill(7);
      return [await c.kv.get("a", { type: "binary" }), one.buffer.byteLength];
    });
    assert.deepEqual(seen, [bytes(1, 2, 3), 3]);
  });
});

describe("what is wrong with a call", () => {
  it("is a rejection that names it, and writes nothing", async () => {
    const { run } = inside();
    const long = "k".repeat(2_049);
    const refused = [
      [(kv) => kv.put(5, "x"), "actor.invalid_argument", /key is 5, not text or bytes/],
      [(kv) => kv.put("a", 5), "actor.invalid_argument", /value is 5, not text or bytes/],
      [(kv) => kv.put("a", "b", { typ: "text" }), "actor.invalid_argument", /unknown key "typ"/],
      [(kv) => kv.get("a", { type: "json" }), "actor.invalid_argument", /type .* is "json"/],
      [(kv) => kv.list("a", { limit: -1 }), "actor.invalid_argument", /limit .* is -1/],
      [(kv) => kv.list("a", { limit: 1.5 }), "actor.invalid_argument", /limit .* is 1.5/],
      [(kv) => kv.list("a", { keyType: "x" }), "actor.invalid_argument", /keyType .* is "x"/],
      [(kv) => kv.batchGet("a"), "actor.invalid_argument", /keys is "a", not a list/],
      [(kv) => kv.batchPut([["a"]]), "actor.invalid_argument", /entry 0 is an array/],
      [(kv) => kv.batchPut([["a", "b"]]), "actor.invalid_argument", /key 0 is "a"/],
      [(kv) => kv.put(long, "x"), "kv.key_too_large", /2049 bytes/],
      [(kv) => kv.put("a", "v".repeat(131_073)), "kv.value_too_large", /131073 bytes/],
      [
        (kv) =>
          kv.batchPut([
            [bytes(1), bytes(1)],
            [new Uint8Array(2_049), bytes(1)],
          ]),
        "kv.key_too_large",
        /2049/,
      ],
    ];
    for (const [call, code, message] of refused) {
      const error = await run(async (c) => {
        const promise = call(c.kv);
        assert.ok(promise instanceof Promise);
        return promise.then(
          () => undefined,
          ({ group, code, message, public: shown }) => ({ group, code, message, shown }),
        );
      });
      assert.match(error.message, message);
      assert.equal(`${error.group}.${error.code}`, code);
      if (code.startsWith("kv.")) assert.equal(error.shown, true);
    }
    assert.deepEqual(await run((c) => c.kv.list("")), []);
    const limits = await run(async (c) => {
      await c.kv.put("k".repeat(2_048), "v".repeat(131_072));
      return (await c.kv.list("")).map(([key, value]) => [key.length, value.length]);
    });
    assert.deepEqual(limits, [[2_048, 131_072]]);
  });

  it("is that the actor has stopped, once it has", async () => {
    const { run, registry, handle } = inside();
    let kept;
    await run((c) => {
      kept = c;
    });
    await registry.actor(handle).sleep();
    for (const call of [kept.kv.get("a"), kept.kv.put("a", "1"), kept.kv.list("")]) {
      await assert.rejects(call, { group: "actor", code: "stopping" });
    }
    assert.deepEqual(await run((c) => c.kv.list("")), []);
  });
});

describe("keys live as long as their actor", () => {
  it("over sleep, not over destroy", async () => {
    const { run, registry, handle } = inside({}, (use) => inMemory(use));
    await run((c) => c.kv.put("a", "1"));
    await registry.actor(handle).sleep();
    assert.equal(await run((c) => c.kv.get("a")), "1");
    await registry.actor(handle).destroy();
    assert.equal(await run((c) => c.kv.get("a")), null);
  });

  it("from onCreate on, where they are stored with the first state", async () => {
    const config = {
      onCreate: async (c) => {
        await c.kv.put("born", "yes");
        assert.equal(await c.kv.get("born"), "yes");
        assert.deepEqual(await c.kv.list(""), [["born", "yes"]]);
      },
    };
    const { run } = inside(config);
    assert.equal(await run((c) => c.kv.get("born")), "yes");
  });

  it("in every hook, onSleep too", async () => {
    const config = {
      onWake: (c) => c.kv.put("woke", "1"),
      onSleep: (c) => c.kv.put("slept", "1"),
    };
    const { run, registry, handle } = inside(config);
    await run(() => {});
    await registry.actor(handle).sleep();
    assert.deepEqual(await run((c) => c.kv.list("")), [
      ["slept", "1"],
      ["woke", "1"],
    ]);
  });

  for (const durability of ["reply", "interval"]) {
    it(`also through kill -9 when a write was awaited, with its state (${durability})`, async () => {
      const folder = await newFolder();
      const source = `
        import { actor, setup } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)};
        const it = actor({
          state: { n: 0 },
          options: { durability: ${JSON.stringify(durability)}, stateSaveInterval: 600_000 },
          actions: {
            write: async (c) => {
              c.state.n = 1;
              await c.kv.put("a", "1");
              process.kill(process.pid, "SIGKILL");
            },
          },
        });
        await setup({ use: { it }, storage: ${JSON.stringify(folder)} }).client().it.getOrCreate("k").write();
      `;
      const child = spawn(process.execPath, ["--input-type=module", "-e", source], {
        stdio: "inherit",
      });
      const [, signal] = await once(child, "close");
      assert.equal(signal, "SIGKILL");

      const { run } = inside({}, (use) => inFolder(folder, use));
      assert.deepEqual(await run(async (c) => [c.state.n, await c.kv.get("a")]), [1, "1"]);
    });
  }

  it("an answer is durable with keys that were not awaited", async () => {
    const folder = await newFolder();
    const { run, registry } = inside({}, (use) => inFolder(folder, use));
    await run((c) => void c.kv.put("a", "1"));
    await registry.shutdown();
    const next = inside({}, (use) => inFolder(folder, use));
    assert.equal(await next.run((c) => c.kv.get("a")), "1");
  });
});

it("an actor without state has keys all the same", async () => {
  const registry = inMemory({
    it: actor({
      actions: { put: (c) => c.kv.put("a", "1"), get: (c) => c.kv.get("a") },
    }),
  });
  const handle = registry.client().it.getOrCreate("k");
  await handle.put();
  await registry.actor(handle).sleep();
  assert.equal(await handle.get(), "1");
});

it("thousands of writes at once are all there", async () => {
  const { run } = inside();
  const count = await run(async (c) => {
    const writes = Array.from({ length: 5_000 }, (_, n) => c.kv.put(`k${n}`, String(n)));
    await Promise.all(writes);
    return (await c.kv.list("k")).length;
  });
  assert.equal(count, 5_000);
});
