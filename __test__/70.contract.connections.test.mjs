// What the contract says of connections, and of what a generation keeps.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { ConnHandle } from "greenroom/native";

import { bridged } from "./support/bridge.mjs";
import { typed } from "./support/contract.mjs";
import { actor, awake, bytes, none, opened, text, until } from "./support/native.mjs";

const target = actor("counter", "a");

/** Connects with a socket that outlives a sleep, and resolves with the session and what it hears. */
async function joined(host, params = none, hibernates = true) {
  const heard = [];
  const session = await new Promise((resolve, reject) => {
    const made = host.connect(target, params, hibernates, {
      accepted: () => resolve(made),
      event: (name, args) => heard.push([name, text(args)]),
      refused: reject,
      closed: (code, reason) => heard.push(["closed", code, reason]),
    });
  });
  return { session, heard };
}

describe("a connection", () => {
  it("is told by its hooks what the contract says, and its request as it came", async (t) => {
    const seen = [];
    const note = (name, result) => async (error, payload) => {
      const { conn, params, request, eventName } = payload;
      seen.push({ name, error, conn: conn instanceof ConnHandle, request, eventName });
      if (params !== undefined) assert.equal(text(params), "p");
      return result;
    };
    const host = await opened(t, {
      counter: typed({
        onBeforeConnect: note("onBeforeConnect"),
        createConnState: note("createConnState", bytes("own")),
        onConnect: note("onConnect"),
        onDisconnectFinal: note("onDisconnectFinal"),
      }),
    });
    const { context } = await awake(host, target);
    const headers = { Cookie: "a=1; b=2", "X-Two": "1, 2", "sec-websocket-protocol": "rivet, x" };
    const request = { method: "GET", uri: "/connect?x=1", headers, body: none, bodyStream: {} };

    const conn = await context.connectConn(bytes("p"), request);
    await conn.disconnect();

    const came = {
      method: "GET",
      uri: "/connect?x=1",
      headers: { cookie: "a=1; b=2", "x-two": "1, 2", "sec-websocket-protocol": "rivet, x" },
    };
    const of = (name, told) => ({ name, error: null, conn: true, request: told, eventName: null });
    assert.deepEqual(
      seen.map((one) => ({ ...one, request: one.request && { ...one.request } })),
      [
        of("onBeforeConnect", came),
        of("createConnState", came),
        of("onConnect", came),
        of("onDisconnectFinal", undefined),
      ],
    );
    assert.deepEqual([text(conn.params()), text(conn.state())], ["p", "own"]);
  });

  it("may be refused, and an event denied, with the word of whoever did", async (t) => {
    const thrown = (code) => async () => {
      const record = { group: "auth", code, message: code };
      throw new Error(`__RIVET_ERROR_JSON__:${JSON.stringify(record)}`);
    };
    const onBeforeConnect = async (_, { params }) => text(params) === "no" && thrown("first")();
    const onBeforeSubscribe = async (_, { eventName }) => eventName === "no" && thrown("no")();
    const host = await opened(t, { counter: typed({ onBeforeConnect, onBeforeSubscribe }) });
    const { context } = await awake(host, target);

    await assert.rejects(context.connectConn(bytes("no")), bridged("auth", "first"));
    const { session } = await joined(host);
    await session.subscribe("yes", true);
    await assert.rejects(session.subscribe("no", true), { group: "auth", code: "no" });
    assert.equal(context.conns().length, 1);
  });

  it("that outlives a sleep keeps its state, its events, and is not connected anew", async (t) => {
    const calls = [];
    const note = (name, result) => async () => {
      calls.push(name);
      return result;
    };
    const actions = {
      change: async (_, { conn, args }) => conn.setState(args),
      read: async (_, { conn }) => conn.state(),
      tell: async (_, { ctx }) => ctx.broadcast("told", bytes("x")),
    };
    const callbacks = {
      actions,
      onConnect: note("onConnect"),
      createConnState: note("createConnState", bytes("c0")),
      onDisconnectFinal: note("onDisconnectFinal"),
    };
    const type = typed(callbacks, { canHibernateWebsocket: true });
    const host = await opened(t, { counter: type });
    const { session, heard } = await joined(host);
    await session.subscribe("told", true);
    await session.call("change", bytes("c1"), 0);
    const before = host.live(target);
    await before.context.requestSaveAndWait({ immediate: true });
    const [conn] = before.context.conns();
    assert.equal(conn.isHibernatable(), true);
    await host.sleep(before.identity.actorId);

    assert.equal(text(await session.call("read", none, 0)), "c1");
    const after = host.live(target);
    assert.notEqual(after, before);
    assert.equal(after.context.conns()[0].id(), conn.id());
    await session.call("tell", none, 0);
    await until(() => heard.length === 1);
    assert.deepEqual(heard, [["told", "x"]]);
    assert.deepEqual(calls, ["createConnState", "onConnect"]);

    after.context.conns()[0].disconnect("bye");
    await until(() => heard.length === 2);
    assert.deepEqual(heard[1], ["closed", 1000, "bye"]);
    assert.equal(calls.at(-1), "onDisconnectFinal");
  });

  it("has its state in a transaction with the actor's, or gets back what it had", async (t) => {
    const actions = { read: async (_, { conn }) => conn.state() };
    const createConnState = async () => bytes("c0");
    const type = typed({ actions, createConnState }, { canHibernateWebsocket: true });
    const host = await opened(t, { counter: type });
    const { session } = await joined(host);
    await awake(host, target);
    const { context, identity } = host.live(target);
    const [conn] = context.conns();

    const lost = await context.beginStateTransaction();
    conn.setState(bytes("lost"));
    await lost.rollback();
    assert.equal(text(conn.state()), "c0");
    const kept = await context.beginStateTransaction();
    const connHibernation = [{ connId: conn.id(), bytes: bytes("c1") }];
    context.runtimeState().value = "s1";
    await kept.commit({ state: bytes("s1"), connHibernation, connHibernationRemoved: [] });
    await host.sleep(identity.actorId);

    assert.equal(text(await session.call("read", none, 0)), "c1");
    assert.equal(text(host.live(target).context.state()), "s1");
  });
});

