// npm run build [-- native | ts] [-- --release]: builds what is missing or stale.

import { build, install, native, typescript } from "./lib/build.mjs";
import { Steps } from "./lib/steps.mjs";

const args = process.argv.slice(2);
const profile = args.includes("--release") ? "release" : "dev";
const part = args.find((arg) => !arg.startsWith("-"));

const parts = {
  undefined: (steps) => build(steps, profile),
  native: async (steps) => (await install(steps)) && (await native(steps, profile)),
  ts: async (steps) => (await install(steps)) && (await typescript(steps)),
};
if (!(part in parts)) {
  console.error(`unknown part ${part}: native or ts`);
  process.exit(2);
}
const steps = new Steps();
await parts[part](steps);
process.exitCode = steps.failed ? 1 : 0;
