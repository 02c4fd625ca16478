// What the contract has of the inspector, and dashboards in front of its actors.

import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";

import { decode, encode } from "cbor-x";
import { decodeInspectorRequest, encodeInspectorResponse } from "greenroom/native";

import { bridged, recordOf } from "./support/bridge.mjs";
import { actorUrl, call } from "./support/gateway.mjs";
import { ask, openDashboard, tokenOf } from "./support/inspector.mjs";
import { folder, NapiActorFactory, opened } from "./support/native.mjs";

/** Reads a state as the published layer does: once in a generation, then from memory. */
function kept(ctx) {
  const bag = ctx.runtimeState();
  bag.persistState ??= { state: undefined };
  bag.persistState.state ??= decode(ctx.state());
  return bag.persistState;
}

/** A counter as the published layer would hand it over. */
function counter(callbacks = {}, config = {}) {
  return new NapiActorFactory(
    {
      createState: async () => encode({ count: 5 }),
      serializeState: async (_, { ctx }) => ({
        state: encode(kept(ctx).state),
        connHibernation: [],
        connHibernationRemoved: ctx.takePendingHibernationChanges(),
      }),
      actions: {
        add: async (_, { ctx, args }) => {
          const { state } = kept(ctx);
          state.count += decode(args)[0];
          ctx.requestSave({ immediate: false });
          return encode(state.count);
        },
        snapshot: async (_, { ctx }) => encode(ctx.inspectorSnapshot()),
        codec: async (_, { ctx, args }) => {
          const [bytes, version] = decode(args);
          const upgraded = ctx.decodeInspectorRequest(Buffer.from(bytes), version);
          return encode(Array.from(upgraded));
        },
        verify: async (_, { ctx, args }) => {
          const thrown = await ctx.verifyInspectorAuth(decode(args)[0]).then(
            () => null,
            (error) => recordOf(error),
          );
          return encode(thrown);
        },
      },
      ...callbacks,
    },
    { hasState: true, stateSaveIntervalMs: 3_600_000, actions: [{ name: "add" }], ...config },
  );
}

async function listening(t, factory, options = {}) {
  const host = await opened(t, { counter: factory });
  const { host: name, port } = await host.listen({ host: "127.0.0.1", port: 0, ...options });
  const url = `http://${name}:${port}`;
  const { output } = await call(url, "counter", ["a"], "add", [0]);
  assert.equal(output, 5);
  const { actors } = await (await fetch(`${url}/actors?name=counter&key=a`)).json();
  const [{ actor_id: id }] = actors;
  return { url, id, token: await tokenOf(url, id) };
}

const act = async (url, ...asked) => (await call(url, "counter", ["a"], ...asked)).output;

describe("messages of the inspector", () => {
  it("refuses versions that nobody speaks, and bytes that are no message", () => {
    const bytes = Buffer.from([1, 9]);
    for (const translate of [decodeInspectorRequest, encodeInspectorResponse]) {
      const exceeds = bridged("napi", "invalid_argument", { public: null });
      assert.throws(() => translate(bytes, 65_536), exceeds);
      assert.throws(() => translate(bytes, 65_536), /exceeds u16/);
      for (const version of [-1, 1.5, Number.NaN]) {
        assert.throws(() => translate(bytes, version), bridged("napi", "invalid_argument"));
      }
      assert.throws(() => translate(bytes, 7), bridged("inspector", "invalid_protocol_version"));
      assert.throws(() => translate(Buffer.from([99]), 6), bridged("actor", "invalid_request"));
      assert.throws(() => translate(Buffer.alloc(0), 6), bridged("actor", "invalid_request"));
    }
  });

  it("are read at the version of a dashboard and written at it", () => {
    // The list of actions: 6 in version 1, 4 in version 6.
    assert.deepEqual(decodeInspectorRequest(Buffer.from([6, 9]), 1), Buffer.from([4, 9]));
    assert.throws(() => decodeInspectorRequest(Buffer.from([4, 9]), 1), /events_dropped/);
    const state = Buffer.from([5, 1, 7]);
    assert.deepEqual(encodeInspectorResponse(state, 1), Buffer.from([7, 1, 7]));
    const schedules = encodeInspectorResponse(Buffer.from([7, 0]), 5);
    assert.match(schedules.toString(), /inspector\.schedules_dropped$/);
  });
});

