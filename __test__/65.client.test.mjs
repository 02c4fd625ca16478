// The client over HTTP, against a double of the server.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { afterEach, describe, it } from "node:test";

import { Encoder } from "cbor-x";
import { createClient, RivetError } from "greenroom/client";
import { fail, gatewayDouble, manualTimers } from "./support/gateway-double.mjs";

let server;
const serve = async (answer) => {
  server = await gatewayDouble({ answer });
  return server.url;
};
afterEach(() => server?.close());

/** The timers of a test that has no patience. */
const hasty = { ...manualTimers(), setTimeout: (run) => setTimeout(run, 0), clearTimeout };

const cbor = new Encoder({ useRecords: false, mapsAsObjects: true });
const row = (id) => ({ actor: { actor_id: id, name: "room", key: "a" }, created: true });

describe("createClient()", () => {
  it("refuses options that it does not know, and endpoints that are none, by name", () => {
    for (const [options, message] of [
      [{ endpont: "x" }, /unknown key "endpont" of createClient\(\): did you mean "endpoint"\?/],
      ["localhost:6420", /^endpoint of createClient\(\) is "localhost:6420", not the URL/],
      ["http://a/?b", /which has a query or a fragment$/],
      ["http://:secret@a", /with a token and no namespace before it$/],
      [{ encoding: "bare" }, /^encoding of createClient\(\) is "bare", not "cbor" or "json"$/],
    ]) {
      assert.throws(() => createClient(options), { name: "TypeError", message });
    }
  });

  it("sends nothing before the first call", async () => {
    const client = createClient(await serve());

    client.room.getOrCreate("a").connect;
    client.get("room");

    assert.deepEqual(server.requests, []);
  });

  it("is no promise, and its handles are none", async () => {
    const client = createClient(await serve());

    assert.equal(await client, client);
    const handle = client.room.get();
    assert.equal(await handle, handle);
    assert.equal(JSON.stringify(handle), "{}");
  });

  it("is the same from an ES module and from CommonJS", () => {
    const required = createRequire(import.meta.url)("greenroom/client");

    assert.deepEqual(Object.keys(required).sort(), ["ActorError", "RivetError", "createClient"]);
    assert(new required.RivetError("a", "b", "c") instanceof RivetError);
  });
});

describe("an address", () => {
  const urlOf = async (handle) => {
    await handle(createClient({ endpoint: server.url })).ping();
    const { pathname, searchParams } = new URL(server.requests.at(-1).url, "http://x");
    return [pathname, Object.fromEntries(searchParams)];
  };

  it("names actors by key in the query, and by id in the path", async () => {
    await serve();

    assert.deepEqual(await urlOf((client) => client.room.get(["a/b", "ü"])), [
      "/gateway/room/action/ping",
      { "rvt-namespace": "default", "rvt-method": "get", "rvt-key": "a/b,ü" },
    ]);
    assert.deepEqual(await urlOf((client) => client.room.get()), [
      "/gateway/room/action/ping",
      { "rvt-namespace": "default", "rvt-method": "get" },
    ]);
    assert.deepEqual(await urlOf((client) => client.room.getForId("x1")), [
      "/gateway/x1/action/ping",
      {},
    ]);
  });

  it("holds the input of an actor that may have to be created", async () => {
    await serve();
    const input = { a: 1n, when: new Date(1_500), raw: new Uint8Array([1, 2]) };

    const [, query] = await urlOf((client) =>
      client.room.getOrCreate("k", { createWithInput: input }),
    );

    const { "rvt-input": sent, ...rest } = query;
    assert.deepEqual(rest, {
      "rvt-namespace": "default",
      "rvt-method": "getOrCreate",
      "rvt-key": "k",
      "rvt-runner": "default",
      "rvt-crash-policy": "sleep",
    });
    assert.deepEqual(cbor.decode(Buffer.from(sent, "base64url")), input);
  });

  it("is looked up where a query cannot say it, and again when the actor was replaced", async () => {
    let id = "id1";
    await serve(({ method, url }) => {
      if (method === "PUT") return row(id);
      return url.startsWith(`/gateway/${id}/`) ? { output: id } : fail("actor", "not_found", 404);
    });
    const room = createClient({ endpoint: server.url, encoding: "json" }).room;
    const handle = room.getOrCreate(["a,b", "", "c/d", "\\"]);

    assert.equal(await handle.ping(), "id1");
    assert.deepEqual(JSON.parse(server.requests[0].body), {
      name: "room",
      key: "a,b/\\0/c\\/d/\\\\",
      runner_name_selector: "default",
      crash_policy: "sleep",
    });
    assert.equal(await handle.ping(), "id1");
    assert.equal(server.requests.length, 3);

    id = "id2";
    assert.equal(await handle.ping(), "id2");
  });

  it("of a long input is looked up: URLs have an end", async () => {
    await serve(({ method }) => (method === "PUT" ? row("id1") : { output: 1 }));
    const room = createClient({ endpoint: server.url, encoding: "json" }).room;

    await room.getOrCreate("a", { createWithInput: "x".repeat(5_000) }).ping();

    const { input } = JSON.parse(server.requests[0].body);
    assert.equal(cbor.decode(Buffer.from(input, "base64")), "x".repeat(5_000));
    assert.equal(server.requests[1].url, "/gateway/id1/action/ping");
  });

  it("may lie below a path, and brings namespace and token", async () => {
    await serve(({ method }) => (method === "GET" ? { actors: [row("id1").actor] } : {}));
    const { host } = new URL(server.url);
    const client = createClient(`http://space:s%20t@${host}/api/rooms/`);

    await client.room.get("a").ping();
    await client.room.get("a").resolve();

    const [call, look] = server.requests;
    assert.match(call.url, /^\/api\/rooms\/gateway\/room\/action\/ping\?rvt-namespace=space&/);
    assert.equal(call.headers["x-rivet-token"], "s t");
    assert.equal(look.url, "/api/rooms/actors?namespace=space&name=room&key=a");
    assert.equal(look.headers.authorization, "Bearer s t");
  });
});

