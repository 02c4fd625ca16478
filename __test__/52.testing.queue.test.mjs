// Queues on the clock of a test.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor, queue } from "../dist/index.js";
import { DAY, HOUR, MINUTE, runtime, SECOND, START } from "./support/trials.mjs";

/** A consumer that notes what it gets, and when; `handle` decides what becomes of it. */
function consumer(seen, handle, options = {}) {
  return actor({
    state: { done: 0 },
    options: { noSleep: true, actionTimeout: HOUR },
    queues: { jobs: queue(options) },
    async run(c) {
      for await (const message of c.queue.iter({ completable: true })) {
        seen.push([message.body, c.now - START, message.deliveryCount]);
        await handle(c, message);
      }
    },
    actions: {
      done: (c) => c.state.done,
      dead: (c) => c.queue.dead.list(),
      retry: (c, id) => c.queue.dead.retry(id),
    },
  });
}

const complete = async (c, message) => {
  c.state.done += 1;
  await message.complete();
};

describe("a message", () => {
  it("that is delayed comes when it is due, in the order of that", async (t) => {
    const seen = [];
    const { client, clock } = runtime(t, { it: consumer(seen, complete) });
    const handle = client.it.getOrCreate("a");
    for (const n of [30, 10, 20]) await handle.send("jobs", n, { delay: n * MINUTE });

    await clock.advance("1 hour");

    assert.deepEqual(
      seen,
      [10, 20, 30].map((n) => [n, n * MINUTE, 1]),
    );
  });

  it("that is given back waits longer each time, and is dead at the end, and others pass it", async (t) => {
    const seen = [];
    const bad = async (c, message) => {
      if (message.body === "good") return complete(c, message);
      await message.nack({ error: "no" });
    };
    const options = { maxDeliveries: 4, backoff: { initial: MINUTE, max: 3 * MINUTE } };
    const { client, clock } = runtime(t, { it: consumer(seen, bad, options) });
    const handle = client.it.getOrCreate("a");
    await handle.send("jobs", "bad");
    await handle.send("jobs", "good");

    await clock.advance("1 hour");

    const tries = seen.filter(([body]) => body === "bad");
    assert.deepEqual(
      tries,
      [0, 1, 3, 6].map((n, at) => ["bad", n * MINUTE, at + 1]),
    );
    assert.deepEqual(
      seen.filter(([body]) => body === "good"),
      [["good", 0, 1]],
    );
    const [dead] = await handle.dead();
    assert.deepEqual([dead.body, dead.error, dead.diedAt - START], ["bad", "no", 6 * MINUTE]);
    assert.equal(await handle.retry(dead.id), true);
    await clock.advance(0);
    assert.deepEqual(seen.at(-1), ["bad", HOUR, 1]);
  });

  it("in the hands of a consumer comes again after a crash, with nobody calling", async (t) => {
    const seen = [];
    const slow = async (c, message) => {
      await c.clock.sleep(10 * MINUTE);
      await complete(c, message);
    };
    const test = runtime(t, { it: consumer(seen, slow) });
    const handle = test.client.it.getOrCreate("a");
    await handle.send("jobs", "one");
    await test.clock.advance("1 minute");

    await test.crash();
    await test.clock.advance("1 hour");

    assert.deepEqual(seen, [
      ["one", 0, 1],
      ["one", MINUTE, 2],
    ]);
    assert.equal(await handle.done(), 1);
  });

  for (const [point, times] of [
    ["before_commit", 2],
    ["after_commit", 1],
  ]) {
    it(`whose completion meets a crash ${point} is counted once, received ${times === 1 ? "once" : "twice"}`, async (t) => {
      const seen = [];
      let crashed;
      const atEnd = async (c, message) => {
        if (seen.length === 1) crashed = test.crashAt(point);
        // The plan is made.
        await c.clock.sleep(SECOND);
        await complete(c, message);
      };
      const test = runtime(t, { it: consumer(seen, atEnd) });
      const handle = test.client.it.getOrCreate("a");
      await handle.send("jobs", "one");

      await test.clock.advance("1 minute");
      await crashed;
      await test.clock.advance("1 minute");

      assert.equal(seen.length, times);
      assert.equal(await handle.done(), 1);
    });
  }

  it("that could not be stored was not sent, and is not received", async (t) => {
    const seen = [];
    const test = runtime(t, { it: consumer(seen, complete) });
    const handle = test.client.it.getOrCreate("a");
    await handle.done();
    await test.failNextCommit();

    await assert.rejects(handle.send("jobs", "lost"), { group: "storage", code: "full" });
    await handle.send("jobs", "kept");
    await test.clock.advance("1 hour");

    assert.deepEqual(
      seen.map(([body]) => body),
      ["kept"],
    );
  });

  it("is answered across actors that wait for each other and for the clock", async (t) => {
    const asks = actor({
      options: { actionTimeout: DAY },
      actions: {
        async ask(c, n) {
          const handle = c.client().it.getOrCreate("a");
          const { response } = await handle.send("jobs", n, { wait: true, timeout: HOUR });
          return [response, c.now - START];
        },
      },
    });
    const seen = [];
    const answers = async (c, message) => {
      await c.clock.sleep(MINUTE);
      await message.complete(message.body * 2);
    };
    const { client, clock } = runtime(t, { asks, it: consumer(seen, answers) });
    const asked = [1, 2, 3].map((n) => client.asks.getOrCreate(`${n}`).ask(n));

    await clock.advance("1 hour");

    assert.deepEqual(await Promise.all(asked), [
      [2, MINUTE],
      [4, 2 * MINUTE],
      [6, 3 * MINUTE],
    ]);
  });
});

describe("a wait for messages", () => {
  const waits = actor({
    queues: { jobs: queue(), other: queue() },
    options: { actionTimeout: DAY },
    actions: {
      next: async (c, timeout) => [(await c.queue.next({ timeout }))?.body, c.now - START],
      names: async (c, timeout) => {
        const message = await c.queue.waitForNames(["jobs"], { timeout });
        return [message.body, c.now - START];
      },
      available: async (c) => {
        await c.queue.waitForAvailable(["other"], {});
        return c.now - START;
      },
      async ask(c, timeout) {
        return c.queue.enqueueAndWait("other", "question", { timeout });
      },
    },
  });

  it("does not hold the clock, and ends at its timeout", async (t) => {
    const { client, clock } = runtime(t, { waits });
    const handle = client.waits.getOrCreate("a");
    const open = [handle.next(HOUR), client.waits.getOrCreate("b").names(MINUTE)];
    const late = assert.rejects(open[1], { group: "queue", code: "timed_out" });

    await clock.advance("2 hours");

    assert.deepEqual(await open[0], [undefined, HOUR]);
    await late;
  });

  it("ends with the message that another function sends later", async (t) => {
    const { client, clock } = runtime(t, { waits });
    const handle = client.waits.getOrCreate("a");
    const open = [handle.next(), handle.available()];
    await clock.advance("1 hour");
    await handle.send("jobs", "here");
    await handle.send("other", "there", { delay: MINUTE });

    await clock.advance("1 hour");

    assert.deepEqual(await Promise.all(open), [["here", HOUR], HOUR + MINUTE]);
  });

  it("for an answer that nobody gives ends at its timeout", async (t) => {
    const { client, clock } = runtime(t, { waits });
    const late = assert.rejects(client.waits.getOrCreate("a").ask(HOUR), {
      group: "queue",
      code: "timed_out",
    });

    await clock.advance("1 hour");

    await late;
  });
});
