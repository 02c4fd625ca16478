// The end of RivetKit's actors.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, fresh, told, until } from "./support.mjs";

const app = appOf("destroy");

describe("an actor that is destroyed", () => {
  it("runs onDestroy once, and not onSleep, and its connections end", async () => {
    const key = fresh("mortal");
    const handle = app.client().mortal.getOrCreate(key);
    const conn = handle.connect();
    await conn.set(5);
    // At once, or the client connects again and makes another actor of the key.
    const closed = told((f) => conn.onClose(() => f(conn.dispose())), "the connection closes");
    const id = await handle.resolve();
    await handle.end();
    await Promise.all(await closed);
    await app.gone(id);
    const all = await app.done(key);
    assert.ok(all.includes("onDestroy n=5"), all.join());
    assert.equal(all.filter((what) => what.startsWith("onDestroy")).length, 1);
    assert.ok(!all.includes("onSleep"));
    assert.ok(all.includes("onDisconnect"));
  });

  it("is not found any more, by id or key", async () => {
    const { mortal } = app.client();
    const key = fresh("mortal");
    const handle = mortal.getOrCreate(key);
    await handle.set(5);
    const id = await handle.resolve();
    await handle.destroy();
    await app.gone(id);
    await assert.rejects(mortal.getForId(id).get(), { group: "actor" });
    const url = `${app.url}/gateway/${id}/action/get`;
    const response = await fetch(url, { method: "POST", body: '{"args":[]}' });
    assert.equal(response.status, 404);
    assert.equal((await response.json()).group, "actor");
  });

  it("leaves its key to another, which starts anew", async () => {
    const { mortal } = app.client();
    const key = fresh("mortal");
    const first = mortal.getOrCreate(key);
    await first.set(5);
    const id = await first.resolve();
    await first.end();
    await app.gone(id);
    const second = await mortal.create(key);
    assert.equal(await second.get(), 0);
    assert.notEqual(await second.resolve(), id);
  });

  it("cannot be destroyed twice", async () => {
    const handle = app.client().mortal.getOrCreate(fresh("mortal"));
    assert.equal(await handle.endTwice(), "actor.stopping");
  });

  it("by its host's call is gone as well, and the call may be repeated", async () => {
    const key = fresh("mortal");
    const handle = app.client().mortal.getOrCreate(key);
    await handle.set(1);
    const id = await handle.resolve();
    for (let index = 0; index < 2; index += 1) {
      const url = `${app.url}/actors/${id}?namespace=default`;
      const response = await fetch(url, { method: "DELETE" });
      assert.equal(response.status, 200);
      assert.deepEqual(await response.json(), {});
      await app.gone(id);
    }
    await until(async () => (await app.done(key)).length > 0, "onDestroy ran");
    assert.deepEqual(await app.done(key), ["onDisconnect", "onDestroy n=1"]);
  });
});
