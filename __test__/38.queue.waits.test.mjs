// Waits for messages, for their completion, and waits that lead back to themselves.

import assert from "node:assert/strict";
import { after, describe, it } from "node:test";

import { actor, queue } from "../dist/index.js";
import { bodies, code, fails, inside } from "./support/queues.mjs";
import { inFolder, inMemory, newFolder, until } from "./support/registry.mjs";

// A wait for a message holds no process, and some tests have nothing else.
const awake = setInterval(() => {}, 1_000);
after(() => clearInterval(awake));

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
