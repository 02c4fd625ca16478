// A `run` that fails: logged, seen among the holds, and begun again. How long it waits is told by the
// tests of the core, on a clock of their own; here only the first second of it is waited for.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor } from "../dist/index.js";
import { inMemory, until } from "./support/registry.mjs";

/** An actor whose `run` fails as often as `failures` says, and what became of it. */
function failing(failures) {
  const lines = [];
  const runs = [];
  const definition = actor({
    state: { n: 0 },
    run: async (c) => {
      runs.push(c.now);
      c.state.n += 1;
      if (runs.length <= failures) throw new Error(`failure ${runs.length}`);
      await new Promise((resolve) => c.abortSignal.addEventListener("abort", resolve));
    },
    actions: { read: (c) => c.state.n },
  });
  const sink = (line) => lines.push(line);
  const registry = inMemory({ loops: definition }, { logging: { level: "error", sink } });
  const handle = registry.client().loops.getOrCreate("a");
  const holds = async () => (await registry.actor(handle).info()).holds.map(({ what }) => what);
  return { runs, lines, registry, handle, holds };
}

describe("a run that fails", () => {
  it("is logged once, keeps its actor awake, and shows among the holds", async () => {
    const { lines, runs, handle, holds } = failing(1);
    await handle.read();

    await until(async () => (await holds()).includes("run (restarting)"), "it waits to restart");
    await until(() => lines.length > 0, "it is logged");

    assert.equal(runs.length, 1);
    assert.equal(lines.length, 1);
    assert.equal(lines[0].msg, "run failed: failure 1");
    assert.equal(lines[0].actorName, "loops");
    assert.match(lines[0].err.stack, /36\.run\.test\.mjs/);
    assert.equal(await handle.read(), 1, "the actor serves meanwhile");
  });

  it("runs again after a second, with all that run does", { timeout: 20_000 }, async () => {
    const { lines, runs, registry, handle, holds } = failing(1);
    await handle.read();
    const end = Date.now() + 15_000;
    while (runs.length < 2 && Date.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }

    assert.equal(runs.length, 2);
    assert.ok(runs[1] - runs[0] >= 1_000, `after ${runs[1] - runs[0]} ms`);
    assert.equal(await handle.read(), 2);
    assert.deepEqual(await holds(), ["run"]);
    assert.equal(lines.length, 1);

    await registry.actor(handle).sleep();
    assert.equal(runs.length, 2, "its end with the actor is no failure");
    assert.equal(lines.length, 1);
  });

  for (const stop of ["sleep", "destroy", "shutdown"]) {
    it(`and waits to begin again does not hold up a ${stop}`, async () => {
      const { runs, registry, handle, holds } = failing(9);
      await handle.read();
      await until(async () => (await holds()).includes("run (restarting)"), "it waits");
      const before = performance.now();

      if (stop === "shutdown") assert.deepEqual((await registry.shutdown()).notDrained, []);
      else await registry.actor(handle)[stop]();

      assert.ok(performance.now() - before < 900, "it did not wait for the restart");
      assert.equal(runs.length, 1);
      if (stop === "shutdown") return;
      await handle.read();
      await until(() => runs.length === 2, "the next generation runs");
    });
  }
});
