// What the contract says of keys and values, of the queue, and of schedules.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { CancellationToken, QueueMessage } from "greenroom/native";

import { bridged, recordOf } from "./support/bridge.mjs";
import { outcome, typed } from "./support/contract.mjs";
import { actor, awake, bytes, none, opened, text, turn, until } from "./support/native.mjs";

const target = actor("counter", "a");

// What waits for messages does not hold the process by itself.
let alive;
before(() => {
  alive = setInterval(() => {}, 1_000);
});
after(() => clearInterval(alive));

async function started(t, callbacks = {}, config = {}) {
  const host = await opened(t, { counter: typed(callbacks, config) });
  const bag = await awake(host, target);
  return { host, bag, context: bag.context };
}

describe("Kv", () => {
  const key = (...codes) => Buffer.from(codes);

  it("orders keys by their bytes, and lists without the end", async (t) => {
    const { context } = await started(t);
    const kv = context.kv();
    const keys = [key(4, 0), key(4, 127), key(4, 128), key(4, 255), key(5)];
    await kv.batchPut(keys.map((one) => ({ key: one, value: one })));

    const listed = async (entries) => (await entries).map((entry) => [...entry.key].join("."));

    const all = ["4.0", "4.127", "4.128", "4.255"];
    assert.deepEqual(await listed(kv.listPrefix(key(4))), all);
    const options = { reverse: true, limit: 2 };
    assert.deepEqual(await listed(kv.listPrefix(key(4), options)), ["4.255", "4.128"]);
    assert.deepEqual(await listed(kv.listRange(key(4, 127), key(4, 255))), ["4.127", "4.128"]);
    assert.deepEqual(await listed(kv.listPrefix(key(4), { limit: 0 })), []);
    assert.deepEqual(await listed(kv.listPrefix(key(4), null)), all);
    const got = await kv.batchGet([key(5), key(9), key(4, 0)]);
    assert.deepEqual(got, [key(5), null, key(4, 0)]);
    assert.ok(got[0] instanceof Buffer);
    await kv.deleteRange(key(4, 0), key(4, 128));
    await kv.batchDelete([key(5), key(9)]);
    assert.deepEqual(await listed(kv.listPrefix(none)), ["4.128", "4.255"]);
    assert.equal(await kv.get(key(5)), null);
    await kv.put(key(7), none);
    assert.deepEqual(await kv.get(key(7)), none.length === 0 ? Buffer.alloc(0) : undefined);
    await kv.delete(key(7));
    assert.equal(await kv.get(key(7)), null);
  });

  it("refuses keys and values that are too large with both sizes", async (t) => {
    const { context } = await started(t);
    const kv = context.kv();
    await kv.put(Buffer.alloc(2_048), Buffer.alloc(131_072));
    const more = (limit, size) => ({ public: true, statusCode: 400, metadata: { limit, size } });

    const long = Buffer.alloc(2_049);
    await assert.rejects(kv.put(long, none), bridged("kv", "key_too_large", more(2_048, 2_049)));
    const large = Buffer.alloc(131_073);
    await assert.rejects(
      kv.put(bytes("k"), large),
      bridged("kv", "value_too_large", more(131_072, 131_073)),
    );
    await assert.rejects(
      kv.batchPut([
        { key: bytes("a"), value: none },
        { key: bytes("b"), value: large },
      ]),
      (error) => {
        const { message } = recordOf(error);
        return message.includes("131073") && message.includes("131072");
      },
    );
    assert.equal(await kv.get(bytes("a")), null);
  });
});

