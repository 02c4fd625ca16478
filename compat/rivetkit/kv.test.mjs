// The key-value store of RivetKit's actors.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, fresh, plain, until } from "./support.mjs";

const app = appOf("kv");
const make = () => app.client().drawer.getOrCreate(fresh("drawer"));

describe("kv", () => {
  it("keeps text and bytes, over a sleep", async () => {
    const handle = make();
    await handle.put("a", "text ü");
    await handle.put("b", new Uint8Array([0, 255]), { type: "binary" });
    await handle.put("", "of the empty key");
    assert.equal(await handle.get("a"), "text ü");
    await handle.rest();
    await until(async () => (await handle.wakes()) === 2, "it slept and woke");
    assert.equal(await handle.get("a"), "text ü");
    assert.deepEqual(plain(await handle.get("b", { type: "binary" })), new Uint8Array([0, 255]));
    assert.equal(await handle.get(""), "of the empty key");
  });

  it("has null for what is not there, and forgets", async () => {
    const handle = make();
    assert.equal(await handle.get("a"), null);
    await handle.put("a", "1");
    await handle.put("a", "2");
    assert.equal(await handle.get("a"), "2");
    await handle.remove("a");
    await handle.remove("a");
    assert.equal(await handle.get("a"), null);
  });

  it("lists by prefix and range, in order", async () => {
    const handle = make();
    for (const key of ["a1", "a3", "a2", "b1", "c"]) await handle.put(key, `v${key}`);
    const keys = (pairs) => pairs.map(([key]) => key);
    assert.deepEqual(await handle.prefix("a"), [
      ["a1", "va1"],
      ["a2", "va2"],
      ["a3", "va3"],
    ]);
    assert.deepEqual(keys(await handle.prefix("a", { reverse: true, limit: 2 })), ["a3", "a2"]);
    assert.deepEqual(keys(await handle.prefix("")), ["a1", "a2", "a3", "b1", "c"]);
    assert.deepEqual(keys(await handle.range("a2", "b1")), ["a2", "a3"]);
    const bytes = (text) => new TextEncoder().encode(text);
    await handle.removeRange(bytes("a2"), bytes("b1"));
    assert.deepEqual(keys(await handle.prefix("")), ["a1", "b1", "c"]);
  });

  it("takes batches", async () => {
    assert.deepEqual(await make().batch(), [null, null, "v2", "v299"]);
  });
});
