// State and vars of RivetKit's actors: where they come from, what they hold, what outlives a sleep.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, fresh, plain, until } from "./support.mjs";

const app = appOf("state");

/** Puts an actor to sleep, and resolves once it was woken again. */
async function sleepAndWake(handle) {
  const before = await handle.wakes();
  await handle.rest();
  await until(async () => (await handle.wakes()) > before, "the actor slept and woke");
}

describe("state", () => {
  it("given as a constant is every actor's own", async () => {
    const { fixed } = app.client();
    const one = fixed.getOrCreate(fresh("one"));
    const two = fixed.getOrCreate(fresh("two"));
    await one.push("a");
    assert.equal(await one.deepen(), 1);
    assert.deepEqual(await one.get(), { list: ["a"], deep: { n: 1 } });
    assert.deepEqual(await two.get(), { list: [], deep: { n: 0 } });
  });

  it("is made of the input, once", async () => {
    const { made } = app.client();
    const key = fresh("input");
    const input = { topic: "x", bytes: new Uint8Array([1, 2]), big: 7n };
    const handle = made.getOrCreate(key, { createWithInput: input });
    const first = await handle.get();
    assert.deepEqual(plain(first.input), input);
    assert.deepEqual(first.key, key);
    await sleepAndWake(handle);
    const again = made.getOrCreate(key, { createWithInput: "other" });
    assert.deepEqual(plain((await again.get()).input), input);
  });

  it("without an input is made with undefined", async () => {
    const handle = await app.client().made.create(fresh("no input"));
    assert.equal((await handle.get()).input, undefined);
  });

  it("outlives a sleep, however it was saved", async () => {
    const handle = app.client().made.getOrCreate(fresh("kept"));
    const value = {
      set: new Set([1]),
      map: new Map([["a", 1n]]),
      date: new Date(5),
      nested: [[{}]],
    };
    await handle.keep(value);
    await sleepAndWake(handle);
    assert.deepEqual((await handle.get()).kept, value);
    await handle.keepAndSave("saved");
    await sleepAndWake(handle);
    assert.equal((await handle.get()).kept, "saved");
    await handle.replace({ kept: "replaced", wakes: 10 });
    await sleepAndWake(handle);
    assert.deepEqual(await handle.get(), { kept: "replaced", wakes: 11 });
  });

  it("refuses what is no data, at once", async () => {
    const handle = app.client().made.getOrCreate(fresh("refused"));
    assert.equal(await handle.refused(), "TypeError");
    assert.equal((await handle.get()).kept, null);
  });

  it("that an actor does not have is an error of its code", async () => {
    assert.equal(
      await app.client().none.getOrCreate(fresh("none")).state(),
      "actor.state_not_enabled",
    );
  });

  it("tells onStateChange of every change, which may not change it", async () => {
    const handle = app.client().watched.getOrCreate(fresh("watched"));
    for (const n of [1, 2, 3]) await handle.set(n);
    await until(async () => (await handle.seen()).includes(3), "the last change is told");
    assert.deepEqual(await handle.seen(), [1, 2, 3]);
    assert.equal(await handle.get(), 3);
    assert.deepEqual(new Set(await handle.thrown()), new Set(["actor.state_mutation_reentrant"]));
  });
});

describe("vars", () => {
  it("given as a constant are every actor's own, and new at every wake", async () => {
    const { constant } = app.client();
    const one = constant.getOrCreate(fresh("one"));
    const two = constant.getOrCreate(fresh("two"));
    await one.push("a");
    assert.deepEqual(await one.list(), ["a"]);
    assert.deepEqual(await two.list(), []);
    await sleepAndWake(one);
    assert.deepEqual(await one.list(), []);
  });

  it("hold what is no data, and are made at every wake before it is told", async () => {
    const key = fresh("dynamic");
    const handle = app.client().dynamic.getOrCreate(key);
    assert.equal(await handle.double(4), 8);
    assert.equal(await handle.put("a", 1), 1);
    assert.deepEqual(await handle.about(), { key, wakes: 0 });
    await handle.replace();
    assert.equal(await handle.double(4), 80);
    await sleepAndWake(handle);
    assert.equal(await handle.double(4), 8);
    assert.equal(await handle.size(), 0);
    assert.deepEqual(await handle.about(), { key, wakes: 1 });
  });
});
