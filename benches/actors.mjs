// The actors that are measured.

import { actor } from "greenroom";

/** How many actors the calls are spread over, unless a row says otherwise. */
export const ACTORS = 100;

const NOTE = "x".repeat(100);

const config = {
  createState: () => ({ count: 0, note: NOTE }),
  actions: {
    read: (c) => c.state.count,
    add(c, by) {
      c.state.count += by;
      return c.state.count;
    },
  },
};

/** Each answer waits until what it may reveal is on the disk. */
export const reply = actor(config);
/** Saved at most every save interval; answers do not wait. */
export const interval = actor({ ...config, options: { durability: "interval" } });

/** Handles on `count` actors, all of them awake. */
export async function awake(client, name, count = ACTORS) {
  const handles = Array.from({ length: count }, (_, i) => client[name].getOrCreate(`bench-${i}`));
  await Promise.all(handles.map((handle) => handle.read()));
  return handles;
}

/** Has something to do in a year, and sleeps until then. */
export const sleeper = actor({
  ...config,
  actions: {
    ...config.actions,
    async rest(c) {
      await c.schedule.after(365 * 24 * 3_600_000, "read");
      c.sleep();
    },
  },
});

/** How late what is scheduled runs, in milliseconds. */
export const lateness = [];

/** Notes how late it is. */
export const punctual = actor({
  ...config,
  actions: {
    ...config.actions,
    async expect(c, moment, count) {
      for (let n = 0; n < count; n += 1) void c.schedule.at(moment, "due");
      await c.flush();
    },
    due(_c, { scheduledAt }) {
      lateness.push(performance.timeOrigin + performance.now() - scheduledAt);
    },
  },
});