describe("Queue", () => {
  it("hands messages out in order, with ids that are bigints", async (t) => {
    const { context } = await started(t);
    const queue = context.queue();
    const sent = await queue.send("a", bytes("1"));
    await queue.send("b", bytes("2"));
    await queue.send("a", bytes("3"));

    assert.ok(sent instanceof QueueMessage);
    assert.equal(typeof sent.id(), "bigint");
    assert.deepEqual([sent.name(), text(sent.body()), sent.isCompletable()], ["a", "1", false]);
    assert.ok(Math.abs(sent.createdAt() - Date.now()) < 60_000);
    const rows = await queue.inspectMessages();
    assert.deepEqual(
      rows.map(({ id, name, createdAtMs }) => [typeof id, name, typeof createdAtMs]),
      ["a", "b", "a"].map((name) => ["number", name, "number"]),
    );
    const told = (messages) => messages.map((message) => text(message.body()));
    assert.deepEqual(told(await queue.nextBatch({ names: ["a"], count: 5, timeoutMs: 0 })), [
      "1",
      "3",
    ]);
    assert.deepEqual(told(await queue.nextBatch()), ["2"]);
    assert.deepEqual(await queue.nextBatch({ timeoutMs: 0 }), []);
    assert.deepEqual(await queue.nextBatch({ timeoutMs: 1, names: undefined }), []);
    assert.equal(queue.maxSize(), 1_000);
  });

  it("has the ways that only look, for those who call them", async (t) => {
    const { context } = await started(t);
    const queue = context.queue();
    for (const body of ["1", "2", "3"]) await queue.send("a", bytes(body));

    const first = await queue.next({ names: ["a"] });
    const none = await queue.next({ names: ["b"], timeoutMs: 0 });

    assert.equal(text(first.body()), "1");
    assert.equal(none, null);
    // What is handed out must be durable first, which takes a while.
    assert.throws(() => queue.tryNext(), bridged("napi", "invalid_state"));
    assert.throws(() => queue.tryNextBatch({ count: 2 }), bridged("napi", "invalid_state"));
    assert.equal((await queue.inspectMessages()).length, 2);
  });

  it("rejects a wait that ends in time, by its token or with its actor", async (t) => {
    const { context, host, bag } = await started(t);
    const queue = context.queue();
    const late = { public: true, statusCode: 400, metadata: { timeout_ms: 5 } };

    for (const wait of [
      () => queue.waitForNames(["a"], { timeoutMs: 5 }),
      () => queue.waitForNamesAvailable(["a"], { timeoutMs: 5 }),
      () => queue.enqueueAndWait("b", bytes("x"), { timeoutMs: 5 }),
    ]) {
      await assert.rejects(wait(), bridged("queue", "timed_out", late), wait.toString());
    }
    for (const wait of [
      (token) => queue.nextBatch({ names: ["a"] }, token),
      (token) => queue.waitForNames(["a"], {}, token),
      (token) => queue.waitForNamesAvailable(["a"], null, token),
      (token) => queue.enqueueAndWait("b", bytes("x"), undefined, token),
    ]) {
      const token = new CancellationToken();
      const waits = outcome(wait(token));
      await turn();
      assert.equal(waits.state, "pending", wait.toString());
      token.cancel();
      await until(() => waits.state !== "pending");
      bridged("actor", "aborted")(waits.error);
      await assert.rejects(wait(token), bridged("actor", "aborted"));
    }
    const waits = outcome(queue.nextBatch({ names: ["a"] }));
    await host.sleep(bag.identity.actorId);
    await until(() => waits.state !== "pending");
    bridged("actor", "aborted")(waits.error);
  });

  it("keeps a message that is to be completed until it is, over a sleep too", async (t) => {
    const { context, host, bag } = await started(t);
    await context.queue().send("a", bytes("1"));
    const [taken] = await context.queue().nextBatch({ completable: true });
    assert.equal(taken.isCompletable(), true);
    await host.sleep(bag.identity.actorId);

    const again = await awake(host, target);
    const queue = again.context.queue();
    const [message] = await queue.nextBatch({ completable: true });
    assert.equal(message.id(), taken.id());
    await message.complete(bytes("done"));

    const twice = { metadata: { state: "queue message", reason: "already completed" } };
    await assert.rejects(message.complete(), bridged("napi", "invalid_state", twice));
    assert.deepEqual(await queue.nextBatch({ timeoutMs: 0 }), []);
  });

  it("completes by id, for a sender that waits", async (t) => {
    const { context } = await started(t);
    const queue = context.queue();
    const first = outcome(queue.enqueueAndWait("a", bytes("1")));
    const second = outcome(queue.enqueueAndWait("a", bytes("2")));
    const [one] = await queue.nextBatch({ completable: true });
    const [two] = await queue.nextBatch({ completable: true });

    await assert.rejects(
      queue.completePersisted(one.id(), "b"),
      bridged("queue", "message_identity_mismatch"),
    );
    assert.equal(await queue.completePersisted(one.id(), "a", bytes("r")), true);
    assert.equal(await queue.completePersisted(one.id(), "a"), false);
    assert.equal(await queue.completePersisted(two.id(), "a", null), true);
    await until(() => first.state === "done" && second.state === "done");

    assert.equal(text(first.value), "r");
    assert.equal(second.value, null);
  });

  it("refuses what is too much with its limit, and is emptied by reset", async (t) => {
    const { context } = await started(t, {}, { maxQueueSize: 2, maxQueueMessageSize: 100 });
    const queue = context.queue();
    const long = queue.send("a", Buffer.alloc(200));
    await assert.rejects(long, (error) => {
      const { metadata, public: shown } = recordOf(error);
      assert.deepEqual([metadata.limit, shown], [100, true]);
      assert.ok(metadata.size >= 200);
      return bridged("queue", "message_too_large")(error);
    });
    await queue.send("a", none);
    await queue.send("a", none);

    const full = { metadata: { limit: 2 }, statusCode: 400 };
    await assert.rejects(queue.send("a", none), bridged("queue", "full", full));
    await queue.reset();

    assert.deepEqual(await queue.inspectMessages(), []);
  });

  it("resolves when a message is there, and takes none", async (t) => {
    const { context } = await started(t);
    const queue = context.queue();
    const any = outcome(queue.waitForNamesAvailable([]));
    const other = outcome(queue.waitForNamesAvailable(["b"], { timeoutMs: 60_000 }));
    await queue.send("a", bytes("1"));
    await until(() => any.state === "done");

    assert.equal(other.state, "pending");
    assert.equal((await queue.inspectMessages()).length, 1);
  });
});