describe("the state of a generation's objects", () => {
  it("is one for all its handles, new when it is cleared, and never another generation's", async (t) => {
    const handles = [];
    const see = async (_, { ctx }) => void handles.push(ctx);
    const callbacks = { actions: { see }, onConnect: see, onMigrate: see, onSleep: see };
    const host = await opened(t, { counter: typed(callbacks) });
    await host.submit(target, "see", none, 2);
    await host.submit(target, "see", none, 2);
    const { context, identity } = host.live(target);
    const request = { method: "GET", uri: "/", headers: { "x-rivet-ray-id": "r" } };
    await context.connectConn(none, request);
    const first = handles[0].runtimeState();
    first.mine = 1;

    await host.sleep(identity.actorId);
    const before = handles.splice(0);
    await host.submit(target, "see", none, 2);
    const second = handles[0].runtimeState();

    assert.equal(before.length, 5);
    assert.ok(before.every((handle) => handle.runtimeState() === first));
    assert.ok(before.every((handle) => handle.sameActorInstance(before[0])));
    assert.ok(!before.some((handle) => handle.sameActorInstance(handles[0])));
    assert.deepEqual(second, {});
    before[0].clearRuntimeState();
    assert.deepEqual(before[4].runtimeState(), {});
    assert.notEqual(before[4].runtimeState(), first);
    assert.equal(handles[0].runtimeState(), second);
  });
});

describe("a save", () => {
  it("asks for the state only where one was asked for, and stores it with the workflow's rows", async (t) => {
    const asked = [];
    const serializeState = async (_, { ctx, reason }) => {
      asked.push(reason);
      return { state: bytes(ctx.runtimeState().value ?? "none"), connHibernation: [] };
    };
    const host = await opened(t, { counter: typed({ serializeState }) });
    const { context, identity } = await awake(host, target);
    asked.length = 0;
    context.runtimeState().value = "v1";
    await context.requestSaveAndWait({ immediate: true });
    assert.deepEqual(asked, ["save"]);
    context.runtimeState().value = "v2";
    await context.saveStateAndWorkflowBatch([{ key: bytes("k"), value: bytes("v") }]);

    assert.equal(text(context.state()), "v2");
    const { rows } = await context.sql().execute("SELECT value FROM _rivet_wf_kv");
    assert.deepEqual(
      rows.map(([value]) => text(value)),
      ["v"],
    );
    await context.saveState({
      state: bytes("v3"),
      connHibernation: [],
      connHibernationRemoved: ["none"],
    });
    assert.equal(text(context.state()), "v3");
    assert.deepEqual(asked, ["save", "save"]);
    await host.sleep(identity.actorId);
  });
});
