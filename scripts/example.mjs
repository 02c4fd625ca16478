// npm run example -- NAME [ARGUMENT…]: builds what is missing, then runs one example.

import { build } from "./lib/build.mjs";
import { command, compile, examples } from "./lib/examples.mjs";
import { handOver } from "./lib/hand-over.mjs";
import { execute, Steps } from "./lib/steps.mjs";

const [name, ...args] = process.argv.slice(2);
if (!examples.includes(name)) {
  console.error(`usage: npm run example -- NAME, one of ${examples.join(", ")}`);
  process.exit(2);
}
const steps = new Steps();
const built = await build(steps, "any");
const compiled = built && (await steps.step("examples", () => execute(compile()).then(() => "")));
if (!compiled) process.exit(1);
console.log();
handOver(command(name, args));
