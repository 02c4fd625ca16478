import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { crashRounds, Holdings, States } from "./support/crash.mjs";

const ROUNDS = Number(process.env.GREENROOM_CRASH_ROUNDS ?? 20);
const SEED = Number(process.env.GREENROOM_CRASH_SEED ?? Date.now() % 1_000_000);

describe("a process killed with SIGKILL", () => {
  it(`loses nothing that it acknowledged, ${ROUNDS} times (seed ${SEED})`, async () => {
    const acknowledged = new States();
    await crashRounds({ rounds: ROUNDS, seed: SEED, acknowledged });

    const { puts, destroyed } = acknowledged;
    const actors = Object.keys(acknowledged.slots).length;

    // A run that wrote next to nothing would prove nothing.
    assert(puts > ROUNDS * 10, `only ${puts} acknowledged writes in ${ROUNDS} rounds`);
    assert(actors > 40, `only ${actors} actors`);
    assert(destroyed.length > 0, "no actor was destroyed");
  });

  it(`keeps turns and transactions whole, runs nothing twice and forgets nothing, ${ROUNDS} times (seed ${SEED})`, async () => {
    const acknowledged = new Holdings();
    await crashRounds({ rounds: ROUNDS, seed: SEED, acknowledged });

    const actors = Object.values(acknowledged.actors);
    assert(acknowledged.puts > ROUNDS * 10, `only ${acknowledged.puts} acknowledged changes`);
    for (const kind of ["note", "move", "mark"])
      assert(
        actors.some((each) => each[kind] > 0),
        kind,
      );
    for (const kind of ["jobs", "plans"])
      assert(
        actors.some((each) => each[kind].length > 0),
        kind,
      );
  });
});
