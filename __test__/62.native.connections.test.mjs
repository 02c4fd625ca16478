// Connections at the boundary: the contract's `ConnHandle`, its hooks, and sessions.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import {
  actor,
  awake,
  bagOf,
  bytes,
  dispatch,
  NapiActorFactory,
  none,
  numbers,
  opened,
  text,
  turn,
  until,
} from "./support/native.mjs";

/** Connects, and resolves with the session and what it hears. */
async function joined(host, target, params = none, hibernates = true) {
  const heard = [];
  const session = await new Promise((resolve, reject) => {
    const made = host.connect(target, params, hibernates, {
      accepted: (id, { actorId }) => {
        heard.push(["accepted", id, actorId]);
        resolve(made);
      },
      event: (name, args) => heard.push(["event", name, text(args)]),
      refused: reject,
      closed: (code, reason) => heard.push(["closed", code, reason]),
    });
  });
  return { session, heard, id: heard[0][1] };
}

describe("hooks of connections", () => {
  it("are called as the contract has them, in order", async (t) => {
    const calls = [];
    const note =
      (name, result) =>
      async (error, { ctx, conn, params, request, eventName }) => {
        calls.push({
          name,
          error,
          known: ctx === bagOf(conn ?? ctx).context,
          conn: conn?.id(),
          params: params && text(params),
          request,
          eventName,
        });
        return result;
      };
    const callbacks = {
      onBeforeConnect: note("onBeforeConnect"),
      createConnState: note("createConnState", bytes("state")),
      onConnect: note("onConnect"),
      onDisconnectFinal: note("onDisconnectFinal"),
      onBeforeSubscribe: note("onBeforeSubscribe"),
    };
    const host = await opened(t, { counter: numbers({}, {}, callbacks) });
    const { context } = await awake(host, actor("counter", "a"));

    const request = { method: "get", uri: "/x?y=1", headers: { "X-Own": "1" }, body: none };
    const conn = await context.connectConn(bytes("params"), request);
    await conn.disconnect("why");
    const { session, id } = await joined(host, actor("counter", "a"), bytes("mine"));
    await session.subscribe("told", true);
    session.close();
    await until(() => calls.length === 9, "the last hook");

    const seen = { method: "GET", uri: "/x?y=1", headers: { "x-own": "1" } };
    const same = { error: null, known: true };
    const of = (name, conn, params, request, eventName = null) => ({
      name,
      ...same,
      conn,
      params,
      request,
      eventName,
    });
    assert.deepEqual(calls, [
      of("onBeforeConnect", conn.id(), "params", seen),
      of("createConnState", conn.id(), "params", seen),
      of("onConnect", conn.id(), "params", seen),
      of("onDisconnectFinal", conn.id(), "params", undefined),
      of("onBeforeConnect", id, "mine", undefined),
      of("createConnState", id, "mine", undefined),
      of("onConnect", id, "mine", undefined),
      of("onBeforeSubscribe", id, "mine", undefined, "told"),
      of("onDisconnectFinal", id, "mine", undefined),
    ]);
    assert.deepEqual(
      [text(conn.state()), text(conn.params()), conn.isHibernatable(), conn.isVisible()],
      ["state", "params", false, false],
    );
    assert.deepEqual(JSON.parse(conn.request()), seen);
  });

  it("are found by their earlier name, too", async (t) => {
    let ended = 0;
    const onDisconnect = () => {
      ended += 1;
    };
    const host = await opened(t, { counter: numbers({}, {}, { onDisconnect }) });
    const { context } = await awake(host, actor("counter", "a"));
    const conn = await context.connectConn(none);

    await conn.disconnect();
    await conn.disconnect();

    assert.equal(ended, 1);
  });

  it("that throw refuse with the bridge form", async (t) => {
    const onBeforeConnect = () => {
      throw Object.assign(new Error("x"), {
        __type: "RivetError",
        group: "user",
        code: "refused",
        message: "no",
      });
    };
    const host = await opened(t, { counter: numbers({}, {}, { onBeforeConnect }) });
    const { context } = await awake(host, actor("counter", "a"));

    await assert.rejects(context.connectConn(none), (error) => {
      assert.match(error.message, /^__RIVET_ERROR_JSON__:.*"code":"refused"/);
      return true;
    });
    await assert.rejects(joined(host, actor("counter", "a")), { group: "user", code: "refused" });
  });
});

