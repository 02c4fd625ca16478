// c.queue and handle.send: an actor's messages.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, describe, it } from "node:test";

import { actor, queue, UserError } from "../dist/index.js";
import { inFolder, inMemory, newFolder, until } from "./support/registry.mjs";

// A wait for a message holds no process, and some tests have nothing else.
const awake = setInterval(() => {}, 1_000);
after(() => clearInterval(awake));

/** `run(body)` calls `body(c)` as an action of one actor with two queues. */
function inside(config = {}, open = (use) => inMemory(use)) {
  const asked = new Map();
  const it = actor({
    state: { seen: [] },
    queues: { job: queue(), other: queue() },
    actions: { run: (c, id) => asked.get(id)(c) },
    ...config,
  });
  const registry = open({ it });
  const handle = registry.client().it.getOrCreate("k");
  const run = (body) => {
    asked.set(asked.size, body);
    return handle.run(asked.size - 1);
  };
  return { run, registry, handle };
}

const code = (error) => `${error.group}.${error.code}`;
const fails = (promise) =>
  promise.then(
    () => "nothing",
    (error) => code(error),
  );
const bodies = (received) => received.map(({ body }) => body);

/** A schema of even numbers, which may take its time. */
const even = (isAsync = false) => ({
  "~standard": {
    version: 1,
    vendor: "test",
    validate(value) {
      const ok = typeof value === "number" && value % 2 === 0;
      const result = ok ? { value } : { issues: [{ message: "not even" }] };
      return isAsync ? Promise.resolve(result) : result;
    },
  },
});

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

describe("a wait", () => {
  it("ends when its signal fires or its actor stops, and takes nothing", async () => {
    const { run, registry, handle } = inside();
    const stop = new AbortController();
    const received = run((c) => fails(c.queue.next({ signal: stop.signal })));
    const looped = run(async (c) => {
      for await (const _ of c.queue.iter({ signal: stop.signal })) assert.fail("nothing came");
      return "ended";
    });
    const before = run((c) => fails(c.queue.next({ signal: AbortSignal.abort() })));
    assert.equal(await before, "actor.aborted");
    stop.abort();
    assert.equal(await received, "actor.aborted");
    assert.equal(await looped, "ended");

    const stopped = run((c) => fails(c.queue.next()));
    await run(() => {});
    await registry.actor(handle).sleep();
    assert.equal(await stopped, "actor.aborted");
    await handle.send("job", 1);
    assert.equal((await run((c) => c.queue.tryNext())).body, 1);
  });

  it("beside many others of its call is no leak to Node.js", async () => {
    const warnings = [];
    const warned = ({ name, message }) => warnings.push(`${name}: ${message}`);
    process.on("warning", warned);
    const { run } = inside();
    const signal = new AbortController().signal;

    await run(async (c) => {
      const received = Array.from({ length: 20 }, () => c.queue.next({ signal }));
      const asked = Array.from({ length: 20 }, (_, n) =>
        c.queue.enqueueAndWait("other", n, { signal }),
      );
      await Promise.all(received);
      const left = await c.queue.nextBatch({ count: 20, timeout: 0 });
      return [await Promise.all(asked), left];
    });
    await new Promise((resolve) => setImmediate(resolve));

    process.off("warning", warned);
    assert.deepEqual(warnings, []);
  });

  it("of a call that was given up leaves the message to others", async () => {
    let ended;
    const over = new Promise((resolve) => {
      ended = resolve;
    });
    const { registry } = inside({
      actions: {
        wait: (c) => fails(c.queue.next()).then(ended),
        take: (c) => c.queue.tryNext(),
      },
    });
    const handle = registry.client().it.getOrCreate("k");
    const stop = new AbortController();
    const call = handle.action({ name: "wait", args: [], signal: stop.signal });
    await handle.take();
    stop.abort();
    await assert.rejects(call, { name: "AbortError" });
    assert.equal(await over, "actor.aborted");
    await handle.send("job", "kept");

    assert.equal((await handle.take()).body, "kept");
  });

  it("for a message lets the actor sleep, work on one does not", async () => {
    const { run, registry, handle } = inside({
      options: { sleepTimeout: 50 },
      run: async (c) => {
        for await (const message of c.queue.iter({ completable: true })) {
          await new Promise((resolve) => setTimeout(resolve, 300));
          await message.complete();
        }
      },
    });
    await run(() => {});
    const isAwake = async () => (await registry.actor(handle).info()).awake;
    await until(async () => !(await isAwake()), "it sleeps while it waits");
    await handle.send("job", 1);
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.equal(await isAwake(), true, "it works on a message");
    await until(async () => !(await isAwake()), "it sleeps again");
  });
});

