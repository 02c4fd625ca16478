// npm run bench: builds the release addon when it is missing or stale, then measures.

import { spawn } from "node:child_process";
import { build } from "./lib/build.mjs";
import { inRoot } from "./lib/paths.mjs";
import { Steps } from "./lib/steps.mjs";

const steps = new Steps();
if (!(await build(steps, "release"))) process.exit(1);
const bench = spawn(process.execPath, [inRoot("benches", "calls.mjs")], { stdio: "inherit" });
bench.on("exit", (code) => {
  process.exitCode = code ?? 1;
});
