import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { crashRounds } from "./support/crash.mjs";

const ROUNDS = Number(process.env.GREENROOM_CRASH_ROUNDS ?? 20);
const SEED = Number(process.env.GREENROOM_CRASH_SEED ?? Date.now() % 1_000_000);

describe("a process killed with SIGKILL", () => {
  it(`loses nothing that it acknowledged, ${ROUNDS} times (seed ${SEED})`, async () => {
    const { puts, actors, destroyed } = await crashRounds({ rounds: ROUNDS, seed: SEED });

    // A run that wrote next to nothing would prove nothing.
    assert(puts > ROUNDS * 10, `only ${puts} acknowledged writes in ${ROUNDS} rounds`);
    assert(actors > 40, `only ${actors} actors`);
    assert(destroyed > 0, "no actor was destroyed");
  });
});
