// A program of its own: calls an actor in a folder as it is told, and says what it heard.
// node durable.mjs <folder> <durability> <step ...>

import { actor, setup } from "../../dist/index.js";

const [folder, durability, ...steps] = process.argv.slice(2);
const counter = actor({
  state: { n: 0, map: new Map() },
  actions: {
    add: (c, by) => (c.state.n += by),
    save: async (c, options) => {
      c.state.n += 1;
      await c.saveState(options);
      return c.state.n;
    },
    flush: async (c) => {
      c.state.n += 1;
      await c.flush();
      return c.state.n;
    },
    read: (c) => c.state.n,
    // The turn in which the map was handed out has been encoded when it changes.
    late: async (c, method) => {
      const { map } = c.state;
      await new Promise((resolve) => setTimeout(resolve, 20));
      map.set(map.size, 1);
      await c[method]({ immediate: true });
      say(map.size);
      process.kill(process.pid, "SIGKILL");
    },
    // The map is again what is stored while another state is on its way.
    back: async (c) => {
      c.state.map.set("gone", 1);
      const first = c.flush();
      c.state.map.delete("gone");
      await Promise.all([first, c.flush()]);
      say(c.state.map.size);
      process.kill(process.pid, "SIGKILL");
    },
    size: (c) => c.state.map.size,
    // No call is under way when it changes.
    timed: (c) => {
      const { map } = c.state;
      setTimeout(() => map.set(map.size, 1), 20);
    },
  },
  options: { durability, stateSaveInterval: Number(process.env.SAVE_INTERVAL ?? 600_000) },
});
const registry = setup({ use: { counter }, storage: folder });
const handle = registry.client().counter.getOrCreate("k");

for (const step of steps) {
  if (step === "add") say(await handle.add(1));
  else if (step === "unawaited") void handle.add(1);
  else if (step === "read") say(await handle.read());
  else if (step === "save") say(await handle.save());
  else if (step === "save-now") say(await handle.save({ immediate: true }));
  else if (step === "save-soon") say(await handle.save({ maxWait: 10 }));
  else if (step === "flush") say(await handle.flush());
  else if (step === "late-flush") await handle.late("flush");
  else if (step === "late-save") await handle.late("saveState");
  else if (step === "back") await handle.back();
  else if (step === "size") say(await handle.size());
  else if (step === "timed") {
    await handle.timed();
    await new Promise((resolve) => setTimeout(resolve, 60));
  } else if (step === "kill") process.kill(process.pid, "SIGKILL");
  else if (step === "exit") process.exit(0);
  else if (step === "shutdown") say((await registry.shutdown()).drained);
}

function say(what) {
  process.stdout.write(`${what}\n`);
}
