// Schedules and recurring jobs.

import { actor } from "rivetkit";

import { noted } from "./notes.mjs";

/** The code of an error, whichever form it has in the actor. */
const code = (error) =>
  error.code === "GenericFailure" ? /"code":"([a-z_]+)"/.exec(error.message)[1] : error.code;

const refusal = (promise) => promise.then(() => "accepted", code);

const clock = actor({
  ...noted,
  state: { fired: [] },
  options: { sleepTimeout: 60_000, maxSchedules: 5 },
  actions: {
    fire(c, ...args) {
      const info = args.pop();
      c.state.fired.push({
        args,
        kind: info?.kind,
        name: info?.name,
        id: info?.id,
        late: info ? info.firedAt - info.scheduledAt : null,
        conn: c.conn === undefined,
      });
    },
    fail() {
      throw new Error("it does not work");
    },
    fired: (c) => c.state.fired,
    rest: (c) => c.sleep(),
    tryAfter: (c, ms) => refusal(c.schedule.after(ms, "fire")),
    trySet: (c, job) => refusal(c.cron.set(job)),
    tryEvery: (c, job) => refusal(c.cron.every(job)),
    after: (c, ms, ...args) => c.schedule.after(ms, "fire", ...args),
    at: (c, when, ...args) => c.schedule.at(when, "fire", ...args),
    afterMissing: (c) => c.schedule.after(10, "missing"),
    cancel: (c, id) => c.schedule.cancel(id),
    get: (c, id) => c.schedule.get(id),
    list: (c) => c.schedule.list(),
    set: (c, job) => c.cron.set(job),
    every: (c, job) => c.cron.every(job),
    job: (c, name) => c.cron.get(name),
    jobs: (c) => c.cron.list(),
    remove: (c, name) => c.cron.delete(name),
    history: (c, name, options) => c.cron.history(name, options),
  },
});

export const actors = { clock };
