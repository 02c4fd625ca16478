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
