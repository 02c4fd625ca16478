// npm run demo [-- FILE…]: builds what is missing, then runs examples/wordcount.

import { spawn } from "node:child_process";
import { build } from "./lib/build.mjs";
import { inRoot } from "./lib/paths.mjs";
import { Steps } from "./lib/steps.mjs";

const steps = new Steps();
if (!(await build(steps, "any"))) process.exit(1);
console.log();
const main = inRoot("examples", "wordcount", "main.mjs");
const demo = spawn(process.execPath, [main, ...process.argv.slice(2)], { stdio: "inherit" });
demo.on("exit", (code) => {
  process.exitCode = code ?? 1;
});
