// Opens a folder if it is given one, says so, and writes the CPU time of the next two seconds, in
// microseconds.

import { setup } from "greenroom";
import { sleeper } from "../actors.mjs";

const storage = process.argv[2];
if (storage !== undefined) {
  await setup({ use: { sleeper }, storage }).client().sleeper.getOrCreate("first").read();
}
process.stdout.write("open\n");
// What the start left behind is done first.
setTimeout(() => {
  const before = process.cpuUsage();
  setTimeout(() => {
    const { user, system } = process.cpuUsage(before);
    process.stdout.write(`${user + system}\n`);
  }, 2_000);
}, 1_000);
