// A workflow of RivetKit's whose process is killed in the middle of a step, and started again.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { describe, it } from "node:test";

import { clientsOf, delay, newFolder, startApp, until } from "./support.mjs";

describe("a workflow whose process is killed in the middle of a step", () => {
  it("goes on with that step, and runs none again that was finished", async () => {
    const place = await newFolder();
    const recorded = async () =>
      (await readFile(path.join(place.folder, "record"), "utf8")).trim().split("\n");
    const before = ["a", "round 0", "round 1", "round 2"];
    const times = 3;
    let app;
    const clients = clientsOf(() => app.url);
    try {
      for (let time = 0; time < times; time += 1) {
        app = await startApp(["workflow"], place.folder, { COMPAT_HANG: "1" });
        const handle = clients.client().crashing.getOrCreate("one");
        // An engine of its own may need a while after such a crash.
        await until(() => handle.get(), "the actor answers");
        const count = before.length + time + 1;
        await until(async () => (await recorded()).length === count, "it is in the step");
        assert.deepEqual((await handle.get()).done, before);
        await app.kill();
      }

      app = await startApp(["workflow"], place.folder);
      const handle = clients.client().crashing.getOrCreate("one");
      await until(async () => (await handle.get()).result, "the workflow ends");
      const { done, result } = await handle.get();
      assert.deepEqual(done, [...before, "b", "c"]);
      assert.deepEqual(result, ["of a", 2, "of b"]);
      const all = [...before, ...Array(times + 1).fill("b"), "c"].map((what) => `one ${what}`);
      assert.deepEqual(await recorded(), all);
      await clients.dispose();
      await app.close();
    } finally {
      await app?.kill();
      await place.remove();
    }
  });
});

describe("a workflow whose process is killed around the beginning of a sleep", () => {
  it("goes on in the next process, with nobody calling", async () => {
    const place = await newFolder();
    const recorded = async (what) =>
      (await readFile(path.join(place.folder, "record"), "utf8")).split("\n").includes(what);
    let app;
    const clients = clientsOf(() => app.url);
    try {
      app = await startApp(["workflow"], place.folder);
      for (const [round, after] of [0, 5, 15, 40, 100].entries()) {
        await clients.client().napping.getOrCreate(`${round}`).touch();
        await until(() => recorded(`${round} before`), "the first step has run");
        await delay(after);
        await app.kill();

        app = await startApp(["workflow"], place.folder);
        await until(() => recorded(`${round} after`), `the workflow of round ${round} goes on`);
      }
      await clients.dispose();
      await app.close();
    } finally {
      await app?.kill();
      await place.remove();
    }
  });
});
