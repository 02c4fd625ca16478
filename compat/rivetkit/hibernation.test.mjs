// Sockets and connections to RivetKit's actors that outlive a sleep of the actor.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, ENCODINGS, fresh, hears, told, until } from "./support.mjs";

const app = appOf("web");

const next = async (socket) => {
  const [{ data }] = await told(
    (f) => socket.addEventListener("message", f, { once: true }),
    "a message",
  );
  return data;
};

/** Puts the actor to sleep, and resolves once the host lists it so, or it noted its sleep. */
async function sleep(key, handle, times) {
  await handle.rest();
  await app.noted(key, "onSleep", times);
}

describe("a raw socket that may hibernate", () => {
  it("stays open while its actor sleeps, and wakes it", async () => {
    const key = fresh("keeper");
    const handle = app.client().keeper.getOrCreate(key);
    const socket = await handle.webSocket();
    await told((f) => socket.addEventListener("open", f), "it opens");
    let ends = 0;
    socket.addEventListener("close", () => {
      ends += 1;
    });
    socket.send("one");
    assert.equal(await next(socket), "1 one");
    for (let time = 1; time <= 2; time += 1) {
      await sleep(key, handle, time);
      socket.send("again");
      assert.equal(await next(socket), `${time + 1} again`);
    }
    assert.equal(ends, 0);
    assert.ok((await app.times(key, "onWebSocket")) >= 2);
    socket.close();
    await app.noted(key, "closed");
  });
});

for (const encoding of ENCODINGS) {
  describe(`a connection that may hibernate in ${encoding}`, () => {
    it("outlives a sleep with its id, its state and its subscriptions", async () => {
      const key = fresh("club");
      const { club } = app.client(encoding);
      const handle = club.getOrCreate(key);
      const ada = club.getOrCreate(key, { params: { name: "ada" } }).connect();
      const said = hears(ada, "said");
      const { id, ...first } = await ada.who();
      assert.deepEqual(first, { name: "ada", calls: 1, hibernatable: true });
      await sleep(key, handle, 1);
      await until(async () => {
        await handle.nothing();
        return (await app.times(key, "onWake")) === 2;
      }, "the actor wakes");
      await handle.say("awake");
      assert.deepEqual(await said.next(), ["awake"]);
      assert.deepEqual(await ada.who(), { id, name: "ada", calls: 2, hibernatable: true });
      assert.equal(await app.times(key, "onConnect ada"), 1);
      assert.equal(await app.times(key, "onDisconnect ada"), 0);
      await ada.dispose();
      await app.noted(key, "onDisconnect ada");
    });

    it("wakes its actor by an action", async () => {
      const key = fresh("club");
      const { club } = app.client(encoding);
      const ada = club.getOrCreate(key, { params: { name: "ada" } }).connect();
      await ada.who();
      await sleep(key, club.getOrCreate(key), 1);
      await until(
        async () => (await ada.who()).calls >= 2 && (await app.times(key, "onWake")) === 2,
        "the actor wakes",
      );
      assert.equal(await app.times(key, "onConnect ada"), 1);
      await ada.dispose();
    });
  });
}