describe("the context of an actor", () => {
  it("refuses every token but the actor's, in the form of the contract", async (t) => {
    const { url, token } = await listening(t, counter());

    for (const given of [null, "", "wrong", `${token}x`]) {
      const refused = await act(url, "verify", [given]);
      assert.deepEqual(
        [refused.group, refused.code, refused.message, refused.public, refused.statusCode],
        [
          "inspector",
          "unauthorized",
          "Inspector request requires a valid bearer token",
          null,
          null,
        ],
      );
    }
    assert.equal(await act(url, "verify", [token]), null);
  });

  it("counts changes and who looks", async (t) => {
    const { url, token } = await listening(t, counter());
    const before = await act(url, "snapshot");

    await act(url, "add", [1]);
    const dashboard = await openDashboard(url, "counter", ["a"], token);
    await dashboard.heard("Init");
    const behind = await act(url, "snapshot");

    assert.deepEqual(Object.keys(before).sort(), [
      "activeConnections",
      "connectedClients",
      "connectionsRevision",
      "queueRevision",
      "queueSize",
      "scheduleRevision",
      "stateRevision",
    ]);
    assert.equal(before.connectedClients, 0);
    assert.equal(behind.connectedClients, 1);
    assert.ok(behind.stateRevision > before.stateRevision);
    assert.ok(behind.connectionsRevision > before.connectionsRevision);
    assert.deepEqual(await act(url, "codec", [[6, 9], 1]), [4, 9]);
    dashboard.end();
  });
});

describe("dashboards in front of actors of the contract", () => {
  it("see a state that is not stored yet, and have theirs put in its place", async (t) => {
    const { url, token } = await listening(t, counter());
    const dashboard = await openDashboard(url, "counter", ["a"], token);
    assert.deepEqual((await dashboard.heard("Init")).state, { count: 5 });

    await act(url, "add", [2]);
    const unsaved = await dashboard.heard("StateUpdated", ({ state }) => state.count === 7);
    assert.deepEqual(unsaved, { state: { count: 7 } });
    dashboard.say("PatchState", { state: { count: 40 } });
    await dashboard.heard("StateUpdated", ({ state }) => state.count === 40);

    assert.equal(await act(url, "add", [2]), 42);
    assert.deepEqual((await ask(url, "counter", ["a"], token, "GET", "state"))[1], {
      state: { count: 42 },
      isStateEnabled: true,
    });
    dashboard.end();
  });

  it("lose no patch to a save that is due meanwhile, and no change to a patch", async (t) => {
    const { url, token } = await listening(t, counter({}, { stateSaveIntervalMs: 1 }));
    const dashboard = await openDashboard(url, "counter", ["a"], token);
    await dashboard.heard("Init");

    for (let round = 1; round <= 20; round += 1) {
      const count = round * 100;
      const changed = act(url, "add", [1]);
      dashboard.say("PatchState", { state: { count } });
      await act(url, "add", [1]);
      await changed;
      await dashboard.heard("StateUpdated", ({ state }) => state.count >= count);
      const { state } = await dashboard.ask("State", { id: round }, "StateResponse");
      assert.ok(state.count >= count && state.count <= count + 2, `${count}: ${state.count}`);
      assert.equal(await act(url, "add", [0]), state.count);
    }
    dashboard.end();
  });

  it("see no tables where there is no file, and make none by looking", async (t) => {
    const { url, token } = await listening(t, counter({}, { hasDatabase: true }));
    const at = (path) => ask(url, "counter", ["a"], token, "GET", `database/${path}`);

    assert.deepEqual(await at("schema"), [200, { schema: { tables: [] } }]);
    assert.deepEqual(await at("rows?table=none"), [200, { rows: [] }]);
  });

  it("see what a workflow did, and have it run again", async (t) => {
    const entries = [];
    const callbacks = {
      getWorkflowHistory: async (error, { ctx }) => {
        entries.push([error, typeof ctx.actorId()]);
        return Uint8Array.of(1, 2);
      },
      replayWorkflow: async (_, { entryId }) => {
        entries.push(entryId);
        return undefined;
      },
    };
    const { url, token } = await listening(t, counter(callbacks));
    const dashboard = await openDashboard(url, "counter", ["a"], token);

    const init = await dashboard.heard("Init");
    assert.deepEqual([init.isWorkflowEnabled, [...init.workflowHistory]], [true, [1, 2]]);
    const replayed = await dashboard.ask("WorkflowReplay", { id: 1 }, "WorkflowReplayResponse");
    assert.deepEqual(replayed, { rid: 1, history: null, enabled: true });
    const body = { entryId: "step" };
    await ask(url, "counter", ["a"], token, "POST", "workflow/replay", body);
    assert.deepEqual(entries, [[null, "string"], undefined, "step"]);
    dashboard.end();
  });

  it("are answered by its functions where the host says so, but not without the token", async (t) => {
    const seen = [];
    const onRequest = async (_, { request }) => {
      seen.push(`${request.method} ${request.uri}`);
      return {
        status: 203,
        headers: { "content-type": "application/json" },
        body: Buffer.from("{}"),
      };
    };
    const { url, id, token } = await listening(t, counter({ onRequest }), {
      inspectsInRuntime: true,
    });

    assert.equal((await ask(url, "counter", ["a"], "wrong", "GET", "state"))[0], 401);
    assert.deepEqual(await ask(url, "counter", ["a"], token, "GET", "queue?limit=2"), [203, {}]);
    const direct = await fetch(`${url}/gateway/${id}/inspector/state`, {
      headers: { authorization: `bearer ${token}` },
    });
    assert.equal(direct.status, 203);
    const files = await fetch(`${url}/gateway/${id}/inspector/custom-tabs/none/`);
    assert.equal(files.status, 404);
    assert.deepEqual(seen, ["GET /inspector/queue?limit=2", "GET /inspector/state"]);
  });
});

