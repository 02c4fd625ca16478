// What is refused of queues: by schemas, by limits, by whoever has stopped.

import assert from "node:assert/strict";
import { after, describe, it } from "node:test";

import { actor, queue } from "../dist/index.js";
import { bodies, code, even, fails, inside } from "./support/queues.mjs";
import { inFolder, newFolder, until } from "./support/registry.mjs";

// A wait for a message holds no process, and some tests have nothing else.
const awake = setInterval(() => {}, 1_000);
after(() => clearInterval(awake));

describe("what is sent and received", () => {
  for (const isAsync of [false, true]) {
    it(`is checked by the schema of its queue (${isAsync ? "asynchronous" : "synchronous"})`, async () => {
      const { run, handle } = inside({
        queues: { job: even(isAsync), ask: { message: even(isAsync), complete: even(isAsync) } },
        run: async (c) => {
          for await (const message of c.queue.iter({ names: ["ask"], completable: true })) {
            c.state.seen.push(await fails(message.complete(3)));
            await message.complete(4);
          }
        },
      });
      const refusal = {
        group: "actor",
        code: "validation_error",
        public: true,
        message: "Invalid queue `job` message",
        metadata: { issues: [{ message: "not even" }] },
      };
      await assert.rejects(handle.send("job", 1), refusal);
      await assert.rejects(
        run((c) => c.queue.send("job", 1)),
        refusal,
      );
      await handle.send("job", 2);
      assert.equal((await run((c) => c.queue.next({ names: ["job"] }))).body, 2);
      assert.deepEqual(await handle.send("ask", 2, { wait: true }), {
        status: "completed",
        response: 4,
      });
      assert.deepEqual(await run((c) => [...c.state.seen]), ["actor.validation_error"]);
    });
  }

  it("is what a schema makes of it once, and keeps its order beside others", async () => {
    const length = (isAsync) =>
      queue({
        message: {
          "~standard": {
            version: 1,
            vendor: "test",
            validate: (text) => {
              const result =
                typeof text === "string"
                  ? { value: text.length }
                  : { issues: [{ message: "no text" }] };
              return isAsync ? Promise.resolve(result) : result;
            },
          },
        },
      });
    const { run, handle } = inside({
      queues: { text: length(false), late: length(true), other: queue() },
    });
    const receive = () => run(async (c) => bodies(await c.queue.nextBatch({ count: 9 })));

    await run((c) =>
      Promise.all([
        c.queue.send("text", "one"),
        c.queue.send("other", 2),
        c.queue.send("text", "three"),
      ]),
    );
    assert.deepEqual(await receive(), [3, 2, 5]);
    await Promise.all([
      handle.send("text", "one"),
      handle.send("other", 2),
      handle.send("text", "three"),
    ]);
    assert.deepEqual(await receive(), [3, 2, 5]);
    await handle.send("late", "seven");
    assert.deepEqual(await receive(), [5]);
  });

  it("is checked again by the code that receives it: what fits is handed out", async () => {
    const folder = await newFolder();
    const before = inside({}, (use) => inFolder(folder, use));
    for (const n of [1, 2, 3]) await before.handle.send("job", n);
    await before.registry.shutdown();

    const { run } = inside(
      { queues: { job: queue({ message: even(), maxDeliveries: 1 }) } },
      (use) => inFolder(folder, use),
    );
    const seen = await run(async (c) => {
      const batch = await c.queue.nextBatch({ count: 3, completable: true });
      await batch[0].complete();
      const dead = await c.queue.dead.list();
      await c.queue.dead.retry(1);
      const plain = await fails(c.queue.next());
      return { batch: bodies(batch), dead: dead.map(({ body, error }) => [body, error]), plain };
    });
    assert.deepEqual(seen, {
      batch: [2],
      dead: [
        [1, "Invalid queue `job` message"],
        [3, "Invalid queue `job` message"],
      ],
      plain: "actor.validation_error",
    });
  });
});

describe("a message to complete that its schema refuses", () => {
  it("holds up nobody behind it", { timeout: 20_000 }, async () => {
    const folder = await newFolder();
    const before = inside({}, (use) => inFolder(folder, use));
    for (const n of [1, 2, 3, 4]) await before.handle.send("job", n);
    await before.registry.shutdown();

    // It may come as often as it likes, and is the first in its queue.
    const { run } = inside(
      {
        queues: { job: queue({ message: even() }) },
        run: async (c) => {
          for await (const message of c.queue.iter({ completable: true })) {
            c.state.seen.push(message.body);
            await message.complete();
          }
        },
      },
      (use) => inFolder(folder, use),
    );

    await until(() => run((c) => c.state.seen.length === 2), "the others came");
    assert.deepEqual(await run((c) => [...c.state.seen]), [2, 4]);
    assert.deepEqual(await run((c) => c.queue.dead.list()), []);
  });
});

