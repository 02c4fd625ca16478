// Actors behind servers of the author's: files, an application, `handler()` and `attach()`.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { Agent, createServer, request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";

import { actor } from "../dist/index.js";
import { actorUrl, call } from "./support/gateway.mjs";
import { deferred, inMemory, newFolder } from "./support/registry.mjs";

const begun = deferred();
const aborted = deferred();
const counter = actor({
  state: { count: 0 },
  actions: {
    add: (c, by = 1) => {
      c.state.count += by;
      return c.state.count;
    },
  },
  onRequest: async (_c, request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/stream") {
      let n = 0;
      return new Response(
        new ReadableStream({
          pull(controller) {
            n += 1;
            if (n > 3) return controller.close();
            controller.enqueue(new Uint8Array(100_000).fill(n));
          },
        }),
      );
    }
    if (pathname === "/waits") {
      request.signal.addEventListener("abort", () => aborted.resolve());
      begun.resolve();
      await aborted.promise;
    }
    let size = 0;
    for await (const piece of request.body ?? []) size += piece.byteLength;
    return Response.json({ size });
  },
});

describe("files of the author", () => {
  it("come first, with their types, and what is no file goes on", async () => {
    const folder = await newFolder();
    await mkdir(join(folder, "sub"));
    await writeFile(join(folder, "index.html"), "<p>home</p>");
    await writeFile(join(folder, "sub", "app.mjs"), "export {};");
    const registry = inMemory({ counter });
    const { url } = await registry.listen({ port: 0, publicDir: folder });
    const home = await fetch(url);
    assert.equal(await home.text(), "<p>home</p>");
    assert.match(home.headers.get("content-type"), /^text\/html/);
    const script = await fetch(`${url}/sub/app.mjs`);
    assert.match(script.headers.get("content-type"), /javascript/);
    assert.equal((await fetch(`${url}/nothing`)).status, 404);
    assert.deepEqual(await call(url, "counter", [], "add"), { output: 1 });
    await assert.rejects(registry.listen({ port: 0, publicDir: join(folder, "none") }), {
      name: "TypeError",
      message: /none.*no folder/,
    });
    await registry.shutdown();
  });
});

describe("an application", () => {
  it("answers what is for nobody else, in pieces too, and its failures are masked", async () => {
    let gone;
    const application = {
      fetch: async (request) => {
        const { pathname, search } = new URL(request.url);
        if (pathname === "/echo") return new Response(await request.text(), { status: 202 });
        if (pathname === "/fails") throw new Error("a secret");
        if (pathname === "/endless") {
          const body = new ReadableStream({
            pull: (controller) => controller.enqueue(new Uint8Array(50_000)),
            cancel: () => gone.resolve(),
          });
          return new Response(body);
        }
        return new Response(`${request.method} ${pathname}${search}`);
      },
    };
    const registry = inMemory({ counter });
    const { url } = await registry.listen({ port: 0, application });
    assert.equal(await (await fetch(`${url}/a/b?c=1`)).text(), "GET /a/b?c=1");
    const options = await fetch(`${url}/a`, { method: "OPTIONS" });
    assert.equal(await options.text(), "OPTIONS /a");
    const large = "x".repeat(300_000);
    const echo = await fetch(`${url}/echo`, { method: "POST", body: large });
    assert.equal(echo.status, 202);
    assert.equal((await echo.text()).length, 300_000);
    const origin = url;
    const asked = await fetch(`${url}/a`, { headers: { origin } });
    // Which pages may read it is the author's matter.
    assert.equal(asked.headers.get("access-control-allow-origin"), null);
    const image = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" };
    const [refused] = await once(request(`${url}/a`, { headers: image }).end(), "response");
    refused.resume();
    assert.equal(refused.statusCode, 403);
    const failed = await fetch(`${url}/fails`);
    assert.equal(failed.status, 500);
    assert.doesNotMatch(await failed.text(), /secret/);
    // Now a write is the first to notice, now the request.
    for (let round = 0; round < 30; round++) {
      gone = deferred();
      const endless = await fetch(`${url}/endless`);
      await endless.body.cancel();
      await gone.promise;
    }
    assert.equal((await (await fetch(`${url}/health`)).json()).status, "ok");
    assert.deepEqual(await call(url, "counter", [], "add"), { output: 1 });
    await assert.rejects(registry.listen({ application: {} }), /application of listen\(\)/);
    await registry.shutdown();
  });
});