describe("tabs of an author", () => {
  it("are checked where the factory is made", (t) => {
    const dir = folder(t);
    writeFileSync(join(dir, "file"), "");
    const tab = { id: "t", label: "T", source: dir };
    const refused = [
      [{ ...tab, id: "a/b" }, /letters, digits/],
      [{ ...tab, id: "state" }, /built-in/],
      [{ ...tab, label: "" }, /label is empty/],
      [{ id: "t", label: "T" }, /no source/],
      [{ ...tab, icon: "" }, /icon is empty/],
      [{ ...tab, source: join(dir, "none") }, /cannot be found/],
      [{ ...tab, source: join(dir, "file") }, /no folder/],
      [{ ...tab, source: "/" }, /root of the file system/],
      [{ id: "mine", hidden: true }, /only these tabs can be hidden/],
    ];
    for (const [entry, reason] of refused) {
      assert.throws(() => counter({}, { inspectorTabs: [entry] }), reason);
    }
    assert.throws(() => counter({}, { inspectorTabs: [tab, tab] }), /occurs twice/);
    counter({}, { inspectorTabs: [tab, { id: "queue", hidden: true }] });
  });

  it("have their files served to everybody, and none from outside", async (t) => {
    const dir = folder(t);
    mkdirSync(join(dir, "tab/sub"), { recursive: true });
    writeFileSync(join(dir, "secret"), "no");
    writeFileSync(join(dir, "tab/index.html"), "<p>tab</p>");
    writeFileSync(join(dir, "tab/sub/a b.js"), "1");
    symlinkSync(join(dir, "secret"), join(dir, "tab/out"));
    const inspectorTabs = [
      { id: "mine", label: "Mine", icon: "star", source: join(dir, "tab") },
      { id: "queue", hidden: true },
    ];
    const { url, token } = await listening(t, counter({}, { inspectorTabs }));
    const get = async (path) => {
      const at = actorUrl(url, "counter", ["a"], `inspector/custom-tabs/${path}`);
      const response = await fetch(at);
      return [response.status, await response.text(), response.headers];
    };

    const [status, page, headers] = await get("mine/");
    assert.deepEqual([status, page], [200, "<p>tab</p>"]);
    assert.equal(headers.get("content-type"), "text/html");
    assert.equal(headers.get("cache-control"), "no-cache");
    assert.equal(headers.get("referrer-policy"), "no-referrer");
    assert.equal((await get("mine/sub/a%20b.js"))[1], "1");
    const codes = [
      ["mine/none.js", 404, "custom_tab_asset_not_found"],
      ["queue/", 404, "custom_tab_not_found"],
      ["mine/out", 400, "invalid_request"],
      ["mine/%2e%2e%2fsecret", 400, "invalid_request"],
    ];
    for (const [path, expected, code] of codes) {
      const [status, text] = await get(path);
      assert.deepEqual([status, JSON.parse(text).code], [expected, code], path);
    }
    const dashboard = await openDashboard(url, "counter", ["a"], token);
    assert.deepEqual((await dashboard.heard("Init")).tabConfig, [
      { id: "mine", label: "Mine", icon: "star", hidden: false },
      { id: "queue", label: null, icon: null, hidden: true },
    ]);
    dashboard.end();
  });
});
