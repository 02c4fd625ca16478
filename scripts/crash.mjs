// npm run crash [-- ROUNDS] [--seed N]: the crash test for as many rounds as wanted.

import { parseArgs } from "node:util";
import { crashRounds } from "../__test__/support/crash.mjs";
import { build } from "./lib/build.mjs";
import { Steps } from "./lib/steps.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: "string", default: String(Date.now() % 1_000_000) } },
});
const rounds = Number(positionals[0] ?? 200);
const seed = Number(values.seed);
if (!Number.isInteger(rounds) || rounds < 1 || !Number.isInteger(seed)) {
  console.error("usage: npm run crash -- ROUNDS [--seed N], both whole numbers");
  process.exit(2);
}

const steps = new Steps();
if (!(await build(steps, "any"))) process.exit(1);
console.log(`seed ${seed}`);
const say = ({ round, puts }) => {
  const line = `${round} of ${rounds} kills survived, ${puts} acknowledged writes`;
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${line}`);
  else if (round % 10 === 0) console.log(line);
};
const { puts, actors, destroyed } = await crashRounds({ rounds, seed, onRound: say });
console.log(
  `\n${rounds} kills: all of ${puts} acknowledged writes were there, ` +
    `${actors} actors each once, ${destroyed} destroyed ones gone`,
);
