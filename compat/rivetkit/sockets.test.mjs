// Raw sockets to RivetKit's actors.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { appOf, fresh, told } from "./support.mjs";

const app = appOf("web");

const next = async (socket) => {
  const [{ data }] = await told(
    (f) => socket.addEventListener("message", f, { once: true }),
    "a message",
  );
  return data;
};
const closed = (socket) =>
  told((f) => socket.addEventListener("close", f, { once: true }), "a close");

describe("a socket", () => {
  it("speaks with its actor, in texts and bytes, on any path", async () => {
    const key = fresh("site");
    const handle = app.client().site.getOrCreate(key, { params: { name: "ada" } });
    const socket = await handle.webSocket("a/b?c=1");
    socket.binaryType = "arraybuffer";
    assert.equal(await next(socket), "hello ada /websocket/a/b?c=1");
    socket.send("ü");
    assert.equal(await next(socket), "ü");
    socket.send(new Uint8Array([0, 255]));
    assert.deepEqual(new Uint8Array(await next(socket)), new Uint8Array([0, 255]));
    socket.send("count");
    assert.equal(await next(socket), "1");
    socket.close(4002, "enough");
    await app.noted(key, "closed 4002");
  });

  it("is closed by its actor with a code and a reason", async () => {
    const socket = await app.client().site.getOrCreate(fresh("site")).webSocket();
    await next(socket);
    const end = closed(socket);
    socket.send("close");
    const [{ code, reason }] = await end;
    assert.deepEqual([code, reason], [4001, "as you wish"]);
  });

  it("is refused by onBeforeConnect", async () => {
    const handle = app.client().site.getOrCreate(fresh("site"), { params: { name: "eve" } });
    const [{ code, reason }] = await closed(await handle.webSocket());
    assert.equal(code, 1011);
    assert.match(reason, /^user\.unwanted(#|$)/);
  });

  it("keeps messages in order, and several are apart", async () => {
    const handle = app.client().site.getOrCreate(fresh("site"));
    const greeted = async () => {
      const socket = await handle.webSocket();
      await next(socket);
      return socket;
    };
    const sockets = await Promise.all([1, 2, 3].map(greeted));
    const heard = sockets.map(() => []);
    for (const [index, socket] of sockets.entries()) {
      socket.addEventListener("message", ({ data }) => heard[index].push(data));
    }
    const last = sockets.map((socket) =>
      told((f) => {
        socket.addEventListener("message", ({ data }) => data.endsWith("99") && f());
      }, "the last message"),
    );
    for (let n = 0; n < 100; n += 1) {
      for (const [index, socket] of sockets.entries()) socket.send(`${index}-${n}`);
    }
    await Promise.all(last);
    for (const [index, texts] of heard.entries()) {
      assert.deepEqual(
        texts,
        Array.from({ length: 100 }, (_, n) => `${index}-${n}`),
      );
    }
    for (const socket of sockets) socket.close();
  });
});
