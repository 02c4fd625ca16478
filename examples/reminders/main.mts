// Reminders that outlive their process: stop it while one is pending, and run it again.
//
//     npm run example -- reminders [FOLDER]

import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { actor, type ScheduledFireInfo, setup } from "greenroom";

const reminders = actor({
  state: { rung: [] as string[] },
  actions: {
    /** Asked for twice, a text is one reminder. */
    remind: (c, text: string, seconds: number) =>
      c.schedule.after(seconds * 1_000, {
        action: "ring",
        args: [text],
        key: text,
        retry: { maxAttempts: 5 },
      }),
    pending: async (c) => (await c.schedule.list()).map(({ args }) => String(args[0])),
    rung: (c) => c.state.rung,
  },
  internalActions: {
    ring(c, text: string, fire: ScheduledFireInfo) {
      c.state.rung.push(text);
      const late = Math.round((c.now - fire.scheduledAt) / 1_000);
      console.log(`${text}${late > 0 ? ` (${late} s late: nothing ran then)` : ""}`);
    },
  },
});

const storage = process.argv[2] ?? path.join(tmpdir(), "greenroom-example-reminders");
const registry = setup({ use: { reminders }, storage });
const mine = registry.client().reminders.getOrCreate("mine");

// What an earlier run left behind rings by itself.
await mine.remind("look at the oven", 1);
await mine.remind("look at the oven", 1);
await mine.remind("water the plants", 2);
console.log(`pending: ${(await mine.pending()).join(", ")}`);

// Nothing that is pending keeps a process alive; here this does.
while ((await mine.pending()).length > 0) await setTimeout(100);

console.log(`rung so far: ${(await mine.rung()).length} (kept in ${storage})`);
await registry.shutdown();