describe("handler()", () => {
  const registry = inMemory({ counter });
  const base = "http://localhost/api/rivet";

  it("answers calls, with the base path or without", async () => {
    for (const [count, url] of [base, "http://localhost"].entries()) {
      const response = await registry.handler(
        new Request(actorUrl(url, "counter", ["h"], "action/add"), {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ args: [] }),
        }),
      );
      assert.deepEqual([response.status, await response.json()], [200, { output: count + 1 }]);
    }
    const health = await registry.handler(new Request(`${base}/health`));
    assert.equal((await health.json()).status, "ok");
  });

  it("takes and gives bodies that come in pieces", async () => {
    const body = new Uint8Array(700_000);
    const url = actorUrl(base, "counter", ["h"], "request/size");
    const sized = await registry.handler(new Request(url, { method: "POST", body }));
    assert.deepEqual(await sized.json(), { size: 700_000 });
    const streamed = await registry.handler(
      new Request(actorUrl(base, "counter", ["h"], "request/stream")),
    );
    assert.equal((await streamed.arrayBuffer()).byteLength, 300_000);
  });

  it("gives a request up in the actor when its signal fires", async () => {
    const controller = new AbortController();
    const url = actorUrl(base, "counter", ["h"], "request/waits");
    const asked = registry.handler(new Request(url, { signal: controller.signal }));
    await begun.promise;
    controller.abort(new Error("enough"));
    await assert.rejects(asked, /enough/);
    await aborted.promise;
  });

  it("lets nobody manage actors without a token, and finds them all the same", async () => {
    const list = await registry.handler(new Request(`${base}/actors?name=counter`));
    assert.equal(list.status, 401);
    const found = await registry.handler(new Request(`${base}/actors?name=counter&key=h`));
    assert.equal((await found.json()).actors.length, 1);
    const options = { token: "t0k" };
    const headers = { authorization: "Bearer t0k" };
    const request = () => new Request(`${base}/actors?name=counter`, { headers });
    assert.equal((await registry.handler(request(), options)).status, 200);
    await assert.rejects(registry.handler("http://x"), /not a Request/);
  });

  it("refuses names of others that lead here", async () => {
    const response = await registry.handler(new Request("http://evil.example/api/rivet/metadata"));
    assert.equal(response.status, 403);
    const allowed = await registry.handler(new Request("http://app.example/api/rivet/metadata"), {
      hosts: ["app.example"],
    });
    assert.equal(allowed.status, 200);
  });
});

