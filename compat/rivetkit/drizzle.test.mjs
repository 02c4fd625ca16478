// Drizzle in RivetKit's actors.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, fresh, until } from "./support.mjs";

const app = appOf("db");
const make = () => app.client().register.getOrCreate(fresh("register"));

describe("Drizzle", () => {
  it("migrates once, and keeps rows over a sleep", async () => {
    const handle = make();
    assert.deepEqual(await handle.add("ada", 36), [{ id: 1, name: "ada", age: 36 }]);
    await handle.rest();
    await until(async () => (await handle.wakes()) === 2, "it slept and woke");
    assert.deepEqual(await handle.all(), [{ id: 1, name: "ada", age: 36 }]);
  });

  it("selects, updates and deletes, by its queries and by SQL", async () => {
    const handle = make();
    for (const [name, age] of [
      ["ada", 36],
      ["bob", 7],
      ["eve", null],
    ]) {
      await handle.add(name, age);
    }
    assert.deepEqual(await handle.find("bob"), { id: 2, name: "bob", age: 7 });
    assert.equal(await handle.find("mallory"), undefined);
    await handle.update("bob", 8);
    await handle.remove("eve");
    assert.deepEqual(
      (await handle.all()).map(({ age }) => age),
      [36, 8],
    );
    assert.deepEqual(await handle.raw(), [{ n: 2 }]);
    assert.deepEqual(await handle.sql(), [36]);
  });

  it("commits a transaction, or rolls all of it back", async () => {
    const handle = make();
    assert.equal(await handle.both("a", "b"), "committed");
    assert.equal(await handle.both("c", "a"), "rolled back");
    assert.equal((await handle.all()).length, 2);
  });

  it("runs transactions one after the other", async () => {
    assert.equal(await make().race(20), 20);
  });
});
