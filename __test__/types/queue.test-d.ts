import type { StandardSchemaV1 } from "@standard-schema/spec";
import { expectTypeOf } from "expect-type";
import {
  type ActionContextOf,
  type ActorContext,
  actor,
  type Context,
  type OpenQueueMessage,
  type QueueMessage,
  type QueueMessageOf,
  type QueueSchemaConfig,
  queue,
  setup,
} from "greenroom";

interface Job {
  url: string;
}

declare const text: StandardSchemaV1<string | number, string>;
declare const answer: StandardSchemaV1<number, { n: number }>;

const worker = actor({
  state: { done: 0 },
  queues: {
    jobs: queue<Job>(),
    asks: queue<{ question: string }, { answer: string }>({ maxDeliveries: 3 }),
    checked: queue({ message: text, complete: answer }),
    bare: text,
    plain: { message: text, complete: answer, backoff: { initial: 1, max: 2 } },
    open: queue(),
  },
  run: async (c) => {
    // All queues: a union that the name tells apart.
    for await (const message of c.queue.iter({ completable: true })) {
      if (message.name === "jobs") {
        expectTypeOf(message.body).toEqualTypeOf<Job>();
        await message.complete();
        // @ts-expect-error nobody waits for an answer of this queue
        await message.complete({ answer: "" });
      } else if (message.name === "asks") {
        await message.complete({ answer: message.body.question });
        // @ts-expect-error the answer is required
        await message.complete();
      } else if (message.name === "checked") {
        expectTypeOf(message.body).toEqualTypeOf<string>();
        await message.complete(1);
        // @ts-expect-error what the schema takes is a number
        await message.complete("1");
      } else if (message.name === "open") {
        // Of an untyped queue the response may be anything, and nothing.
        await message.complete();
        await message.complete({ any: 1 });
      }
      await message.nack({ delay: 5, error: new Error("later") });
      expectTypeOf(message.deliveryCount).toEqualTypeOf<number>();
    }
  },
  actions: {
    go: async (c) => {
      await c.queue.send("jobs", { url: "" }, { dedupeKey: "k", delay: 5 });
      await c.queue.send("checked", 1);
      // @ts-expect-error no such queue
      await c.queue.send("typo", 1);
      // @ts-expect-error no such message
      await c.queue.send("jobs", { uri: "" });
      const job = await c.queue.next({ names: ["jobs"], timeout: 5 });
      expectTypeOf(job).toEqualTypeOf<QueueMessage<"jobs", Job> | undefined>();
      // @ts-expect-error it was not received to be completed
      await job?.complete();
      const asks = await c.queue.nextBatch({ names: ["asks"], count: 2, completable: true });
      expectTypeOf(asks).toEqualTypeOf<
        OpenQueueMessage<"asks", { question: string }, { answer: string }>[]
      >();
      expectTypeOf(await c.queue.tryNext({ names: ["bare"] })).toEqualTypeOf<
        QueueMessage<"bare", string> | undefined
      >();
      expectTypeOf(await c.queue.waitForNames(["plain"])).toEqualTypeOf<
        QueueMessage<"plain", string>
      >();
      // @ts-expect-error no such queue
      await c.queue.waitForNames(["typo"]);
      await c.queue.waitForAvailable(["jobs"], { timeout: 1 });
      expectTypeOf(await c.queue.enqueueAndWait("asks", { question: "" })).toEqualTypeOf<
        { answer: string } | undefined
      >();
      expectTypeOf(await c.queue.enqueueAndWait("plain", "")).toEqualTypeOf<
        { n: number } | undefined
      >();
      expectTypeOf(
        await c.queue.complete({ id: 1, name: "asks" }, { answer: "" }),
      ).toEqualTypeOf<boolean>();
      // @ts-expect-error misspelt
      c.queue.sent;
      helper(c);
      named(c);
      return c.state.done;
    },
  },
});

// Names of RivetKit's.
expectTypeOf<QueueMessageOf<"jobs", Job>>().toEqualTypeOf<QueueMessage<"jobs", Job>>();
const declared: QueueSchemaConfig = { jobs: queue<Job>(), bare: text };
expectTypeOf(declared).toBeObject();

/** A helper for any context, and one for that of these queues. */
function helper(c: ActorContext): string {
  return c.actorId;
}
const queues = { jobs: queue<Job>() };
function named(c: Context<{ queues: typeof queues }>): Promise<unknown> {
  return c.queue.send("jobs", { url: "" });
}
const outside = (c: ActionContextOf<typeof worker>) => c.queue.send("jobs", { url: "" });
expectTypeOf(outside).toBeFunction();

const registry = setup({ use: { worker } });
const handle = registry.client().worker.getOrCreate("w");
expectTypeOf(handle.send("jobs", { url: "" })).toEqualTypeOf<Promise<void>>();
expectTypeOf(handle.send("open", 5, { delay: 5 })).toEqualTypeOf<Promise<void>>();
async function waits() {
  const sent = await handle.send("asks", { question: "" }, { wait: true, timeout: 5 });
  expectTypeOf(sent.status).toEqualTypeOf<"completed" | "timedOut">();
  if (sent.status === "completed") {
    expectTypeOf(sent.response).toEqualTypeOf<{ answer: string } | undefined>();
  }
}
expectTypeOf(waits).toBeFunction();
// @ts-expect-error no such queue
handle.send("typo", 1);
// @ts-expect-error no such message
handle.send("jobs", 1);
// @ts-expect-error only a send that waits has a timeout
handle.send("jobs", { url: "" }, { timeout: 5 });
handle.go();

// Without queues there is no name to send to.
const none = actor({
  actions: {
    // @ts-expect-error none is declared
    go: (c) => c.queue.send("jobs", 1),
  },
});
const client = setup({ use: { none } }).client();
// @ts-expect-error none is declared
client.none.get().send("jobs", 1);

// A queue is what `queue()` returns, its options, or a schema.
actor({
  // @ts-expect-error a number is none of them
  queues: { wrong: 5 },
});
// @ts-expect-error misspelt
queue({ maxDelivery: 3 });
queue({ canPublish: (c) => c.caller === "client" && c.key.length > 0 });
