// The hooks of RivetKit's actors: their order, and what one that fails does.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, fresh, until } from "./support.mjs";

const app = appOf("destroy");

describe("hooks", () => {
  it("run in their order, at the first start and at a wake", async () => {
    const key = fresh("ordered");
    const handle = app.client().ordered.getOrCreate(key, { createWithInput: "in" });
    await handle.act();
    const transient = [
      "onBeforeConnect 0",
      "createConnState 0",
      "onConnect 1",
      "act",
      "onBeforeActionResponse act",
      "onDisconnect 0",
    ];
    const born = ["onMigrate true", "createState", "onCreate 1 in", "createVars", "onWake", "run"];
    await until(async () => (await app.done(key)).length >= 12, "all is done");
    assert.deepEqual(await app.done(key), [...born, ...transient]);

    await handle.rest();
    await until(async () => (await app.done(key)).includes("onSleep"), "it sleeps");
    await until(async () => {
      await handle.act();
      return (await app.done(key)).includes("onMigrate false");
    }, "it woke");
    const woken = (await app.done(key)).slice((await app.done(key)).indexOf("onSleep") + 1);
    const from = woken.indexOf("onMigrate false");
    assert.deepEqual(woken.slice(from, from + 4), [
      "onMigrate false",
      "createVars",
      "onWake",
      "run",
    ]);
  });

  it("that fail at the start refuse the call, with a user's error or a hidden one", async () => {
    const { failsToStart } = app.client();
    const start = (input) =>
      failsToStart.create(fresh("fails"), { input }).then((made) => made.get());
    assert.equal(await start("fine"), 0);
    for (const input of ["user", "plain"]) {
      const error = await start(input).then(assert.fail, (thrown) => thrown);
      assert.doesNotMatch(`${error.message}${JSON.stringify(error)}`, /a secret/);
    }
  });
});
