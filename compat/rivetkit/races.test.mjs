// Many who make, find and call one of RivetKit's actors at once.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, ENCODINGS, fresh } from "./support.mjs";

const app = appOf("between");
const times = (count, make) => Promise.all(Array.from({ length: count }, (_, n) => make(n)));

describe("many at once", () => {
  it("who get or create one key find one actor, which is made once", async () => {
    const key = fresh("race");
    const clients = ENCODINGS.map((encoding) => app.client(encoding));
    const sums = await times(30, (n) => clients[n % 3].counter.getOrCreate(key).add(1));
    assert.deepEqual(
      sums.sort((a, b) => a - b),
      Array.from({ length: 30 }, (_, n) => n + 1),
    );
    assert.deepEqual(await app.done(key), ["createState"]);
    const ids = await times(10, (n) => clients[n % 3].counter.getOrCreate(key).resolve());
    assert.equal(new Set(ids).size, 1);
  });

  it("who create one key are refused, but one", async () => {
    const key = fresh("race");
    const { counter } = app.client();
    const all = await times(8, (n) =>
      counter.create(key, { input: { from: n } }).then(
        (made) => made.resolve(),
        (error) => error,
      ),
    );
    const made = all.filter((each) => typeof each === "string");
    assert.equal(made.length, 1);
    for (const error of all.filter((each) => typeof each !== "string")) {
      assert.equal(`${error.group}.${error.code}`, "actor.duplicate_key");
    }
    assert.equal(await counter.get(key).resolve(), made[0]);
  });

  it("make as many actors as there are keys", async () => {
    const { counter } = app.client();
    const prefix = fresh("many");
    const ids = await times(60, (n) => counter.getOrCreate([...prefix, `${n}`]).resolve());
    assert.equal(new Set(ids).size, 60);
    const sums = await times(60, (n) => counter.getOrCreate([...prefix, `${n}`]).add(n));
    assert.deepEqual(
      sums,
      Array.from({ length: 60 }, (_, n) => n),
    );
  });

  it("connect to an actor that is made by it", async () => {
    const key = fresh("race");
    const conns = Array.from({ length: 12 }, (_, n) =>
      app
        .client(ENCODINGS[n % 3])
        .counter.getOrCreate(key)
        .connect(),
    );
    const sums = await Promise.all(conns.map((conn) => conn.add(1)));
    assert.deepEqual(
      sums.sort((a, b) => a - b),
      Array.from({ length: 12 }, (_, n) => n + 1),
    );
    assert.deepEqual(await app.done(key), ["createState"]);
    await Promise.all(conns.map((conn) => conn.dispose()));
  });

  it("are kept apart by keys that look alike", async () => {
    const { counter } = app.client();
    const id = crypto.randomUUID();
    const keys = [
      [id, "a", "b"],
      [id, "a/b"],
      [`${id}/a`, "b"],
      [id, "a,b"],
      [id, "a", "b", ""],
      [id, "", "ab"],
      [id, "ü\\"],
    ];
    const ids = await Promise.all(keys.map((key) => counter.getOrCreate(key).resolve()));
    assert.equal(new Set(ids).size, keys.length);
    const again = await Promise.all(keys.map((key) => counter.get(key).resolve()));
    assert.deepEqual(again, ids);
  });
});
