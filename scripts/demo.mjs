// npm run demo [-- FILE…]: builds what is missing, then runs examples/wordcount.

import { build } from "./lib/build.mjs";
import { command } from "./lib/examples.mjs";
import { handOver } from "./lib/hand-over.mjs";
import { Steps } from "./lib/steps.mjs";

const steps = new Steps();
if (!(await build(steps, "any"))) process.exit(1);
console.log();
handOver(command("wordcount", process.argv.slice(2)));
