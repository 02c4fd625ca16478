// npm run bench: builds the release addon when it is missing or stale, then measures.

import { build } from "./lib/build.mjs";
import { handOver } from "./lib/hand-over.mjs";
import { inRoot } from "./lib/paths.mjs";
import { Steps } from "./lib/steps.mjs";

const steps = new Steps();
if (!(await build(steps, "release"))) process.exit(1);
handOver([process.execPath, inRoot("benches", "main.mjs"), ...process.argv.slice(2)]);
