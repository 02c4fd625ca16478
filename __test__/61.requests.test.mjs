// `onRequest`: an author answers HTTP.

import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { after, before, describe, it } from "node:test";

import { actor, UserError } from "../dist/index.js";
import { actorUrl } from "./support/gateway.mjs";
import { deferred, inMemory, until } from "./support/registry.mjs";

const seen = {
  read: deferred(),
  waiting: deferred(),
  aborted: deferred(),
  cancelled: deferred(),
  later: deferred(),
  over: deferred(),
  wrong: deferred(),
  headed: deferred(),
  ended: false,
  pulled: 0,
};

const site = actor({
  state: { hits: 0 },
  options: { sleepTimeout: 100, sleepGracePeriod: 200 },
  onRequest: async (c, request) => {
    const url = new URL(request.url);
    switch (url.pathname) {
      case "/echo":
        c.state.hits += 1;
        return new Response(await request.arrayBuffer(), {
          status: 201,
          headers: { "x-method": request.method, "x-sent": request.headers.get("x-sent") ?? "" },
        });
      case "/url":
        return Response.json({
          path: url.pathname + url.search,
          key: c.key,
          same: c.request === request,
          caller: c.caller,
        });
      case "/size": {
        let size = 0;
        for await (const piece of request.body) size += piece.byteLength;
        return Response.json({ size });
      }
      case "/pipe":
        return new Response(request.body, { headers: { "x-piped": "yes" } });
      case "/later":
        // Answered before it is read.
        c.waitUntil(
          request.arrayBuffer().then(seen.later.resolve, (error) => seen.later.resolve(error)),
        );
        return new Response("taken");
      case "/ends":
        request.signal.addEventListener("abort", () => {
          seen.ended = true;
        });
        return new Response(new Blob(["x".repeat(200_000)]).stream());
      case "/cookies": {
        const response = new Response(null, { status: 204 });
        response.headers.append("set-cookie", "a=1");
        response.headers.append("set-cookie", "b=2");
        return response;
      }
      case "/latin":
        return new Response("x", { headers: { "x-word": "caf\u00e9" } });
      case "/slow": {
        const encoder = new TextEncoder();
        const body = new ReadableStream({
          async start(controller) {
            for (let n = 0; n < 3; n += 1) {
              await c.clock.sleep(60);
              c.state.hits += 1;
              controller.enqueue(encoder.encode(`${n};`));
              await seen.read.promise;
            }
            controller.close();
          },
        });
        return new Response(body, { headers: { "content-type": "text/event-stream" } });
      }
      case "/endless":
        return new Response(
          new ReadableStream({
            pull(controller) {
              seen.pulled += 1;
              controller.enqueue(new Uint8Array(64 * 1024));
            },
            cancel: () => seen.cancelled.resolve(),
          }),
        );
      case "/over": {
        const body = new ReadableStream({
          pull: async (controller) => {
            await c.clock.sleep(5).catch(() => {});
            controller.enqueue(new Uint8Array(1_000));
          },
          cancel: (why) => seen.over.resolve([why?.code, request.signal.aborted]),
        });
        return new Response(body);
      }
      case "/wrong": {
        // More than goes along with the head, so that this is on its way before.
        const pieces = [new Uint8Array(100_000), "no bytes"];
        return new Response(
          new ReadableStream({
            pull: (controller) => controller.enqueue(pieces.shift()),
            cancel: () => seen.wrong.resolve(),
          }),
        );
      }
      case "/breaks": {
        let pulls = 0;
        return new Response(
          new ReadableStream({
            async pull(controller) {
              pulls += 1;
              if (pulls === 1) return controller.enqueue(new Uint8Array(100_000));
              await seen.headed.promise;
              controller.error(new Error("on purpose"));
            },
          }),
        );
      }
      case "/waits":
        request.signal.addEventListener("abort", () => seen.aborted.resolve());
        seen.waiting.resolve();
        await seen.aborted.promise;
        return new Response("too late");
      case "/large":
        return new Response(new Uint8Array(3_000_000).fill(7));
      case "/nothing":
        return undefined;
      case "/refuses":
        throw new UserError("no", { code: "refused", metadata: { why: "so" } });
      case "/fails":
        throw new Error("a secret");
      default:
        return new Response(`no ${url.pathname}`, { status: 404 });
    }
  },
  actions: { hits: (c) => c.state.hits },
});
const mute = actor({ actions: { hi: () => "hi" } });