for (const encoding of ["cbor", "json"]) {
  describe(`a call in ${encoding}`, () => {
    const clientFor = async (answer, options) =>
      createClient({ endpoint: await serve(answer), encoding, timers: hasty, ...options });

    it("brings arguments and an answer with values that JSON has not", async () => {
      const client = await clientFor(({ message }) => ({ output: message.args }));
      const values = [5n, undefined, new Uint8Array([1]), new Set([1]), ["$x", 1], { a: [2n] }];

      assert.deepEqual(await client.room.get("a").echo(...values), values);
      assert.deepEqual(await client.room.get("a").echo("$BigInt", "5"), ["$BigInt", "5"]);
    });

    it("reaches actions in groups, by name, and by names of members too", async () => {
      const client = await clientFor(({ url }) => ({
        output: new URL(url, "http://x").pathname.slice("/gateway/room/action/".length),
      }));
      const handle = client.room.get("a");

      assert.equal(await handle.players.add(1), "players.add");
      assert.equal(await handle.action({ name: "players.add", args: [1] }), "players.add");
      assert.equal(await handle.action({ name: "send" }), "send");
      assert.equal(await handle["odd name/ü"](), "odd%20name%2F%C3%BC");
    });

    it("rejects with group, code and metadata of what was thrown", async () => {
      const client = await clientFor(() =>
        fail("user", "too_late", 400, {
          metadata: { by: ["$BigInt", "3"], odd: ["$x", 1], list: ["$$x", 1] },
          actor: { actorId: "x" },
        }),
      );

      await assert.rejects(client.room.get("a").ping(), (error) => {
        assert(error instanceof RivetError);
        const { group, code, message, metadata, statusCode, rayId, actor } = error;
        assert.deepEqual(
          { group, code, message, metadata, statusCode, rayId, actor },
          {
            group: "user",
            code: "too_late",
            message: "user too_late",
            metadata: { by: 3n, odd: ["$x", 1], list: ["$x", 1] },
            statusCode: 400,
            rayId: "ray1",
            actor: { actorId: "x" },
          },
        );
        return true;
      });
    });

    it("is sent again only where the server says that nothing was done", async () => {
      let left = 3;
      const client = await clientFor(({ url }) => {
        if (url.includes("/ping")) {
          left -= 1;
          return left >= 0 ? fail("actor", "stopping", 500) : { output: "done" };
        }
        return url.includes("/stuck") ? fail("actor", "starting") : fail("actor", "aborted");
      });
      const handle = client.room.get("a");

      assert.equal(await handle.ping(), "done");
      assert.equal(server.requests.length, 4);
      await assert.rejects(handle.other(), { code: "aborted" });
      assert.equal(server.requests.length, 5);
      await assert.rejects(handle.stuck(), { code: "starting" });
      assert.equal(server.requests.length, 11);
    });

    it("brings the parameters of the handle, whatever characters they have", async () => {
      const client = await clientFor(() => ({ output: 1 }));

      await client.room.get("a", { params: { name: "Zoë 😀", n: 1n } }).ping();
      await client.room.get("a", { getParams: async () => ({ fresh: true }) }).ping();

      const sent = server.requests.map(({ headers }) => JSON.parse(headers["x-rivet-conn-params"]));
      assert.deepEqual(sent, [{ name: "Zoë 😀", n: ["$BigInt", "1"] }, { fresh: true }]);
    });

    it("rejects when getParams does, and sends nothing", async () => {
      const client = await clientFor(() => ({ output: 1 }));
      const getParams = () => Promise.reject(new Error("no session"));

      await assert.rejects(client.room.get("a", { getParams }).ping(), {
        group: "client",
        code: "get_params_failed",
      });
      assert.deepEqual(server.requests, []);
    });

    it("ends with its signal, with that of its handle, and with the client", async () => {
      const client = await clientFor(() => new Promise(() => {}));
      const reason = new Error("enough");

      const own = new AbortController();
      const call = client.room.get("a").action({ name: "x", signal: own.signal });
      own.abort(reason);
      await assert.rejects(call, reason);

      const handles = new AbortController();
      const other = client.room.get("a", { signal: handles.signal }).ping();
      handles.abort(reason);
      await assert.rejects(other, reason);

      const last = client.room.get("a").ping();
      await client.dispose();
      await assert.rejects(last, { group: "client", code: "disposed" });
      await assert.rejects(client.room.get("a").ping(), { group: "client", code: "disposed" });
    });

    it("refuses arguments that cannot be sent, with their path", async () => {
      const client = await clientFor();

      await assert.rejects(client.room.get("a").ping({ f: () => 1 }), {
        name: "TypeError",
        code: "invalid_argument",
        message: "Value at args[0].f is a function",
      });
      await assert.rejects(client.room.get("a").action({ name: 1 }), { code: "invalid_argument" });
    });

    it("sends messages to queues", async () => {
      const client = await clientFor(({ message }) =>
        message.wait ? { status: "completed", response: [5n] } : { status: "completed" },
      );
      const handle = client.room.get("a");

      assert.equal(await handle.send("jobs", { n: 1n }), undefined);
      const waited = await handle.send("jobs", "x", { wait: true, timeout: 500 });
      assert.deepEqual(waited, { status: "completed", response: [5n] });
      const [first, second] = server.requests;
      assert.match(first.url, /^\/gateway\/room\/queue\/jobs\?/);
      assert.equal(first.message.wait, false);
      assert.deepEqual({ ...second.message }, { body: "x", wait: true, timeout: 500 });
    });

    it("sends how a message is kept, and refuses what is none of that", async () => {
      const handle = (await clientFor(() => ({ status: "completed" }))).room.get("a");
      await handle.send("jobs", 1, { dedupeKey: "once", delay: 1_500 });
      const [{ message }] = server.requests;
      assert.deepEqual([message.dedupeKey, message.delay], ["once", 1_500]);
      for (const wrong of [
        { timeout: 5 },
        { dedupeKey: 1 },
        { delay: -1 },
        { delay: Number.POSITIVE_INFINITY },
        { later: 1 },
      ]) {
        await assert.rejects(handle.send("jobs", 1, wrong), { code: "invalid_argument" });
      }
      assert.equal(server.requests.length, 1);
    });
  });
}

