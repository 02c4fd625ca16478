// The contract's Queue and QueueMessage: what the classes promise, beside the author's layer.

import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { CancellationToken, NapiActorFactory } from "greenroom/native";

import { actor, awake, bytes, numbers, opened, text, turn } from "./support/native.mjs";

// A wait for a message holds no process, and some tests have nothing else.
const alive = setInterval(() => {}, 1_000);
after(() => clearInterval(alive));

/** The queue of a running actor, outside of any call. */
async function queueOf(t, config = {}, callbacks = {}) {
  const host = await opened(t, { counter: numbers({}, config, callbacks) });
  const bag = await awake(host, actor("counter", "a"));
  return { host, bag, queue: bag.context.queue() };
}

/** What a rejected promise says in the bridge form. */
async function refusal(promise) {
  const error = await promise.then(
    () => assert.fail("nothing was refused"),
    (error) => error,
  );
  const json = error.message.slice(error.message.indexOf("{"));
  const { group, code, metadata, message } = JSON.parse(json);
  return { is: `${group}.${code}`, metadata, message };
}

describe("Queue", () => {
  it("sends and receives messages with ids that are bigints", async (t) => {
    const { queue } = await queueOf(t);
    const sent = await queue.send("job", bytes("one"));
    await queue.send("job", bytes("two"));
    await queue.send("other", bytes("three"));

    assert.equal(sent.id(), 1n);
    assert.deepEqual([sent.name(), text(sent.body()), sent.isCompletable()], ["job", "one", false]);
    const [first, second, ...rest] = await queue.nextBatch({ names: ["job"], count: 5 });
    assert.equal(rest.length, 0);
    assert.deepEqual(
      [first.id(), text(first.body()), first.createdAt()],
      [1n, "one", sent.createdAt()],
    );
    assert.deepEqual([second.id(), second.deliveryCount()], [2n, 1]);
    assert.deepEqual(
      queue.inspectMessages().map(({ id, name }) => [id, name]),
      [[3, "other"]],
    );
    assert.equal(queue.maxSize(), 1_000);
    await queue.reset();
    assert.deepEqual(queue.inspectMessages(), []);
    assert.deepEqual(await queue.nextBatch({ timeoutMs: 0 }), []);
    assert.equal((await queue.send("job", bytes(""))).id(), 4n);
  });

  it("completes a message once", async (t) => {
    const { queue } = await queueOf(t);
    await queue.send("job", bytes("one"));
    const message = await queue.waitForNames(["job"], { completable: true });
    assert.equal(message.isCompletable(), true);
    await message.complete();
    assert.deepEqual(await refusal(message.complete()), {
      is: "napi.invalid_state",
      metadata: { state: "queue message", reason: "already completed" },
      message: "Invalid native state 'queue message': already completed",
    });

    await queue.send("job", bytes("two"));
    const [plain] = await queue.nextBatch();
    assert.equal((await refusal(plain.complete())).is, "queue.complete_not_configured");
  });

  it("completes by id, with a response for the sender that waits", async (t) => {
    const { queue } = await queueOf(t);
    const answered = queue.enqueueAndWait("job", bytes("q"));
    await queue.waitForNamesAvailable([]);
    assert.deepEqual(await refusal(queue.completePersisted(1n, "other")), {
      is: "queue.message_identity_mismatch",
      metadata: { message_id: 1, expected_name: "other", actual_name: "job" },
      message: "queue message 1 is named `job`, not `other`",
    });
    assert.equal(await queue.completePersisted(1n, "job", bytes("a")), true);
    assert.equal(text(await answered), "a");
    assert.equal(await queue.completePersisted(1n, "job"), false);

    const silent = queue.enqueueAndWait("job", bytes("q"), { timeoutMs: 5_000 });
    const [message] = await queue.nextBatch({ completable: true });
    await message.complete(null);
    assert.equal(await silent, null);
  });

  it("ends waits by their time, their token or the actor's end", async (t) => {
    const { queue, bag } = await queueOf(t);
    assert.deepEqual(await queue.nextBatch({ timeoutMs: 1 }), []);
    const timedOut = { is: "queue.timed_out", metadata: { timeout_ms: 1 } };
    for (const waits of [
      queue.waitForNames(["job"], { timeoutMs: 1 }),
      queue.waitForNamesAvailable(["job"], { timeoutMs: 1 }),
      queue.enqueueAndWait("other", bytes(1), { timeoutMs: 1 }),
    ]) {
      const { is, metadata } = await refusal(waits);
      assert.deepEqual({ is, metadata }, timedOut);
    }

    const token = new CancellationToken();
    const cancelled = [
      queue.nextBatch({ names: ["job"] }, token),
      queue.waitForNames(["job"], {}, token),
      queue.waitForNamesAvailable(["job"], {}, token),
      queue.enqueueAndWait("other", bytes(2), {}, token),
    ].map(refusal);
    await turn();
    token.cancel();
    for (const { is } of await Promise.all(cancelled)) assert.equal(is, "actor.aborted");
    // What is there goes before a token that was cancelled.
    assert.equal((await queue.nextBatch({ names: ["other"], count: 9 }, token)).length, 2);

    const stopped = refusal(queue.nextBatch({ names: ["job"] }));
    bag.context.sleep();
    assert.equal((await stopped).is, "actor.aborted");
  });

  it("refuses what is too much, and times that are negative", async (t) => {
    const { queue } = await queueOf(t, { maxQueueSize: 1, maxQueueMessageSize: 64 });
    assert.equal(queue.maxSize(), 1);
    const large = await refusal(queue.send("job", new Uint8Array(64)));
    assert.deepEqual(
      [large.is, large.metadata],
      ["queue.message_too_large", { size: 83, limit: 64 }],
    );
    for (const call of [
      queue.nextBatch({ timeoutMs: -1 }),
      queue.waitForNames(["job"], { timeoutMs: -1 }),
      queue.waitForNamesAvailable([], { timeoutMs: -1 }),
      queue.enqueueAndWait("job", bytes(1), { timeoutMs: -1 }),
    ]) {
      const { is, metadata } = await refusal(call);
      const reason = "-1 is not milliseconds from 0";
      assert.deepEqual(
        [is, metadata],
        ["napi.invalid_argument", { argument: "timeoutMs", reason }],
      );
    }
    await queue.send("job", bytes(1));
    const full = await refusal(queue.send("job", bytes(2)));
    assert.deepEqual([full.is, full.metadata], ["queue.full", { limit: 1 }]);
  });

  it("hands a message that was not completed to the next generation, as its policy says", async (t) => {
    const policies = [{ name: "job", maxDeliveries: 2 }];
    const { host, queue } = await queueOf(t, { queuePolicies: policies });
    await queue.send("job", bytes(1));
    assert.equal((await queue.nextBatch({ completable: true }))[0].deliveryCount(), 1);
    assert.deepEqual(await queue.nextBatch({ completable: true, timeoutMs: 0 }), []);
    const { id } = await host.ensure(actor("counter", "a"), "get");
    await host.sleep(id);
    assert.equal((await refusal(queue.send("job", bytes(2)))).is, "actor.stopping");

    const again = (await awake(host, actor("counter", "a"))).context.queue();
    assert.equal((await again.nextBatch({ completable: true }))[0].deliveryCount(), 2);
    await host.sleep(id);
    const last = (await awake(host, actor("counter", "a"))).context.queue();
    assert.deepEqual(await last.nextBatch({ timeoutMs: 0 }), []);
  });

  it("commits what a turn sends with the state that is asked for", async (t) => {
    let state = 0;
    const factory = new NapiActorFactory(
      {
        createState: () => bytes(0),
        serializeState: () => ({ state: bytes(state) }),
        actions: {
          async go(_, { ctx }) {
            state = 5;
            ctx.requestSave();
            await ctx.queue().send("job", bytes("x"));
            return bytes(ctx.queue().inspectMessages().length);
          },
        },
      },
      { hasState: true, durability: "interval", stateSaveIntervalMs: 600_000 },
    );
    const host = await opened(t, { it: factory });

    assert.equal(text(await host.submit(actor("it", "a"), "go", bytes(""), 2)), "1");
  });
});
