// `rivetkit/client` as it is published: requests and raw sockets of an author's own.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { ENCODINGS, startServer, told } from "./support.mjs";

for (const encoding of ENCODINGS) {
  describe(`rivetkit/client in ${encoding}`, () => {
    let server;
    let client;
    let handle;
    before(async () => {
      server = await startServer();
      client = server.client(encoding);
      handle = client.room.getOrCreate(["raw", encoding], { params: { name: "ada" } });
    });
    after(() => server.close());

    describe("fetch()", () => {
      const json = async (...args) => (await handle.fetch(...args)).json();

      it("brings method, path, query, body and parameters to onRequest", async () => {
        for (const path of ["a/b?x=1&y=%2F", "/a/b?x=1&y=%2F"]) {
          assert.deepEqual(await json(path, { method: "PUT", body: "ü" }), {
            method: "PUT",
            pathname: "/a/b",
            search: "?x=1&y=%2F",
            body: "ü",
            name: "ada",
            own: [],
          });
        }
        assert.equal((await json("")).pathname, "/");
      });

      it("takes a URL and a Request, of which the actor sees the path", async () => {
        const url = new URL("http://elsewhere.example/page?q=1#part");
        const seen = await json(url);
        assert.deepEqual([seen.pathname, seen.search, seen.own], ["/page", "?q=1", []]);
        const request = new Request(url, { method: "POST", body: "text" });
        assert.deepEqual(Object.values(await json(request)).slice(0, 4), [
          "POST",
          "/page",
          "?q=1",
          "text",
        ]);
      });

      it("gives an answer by a handle of an id, with its headers", async () => {
        const byId = client.room.getForId(await handle.resolve());
        const response = await byId.fetch("x");
        assert.equal(
          decodeURIComponent(response.headers.get("x-key")),
          JSON.stringify(["raw", encoding]),
        );
        assert.equal((await response.json()).name, "nobody");
      });

      it("streams both ways", async () => {
        const body = new Uint8Array(1_000_000).fill(7);
        const response = await handle.fetch("stream", { method: "POST", body });
        assert.equal(response.status, 202);
        const bytes = new Uint8Array(await response.arrayBuffer());
        assert.equal(bytes.length, body.length);
        assert.ok(bytes.every((byte) => byte === 7));
      });

      it("gives errors as answers", async () => {
        const response = await handle.fetch("fail");
        assert.ok(response.status >= 400);
        const { group, code, message } = await response.json();
        assert.deepEqual([group, code, message], ["user", "no_page", "no page"]);
        const eve = client.room.getOrCreate("x", { params: { name: "eve" } });
        assert.equal((await (await eve.fetch("x")).json()).code, "unwanted");
        assert.equal((await client.typed.getOrCreate("a").fetch("x")).status, 404);
      });
    });

    describe("webSocket()", () => {
      const open = async (socket) => {
        socket.binaryType = "arraybuffer";
        const [{ data }] = await told((f) => socket.addEventListener("message", f), "a greeting");
        return data;
      };
      const next = async (socket) =>
        (await told((f) => socket.addEventListener("message", f, { once: true }), "a message"))[0]
          .data;

      it("brings texts and bytes, path, query and parameters", async () => {
        const socket = await handle.webSocket("deep/er?a=b");
        assert.equal(await open(socket), "hello ada /websocket/deep/er?a=b");
        socket.send("one");
        assert.equal(await next(socket), "one");
        socket.send(new Uint8Array([1, 2, 3]));
        assert.deepEqual(new Uint8Array(await next(socket)), new Uint8Array([1, 2, 3]));
        socket.close();
      });

      it("is closed by the author with a code and a reason", async () => {
        const socket = await handle.webSocket();
        assert.equal(await open(socket), "hello ada /websocket/");
        socket.send("close");
        const [{ code, reason }] = await told(
          (f) => socket.addEventListener("close", f),
          "a close",
        );
        assert.deepEqual([code, reason], [4001, "as you wish"]);
      });

      it("stays open while its actor sleeps", async () => {
        const kept = client.kept.getOrCreate(["kept", encoding]);
        const socket = await kept.webSocket();
        await told((f) => socket.addEventListener("open", f), "it opens");
        socket.send("one");
        assert.equal(await next(socket), "1 one");
        await server.sleep(await kept.resolve());
        socket.send("two");
        assert.equal(await next(socket), "2 two");
        socket.close();
      });

      it("is refused by the hooks of its connection", async () => {
        const eve = client.room.getOrCreate("x", { params: { name: "eve" } });
        const socket = await eve.webSocket();
        const [{ code, reason }] = await told(
          (f) => socket.addEventListener("close", f),
          "a close",
        );
        assert.equal(code, 1011);
        assert.match(reason, /^user\.unwanted(#|$)/);
      });
    });

    describe("within a server of the author's", () => {
      it("requests, sockets and URLs go by its path, and the rest is the author's", async () => {
        const far = server.client(encoding, { endpoint: server.attached });
        const room = far.room.getOrCreate(["attached", encoding], { params: { name: "ada" } });
        assert.equal(await room.same(1), 1);
        assert.equal((await (await room.fetch("a?b=1")).json()).search, "?b=1");
        const socket = await room.webSocket("x");
        const [{ data }] = await told((f) => socket.addEventListener("message", f), "a greeting");
        assert.equal(data, "hello ada /websocket/x");
        socket.close();
        const url = new URL(await room.getGatewayUrl());
        url.pathname += "/request/x";
        assert.equal((await fetch(url)).status, 200);
        assert.equal(await (await fetch(new URL("/x", server.attached))).text(), "the author's");
      });
    });

    describe("getGatewayUrl()", () => {
      it("is a URL that anything can ask", async () => {
        for (const each of [handle, client.room.getForId(await handle.resolve())]) {
          const url = new URL(await each.getGatewayUrl());
          url.pathname += "/request/x";
          const seen = await (await fetch(url)).json();
          assert.deepEqual([seen.method, seen.pathname, seen.search], ["GET", "/x", ""]);
        }
      });
    });
  });
}

describe("a server with a token", () => {
  let server;
  before(async () => {
    server = await startServer("s3cret-token");
  });
  after(() => server.close());

  it("lets in who has it, over HTTP and sockets, by key and by id", async () => {
    const { room } = server.client("bare", { token: "s3cret-token" });
    const handle = room.getOrCreate("a");
    const made = await room.create("b");
    for (const each of [handle, made]) {
      assert.equal(await each.same(1), 1);
      assert.equal((await each.fetch("x")).status, 200);
      const conn = each.connect();
      assert.equal(await conn.same(2), 2);
      await conn.dispose();
    }
    const url = new URL(await handle.getGatewayUrl());
    url.pathname += "/request/x";
    assert.equal((await fetch(url)).status, 200);
  });

  it("refuses who has none, or another", async () => {
    for (const options of [{}, { token: "guess" }]) {
      const handle = server.client("bare", options).room.getOrCreate("a");
      const calls = [() => handle.same(1), () => handle.connect().same(1), () => handle.resolve()];
      for (const call of calls) await assert.rejects(call, { code: "unauthorized" });
    }
  });
});
