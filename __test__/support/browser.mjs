// The browser of the tests.

import { chromium } from "playwright-core";
import { chromiumHere, NO_CHROMIUM } from "../../scripts/lib/chromium.mjs";

const program = chromiumHere();
if (program === undefined && process.env.CI) throw new Error(NO_CHROMIUM);

/** Why tests in a browser are skipped; false where they are not. */
export const skip = program === undefined && NO_CHROMIUM;

/** Neither a sandbox, which root cannot have, nor anything that goes out to the network by itself. */
const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Starts the browser, without a window and with a profile that goes with it. */
export const launch = () => chromium.launch({ executablePath: program, args: ARGS });