describe("a sender that waits", () => {
  it("gets the response, or nothing, from whoever completes the message", async () => {
    const { run, handle } = inside({
      run: async (c) => {
        for await (const message of c.queue.iter({ completable: true })) {
          if (message.name === "job") await message.complete({ got: message.body });
          else await message.complete();
        }
      },
    });

    assert.deepEqual(await handle.send("job", 1, { wait: true }), {
      status: "completed",
      response: { got: 1 },
    });
    assert.deepEqual(await handle.send("other", 1, { wait: true }), { status: "completed" });
    assert.equal(await handle.send("job", 1), undefined);
    assert.deepEqual(
      await run(async (c) => [
        await c.queue.enqueueAndWait("job", 2),
        await c.queue.enqueueAndWait("other", 2),
      ]),
      [{ got: 2 }, undefined],
    );
  });

  it("hears of the end of its time, and the message stays", async () => {
    const { run, handle } = inside();
    assert.deepEqual(await handle.send("job", 1, { wait: true, timeout: 5 }), {
      status: "timedOut",
    });
    const stop = new AbortController();
    const given = handle.send("job", 2, { wait: true, signal: stop.signal });
    await run((c) => c.queue.waitForAvailable());
    stop.abort();
    await assert.rejects(given, { name: "AbortError" });
    assert.deepEqual(bodies(await run((c) => c.queue.nextBatch({ count: 9 }))), [1, 2]);
  });

  it("is another actor, whose changes are durable before its message leaves", async () => {
    const folder = await newFolder();
    const order = [];
    const a = actor({
      state: { n: 0 },
      actions: {
        go: async (c) => {
          c.state.n = 1;
          const sent = c.client().b.getOrCreate("b").send("job", "from a", { wait: true });
          void c.flush().then(() => order.push("durable"));
          return sent;
        },
      },
    });
    const b = actor({
      queues: { job: queue() },
      run: async (c) => {
        for await (const message of c.queue.iter({ completable: true })) {
          order.push("received");
          await message.complete(message.body);
        }
      },
      actions: {},
    });
    const registry = inFolder(folder, { a, b });
    assert.deepEqual(await registry.client().a.getOrCreate("a").go(), {
      status: "completed",
      response: "from a",
    });
    assert.deepEqual(order, ["durable", "received"]);
  });

  it("keeps the order of its handle among calls and sends", async () => {
    const { run, handle } = inside();
    const sends = [handle.send("job", 0)];
    for (let n = 1; n < 50; n += 1) sends.push(handle.send("job", n));
    await Promise.all(sends);
    const received = bodies(await run((c) => c.queue.nextBatch({ count: 100 })));
    assert.deepEqual(
      received,
      Array.from({ length: 50 }, (_, n) => n),
    );
  });
});

