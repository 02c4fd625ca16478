// Sleep of RivetKit's actors: what brings it, what holds it off, what it ends.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, delay, fresh, until } from "./support.mjs";

const app = appOf("sleep");

/** A handle of a new actor, awake, and its key. */
async function awake(name) {
  const key = fresh(name);
  const handle = app.client()[name].getOrCreate(key);
  await handle.nothing();
  return { key, handle };
}

/** Calls until the actor was woken: a call while it falls asleep is answered before it does. */
const wakes = (key, handle, times = 2) =>
  until(async () => {
    await handle.nothing();
    return (await app.times(key, "onWake")) === times;
  }, "the actor wakes");

describe("an actor", () => {
  it("that nobody asks sleeps after its time, and a call wakes it", async () => {
    const { key, handle } = await awake("idle");
    assert.deepEqual(await app.done(key), ["onWake"]);
    await app.noted(key, "onSleep");
    await wakes(key, handle);
  });

  it("stays awake while calls come", async () => {
    const { key, handle } = await awake("idle");
    for (let index = 0; index < 20; index += 1) {
      await handle.nothing();
      await delay(60);
    }
    assert.deepEqual(await app.done(key), ["onWake"]);
  });

  it("stays awake while an action runs, or a connection is open", async () => {
    const { key, handle } = await awake("idle");
    assert.equal(await handle.work(1_200), "worked");
    assert.deepEqual(await app.done(key), ["onWake"]);
    const conn = handle.connect();
    await conn.nothing();
    await delay(1_200);
    assert.deepEqual(await app.done(key), ["onWake"]);
    await conn.dispose();
    await app.noted(key, "onSleep");
  });

  it("stays awake while keepAwake() holds it, which gives what it was given", async () => {
    const { key, handle } = await awake("idle");
    assert.equal(await handle.holdFor(10), "held");
    await handle.hold(2_000);
    await delay(1_200);
    assert.deepEqual(await app.done(key), ["onWake"]);
    await app.noted(key, "onSleep");
  });

  it("that does not sleep by its options stays awake", async () => {
    const { key } = await awake("wakeful");
    await delay(800);
    assert.deepEqual(await app.done(key), ["onWake"]);
  });

  it("sleeps when it says so, once however often it says it", async () => {
    const { key, handle } = await awake("patient");
    await handle.rest();
    await app.noted(key, "onSleep");
    await wakes(key, handle);
    await handle.restTwice();
    await app.noted(key, "onSleep", 2);
    await wakes(key, handle, 3);
    assert.equal(await app.times(key, "onSleep"), 2);
  });

  it("sleeps when what waitUntil() was given is done", async () => {
    const { key, handle } = await awake("patient");
    await handle.restAfter(500);
    await wakes(key, handle);
    assert.deepEqual(await app.done(key), ["onWake", "onSleep", "waited", "onWake"]);
  });

  it("sleeps at the end of its grace, whatever it waits for", async () => {
    const { key, handle } = await awake("hasty");
    const start = Date.now();
    await handle.restAfter(15_000);
    await wakes(key, handle);
    assert.ok(Date.now() - start < 10_000);
  });

  it("that sleeps by its host's call wakes again", async () => {
    const { key, handle } = await awake("patient");
    const url = `${app.url}/actors/${await handle.resolve()}/sleep?namespace=default`;
    const headers = { "content-type": "application/json" };
    const response = await fetch(url, { method: "POST", body: "{}", headers });
    assert.equal(response.status, 200);
    await app.noted(key, "onSleep");
    await wakes(key, handle);
  });
});

describe("a run handler", () => {
  it("starts with its actor and holds off sleep until it ends", async () => {
    const { key } = await awake("runner");
    await app.noted(key, "onSleep");
    assert.deepEqual((await app.done(key)).slice(0, 3), ["onWake", "run", "ran"]);
  });

  it("is aborted by a sleep, and starts again at the wake", async () => {
    const { key, handle } = await awake("runner");
    await handle.rest();
    await app.noted(key, "aborted");
    await wakes(key, handle);
    await app.noted(key, "run", 2);
  });

  it("that throws leaves its actor awake", async () => {
    const { key, handle } = await awake("failing");
    await delay(200);
    assert.equal(await handle.nothing(), "awake");
    assert.deepEqual(await app.done(key), ["onWake", "run"]);
  });
});
