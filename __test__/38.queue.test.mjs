// c.queue and handle.send: an actor's messages, from sending to their end.

import assert from "node:assert/strict";
import { after, describe, it } from "node:test";

import { queue, UserError } from "../dist/index.js";
import { bodies, code, fails, inside } from "./support/queues.mjs";
import { inFolder, newFolder, until } from "./support/registry.mjs";

// A wait for a message holds no process, and some tests have nothing else.
const awake = setInterval(() => {}, 1_000);
after(() => clearInterval(awake));

describe("messages", () => {
  it("come in the order in which they were sent, once", async () => {
    const { run } = inside();
    const seen = await run(async (c) => {
      const sent = await Promise.all([
        c.queue.send("job", 1),
        c.queue.send("other", { two: [2n, new Date(5)] }),
        c.queue.send("job", 3),
      ]);
      const first = await c.queue.next();
      const rest = await c.queue.nextBatch({ count: 5 });
      return {
        sent,
        first,
        rest,
        none: await c.queue.tryNext(),
        empty: await c.queue.tryNextBatch(),
      };
    });

    assert.deepEqual(
      seen.sent.map(({ id, name }) => [id, name]),
      [
        [1, "job"],
        [2, "other"],
        [3, "job"],
      ],
    );
    const { createdAt, ...first } = seen.first;
    assert.deepEqual(first, { id: 1, name: "job", body: 1, deliveryCount: 1 });
    assert.ok(Math.abs(Date.now() - createdAt) < 60_000);
    assert.deepEqual(bodies(seen.rest), [{ two: [2n, new Date(5)] }, 3]);
    assert.deepEqual([seen.none, seen.empty], [undefined, []]);
  });

  it("are received by name, and waited for", async () => {
    const { run, handle } = inside();
    const other = run((c) => c.queue.next({ names: ["other"] }));
    const there = run((c) => c.queue.waitForAvailable(["job"]));
    await handle.send("job", "j");
    await handle.send("other", "o");

    assert.equal((await other).body, "o");
    await there;
    assert.equal((await run((c) => c.queue.waitForNames(["job"]))).body, "j");
  });

  it("that do not come are `undefined`, none, or a timeout", async () => {
    const { run } = inside();
    const seen = await run(async (c) => [
      await c.queue.next({ timeout: 1 }),
      await c.queue.nextBatch({ timeout: 0 }),
      await c.queue.waitForNames(["job"], { timeout: 1 }).catch((e) => [code(e), e.metadata]),
      await fails(c.queue.waitForAvailable([], { timeout: 1 })),
      await c.queue.enqueueAndWait("job", 1, { timeout: 2 }).catch((e) => [code(e), e.metadata]),
      bodies(await c.queue.tryNextBatch({ count: 9 })),
    ]);

    assert.deepEqual(seen, [
      undefined,
      [],
      ["queue.timed_out", { timeout_ms: 1 }],
      "queue.timed_out",
      ["queue.timed_out", { timeout_ms: 2 }],
      [1],
    ]);
  });

  it("may be delayed, and of one key only the first counts", async () => {
    const { run, handle } = inside();
    const seen = await run(async (c) => {
      await c.queue.send("job", "late", { delay: 30 });
      const first = await c.queue.send("job", "once", { dedupeKey: "k" });
      const second = await c.queue.send("job", "twice", { dedupeKey: "k" });
      return [first.id, second.id, bodies(await c.queue.tryNextBatch({ count: 9 }))];
    });
    assert.deepEqual(seen, [2, 2, ["once"]]);
    await handle.send("job", "thrice", { dedupeKey: "k" });
    assert.deepEqual(bodies(await run((c) => c.queue.nextBatch({ count: 9 }))), ["late"]);
  });

  it("that are not awaited are stored with their turn", async () => {
    const folder = await newFolder();
    const { run, registry } = inside({}, (use) => inFolder(folder, use));
    await run((c) => {
      c.state.seen.push("sent");
      void c.queue.send("job", 1);
    });
    await registry.shutdown();
    const next = inside({}, (use) => inFolder(folder, use));
    assert.deepEqual(await next.run(async (c) => [c.state.seen, (await c.queue.next()).body]), [
      ["sent"],
      1,
    ]);
  });

  it("are sent from onCreate on, and given to run", async () => {
    const { run } = inside({
      onCreate: (c) => c.queue.send("job", "born"),
      run: async (c) => {
        for await (const { body } of c.queue.iter()) c.state.seen.push(body);
      },
    });
    await run((c) => c.queue.send("job", "later"));
    await until(() => run((c) => c.state.seen.length === 2), "run has seen both");
    assert.deepEqual(await run((c) => c.state.seen), ["born", "later"]);
  });
});

