import { expectTypeOf } from "expect-type";
import {
  type ActionContextOf,
  type ActorTransaction,
  actor,
  type Context,
  queue,
  type SentQueueMessage,
} from "greenroom";
import { db, type RawAccess } from "greenroom/db";

interface State {
  n: number;
  names: string[];
}

const shop = actor({
  state: { n: 0, names: [] } as State,
  db: db(),
  queues: { jobs: queue<{ url: string }, number>(), plain: queue<string>() },
  actions: {
    tick: (_c, n: number) => n,
    async buy(c) {
      const given = await c.transaction(async (tx) => {
        expectTypeOf(tx.state).toEqualTypeOf<State>();
        expectTypeOf(tx.snapshot()).toEqualTypeOf<State>();
        expectTypeOf(tx.db).toEqualTypeOf<RawAccess>();
        expectTypeOf(tx.sql).toEqualTypeOf(c.sql);
        expectTypeOf(tx.kv).toEqualTypeOf(c.kv);
        expectTypeOf(await tx.queue.send("jobs", { url: "x" })).toEqualTypeOf<
          SentQueueMessage<"jobs">
        >();
        // @ts-expect-error no such queue
        await tx.queue.send("job", { url: "x" });
        // @ts-expect-error another body
        await tx.queue.send("jobs", "x");
        // @ts-expect-error receiving is not part of one
        await tx.queue.next();
        // @ts-expect-error no member of that name
        tx.broadcast("x");
        await tx.queue.complete({ id: 1, name: "jobs" }, 5);
        // @ts-expect-error another response
        await tx.queue.complete({ id: 1, name: "jobs" }, "five");
        const message = await c.queue.next({ names: ["jobs"], completable: true });
        if (message !== undefined) await tx.queue.nack(message, { delay: 5, error: "x" });
        await tx.schedule.after(5, "tick", 1);
        // @ts-expect-error no such action
        await tx.schedule.after(5, "tock", 1);
        await tx.cron.every({ name: "c", interval: 5_000, action: "tick", args: [1] });
        return tx.state.n;
      });
      expectTypeOf(given).toEqualTypeOf<number>();
      expectTypeOf(await c.transaction((tx) => tx.state.names, { timeout: 5 })).toEqualTypeOf<
        string[]
      >();
      // @ts-expect-error no such option
      await c.transaction(() => 1, { timout: 5 });
      await c.db.transaction((tx) => tx.execute("x"), { experimental: { includeState: true } });
    },
  },
  run: (c) =>
    c.transaction((tx) => {
      expectTypeOf(tx.state).toEqualTypeOf<State>();
    }),
  // @ts-expect-error a new actor is not stored yet
  onCreate: (c) => c.transaction(() => 1),
});

// A helper of its own, for the actor and for its transaction.
type Types = { state: State; queues: { plain: ReturnType<typeof queue<string>> } };
async function helper(c: Context<Types>): Promise<void> {
  await c.transaction((tx) => inside(tx));
}
function inside(tx: ActorTransaction<State>): void {
  tx.state.n += 1;
}
void helper;
declare const context: ActionContextOf<typeof shop>;
expectTypeOf(context.transaction(async (tx) => tx.state)).toEqualTypeOf<Promise<State>>();