describe("Schedule", () => {
  it("has one-shots by their ids", async (t) => {
    const { context } = await started(t);
    const schedule = context.schedule();
    const at = Date.now() + 3_600_000;
    const id = await schedule.at(at, "get", bytes("x"));
    const after = await schedule.after(7_200_000, "get", none);

    const row = { id, action: "get", args: bytes("x"), runAt: at };
    assert.deepEqual(await schedule.get(id), row);
    assert.equal(await schedule.get("none"), null);
    assert.deepEqual(
      (await schedule.list()).map((event) => event.id),
      [id, after],
    );
    assert.deepEqual([await schedule.cancel(id), await schedule.cancel(id)], [true, false]);
  });

  it("has jobs by their names", async (t) => {
    const { context } = await started(t);
    const schedule = context.schedule();
    await schedule.cronSet("c", "0 3 * * *", null, "get", bytes("x"), 5);
    await schedule.cronSet("z", "0 3 * * *", "Europe/Berlin", "get", none);
    await schedule.cronEvery("e", 5_000, "get", none);

    const { nextRunAt, ...cron } = await schedule.cronGet("c");
    assert.ok(nextRunAt > Date.now());
    assert.deepEqual(
      { ...cron, timezone: undefined },
      {
        name: "c",
        kind: "cron",
        action: "get",
        args: bytes("x"),
        expression: "0 3 * * *",
        timezone: undefined,
        maxHistory: 5,
      },
    );
    assert.equal((await schedule.cronGet("z")).timezone, "Europe/Berlin");
    const every = await schedule.cronGet("e");
    assert.deepEqual([every.kind, every.intervalMs, every.lastRunAt], ["every", 5_000, undefined]);
    assert.equal(await schedule.cronGet("none"), null);
    assert.deepEqual((await schedule.cronList()).map(({ name }) => name).sort(), ["c", "e", "z"]);
    assert.deepEqual(await schedule.cronHistory("e"), []);
    assert.deepEqual(
      [await schedule.cronDelete("e"), await schedule.cronDelete("e")],
      [true, false],
    );
  });

  it("refuses with codes that clients may read", async (t) => {
    const { context } = await started(t, {}, { maxSchedules: 1 });
    const schedule = context.schedule();
    const shown = { public: true, statusCode: 400 };
    for (const [code, call] of [
      ["invalid_name", () => schedule.cronEvery("", 5_000, "get", none)],
      ["invalid_cron_expression", () => schedule.cronSet("c", "* * * *", null, "get", none)],
      ["invalid_cron_expression", () => schedule.cronSet("c", "* * * * * *", null, "get", none)],
      ["invalid_timezone", () => schedule.cronSet("c", "* * * * *", "Mars/Base", "get", none)],
      ["invalid_interval", () => schedule.cronEvery("e", 4_999, "get", none)],
      ["invalid_max_history", () => schedule.cronEvery("e", 5_000, "get", none, 1_000_000)],
    ]) {
      await assert.rejects(async () => call(), bridged("schedule", code, shown), call.toString());
    }
    await schedule.cronEvery("e", 5_000, "get", none);
    const more = () => schedule.after(1_000, "get", none);
    await assert.rejects(async () => more(), bridged("schedule", "max_schedules_exceeded", shown));
  });
});
