// RivetKit's actors that call each other by c.client().

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, fresh } from "./support.mjs";

const app = appOf("between");
const manager = () => app.client().manager.getOrCreate(fresh("manager"));

describe("an actor", () => {
  it("calls another, which it makes", async () => {
    const key = fresh("counter");
    const handle = manager();
    assert.equal(await handle.addTo(key, 2), 2);
    assert.equal(await handle.addTo(key, 3), 5);
    assert.equal(await app.client().counter.get(key).get(), 5);
    const made = await handle.make(fresh("counter"), 40);
    assert.equal(made.n, 40);
    assert.equal(await app.client().counter.getForId(made.id).get(), 40);
  });

  it("gets the errors of another as a client does, and may pass them on", async () => {
    const key = fresh("counter");
    const handle = manager();
    assert.equal(await handle.missing(fresh("counter")), "actor.not_found");
    assert.deepEqual(await handle.refused(key), ["user", "no", "no", { why: "so" }]);
    assert.deepEqual(await handle.failed(key), ["rivetkit", "internal_error"]);
    await assert.rejects(handle.pass(key), { group: "user", code: "no", message: "no" });
  });

  it("sends messages to another, asks it raw, and listens to it", async () => {
    const key = fresh("counter");
    const handle = manager();
    assert.deepEqual(await handle.action({ name: "send", args: [key, 4] }), {
      status: "completed",
      response: 4,
    });
    assert.deepEqual(await handle.ask(key), { n: 4 });
    assert.ok([5, 6].includes(await handle.listen(key)));
  });

  it("calls many at once, itself, and in a chain", async () => {
    const handle = manager();
    assert.equal(await handle.many(fresh("many"), 30), 435);
    assert.deepEqual((await handle.self())[0], "manager");
    assert.equal(await handle.down(8), 8);
  });
});