describe("a message to complete", () => {
  it("is the only one of its context until it ends, and nobody else's", async () => {
    const { run } = inside();
    let held;
    const seen = await run(async (c) => {
      await c.queue.send("job", 1);
      await c.queue.send("job", 2);
      held = await c.queue.next({ completable: true });
      const refused = [];
      for (const receive of ["next", "nextBatch", "tryNext", "tryNextBatch"]) {
        refused.push(await fails(c.queue[receive]()));
      }
      refused.push(await fails(c.queue.waitForNames(["job"])));
      await c.queue.waitForAvailable();
      return refused;
    });
    assert.deepEqual(seen, Array(5).fill("queue.previous_message_not_completed"));

    // Another context is not held up, and gets the next one.
    assert.equal((await run((c) => c.queue.tryNext())).body, 2);
    assert.equal(await run((c) => c.queue.tryNext()), undefined);
    await held.complete();
    assert.equal(await fails(held.complete()), "queue.already_completed");
    assert.equal(await fails(held.nack()), "queue.already_completed");
  });

  it("lets its context receive once it was completed, given back, or completed by its id", async () => {
    const { run } = inside();
    const seen = await run(async (c) => {
      for (const n of [1, 2, 3, 4]) await c.queue.send("job", n);
      const batch = await c.queue.nextBatch({ count: 2, completable: true });
      await batch[0].complete();
      const between = await fails(c.queue.tryNext());
      await batch[1].nack();
      const again = await c.queue.next({ completable: true });
      const was = [
        await c.queue.complete(again),
        await c.queue.complete({ id: 99, name: "job" }),
        await fails(c.queue.complete({ id: 3, name: "other" })),
      ];
      return {
        between,
        again: [again.body, again.deliveryCount],
        was,
        rest: bodies(await c.queue.nextBatch({ count: 9 })),
      };
    });

    assert.deepEqual(seen, {
      between: "queue.previous_message_not_completed",
      again: [2, 2],
      was: [true, false, "queue.message_identity_mismatch"],
      rest: [3, 4],
    });
  });

  it("is given up after the deliveries that its queue allows, with the error of the last", async () => {
    const { run } = inside({
      queues: { job: queue({ maxDeliveries: 2, backoff: { initial: 5, max: 5 } }) },
    });
    const seen = await run(async (c) => {
      await c.queue.send("job", { bad: true });
      const counts = [];
      for (let n = 0; n < 2; n += 1) {
        const message = await c.queue.next({ completable: true });
        counts.push(message.deliveryCount);
        await message.nack({ error: new Error("no good") });
      }
      const [dead, ...more] = await c.queue.dead.list();
      const retried = [await c.queue.dead.retry(dead.id), await c.queue.dead.retry(dead.id)];
      const again = await c.queue.next({ completable: true });
      await again.nack();
      const last = await c.queue.next({ completable: true });
      await last.nack({ error: "still" });
      const [second] = await c.queue.dead.list({ limit: 1, after: 0 });
      const deleted = [await c.queue.dead.delete(1), await c.queue.dead.delete(1)];
      return {
        counts,
        dead,
        more,
        retried,
        again: again.deliveryCount,
        second: second.error,
        deleted,
        none: await c.queue.dead.list(),
      };
    });

    const { createdAt, diedAt, ...dead } = seen.dead;
    assert.ok(diedAt >= createdAt);
    assert.deepEqual(dead, {
      id: 1,
      name: "job",
      body: { bad: true },
      deliveryCount: 2,
      error: "no good",
    });
    assert.deepEqual([seen.counts, seen.more, seen.again], [[1, 2], [], 1]);
    assert.deepEqual(
      [seen.retried, seen.deleted, seen.second, seen.none],
      [[true, false], [true, false], "still", []],
    );
  });

  it("goes back when run throws, and comes again when run does", { timeout: 20_000 }, async () => {
    const { handle, run } = inside({
      run: async (c) => {
        for await (const message of c.queue.iter({ completable: true })) {
          c.state.seen.push(message.deliveryCount);
          if (message.deliveryCount === 1) throw new Error("the first time");
          await message.complete();
        }
        c.state.seen.push("ended");
      },
    });
    await handle.send("job", 1);
    await until(() => run((c) => c.state.seen.length === 1), "it came");
    // Given back before run begins again: another consumer may have it.
    const other = await run(async (c) => {
      const message = await c.queue.next({ completable: true, timeout: 900 });
      await message?.nack();
      return message?.deliveryCount;
    });
    assert.equal(other, 2);
    const end = Date.now() + 10_000;
    while ((await run((c) => c.state.seen.length)) < 2 && Date.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.deepEqual(await run((c) => [...c.state.seen]), [1, 3]);
  });

  it("goes back when the action that received it throws, before its caller hears of that", async () => {
    const { run } = inside({ options: { noSleep: true } });
    await run((c) => c.queue.send("job", 1));
    let left;

    const thrown = run(async (c) => {
      left = await c.queue.next({ completable: true });
      throw new UserError("no", { code: "no" });
    });

    assert.equal(await fails(thrown), "user.no");
    assert.equal(await fails(left.complete()), "queue.already_completed");
    const again = await run((c) => c.queue.tryNext());
    assert.deepEqual([again?.body, again?.deliveryCount], [1, 2]);
  });

  it("comes again after a sleep, and iter ends with its actor", async () => {
    const { handle, run, registry } = inside({
      run: async (c) => {
        for await (const message of c.queue.iter({ completable: true, names: ["job"] })) {
          c.state.seen.push(message.deliveryCount);
          await message.complete();
        }
        c.state.seen.push("ended");
      },
    });
    await handle.send("job", 1);
    await until(() => run((c) => c.state.seen.length === 1), "it came");
    await handle.send("other", 2);
    await run((c) => void c.queue.next({ completable: true }));
    await until(() => run(async (c) => (await c.queue.tryNext()) === undefined), "it is taken");
    await registry.actor(handle).sleep();

    assert.deepEqual(await run((c) => [...c.state.seen]), [1, "ended"]);
    assert.equal((await run((c) => c.queue.tryNext())).deliveryCount, 2);
  });

  it("is completed with what its turn changed, awaited or not", async () => {
    const folder = await newFolder();
    const { run, registry, handle } = inside({}, (use) => inFolder(folder, use));
    await handle.send("job", 1);
    await run(async (c) => {
      const message = await c.queue.next({ completable: true });
      c.state.seen.push(message.body);
      void message.complete();
    });
    // What was answered is durable, and nothing else has to be.
    await registry.shutdown({ deadline: 0 });
    const next = inside({}, (use) => inFolder(folder, use));
    const seen = await next.run(async (c) => [[...c.state.seen], await c.queue.tryNext()]);
    assert.deepEqual(seen, [[1], undefined]);
  });
});
