// Workflows of RivetKit's: steps, sleeps, loops, branches, retries, and what they wait for.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, fresh, hears, until } from "./support.mjs";

const app = appOf("workflow");

describe("a workflow", () => {
  it("runs its steps in order, once each, with what they gave", async () => {
    const key = fresh("steps");
    const handle = app.client().steps.getOrCreate(key);
    await until(async () => (await handle.get()).done, "the workflow ends");
    assert.deepEqual(await handle.get(), { sum: 11, done: 11 });
    assert.deepEqual(await app.done(key), ["first", "second 1 2"]);
  });

  it("does not run again what is done when its actor wakes", async () => {
    const key = fresh("steps");
    const handle = app.client().steps.getOrCreate(key);
    await until(async () => (await handle.get()).done, "the workflow ends");
    const id = await handle.resolve();
    await fetch(`${app.url}/actors/${id}/sleep?namespace=default`, {
      method: "POST",
      body: "{}",
      headers: { "content-type": "application/json" },
    });
    await until(async () => (await handle.get()).done, "the actor is awake again");
    assert.deepEqual(await handle.get(), { sum: 11, done: 11 });
    assert.deepEqual(await app.done(key), ["first", "second 1 2"]);
  });

  it("broadcasts from a step", async () => {
    const conn = app.client().steps.getOrCreate(fresh("steps")).connect();
    const done = hears(conn, "done");
    await conn.ready;
    await until(async () => done.left > 0 || (await conn.get()).done, "the workflow ends");
    assert.deepEqual((await conn.get()).done, 11);
  });

  it("sleeps with its actor, and is woken", async () => {
    const key = fresh("sleeper");
    const handle = app.client().sleeper.getOrCreate(key);
    await handle.slept();
    await app.noted(key, "onSleep");
    await app.noted(key, "end");
    const slept = await handle.slept();
    assert.ok(slept >= 2_000 && slept < 15_000, `${slept} ms`);
    assert.equal(await app.times(key, "start"), 1);
  });

  it("loops with a state of its own", async () => {
    const handle = app.client().looper.getOrCreate(fresh("looper"));
    await until(async () => (await handle.get()).result, "the loop ends");
    assert.deepEqual(await handle.get(), {
      rounds: Array.from({ length: 25 }, (_, n) => n),
      result: "after 24",
    });
  });

  it("joins branches, and races them", async () => {
    const handle = app.client().branches.getOrCreate(fresh("branches"));
    await until(async () => (await handle.get()).won, "the workflow ends");
    assert.deepEqual(await handle.get(), { joined: { a: "a", b: 7 }, won: ["quick", "quick"] });
  });

  it("tries a step again, and goes on without one that it may", async () => {
    const key = fresh("stubborn");
    const handle = app.client().stubborn.getOrCreate(key);
    await until(async () => (await handle.get()).answer, "the workflow ends");
    const { tries, answer, caught } = await handle.get();
    assert.deepEqual([tries, answer, caught], [3, "at last", false]);
    assert.ok((await app.times(key, "onError")) > 0);
  });

  it("undoes what it did when it fails", async () => {
    const handle = app.client().undone.getOrCreate(fresh("undone"));
    await until(async () => (await handle.log()).length === 2, "it is undone");
    assert.deepEqual(await handle.log(), ["book", "unbook seat 7"]);
  });

  it("waits for messages, asleep too", async () => {
    const key = fresh("listener");
    const handle = app.client().listener.getOrCreate(key);
    await handle.send("orders", { n: 1 });
    await until(async () => (await handle.heard()).length === 1, "the first is heard");
    await app.noted(key, "onSleep");
    await handle.send("orders", { n: 2 });
    await until(async () => (await handle.heard()).length === 2, "the second is heard");
    assert.deepEqual(await handle.heard(), [{ n: 1 }, { n: 2 }]);
  });
});