describe("a call that gets no answer", () => {
  it("rejects as unreachable, and is not sent again", async () => {
    let tries = 0;
    const fetch = () => {
      tries += 1;
      return Promise.reject(new TypeError("fetch failed"));
    };
    const client = createClient({ endpoint: "http://127.0.0.1:9", fetch, timers: hasty });

    await assert.rejects(client.room.get("a").ping(), { group: "client", code: "unreachable" });
    assert.equal(tries, 1);
  });

  it("rejects when something else answers", async () => {
    const client = createClient(await serve(() => ({ http: 502, raw: "<html>" })));

    await assert.rejects(client.room.get("a").ping(), {
      group: "client",
      code: "malformed_response",
      message: "the server answered with status 502",
    });
  });
});

describe("create() and resolve()", () => {
  it("make an actor, and say which one", async () => {
    const client = createClient(
      await serve(({ url }) => (url.startsWith("/actors") ? row("id7") : { output: url })),
    );

    const handle = await client.room.create("a", { input: [1] });

    assert.equal(await handle.resolve(), "id7");
    assert.equal(await handle.ping(), "/gateway/id7/action/ping");
    assert.equal(server.requests[0].method, "POST");
  });

  it("reject for an actor that is there already, and for one that is not", async () => {
    const client = createClient(
      await serve(({ method }) =>
        method === "POST" ? fail("actor", "duplicate_key") : { actors: [] },
      ),
    );

    await assert.rejects(client.room.create("a"), { group: "actor", code: "duplicate_key" });
    await assert.rejects(client.room.get("a").resolve(), { group: "actor", code: "not_found" });
  });
});

describe("fetch() of a handle", () => {
  it("asks the actor for a path, with method, headers, query and body", async () => {
    const client = createClient({
      endpoint: await serve(() => ({ http: 201, raw: "made" })),
      headers: { "x-app": "1" },
    });
    const handle = client.room.get("a", { params: { p: 1 } });

    const response = await handle.fetch("/files/x?a=1", {
      method: "PUT",
      headers: { "x-own": "2" },
      body: "hello",
    });

    assert.deepEqual([response.status, await response.text()], [201, "made"]);
    const { method, url, headers, body } = server.requests[0];
    assert.deepEqual([method, headers["x-app"], headers["x-own"]], ["PUT", "1", "2"]);
    assert.equal(String(body), "hello");
    assert.equal(headers["x-rivet-conn-params"], '{"p":1}');
    const { pathname, searchParams } = new URL(url, "http://x");
    assert.equal(pathname, "/gateway/room/request/files/x");
    assert.equal(searchParams.get("a"), "1");
    assert.equal(searchParams.get("rvt-key"), "a");
  });
});
