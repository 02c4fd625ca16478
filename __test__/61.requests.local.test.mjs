// `fetch` of a handle within the process: `onRequest` without a socket.

import assert from "node:assert/strict";
import { after, describe, it } from "node:test";

import { actor, UserError } from "../dist/index.js";
import { testRuntime } from "../dist/testing.js";
import { deferred, inMemory } from "./support/registry.mjs";

const aborted = deferred();
const waiting = deferred();

const site = actor({
  state: { hits: 0 },
  createConnState: (_c, params) => ({ params }),
  onRequest: async (c, request) => {
    const { pathname, search } = new URL(request.url);
    switch (pathname) {
      case "/echo":
        c.state.hits += 1;
        return new Response(await request.arrayBuffer(), {
          status: 201,
          headers: { "x-sent": request.headers.get("x-sent") ?? "" },
        });
      case "/who":
        return Response.json([c.key, search, c.caller, c.conn.state.params ?? null]);
      case "/waits":
        request.signal.addEventListener("abort", () => aborted.resolve());
        waiting.resolve();
        await aborted.promise;
        return new Response("too late");
      default:
        throw new UserError("no", { code: "refused" });
    }
  },
  actions: { hits: (c) => c.state.hits },
});

const asks = actor({
  state: { asked: 0 },
  actions: {
    ask: async (c) => {
      c.state.asked += 1;
      const response = await c.client().site.getOrCreate("inner").fetch("/who?x");
      return response.json();
    },
  },
});

describe("fetch of a handle", () => {
  const registry = inMemory({ site, asks });
  const client = registry.client();
  after(() => registry.shutdown());

  it("asks the actor, which it creates", async () => {
    const handle = client.site.getOrCreate("a");
    const init = { method: "POST", body: "x".repeat(300_000), headers: { "x-sent": "1" } };
    const response = await handle.fetch("/echo", init);
    assert.deepEqual([response.status, response.headers.get("x-sent")], [201, "1"]);
    assert.equal((await response.text()).length, 300_000);
    assert.equal(await handle.hits(), 1);
  });

  it("takes a path, a URL and a Request, and bodies that come in pieces", async () => {
    const handle = client.site.get("a");
    for (const input of ["who?q=1", new URL("http://any.example/who?q=1"), "/who?q=1"]) {
      const [, search] = await (await handle.fetch(input)).json();
      assert.equal(search, "?q=1");
    }
    const asked = new Request("http://any.example/echo", { method: "PUT", body: "abc" });
    assert.equal(await (await handle.fetch(asked)).text(), "abc");
    const body = new ReadableStream({
      start(controller) {
        for (let i = 0; i < 3; i++) controller.enqueue(new Uint8Array(100_000));
        controller.close();
      },
    });
    const piped = await handle.fetch("/echo", { method: "POST", body, duplex: "half" });
    assert.equal((await piped.arrayBuffer()).byteLength, 300_000);
  });

  it("has a connection with the parameters of the handle", async () => {
    const params = { name: "Zoë", since: new Date(0) };
    const handle = client.site.getOrCreate(["k", "é"], { params });
    const [key, , caller, passed] = await (await handle.fetch("/who")).json();
    assert.deepEqual([key, caller], [["k", "é"], "client"]);
    assert.equal(passed.name, "Zoë");
    assert.deepEqual(await (await client.site.get("a").fetch("/who")).json(), [
      ["a"],
      "",
      "client",
      null,
    ]);
  });

  it("answers errors as HTTP does, and rejects for an actor that is not there", async () => {
    const refused = await client.site.get("a").fetch("/other");
    assert.deepEqual([refused.status, (await refused.json()).code], [400, "refused"]);
    await assert.rejects(client.site.get("nobody").fetch("/who"), { code: "not_found" });
  });

  it("gives the request up with its signal, and that of the handle", async () => {
    const [own, ofHandle] = [new AbortController(), new AbortController()];
    const handle = client.site.getOrCreate("a", { signal: ofHandle.signal });
    const asked = handle.fetch("/waits", { signal: own.signal });
    await waiting.promise;
    own.abort(new Error("enough"));
    await assert.rejects(asked, /enough/);
    await aborted.promise;
    ofHandle.abort(new Error("over"));
    await assert.rejects(handle.fetch("/who"), /over/);
  });

  it("is there for actors, too", async () => {
    const [key, search] = await client.asks.getOrCreate("x").ask();
    assert.deepEqual([key, search], [["inner"], "?x"]);
  });

  it("works on the clock of a test, through sleep and a crash", async (t) => {
    const runtime = await testRuntime({ use: { site } });
    t.after(() => runtime.close());
    const handle = runtime.client.site.getOrCreate("t");
    assert.equal((await handle.fetch("/echo", { method: "POST", body: "x" })).status, 201);
    await runtime.evict(handle);
    assert.equal((await handle.fetch("/echo", { method: "POST", body: "x" })).status, 201);
    await runtime.crash();
    assert.equal((await handle.fetch("/who")).status, 200);
    assert.equal(await handle.hits(), 2);
  });
});