describe("attach()", () => {
  let registry;
  let server;
  let url;
  let detach;
  const upgraded = [];
  before(async () => {
    registry = inMemory({ counter });
    server = createServer((request, response) => response.end(`theirs ${request.url}`));
    detach = registry.attach(server, { basePath: "/actors" });
    server.on("upgrade", (request, socket) => {
      if (!request.url.startsWith("/theirs")) return;
      upgraded.push(request.url);
      socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\n");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${server.address().port}`;
  });
  after(async () => {
    detach();
    server.closeAllConnections();
    server.close();
    await registry.shutdown();
  });

  it("serves what is under its path and leaves the rest", async () => {
    assert.equal(await (await fetch(`${url}/x`)).text(), "theirs /x");
    assert.equal(await (await fetch(`${url}/actorsx`)).text(), "theirs /actorsx");
    assert.deepEqual(await call(`${url}/actors`, "counter", ["s"], "add", [5]), { output: 5 });
    const body = new Uint8Array(700_000);
    const at = actorUrl(`${url}/actors`, "counter", ["s"], "request/size");
    assert.deepEqual(await (await fetch(at, { method: "POST", body })).json(), { size: 700_000 });
    const stream = actorUrl(`${url}/actors`, "counter", ["s"], "request/stream");
    assert.equal((await (await fetch(stream)).arrayBuffer()).byteLength, 300_000);
  });

  it("carries connections, beside those of others", async () => {
    const upgrade = async (path) => {
      const socket = connect(server.address().port, "127.0.0.1");
      await once(socket, "connect");
      socket.write(
        `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
          "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
          "sec-websocket-protocol: rivet, rivet_encoding.json\r\n\r\n",
      );
      return socket;
    };
    const at = new URL(actorUrl(`${url}/actors`, "counter", ["s"], "connect"));
    const socket = await upgrade(at.pathname + at.search);
    let text = "";
    for await (const piece of socket) {
      text += piece.toString("latin1");
      if (text.includes("connectionId")) break;
    }
    assert.match(text, /^HTTP\/1\.1 101 /);
    // The WebSocket of Node.js takes no other word beside it.
    assert.match(text, /\r\nconnection: upgrade\r\n/i);
    assert.match(text, /"tag":"Init"/);
    const theirs = await upgrade("/theirs");
    await once(theirs, "data");
    assert.deepEqual(upgraded, ["/theirs"]);
    theirs.destroy();
  });

  it("gives upgrades that nobody takes back, as if nobody listened for them", async () => {
    const other = createServer((request, response) => response.end(`theirs ${request.url}`));
    const undo = [registry.attach(other, { basePath: "/one" })];
    undo.push(registry.attach(other, { basePath: "/two" }));
    other.listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address();
    const upgrade = async (path, protocol) => {
      const socket = connect(port, "127.0.0.1");
      socket.write(
        `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: Upgrade\r\nupgrade: ${protocol}\r\n\r\n`,
      );
      let text = "";
      for await (const piece of socket) text += piece;
      return text;
    };
    assert.match(await upgrade("/page", "websocket"), /200 OK[\s\S]*theirs \/page$/);
    assert.match(await upgrade("/page", "h2c"), /200 OK[\s\S]*theirs \/page$/);
    assert.match(await upgrade("/one/health", "h2c"), /200 OK[\s\S]*"status":"ok"/);
    undo[0]();
    assert.equal(
      await (await fetch(`http://127.0.0.1:${port}/one/health`)).text(),
      "theirs /one/health",
    );
    assert.equal((await fetch(`http://127.0.0.1:${port}/two/health`)).status, 200);
    undo[1]();
    other.closeAllConnections();
    other.close();
  });

  it("outlives clients that reset their upgrades", async () => {
    for (const path of ["/x", "/actors/connect"]) {
      const socket = connect(server.address().port, "127.0.0.1");
      await once(socket, "connect");
      socket.write(
        `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
          "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
      );
      socket.resetAndDestroy();
    }
    assert.equal(await (await fetch(`${url}/x`)).text(), "theirs /x");
  });

  it("leaves the connection usable where it refuses a large body", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const { port } = server.address();
    const ask = async (path, body) => {
      const asked = request({ agent, port, path, method: "POST" });
      asked.end(body);
      const [response] = await once(asked, "response");
      response.resume();
      await once(response, "end");
      return response.statusCode;
    };
    assert.equal(await ask("/actors/nothing/here", new Uint8Array(300_000)), 404);
    assert.equal(await ask("/actors/health"), 404);
    agent.destroy();
  });

  it("is undone by what it returns", async () => {
    const other = createServer((_, response) => response.end("theirs"));
    const undo = registry.attach(other);
    other.listen(0, "127.0.0.1");
    await once(other, "listening");
    const at = `http://127.0.0.1:${other.address().port}/api/rivet/health`;
    assert.equal((await (await fetch(at)).json()).status, "ok");
    undo();
    assert.equal(await (await fetch(at)).text(), "theirs");
    other.closeAllConnections();
    other.close();
    assert.throws(() => registry.attach({}), /not a server of node:http/);
  });
});