describe("what is wrong with a call", () => {
  it("is a rejection that names it, and stores nothing", async () => {
    const { run, handle } = inside({ options: { maxQueueSize: 2, maxQueueMessageSize: 200 } });
    const refused = [
      [(q) => q.send("nope", 1), "queue.not_declared", /`nope`/],
      [(q) => q.send(5, 1), "actor.invalid_argument", /name of a queue is a string, not 5/],
      [(q) => q.send("job", () => 1), "actor.invalid_argument", /body is a function/],
      [(q) => q.send("job", 1, { delay: -1 }), "actor.invalid_argument", /delay .* is -1/],
      [(q) => q.send("job", 1, { dedupeKey: 1 }), "actor.invalid_argument", /dedupeKey .* is 1/],
      [(q) => q.send("job", 1, { dedupeKey: "" }), "actor.invalid_argument", /empty/],
      [(q) => q.send("job", 1, { dedupeKey: "\ud800" }), "actor.invalid_argument", /half of a/],
      [(q) => q.send("job", 1, { wait: true }), "actor.invalid_argument", /unknown key "wait"/],
      [(q) => q.send("job", "x".repeat(300)), "queue.message_too_large", /limit is 200/],
      [(q) => q.next({ names: ["nope"] }), "queue.not_declared", /`nope`/],
      [(q) => q.next({ names: "job" }), "actor.invalid_argument", /names .* is "job", not a list/],
      [(q) => q.next({ timeout: -1 }), "actor.invalid_argument", /timeout .* is -1/],
      [(q) => q.next({ signal: {} }), "actor.invalid_argument", /signal .* is an object/],
      [(q) => q.next({ completable: 1 }), "actor.invalid_argument", /completable .* is 1/],
      [(q) => q.nextBatch({ count: 0 }), "actor.invalid_argument", /count .* is 0/],
      [(q) => q.enqueueAndWait("nope", 1), "queue.not_declared", /`nope`/],
      [(q) => q.complete(5), "actor.invalid_argument", /takes a message, not 5/],
      [(q) => q.complete({ id: 1, name: "nope" }), "queue.not_declared", /`nope`/],
      [(q) => q.dead.list({ limit: 0 }), "actor.invalid_argument", /limit .* is 0/],
      [(q) => q.dead.retry("1"), "actor.invalid_argument", /id of a message/],
      [(q) => q.iter({ count: 1 }).next(), "actor.invalid_argument", /unknown key "count"/],
    ];
    for (const [call, expected, message] of refused) {
      const error = await run(async (c) => {
        const promise = call(c.queue);
        assert.ok(promise instanceof Promise);
        return promise.then(
          () => ({ message: "no error" }),
          ({ group, code, message }) => ({ group, code, message }),
        );
      });
      assert.match(error.message, message);
      assert.equal(code(error), expected, error.message);
    }
    for (const [send, expected] of [
      [() => handle.send("nope", 1), "queue.not_declared"],
      [() => handle.send(5, 1), "actor.invalid_argument"],
      [() => handle.send("job", 1, { timeout: 5 }), "actor.invalid_argument"],
      [() => handle.send("job", 1, { wait: "yes" }), "actor.invalid_argument"],
      [() => handle.send("job", 1, { wait: true, timeout: -1 }), "actor.invalid_argument"],
    ]) {
      assert.equal(await fails(send()), expected);
    }
    assert.equal(await run((c) => c.queue.tryNext()), undefined);

    await handle.send("job", 1);
    await handle.send("job", 2);
    await assert.rejects(handle.send("job", 3), {
      group: "queue",
      code: "full",
      public: true,
      metadata: { limit: 2 },
      message: /^Queue is full\. Limit is 2/,
    });
  });

  it("is found in the definition", () => {
    for (const [queues, message] of [
      [5, /queues of actor\(\) is 5, not an object/],
      [{ "": queue() }, /queues has one named ""/],
      [{ "a\ud800": queue() }, /queues has one named "a\\ud800"/],
      [{ a: 5 }, /queue "a" of actor\(\) takes an object, not 5/],
      [{ a: { mesage: even() } }, /unknown key "mesage" .*did you mean "message"/],
      [
        { a: queue({ message: 5 }) },
        /message of queue "a" of actor\(\) is 5, not a Standard Schema/,
      ],
      [{ a: queue({ canPublish: true }) }, /canPublish .* not a function/],
      [{ a: queue({ maxDeliveries: 0 }) }, /maxDeliveries .* is 0, not a whole number from 1/],
      [
        { a: queue({ backoff: { initial: 5 } }) },
        /max of backoff .* is undefined, not milliseconds from 5/,
      ],
      [{ a: queue({ backoff: { initial: -1, max: 5 } }) }, /initial of backoff .* is -1/],
    ]) {
      assert.throws(() => actor({ queues }), { name: "TypeError", message });
    }
    assert.throws(() => actor({ options: { maxQueueSize: 0 } }), /maxQueueSize is 0/);
    assert.throws(() => actor({ options: { maxQueueMessageSize: 1.5 } }), /is 1.5/);
  });

  it("is that the actor has no queues, or has stopped", async () => {
    const none = inside({ queues: undefined });
    assert.equal(await none.run((c) => fails(c.queue.next())), "queue.not_declared");
    assert.equal(await fails(none.handle.send("job", 1)), "queue.not_declared");

    const { run, registry, handle } = inside();
    let kept;
    await run((c) => {
      kept = c;
    });
    await registry.actor(handle).sleep();
    for (const call of [kept.queue.send("job", 1), kept.queue.next(), kept.queue.dead.list()]) {
      await assert.rejects(call, { group: "actor", code: "stopping" });
    }
  });
});

describe("canPublish", () => {
  it("is not asked about callers of this process", async () => {
    let asked = 0;
    const refuses = () => {
      asked += 1;
      return false;
    };
    const { handle, run } = inside({ queues: { job: queue({ canPublish: refuses }) } });
    await handle.send("job", 1);
    await run((c) => c.queue.send("job", 2));
    assert.deepEqual(bodies(await run((c) => c.queue.nextBatch({ count: 9 }))), [1, 2]);
    assert.equal(asked, 0);
  });
});
