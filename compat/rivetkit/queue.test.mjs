// Queues of RivetKit's actors: sending, taking, waiting, completing, and what outlives a sleep.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, ENCODINGS, fresh, until } from "./support.mjs";

const app = appOf("queue");
const shelf = (key = fresh("shelf")) => app.client().shelf.getOrCreate(key);
const worker = (encoding, key = fresh("worker")) => app.client(encoding).worker.getOrCreate(key);

describe("a queue", () => {
  it("gives what was sent in its order, by names or any", async () => {
    const handle = shelf();
    for (const [name, body] of [
      ["jobs", 1],
      ["other", { b: 2n }],
      ["jobs", 3],
    ]) {
      assert.deepEqual(await handle.put(name, body), { name, body });
    }
    assert.deepEqual(await handle.next({ names: ["other"] }), { name: "other", body: { b: 2n } });
    assert.deepEqual(await handle.next(), { name: "jobs", body: 1 });
    assert.deepEqual(await handle.tryNext(), { name: "jobs", body: 3 });
    assert.equal(await handle.tryNext(), undefined);
  });

  it("gives batches", async () => {
    const handle = shelf();
    for (const body of [1, 2, 3]) await handle.send("jobs", body);
    assert.deepEqual(
      (await handle.nextBatch({ count: 2 })).map(({ body }) => body),
      [1, 2],
    );
    assert.deepEqual(
      (await handle.tryNextBatch({ count: 5 })).map(({ body }) => body),
      [3],
    );
    assert.deepEqual(await handle.nextBatch({ count: 5, timeout: 20 }), []);
  });

  it("gives undefined, or an error, when its time is over", async () => {
    const handle = shelf();
    assert.equal(await handle.next({ timeout: 30 }), undefined);
    assert.equal(await handle.next({ names: ["jobs"], timeout: 0 }), undefined);
    const late = { group: "queue", code: "timed_out" };
    await assert.rejects(handle.waitForNames(["jobs"], { timeout: 30 }), late);
    await assert.rejects(handle.waitForAvailable(["jobs"], { timeout: 30 }), late);
  });

  it("wakes who waits", async () => {
    const handle = shelf();
    const waiting = handle.next({ names: ["jobs"], timeout: 10_000 });
    const available = handle.waitForAvailable(["other"], { timeout: 10_000 });
    await handle.send("other", "o");
    await handle.send("jobs", "j");
    assert.deepEqual(await waiting, { name: "jobs", body: "j" });
    assert.equal(await available, "available");
    assert.deepEqual(await handle.waitForNames(["other"], { timeout: 1_000 }), {
      name: "other",
      body: "o",
    });
  });

  it("ends a wait whose signal aborts", async () => {
    assert.equal(await shelf().aborts(), "actor.aborted");
  });

  it("keeps what is not completed over a sleep, and what is completed no more", async () => {
    const key = fresh("shelf");
    const handle = shelf(key);
    /** Asks until the actor was woken: what is asked while it falls asleep may still be answered. */
    const afterSleep = async (times) => {
      await handle.rest();
      await until(async () => {
        await handle.tryNext({ names: ["other"] });
        return (await app.times(key, "onWake")) === times;
      }, "the actor slept and woke");
    };
    await handle.send("jobs", "kept");
    assert.deepEqual(await handle.take({ names: ["jobs"] }), { name: "jobs", body: "kept" });
    await afterSleep(2);
    assert.deepEqual(await handle.take({ names: ["jobs"] }), { name: "jobs", body: "kept" });
    assert.equal(await handle.completeTwice(), "queue.already_completed");
    await afterSleep(3);
    assert.equal(await handle.tryNext(), undefined);
  });

  it("gives no second message to who did not complete the first", async () => {
    const handle = shelf();
    await handle.send("jobs", 1);
    await handle.send("jobs", 2);
    assert.equal(await handle.takeTwo(), "queue.previous_message_not_completed");
  });

  it("has limits", async () => {
    const handle = shelf();
    const tooLarge = { group: "queue", code: "message_too_large" };
    await assert.rejects(handle.put("jobs", "x".repeat(3_000)), tooLarge);
    await assert.rejects(handle.send("jobs", "x".repeat(3_000)), tooLarge);
    for (let index = 0; index < 5; index += 1) await handle.put("jobs", index);
    await assert.rejects(handle.put("other", 5), { group: "queue", code: "full" });
    await assert.rejects(handle.send("jobs", 5), { group: "queue", code: "full" });
  });
});

for (const encoding of ENCODINGS) {
  describe(`a queue that a client sends to in ${encoding}`, () => {
    it("stores, or waits for the answer", async () => {
      const handle = worker(encoding);
      await handle.send("jobs", { n: 1 });
      const sent = await handle.send("jobs", { n: 2 }, { wait: true, timeout: 10_000 });
      assert.deepEqual(sent, { status: "completed", response: { did: { n: 2 } } });
      assert.deepEqual(await handle.seen(), [{ n: 1 }, { n: 2 }]);
    });

    it("over a connection does as well", async () => {
      const conn = worker(encoding).connect();
      await conn.send("jobs", "c");
      await until(async () => (await conn.seen()).includes("c"), "it is done");
    });

    it("says so when the answer takes too long, and the work goes on", async () => {
      const handle = worker(encoding);
      const sent = await handle.send("slow", "s", { wait: true, timeout: 50 });
      assert.equal(sent.status, "timedOut");
      await until(async () => (await handle.seen()).includes("s"), "it is done");
    });
  });
}

describe("a run handler that waits for messages", () => {
  it("lets its actor sleep, and a message wakes it", async () => {
    const key = fresh("worker");
    const handle = worker("bare", key);
    assert.deepEqual(await handle.send("jobs", 1, { wait: true, timeout: 10_000 }), {
      status: "completed",
      response: { did: 1 },
    });
    await app.noted(key, "onSleep");
    await handle.send("jobs", 2);
    await until(async () => (await handle.seen()).length === 2, "the message was taken");
    assert.deepEqual(await handle.seen(), [1, 2]);
    assert.ok((await app.times(key, "onWake")) >= 2);
  });

  it("is asked by its actor, which waits for the answer", async () => {
    const handle = worker();
    assert.deepEqual(await handle.ask("jobs", 7, { timeout: 5_000 }), { answer: { did: 7 } });
    assert.equal(await handle.ask("never", 7, { timeout: 50 }), "queue.timed_out");
  });
});