describe("ConnHandle", () => {
  it("is one instance for each connection, and calls over it bring it along", async (t) => {
    const seen = [];
    const actions = {
      who: (_bag, _args, { conn, ctx }) => {
        seen.push(conn);
        assert.equal(ctx.conns()[0], conn);
        return conn.id();
      },
      plain: (_bag, _args, { conn }) => assert.equal(conn, null),
    };
    const host = await opened(t, { counter: numbers(actions) });
    const target = actor("counter", "a");
    const { session, id } = await joined(host, target);

    assert.equal(text(await session.call("who", none, 2)), id);
    assert.equal(text(await session.call("who", none, 2)), id);
    await host.submit(target, "plain", none, 2);

    assert.equal(seen[0], seen[1]);
    assert.equal(host.live(target).connections.get(id), seen[0]);
    assert.equal(host.live(target).connections.get("none"), undefined);
  });

  it("sends and closes, behind what was sent", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const target = actor("counter", "a");
    const { heard, id } = await joined(host, target);
    const { context } = host.live(target);
    const other = await joined(host, target);
    await other.session.subscribe("told", true);
    await other.session.subscribe("not", true);
    await other.session.subscribe("not", false);

    context
      .conns()
      .find((conn) => conn.id() === id)
      .send("hello", bytes("1"));
    context.broadcast("told", bytes("2"));
    context.broadcast("not", bytes("3"));
    await context.disconnectConn(id);
    await context.disconnectConn("none");
    await context.disconnectConns((error, { conn }) => error === null && conn.id() === other.id);
    await until(() => heard.length === 3 && other.heard.length === 3, "the ends");

    const actorId = context.actorId();
    assert.deepEqual(heard, [
      ["accepted", id, actorId],
      ["event", "hello", "1"],
      ["closed", 1000, ""],
    ]);
    assert.deepEqual(other.heard, [
      ["accepted", other.id, actorId],
      ["event", "told", "2"],
      ["closed", 1000, ""],
    ]);
    assert.deepEqual(context.conns(), []);
  });

  it("is told once for each kind of client", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const target = actor("counter", "a");
    const { session, heard } = await joined(host, target);
    const bag = host.live(target);
    assert.deepEqual(dispatch.audience(bag, "told"), { local: false, remote: false });
    await session.subscribe("told", true);

    assert.deepEqual(dispatch.audience(bag, "told"), { local: true, remote: false });
    dispatch.broadcast(bag, true, "told", bytes("for others"));
    dispatch.broadcast(bag, false, "told", bytes("for us"));
    await until(() => heard.length === 2, "the event");

    assert.deepEqual(heard[1], ["event", "told", "for us"]);
  });

  it("stores what setState says with the turn", async (t) => {
    const actions = {
      set: (_bag, args, { conn }) => conn.setState(bytes(args)),
      read: (_bag, _args, { conn }) => conn.state(),
      nap: (_bag, _args, { ctx }) => ctx.sleep(),
    };
    const host = await opened(t, { counter: numbers(actions) });
    const target = actor("counter", "a");
    const { session } = await joined(host, target);
    await session.call("set", bytes("kept"), 2);
    const before = host.live(target);
    await session.call("nap", none, 2);
    await until(() => before.stopped !== undefined, "the sleep");

    assert.equal(text(await session.call("read", none, 2)), "kept");
  });
});

describe("states that are asked for", () => {
  it("are those that serializeState gives back, of connections too", async (t) => {
    const saves = [];
    const serialize = async (_error, { ctx, reason }) => {
      const dirty = ctx.dirtyHibernatableConns();
      const removed = ctx.takePendingHibernationChanges();
      saves.push([reason, dirty.map((conn) => conn.id()), removed]);
      return {
        state: bytes("state"),
        connHibernation: dirty.map((conn) => ({ connId: conn.id(), bytes: bytes("serialised") })),
        connHibernationRemoved: removed,
      };
    };
    const factory = new NapiActorFactory(
      {
        createState: async () => bytes("first"),
        serializeState: serialize,
        actions: {
          set: async (_error, { conn }) => conn.setState(bytes("set")),
          read: async (_error, { conn }) => conn.state(),
          forget: async (_error, { ctx, conn }) => {
            ctx.queueHibernationRemoval(conn.id());
            return bytes(ctx.hasPendingHibernationChanges());
          },
          nap: async (_error, { ctx }) => ctx.sleep(),
        },
      },
      { hasState: true, durability: "interval", hibernatesConnections: true },
    );
    const host = await opened(t, { asked: factory });
    const target = actor("asked", "a");
    const { session, id } = await joined(host, target);
    await session.call("set", none, 2);
    const before = host.live(target);
    await session.call("nap", none, 2);
    await until(() => before.stopped !== undefined, "the sleep");

    assert.ok(saves.some(([reason, dirty]) => reason === "save" && dirty.includes(id)));
    assert.equal(text(await session.call("read", none, 2)), "serialised");
    assert.equal(text(await session.call("forget", none, 2)), "true");
    assert.deepEqual(host.live(target).context.takePendingHibernationChanges(), [id]);
  });
});

describe("a session", () => {
  it("calls in order, and gives a call up by its signal", async (t) => {
    const order = [];
    const actions = {
      note: (_bag, args) => void order.push(args),
      stay: () => new Promise(() => {}),
    };
    const host = await opened(t, { counter: numbers(actions) });
    const { session } = await joined(host, actor("counter", "a"));
    const controller = new AbortController();

    const calls = [1, 2, 3].map((n) => session.call("note", bytes(n), 2));
    const stays = session.call("stay", none, 2, controller.signal);
    await Promise.all(calls);
    controller.abort(new Error("enough"));

    await assert.rejects(stays, { message: "enough" });
    assert.deepEqual(order, ["1", "2", "3"]);
  });

  it("that is closed hears nothing more", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const target = actor("counter", "a");
    const { session, heard } = await joined(host, target);
    await session.subscribe("told", true);
    session.close();
    session.close();

    host.live(target).context.broadcast("told", bytes("1"));
    await turn();

    assert.equal(heard.length, 1);
    await assert.rejects(session.call("get", none, 2));
  });

  it("cannot be opened on a host that is not open", async (t) => {
    const host = await opened(t, { counter: numbers() });
    await host.shutdown(100);

    assert.throws(() => host.connect(actor("counter", "a"), none, true, {}), {
      group: "registry",
      code: "shut_down",
    });
  });
});
