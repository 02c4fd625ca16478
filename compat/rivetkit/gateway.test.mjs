// The host of RivetKit's actors as anything but its client asks it: URLs, encodings, and what it lists.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { decode } from "cbor-x";

import { appOf, fresh, told } from "./support.mjs";

const app = appOf("web", "between");
const json = { "content-type": "application/json" };

const call = (url, args = []) =>
  fetch(url, { method: "POST", headers: json, body: JSON.stringify({ args }) });

describe("a gateway URL", () => {
  it("of a handle leads to its actor, by key and by id", async () => {
    const handle = app.client().site.getOrCreate(fresh("site"), { params: { name: "ada" } });
    for (const each of [handle, app.client().site.getForId(await handle.resolve())]) {
      const url = new URL(await each.getGatewayUrl());
      url.pathname += "/request/p";
      assert.equal((await (await fetch(url)).json()).pathname, "/p");
    }
  });

  it("calls an action by an id, in JSON and CBOR", async () => {
    const handle = app.client().counter.getOrCreate(fresh("counter"));
    const url = `${app.url}/gateway/${await handle.resolve()}/action/add`;
    const response = await call(url, [2]);
    assert.equal(response.status, 200);
    assert.match(response.headers.get("content-type"), /application\/json/);
    assert.deepEqual(await response.json(), { output: 2 });
    assert.equal(response.headers.get("x-rivet-actor"), await handle.resolve());
    const cbor = await fetch(url, {
      method: "POST",
      headers: { "x-rivet-encoding": "cbor", "content-type": "application/octet-stream" },
      body: Buffer.from("a1646172677381" + "03", "hex"),
    });
    assert.deepEqual(decode(Buffer.from(await cbor.arrayBuffer())), { output: 5 });
  });

  it("makes an actor by its key, and finds it", async () => {
    const [name, id] = fresh("by key");
    const query = (method) =>
      new URLSearchParams({
        "rvt-namespace": "default",
        "rvt-method": method,
        "rvt-key": `${name},${id}`,
        ...(method === "getOrCreate" ? { "rvt-runner": "default" } : {}),
      });
    const url = `${app.url}/gateway/counter`;
    assert.equal((await call(`${url}/action/get?${query("get")}`)).status, 404);
    assert.deepEqual(await (await call(`${url}/action/add?${query("getOrCreate")}`, [3])).json(), {
      output: 3,
    });
    assert.deepEqual(await (await call(`${url}/action/get?${query("get")}`)).json(), { output: 3 });
    const seen = await (
      await fetch(`${app.url}/gateway/site/request/a?b=1&${query("getOrCreate")}`)
    ).json();
    assert.deepEqual([seen.pathname, seen.search], ["/a", "?b=1"]);
  });

  it("refuses what is none", async () => {
    const unknown = await call(
      `${app.url}/gateway/counter/action/get?rvt-method=get&rvt-what=1&rvt-namespace=default`,
    );
    assert.equal(unknown.status, 400);
    assert.equal((await unknown.json()).code, "query_invalid_params");
    const handle = app.client().counter.getOrCreate(fresh("counter"));
    const base = `${app.url}/gateway/${await handle.resolve()}`;
    const missing = await call(`${base}/action/missing`);
    assert.equal(missing.status, 404);
    assert.equal((await missing.json()).code, "action_not_found");
    const nowhere = await fetch(`${base}/nowhere`);
    assert.equal(nowhere.status, 404);
    const method = await fetch(`${base}/action/get`);
    assert.equal(method.status, 405);
    assert.equal((await method.json()).code, "method_not_allowed");
    const malformed = await fetch(`${base}/action/get`, {
      method: "POST",
      headers: json,
      body: "{",
    });
    assert.equal(malformed.status, 400);
  });

  it("tells errors with their group, code, message and metadata", async () => {
    const handle = app.client().counter.getOrCreate(fresh("counter"));
    const id = await handle.resolve();
    const refused = await call(`${app.url}/gateway/${id}/action/refuse`);
    const { group, code, message, metadata, actor } = await refused.json();
    assert.deepEqual(
      { group, code, message, metadata },
      { group: "user", code: "no", message: "no", metadata: { why: "so" } },
    );
    assert.equal(actor.actorId, id);
    const failed = await (await call(`${app.url}/gateway/${id}/action/fail`)).json();
    assert.deepEqual(
      [failed.group, failed.code, failed.message],
      ["rivetkit", "internal_error", "An internal error occurred"],
    );
  });

  it("sends to a queue", async () => {
    const handle = app.client().counter.getOrCreate(fresh("counter"));
    const url = `${app.url}/gateway/${await handle.resolve()}/queue/add`;
    const body = JSON.stringify({ body: 6, wait: true, timeout: 5_000 });
    const response = await fetch(url, { method: "POST", headers: json, body });
    assert.deepEqual(await response.json(), { status: "completed", response: 6 });
  });

  it("answers pages of other origins that ask first", async () => {
    const handle = app.client().site.getOrCreate(fresh("site"));
    const response = await fetch(`${app.url}/gateway/${await handle.resolve()}/request/x`, {
      method: "OPTIONS",
      headers: {
        origin: "http://localhost:5173",
        "access-control-request-method": "PUT",
        "access-control-request-headers": "x-own",
      },
    });
    assert.equal(response.status, 204);
    assert.equal(response.headers.get("access-control-allow-origin"), "http://localhost:5173");
    assert.equal(response.headers.get("access-control-allow-headers"), "x-own");
    assert.match(response.headers.get("access-control-allow-methods"), /PUT/);
  });

  it("opens a socket, and closes one to an actor that is none", async () => {
    const handle = app.client().site.getOrCreate(fresh("site"));
    const ws = app.url.replace("http", "ws");
    const socket = new WebSocket(`${ws}/gateway/${await handle.resolve()}/websocket/x`, ["rivet"]);
    const [{ data }] = await told((f) => socket.addEventListener("message", f), "a greeting");
    assert.equal(data, "hello nobody /websocket/x");
    assert.equal(socket.protocol, "rivet");
    socket.close();
    const lost = new WebSocket(
      `${ws}/gateway/site/websocket?rvt-method=get&rvt-namespace=default&rvt-key=none`,
      ["rivet"],
    );
    const [{ code, reason }] = await told((f) => lost.addEventListener("close", f), "a close");
    assert.equal(code, 1011);
    assert.match(reason, /^actor\.not_found(#|$)/);
  });

  it("speaks the protocol of connections in JSON", async () => {
    const handle = app.client().counter.getOrCreate(fresh("counter"));
    const id = await handle.resolve();
    const socket = new WebSocket(`${app.url.replace("http", "ws")}/gateway/${id}/connect`, [
      "rivet",
      "rivet_encoding.json",
    ]);
    const heard = [];
    socket.addEventListener("message", ({ data }) => heard.push(JSON.parse(data).body));
    await told((f) => socket.addEventListener("message", f, { once: true }), "the beginning");
    assert.equal(heard[0].tag, "Init");
    assert.equal(heard[0].val.actorId, id);
    const answered = told((f) => {
      socket.addEventListener(
        "message",
        () => heard.some(({ tag }) => tag === "ActionResponse") && f(),
      );
    }, "an answer");
    socket.send(
      JSON.stringify({
        body: { tag: "SubscriptionRequest", val: { eventName: "counted", subscribe: true } },
      }),
    );
    socket.send(
      JSON.stringify({ body: { tag: "ActionRequest", val: { id: 1, name: "add", args: [4] } } }),
    );
    await answered;
    assert.deepEqual(heard.slice(1), [
      { tag: "Event", val: { name: "counted", args: [4] } },
      { tag: "ActionResponse", val: { id: ["$BigInt", "1"], output: 4 } },
    ]);
    socket.close();
  });
});

describe("the host", () => {
  const ask = async (path, init) => {
    const response = await fetch(`${app.url}${path}`, init);
    return { status: response.status, body: await response.json() };
  };

  it("tells what it is", async () => {
    const health = await ask("/health");
    assert.deepEqual(
      [health.status, health.body.status, health.body.runtime],
      [200, "ok", "engine"],
    );
    const metadata = await ask("/metadata?namespace=default");
    assert.deepEqual([metadata.status, metadata.body.runtime], [200, "engine"]);
    assert.equal(typeof metadata.body.version, "string");
  });

  it("of an actor tells what it is", async () => {
    const handle = app.client().counter.getOrCreate(fresh("counter"));
    const response = await app.ask(handle, "/metadata");
    const { runtime, type } = await response.json();
    assert.deepEqual([runtime, type], ["rivetkit", "local"]);
    assert.equal(await (await app.ask(handle, "/health")).text(), "ok");
  });

  it("lists actors by id, by key and by name", async () => {
    const key = fresh("counter");
    const handle = app.client().counter.getOrCreate(key);
    const id = await handle.resolve();
    const text = key.join("/");
    const byKey = await ask(
      `/actors?namespace=default&name=counter&key=${encodeURIComponent(text)}`,
    );
    assert.equal(byKey.body.actors.length, 1);
    const [row] = byKey.body.actors;
    assert.deepEqual(
      [
        row.actor_id,
        row.name,
        row.key,
        row.datacenter,
        row.runner_name_selector,
        row.crash_policy,
        row.destroy_ts,
      ],
      [id, "counter", text, "default", "default", "sleep", null],
    );
    assert.equal(typeof row.create_ts, "number");
    const byName = await ask("/actors?namespace=default&name=counter");
    assert.ok(byName.body.actors.some(({ actor_id }) => actor_id === id));
    assert.ok(byName.body.actors.every(({ name }) => name === "counter"));
    const none = await ask("/actors?namespace=default&name=counter&key=none");
    assert.deepEqual(none.body.actors, []);
    assert.equal((await ask("/actors?namespace=default")).status, 400);
    assert.ok(Object.hasOwn((await ask("/actors/names?namespace=default")).body.names, "counter"));
  });

  it("makes actors, once a key", async () => {
    const key = fresh("made").join("/");
    const init = (method, more = {}) => ({
      method,
      headers: json,
      body: JSON.stringify({
        name: "counter",
        key,
        runner_name_selector: "default",
        crash_policy: "sleep",
        ...more,
      }),
    });
    const made = await ask("/actors?namespace=default", init("PUT"));
    assert.deepEqual([made.status, made.body.created, made.body.actor.key], [200, true, key]);
    const again = await ask("/actors?namespace=default", init("PUT"));
    assert.deepEqual(
      [again.body.created, again.body.actor.actor_id],
      [false, made.body.actor.actor_id],
    );
    assert.equal(
      (await ask("/actors?namespace=default", init("POST", { nonsense: 1 }))).status,
      400,
    );
    const other = await ask(
      "/actors?namespace=default",
      init("POST", { key: fresh("made").join("/") }),
    );
    assert.equal(other.status, 200);
  });

  it("has one place, one pool and a program that serves it", async () => {
    const { datacenters } = (await ask("/datacenters?namespace=default")).body;
    assert.deepEqual(
      datacenters.map(({ name }) => name),
      ["default"],
    );
    const { envoys } = (await ask("/envoys?namespace=default&name=default")).body;
    assert.equal(envoys.length, 1);
    assert.equal(envoys[0].pool_name, "default");
    const config = { datacenters: { default: { normal: {} } } };
    const put = { method: "PUT", headers: json, body: JSON.stringify(config) };
    const { status, body } = await ask("/runner-configs/default?namespace=default", put);
    assert.deepEqual([status, typeof body.endpoint_config_changed], [200, "boolean"]);
  });
});
