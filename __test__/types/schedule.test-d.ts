// What schedules and cron jobs accept, and what is told of them. Compiled, never run.

import type {
  ActorCron,
  ActorSchedule,
  Context,
  CronFire,
  CronJobInfo,
  DeadFireInfo,
  ScheduledEventInfo,
  ScheduledFireInfo,
} from "greenroom";
import {
  type ActionContextOf,
  type ActorContextOf,
  actor,
  type SelfHandleOf,
  setup,
} from "greenroom";

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_: Equal<A, B>): void {}

const reminder = actor({
  state: { sent: 0 },
  onWake: async (c) => {
    // Hooks may be written before the actions that they name.
    await c.schedule.after(1, "note", "x");
    await c.cron.every({ name: "tick", interval: 5_000, action: "tick" });
    // @ts-expect-error: there is no such action
    await c.schedule.after(1, "sent");
    // @ts-expect-error: there is no such action
    await c.cron.every({ name: "tick", interval: 5_000, action: "tock" });
  },
  actions: {
    note: async (c, text: string, times?: number) => {
      same<typeof c.state.sent, number>(true);
      const id = await c.schedule.after(1_000, "tick");
      same<typeof id, string>(true);
      await c.schedule.at(c.now, { action: "group.inner", args: [1], key: "k" });
      await c.schedule.at(c.now, { action: "tick", retry: { maxAttempts: 3 } });
      // @ts-expect-error: there is no such action
      await c.schedule.at(c.now, { action: "tuck" });
      // @ts-expect-error: there is no such option
      await c.schedule.at(c.now, { action: "tick", retries: 3 });
      return helper(c, text.length + (times ?? 1));
    },
    plain: () => 1,
    group: { inner: (_c, n: number) => n },
  },
  internalActions: {
    tick: (c, fire: ScheduledFireInfo) => {
      same<typeof c.state.sent, number>(true);
      same<typeof fire.attempt, number>(true);
      return fire.kind;
    },
    purge: (c, before: number, fire?: ScheduledFireInfo) => {
      void c.schedule.after(before, "plain");
      return fire?.name;
    },
  },
});

async function helper(c: ActionContextOf<typeof reminder>, n: number): Promise<number> {
  // Here the definition is known, and with it the arguments.
  await c.schedule.after(n, "note", "x");
  await c.schedule.after(n, "note", "x", 2);
  await c.schedule.after(n, "tick");
  await c.schedule.after(n, "purge", 5);
  await c.schedule.after(n, "group.inner", 5);
  await c.schedule.after(n, { action: "purge", args: [5], retry: { maxAttempts: 2 } });
  await c.cron.set({ name: "n", expression: "* * * * *", action: "purge", args: [5] });
  await c.cron.every({ name: "n", interval: 5_000, action: "tick" });
  // @ts-expect-error: text is missing
  await c.schedule.after(n, "note");
  // @ts-expect-error: text is no number
  await c.schedule.after(n, "note", 5);
  // @ts-expect-error: the runtime adds why it runs
  await c.schedule.after(n, "purge", 5, { kind: "at" });
  // @ts-expect-error: arguments are missing
  await c.schedule.after(n, { action: "purge" });
  // @ts-expect-error: there is no such action
  await c.schedule.after(n, "nothing");
  // @ts-expect-error: a group is no action
  await c.schedule.after(n, "group");
  // @ts-expect-error: an argument of the wrong type
  await c.cron.set({ name: "n", expression: "* * * * *", action: "purge", args: ["5"] });
  // @ts-expect-error: there is no expression
  await c.cron.set({ name: "n", action: "tick" });
  return n;
}

async function read(c: ActorContextOf<typeof reminder>): Promise<void> {
  same<Awaited<ReturnType<typeof c.schedule.get>>, ScheduledEventInfo | undefined>(true);
  same<Awaited<ReturnType<typeof c.schedule.list>>, ScheduledEventInfo[]>(true);
  same<Awaited<ReturnType<typeof c.schedule.cancel>>, boolean>(true);
  same<Awaited<ReturnType<typeof c.schedule.dead.list>>, DeadFireInfo[]>(true);
  same<Awaited<ReturnType<typeof c.cron.get>>, CronJobInfo | undefined>(true);
  same<Awaited<ReturnType<typeof c.cron.history>>, CronFire[]>(true);
  const job = await c.cron.get("n");
  if (job?.kind === "cron") same<typeof job.expression, string>(true);
  if (job?.kind === "every") same<typeof job.interval, number>(true);
  same<ScheduledEventInfo["args"], unknown[]>(true);
}

// A helper that the actor itself calls, and one for any actor.
function later(c: Context<{ actions: { tick(n: number): void } }>): Promise<string> {
  void c.schedule.after(1, "tick");
  // @ts-expect-error: there is no such action
  return c.schedule.after(1, "tock");
}
function any(schedule: ActorSchedule, cron: ActorCron): void {
  void schedule.after(1, "whatever", 1, "two");
  void cron.set({ name: "n", expression: "* * * * *", action: "whatever", args: [1] });
}

const registry = setup({ use: { reminder } });
const handle = registry.client().reminder.getOrCreate("k");
same<ReturnType<typeof handle.note>, Promise<number>>(true);
same<ReturnType<typeof handle.group.inner>, Promise<number>>(true);
// @ts-expect-error: an internal action is for the actor itself
void handle.tick;

// The actor's own handle has them.
declare const self: SelfHandleOf<typeof reminder>;
same<ReturnType<typeof self.purge>, Promise<string | undefined>>(true);

export { any, later, read };