describe("waits in a circle", () => {
  /** Two actors whose `run` asks the other for each message. */
  const circle = () => {
    const errors = [];
    const asking = (other) =>
      actor({
        queues: { ask: queue() },
        run: async (c) => {
          for await (const message of c.queue.iter({ completable: true })) {
            try {
              const answer = await c
                .client()
                [other].getOrCreate("x")
                .send("ask", 1, { wait: true });
              await message.complete(answer.response);
            } catch (error) {
              errors.push(error);
              await message.complete(code(error));
            }
          }
        },
        actions: {},
      });
    const registry = inMemory({ left: asking("right"), right: asking("left") });
    return { errors, registry };
  };

  it("are reported with their chain", { timeout: 20_000 }, async () => {
    const { errors, registry } = circle();
    const sent = await registry.client().left.getOrCreate("x").send("ask", 0, { wait: true });

    assert.deepEqual(sent, { status: "completed", response: "queue.circular_wait" });
    assert.deepEqual(errors[0].metadata, {
      chain: [
        { actor: "right", key: ["x"], queue: "ask" },
        { actor: "left", key: ["x"], queue: "ask" },
      ],
    });
    assert.match(errors[0].message, /right\[x\]\.ask, left\[x\]\.ask/);
  });

  it("are seen through an action of another actor", { timeout: 20_000 }, async () => {
    const relay = actor({
      actions: {
        ready: () => {},
        pass: (c) => c.client().it.getOrCreate("k").send("job", 1, { wait: true }),
      },
    });
    const { handle, registry } = inside(
      {
        run: async (c) => {
          for await (const message of c.queue.iter({ completable: true })) {
            await message.complete(await fails(c.client().relay.getOrCreate("r").pass()));
          }
        },
      },
      (use) => inMemory({ ...use, relay }),
    );
    await registry.client().relay.getOrCreate("r").ready();
    const answer = await handle.send("job", 0, { wait: true });
    assert.deepEqual(answer, { status: "completed", response: "queue.circular_wait" });
  });

  it("are reported to the only consumer that asks its own queue", { timeout: 20_000 }, async () => {
    const { run, handle } = inside({
      run: async (c) => {
        for await (const message of c.queue.iter()) {
          if (message.name === "job")
            c.state.seen.push(await fails(c.queue.enqueueAndWait("other", 1)));
        }
      },
    });
    await handle.send("job", 1);
    const end = Date.now() + 10_000;
    while ((await run((c) => c.state.seen.length)) < 1 && Date.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.deepEqual(await run((c) => [...c.state.seen]), ["queue.circular_wait"]);
  });

  it("are not seen in a slow consumer, nor in one that receives while it waits", {
    timeout: 20_000,
  }, async () => {
    const { handle, run } = inside({
      run: async (c) => {
        for await (const message of c.queue.iter({ completable: true })) {
          await new Promise((resolve) => setTimeout(resolve, 1_500));
          await message.complete("slow");
        }
      },
    });
    const asked = run((c) => c.queue.enqueueAndWait("job", 1));
    assert.equal(await asked, "slow");
    assert.deepEqual(await handle.send("job", 1, { wait: true }), {
      status: "completed",
      response: "slow",
    });
    const itself = inside();
    const answer = await itself.run(async (c) => {
      const own = c.queue.enqueueAndWait("job", 1);
      const message = await c.queue.next({ completable: true });
      await new Promise((resolve) => setTimeout(resolve, 100));
      await message.complete("from itself");
      return own;
    });
    assert.equal(answer, "from itself");
  });
});

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

describe("kill -9", () => {
  /** Runs `body` in a process of its own that opens `folder`; `definition` is an actor's config. */
  async function killed(folder, definition, body) {
    const source = `
      import { actor, queue, setup } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)};
      const it = actor(${definition});
      const handle = setup({ use: { it }, storage: ${JSON.stringify(folder)} }).client().it.getOrCreate("k");
      ${body}
    `;
    const child = spawn(process.execPath, ["--input-type=module", "-e", source], {
      stdio: "inherit",
    });
    const [, signal] = await once(child, "close");
    assert.equal(signal, "SIGKILL");
  }

  for (const durability of ["reply", "interval"]) {
    it(`loses no message whose send was acknowledged (${durability})`, async () => {
      const folder = await newFolder();
      const options = `options: { durability: ${JSON.stringify(durability)}, stateSaveInterval: 600_000 }`;
      await killed(
        folder,
        `{ queues: { job: queue() }, actions: {}, ${options} }`,
        `await Promise.all(Array.from({ length: 200 }, (_, n) => handle.send("job", n)));
         process.kill(process.pid, "SIGKILL");`,
      );

      const { run } = inside({ state: undefined }, (use) => inFolder(folder, use));
      const received = bodies(await run((c) => c.queue.nextBatch({ count: 999 })));
      assert.deepEqual(
        received,
        Array.from({ length: 200 }, (_, n) => n),
      );
    });
  }

  it("in the middle of a message to complete: it comes again with nobody calling", async () => {
    const folder = await newFolder();
    await killed(
      folder,
      `{
        queues: { job: queue() },
        run: async (c) => {
          for await (const message of c.queue.iter({ completable: true })) {
            if (message.body === "deadly") process.kill(process.pid, "SIGKILL");
            await message.complete();
          }
        },
        actions: {},
      }`,
      `void handle.send("job", "harmless");
       void handle.send("job", "deadly");
       setInterval(() => {}, 1000);`,
    );

    const seen = [];
    const registry = inFolder(folder, {
      it: actor({
        queues: { job: queue() },
        run: async (c) => {
          for await (const message of c.queue.iter({ completable: true })) {
            seen.push([message.body, message.deliveryCount]);
            await message.complete();
          }
        },
        actions: {},
      }),
    });
    // Opens the folder, and calls nobody.
    await registry.list();
    await until(() => seen.length > 0, "it came again");
    assert.deepEqual(seen, [["deadly", 2]]);
  });

  it("after a message that was not to be completed: it does not come again", async () => {
    const folder = await newFolder();
    await killed(
      folder,
      `{
        queues: { job: queue() },
        actions: { take: async (c) => { await c.queue.next(); process.kill(process.pid, "SIGKILL"); } },
      }`,
      `await handle.send("job", 1);
       await handle.send("job", 2);
       await handle.take();`,
    );

    const { run } = inside({ state: undefined }, (use) => inFolder(folder, use));
    assert.deepEqual(bodies(await run((c) => c.queue.tryNextBatch({ count: 9 }))), [2]);
  });
});
