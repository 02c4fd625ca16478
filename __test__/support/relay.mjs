// A program of its own: one actor counts what it sent to another one, and the process is killed
// when that one has it.
// node relay.mjs <folder> <send|read>

import { actor, setup } from "../../dist/index.js";

const [folder, step] = process.argv.slice(2);
const receiver = actor({
  state: { received: 0 },
  actions: {
    add: async (c) => {
      c.state.received += 1;
      await c.flush();
      process.kill(process.pid, "SIGKILL");
    },
    wake: () => {},
    read: (c) => c.state.received,
  },
});
const sender = actor({
  state: { sent: 0 },
  actions: {
    pass: (c) => {
      c.state.sent += 1;
      return c.client().receiver.getOrCreate("k").add();
    },
    wake: () => {},
    read: (c) => c.state.sent,
  },
});
const registry = setup({ use: { sender, receiver }, storage: folder });
const client = registry.client();
const from = client.sender.getOrCreate("k");
const to = client.receiver.getOrCreate("k");

if (step === "send") {
  await Promise.all([from.wake(), to.wake()]);
  await from.pass();
} else {
  process.stdout.write(`${await from.read()}\n${await to.read()}\n`);
  await registry.shutdown();
}