describe("a request for an actor", () => {
  let registry;
  let url;
  let base;
  const at = (path, init) => fetch(actorUrl(url, "site", ["a"], `request${path}`), init);
  before(async () => {
    registry = inMemory({ site, mute });
    ({ url } = await registry.listen({ port: 0 }));
    base = registry.client().site.getOrCreate("a");
  });
  after(() => registry.shutdown());

  it("is answered with status, headers and body, once what changed is stored", async () => {
    const response = await at("/echo", {
      method: "PUT",
      body: "hello",
      headers: { "x-sent": "yes" },
    });
    assert.equal(response.status, 201);
    assert.equal(response.headers.get("x-method"), "PUT");
    assert.equal(response.headers.get("x-sent"), "yes");
    assert.match(response.headers.get("x-rivet-actor"), /^[0-9a-f-]{36}$/);
    assert.equal(await response.text(), "hello");
    assert.equal(await base.hits(), 1);
  });

  it("shows path and query without what led to the actor", async () => {
    const response = await fetch(`${actorUrl(url, "site", ["a"], "request/url")}&x=1&y=%2F`);
    assert.deepEqual(await response.json(), {
      path: "/url?x=1&y=%2F",
      key: ["a"],
      same: true,
      caller: "client",
    });
  });

  it("has the root for no path, and nothing behind HEAD and 204", async () => {
    assert.equal(await (await at("")).text(), "no /");
    const head = await at("/latin", { method: "HEAD" });
    assert.equal(head.status, 200);
    assert.equal(await head.text(), "");
    const cookies = await at("/cookies");
    assert.equal(cookies.status, 204);
    assert.deepEqual(cookies.headers.getSetCookie(), ["a=1", "b=2"]);
  });

  it("keeps bytes of headers above ASCII", async () => {
    assert.equal((await at("/latin")).headers.get("x-word"), "caf\u00e9");
  });

  it("may bring a large body, of a known length or not", async () => {
    const body = new Uint8Array(1_500_000).fill(3);
    assert.deepEqual(await (await at("/size", { method: "POST", body })).json(), {
      size: 1_500_000,
    });
    const chunks = new ReadableStream({
      start(controller) {
        for (let n = 0; n < 20; n += 1) controller.enqueue(new Uint8Array(10_000));
        controller.close();
      },
    });
    const streamed = await at("/size", { method: "POST", body: chunks, duplex: "half" });
    assert.deepEqual(await streamed.json(), { size: 200_000 });
  });

  it("may be answered with its own body, which is whole however long it is", async () => {
    const body = new Uint8Array(5_000_000).fill(9);
    const response = await at("/pipe", { method: "POST", body });
    assert.equal(response.headers.get("x-piped"), "yes");
    const bytes = new Uint8Array(await response.arrayBuffer());
    assert.equal(bytes.byteLength, 5_000_000);
    assert.ok(bytes.every((byte) => byte === 9));
  });

  it("does not look whole to who reads on when it was answered", async () => {
    const body = new Uint8Array(5_000_000);
    // A client that is still sending may see the connection close instead of the answer.
    await at("/later", { method: "POST", body })
      .then((response) => response.text())
      .catch(() => {});
    const read = await seen.later.promise;
    assert.ok(read instanceof Error || read.byteLength === 5_000_000, String(read.byteLength));
  });

  it("fires no signal for a client that has its whole answer", async () => {
    assert.equal((await (await at("/ends")).text()).length, 200_000);
    await base.hits();
    assert.equal(seen.ended, false);
  });

  it("is refused with a body beyond 20 MiB", async () => {
    const body = new Uint8Array(20 * 1024 * 1024 + 1);
    const response = await at("/size", { method: "POST", body }).catch((error) => error);
    // A client that is still sending may see the connection close instead.
    assert.ok(response instanceof Error || response.status === 413, String(response.status));
  });

  it("gets a large answer whole", async () => {
    const bytes = new Uint8Array(await (await at("/large")).arrayBuffer());
    assert.equal(bytes.byteLength, 3_000_000);
    assert.ok(bytes.every((byte) => byte === 7));
  });

  it("gets an answer piece by piece, from an actor that stays awake for it", async () => {
    const response = await at("/slow");
    const pieces = [];
    for await (const piece of response.body) {
      pieces.push(Buffer.from(piece).toString());
      // Long enough for an actor that does not count it as work to fall asleep.
      if (pieces.length === 1) setTimeout(seen.read.resolve, 300);
    }
    assert.equal(pieces[0], "0;");
    assert.equal(pieces.join(""), "0;1;2;");
  });

  it("stops an answer whose client has gone, and writes no further ahead than a little", async () => {
    const [response] = await once(
      httpRequest(actorUrl(url, "site", ["a"], "request/endless")).end(),
      "response",
    );
    await once(response, "readable");
    await until(async () => {
      const { pulled } = seen;
      await new Promise((resolve) => setTimeout(resolve, 50));
      return seen.pulled === pulled;
    }, "the writer waits for its reader");
    assert.ok(seen.pulled < 1_000, `${seen.pulled} pieces of 64 KiB`);
    response.destroy();
    await seen.cancelled.promise;
  });

  it("breaks an answer off that fails, so that it does not look whole", async () => {
    const response = await at("/breaks");
    assert.equal(response.status, 200);
    seen.headed.resolve();
    await assert.rejects(response.arrayBuffer());
  });

  it("cancels a body that gives what is no bytes", async () => {
    // Its head may be on its way or not.
    await assert.rejects(at("/wrong").then((response) => response.arrayBuffer()));
    await seen.wrong.promise;
  });

  it("breaks an answer off with the actor that gives it", async () => {
    const brief = actorUrl(url, "site", ["brief"], "request/over");
    const response = await fetch(brief);
    const reader = response.body.getReader();
    await reader.read();
    await registry.actor(registry.client().site.get("brief")).destroy();
    const [code, aborted] = await seen.over.promise;
    assert.deepEqual([code, aborted], ["stopping", true]);
    const rest = async () => {
      while (!(await reader.read()).done);
    };
    await assert.rejects(rest());
  });

  it("tells the author that its client has gone", async () => {
    const asked = httpRequest(actorUrl(url, "site", ["a"], "request/waits"));
    asked.on("error", () => {});
    asked.end();
    await seen.waiting.promise;
    asked.destroy();
    await seen.aborted.promise;
  });

  it("is an error as a call would be: shown where it is for clients, else its code alone", async () => {
    const refused = await at("/refuses");
    const told = await refused.json();
    assert.deepEqual([told.group, told.code, told.metadata], ["user", "refused", { why: "so" }]);
    for (const path of ["/fails", "/nothing"]) {
      const response = await at(path);
      assert.equal(response.status, 500);
      assert.doesNotMatch(await response.text(), /secret|Response/);
    }
  });

  it("is not found at an actor whose author answers none", async () => {
    const response = await fetch(actorUrl(url, "mute", ["m"], "request/x"));
    assert.equal(response.status, 404);
    assert.equal(await response.text(), "");
  });
});
