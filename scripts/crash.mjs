// npm run crash [-- ROUNDS] [--seed N]: the crash test for as many rounds as wanted.

import { parseArgs } from "node:util";
import { crashRounds, Holdings, States } from "../__test__/support/crash.mjs";
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
  const line = `${round} of ${rounds} kills survived, ${puts} acknowledged`;
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${line}`);
  else if (round % 10 === 0) console.log(line);
};
const states = await crashRounds({ rounds, seed, acknowledged: new States(), onRound: say });
console.log(
  `\n${rounds} kills: all of ${states.puts} acknowledged writes were there, ` +
    `${Object.keys(states.slots).length} actors each once, ${states.destroyed.length} destroyed ones gone`,
);
const holdings = await crashRounds({ rounds, seed, acknowledged: new Holdings(), onRound: say });
console.log(
  `\n${rounds} kills: all of ${holdings.puts} acknowledged changes of ` +
    `${Object.keys(holdings.actors).length} actors were there, none by half and none twice`,
);
