// Dashboards that look into actors over a socket.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { db } from "../dist/db/index.js";
import { actor, queue } from "../dist/index.js";
import { call } from "./support/gateway.mjs";
import { ask, openDashboard, readFrame, tokenOf } from "./support/inspector.mjs";
import { inMemory } from "./support/registry.mjs";
import { openInspector } from "./support/socket.mjs";

const counter = actor({
  state: { count: 5 },
  queues: { jobs: queue() },
  actions: {
    add(c, by) {
      c.state.count += by;
      return c.state.count;
    },
    later: (c, name) => c.cron.every({ name, interval: 60_000, action: "add", args: [1] }),
    once: (c) => c.schedule.at(c.clock.now() + 3_600_000, "add", new Map([["a", 1]])),
    fail() {
      throw new Error("a secret");
    },
    rest: (c) => c.sleep(),
  },
});

const library = actor({
  db: db({
    onMigrate: (db) =>
      db.execute("CREATE TABLE IF NOT EXISTS books (id INTEGER PRIMARY KEY, title)"),
  }),
  actions: { add: (c, title) => c.db.execute("INSERT INTO books (title) VALUES (?)", title) },
});

describe("the inspector over a socket", () => {
  let registry;
  let url;
  let client;
  before(async () => {
    registry = inMemory({ counter, library });
    ({ url } = await registry.listen({ port: 0 }));
    client = registry.client();
  });
  after(() => registry.shutdown());

  const open = async (name, key) => {
    const id = await client[name].getOrCreate(key).resolve();
    const token = await tokenOf(url, id);
    const dashboard = await openDashboard(url, name, key, token);
    const init = await dashboard.heard("Init");
    return { dashboard, init, token };
  };

  it("closes a socket without the token, and one that speaks a version of its own", async () => {
    const id = await client.counter.getOrCreate(["doors"]).resolve();
    const token = await tokenOf(url, id);
    const ends = [
      [{ token: "wrong", version: 6 }, 1008, "inspector.unauthorized"],
      [{ version: 6 }, 1008, "inspector.unauthorized"],
      [{ token, version: 0 }, 1002, "inspector.invalid_protocol_version"],
      [{ token, version: 7 }, 1002, "inspector.invalid_protocol_version"],
      [{ token, version: "six" }, 1002, "inspector.invalid_protocol_version"],
    ];
    for (const [options, code, reason] of ends) {
      const socket = await openInspector(url, "counter", ["doors"], options);
      const closed = await socket.closed;
      assert.deepEqual([closed.code, closed.reason.split("#")[0]], [code, reason]);
    }
    const nobody = await openInspector(url, "counter", ["never"], { token, version: 6 });
    assert.match((await nobody.closed).reason, /^actor\.not_found/);
    const { actors } = await (await fetch(`${url}/actors?name=counter&key=never`)).json();
    assert.deepEqual(actors, []);
  });

  it("tells everything first", async () => {
    const { dashboard, init } = await open("counter", ["init"]);

    assert.deepEqual(init, {
      connections: [],
      state: { count: 5 },
      isStateEnabled: true,
      rpcs: ["add", "fail", "later", "once", "rest"],
      isDatabaseEnabled: false,
      queueSize: 0,
      workflowHistory: null,
      isWorkflowEnabled: false,
      tabConfig: [],
      schedules: [],
    });
    dashboard.end();
  });

  it("has the version in front of each frame for a dashboard that does not say one", async () => {
    const id = await client.counter.getOrCreate(["unsaid"]).resolve();
    const socket = await openInspector(url, "counter", ["unsaid"], {
      token: await tokenOf(url, id),
    });

    const first = await socket.next();
    assert.equal(first.readUInt16LE(0), 5);
    // Version 5 numbers it 13.
    assert.equal(first[2], 13);
    socket.send(Buffer.from([5, 0, 1, 9]));
    const state = await socket.next();
    assert.deepEqual([...state.subarray(0, 5)], [5, 0, 0, 9, 1]);
    socket.end();
  });

  it("tells of each change of the state, also of one that it has made itself", async () => {
    const { dashboard } = await open("counter", ["state"]);

    await call(url, "counter", ["state"], "add", [1]);
    assert.deepEqual(await dashboard.heard("StateUpdated"), { state: { count: 6 } });
    dashboard.say("PatchState", { state: { count: 42 } });
    assert.deepEqual(await dashboard.heard("StateUpdated"), { state: { count: 42 } });
    const asked = await dashboard.ask("State", { id: 3 }, "StateResponse");
    assert.deepEqual(asked, { rid: 3, state: { count: 42 }, enabled: true });
    assert.deepEqual(await call(url, "counter", ["state"], "add", [1]), { output: 43 });
    // The same state once more is answered, too.
    await dashboard.heard("StateUpdated", ({ state }) => state.count === 43);
    dashboard.say("PatchState", { state: { count: 43 } });
    assert.deepEqual(await dashboard.heard("StateUpdated"), { state: { count: 43 } });
    dashboard.end();
  });

  it("tells a patch over HTTP to those who look", async () => {
    const { dashboard, token } = await open("counter", ["patched"]);

    await ask(url, "counter", ["patched"], token, "PATCH", "state", { state: { count: 1 } });

    assert.deepEqual(await dashboard.heard("StateUpdated"), { state: { count: 1 } });
    dashboard.end();
  });

  it("tells who comes and goes", async () => {
    const { dashboard } = await open("counter", ["conns"]);

    const connection = client.counter.getOrCreate(["conns"]).connect({ a: 1n });
    await connection.add(0);
    const came = ({ connections }) => connections.length === 1;
    const { connections } = await dashboard.heard("ConnectionsUpdated", came);
    assert.deepEqual(connections[0].details.params, { a: 1n });
    await connection.dispose();
    await dashboard.heard("ConnectionsUpdated", ({ connections }) => connections.length === 0);
    dashboard.end();
  });

  it("tells of messages and shows them", async () => {
    const { dashboard, token } = await open("counter", ["queue"]);

    await ask(url, "counter", ["queue"], token, "POST", "queue", { name: "jobs", body: 1 });

    assert.deepEqual(await dashboard.heard("QueueUpdated"), { queueSize: 1 });
    const shown = await dashboard.ask("Queue", { id: 1, limit: 9 }, "QueueResponse");
    assert.deepEqual(
      [shown.size, shown.truncated, shown.messages.map(({ name }) => name)],
      [1, false, ["jobs"]],
    );
    dashboard.end();
  });

  it("shows, tells of and ends what is to be done later", async () => {
    const { dashboard } = await open("counter", ["later"]);

    await client.counter.getOrCreate(["later"]).later("tick");
    const { schedules } = await dashboard.heard("SchedulesUpdated");
    assert.deepEqual(
      schedules.map(({ id, kind, action, args, intervalMs }) => [
        id,
        kind,
        action,
        args,
        intervalMs,
      ]),
      [["tick", "every", "add", [1], 60_000]],
    );
    const history = await dashboard.ask(
      "ScheduleHistory",
      { id: 1, scheduleId: "tick" },
      "ScheduleHistoryResponse",
    );
    assert.deepEqual(history, { rid: 1, scheduleId: "tick", history: [] });
    const deleted = { id: 2, scheduleId: "tick", kind: "every" };
    assert.deepEqual(await dashboard.ask("ScheduleDelete", deleted, "ScheduleDeleteResponse"), {
      rid: 2,
      scheduleId: "tick",
      deleted: true,
    });
    const left = await dashboard.ask("Schedules", { id: 3 }, "SchedulesResponse");
    assert.deepEqual(left, { rid: 3, schedules: [] });
    dashboard.end();
  });

  it("shows one-shots with their arguments as clients read them", async () => {
    await client.counter.getOrCreate(["once"]).once();
    const { dashboard, init } = await open("counter", ["once"]);

    const [shot] = init.schedules;
    assert.deepEqual([shot.kind, shot.name, shot.action], ["at", null, "add"]);
    assert.deepEqual(shot.args, [new Map([["a", 1]])]);
    const gone = { id: 1, scheduleId: shot.id, kind: "at" };
    const { deleted } = await dashboard.ask("ScheduleDelete", gone, "ScheduleDeleteResponse");
    assert.equal(deleted, true);
    dashboard.end();
  });

  it("runs actions, and says what went wrong without closing", async () => {
    const { dashboard } = await open("counter", ["actions"]);

    const ran = await dashboard.ask("Action", { id: 1, name: "add", args: [10] }, "ActionResponse");
    assert.deepEqual(ran, { rid: 1, output: 15 });
    dashboard.say("Action", { id: 2, name: "none", args: [] });
    assert.match((await dashboard.heard("Error")).message, /none/);
    dashboard.say("Action", { id: 3, name: "fail", args: [] });
    assert.match((await dashboard.heard("Error")).message, /secret/);
    dashboard.socket.send(Buffer.from([99]));
    assert.match((await dashboard.heard("Error")).message, /unknown tag/);
    dashboard.say("DatabaseSchema", { id: 4 });
    assert.match((await dashboard.heard("Error")).message, /no database/);
    const rpcs = await dashboard.ask("RpcsList", { id: 5 }, "RpcsListResponse");
    assert.equal(rpcs.rpcs.includes("add"), true);
    const replayed = await dashboard.ask("WorkflowReplay", { id: 6 }, "WorkflowReplayResponse");
    assert.deepEqual(replayed, { rid: 6, history: null, enabled: false });
    const traces = await dashboard.ask("TraceQuery", { id: 7 }, "TraceQueryResponse");
    assert.equal(traces.payload.length, 0);
    dashboard.end();
  });

  it("shows tables and rows", async () => {
    await client.library.getOrCreate(["a"]).add("Emma");
    const { dashboard, init } = await open("library", ["a"]);

    assert.deepEqual(
      [init.isDatabaseEnabled, init.isStateEnabled, init.state],
      [true, false, null],
    );
    const { schema } = await dashboard.ask("DatabaseSchema", { id: 1 }, "DatabaseSchemaResponse");
    assert.deepEqual(
      schema.tables.map(({ table, records }) => [table.name, records]),
      [["books", 1]],
    );
    const wanted = { id: 2, table: "books", limit: 10, offset: 0 };
    const { rows } = await dashboard.ask("DatabaseTableRows", wanted, "DatabaseTableRowsResponse");
    assert.deepEqual(rows, [{ id: 1, title: "Emma" }]);
    dashboard.end();
  });

  it("answers more than it takes at a time, in the end", async () => {
    const { dashboard } = await open("counter", ["many"]);

    for (let id = 0; id < 200; id += 1) dashboard.say("Action", { id, name: "add", args: [1] });
    const answered = new Set();
    while (answered.size < 200) {
      const [name, fields] = await dashboard.next();
      if (name === "ActionResponse") answered.add(fields.rid);
    }

    const { state } = await dashboard.ask("State", { id: 999 }, "StateResponse");
    assert.equal(state.count, 205);
    dashboard.end();
  });

  it("counts who looks, lets the actor sleep, and ends with it", async () => {
    const { dashboard } = await open("counter", ["sleep"]);

    await client.counter.getOrCreate(["sleep"]).rest();

    assert.deepEqual(await dashboard.closed, { code: 1000, reason: "actor.stopped" });
    const { dashboard: next, init } = await open("counter", ["sleep"]);
    assert.deepEqual(init.state, { count: 5 });
    next.end();
  });

  it("ends with the gateway", async () => {
    const registry = inMemory({ counter });
    const { url } = await registry.listen({ port: 0 });
    const id = await registry.client().counter.getOrCreate([]).resolve();
    const socket = await openInspector(url, "counter", [], {
      token: await tokenOf(url, id),
      version: 6,
    });
    assert.equal(readFrame(await socket.next())[0], "Init");

    await registry.shutdown();

    assert.match(String((await socket.closed).code), /^100[01]$/);
  });
});
