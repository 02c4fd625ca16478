// What the contract says of callbacks: their order, what they are told, and how long they may take.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { NapiActorFactory } from "greenroom/native";

import { Script, typed } from "./support/contract.mjs";
import { actor, awake, bytes, none, opened, text, until } from "./support/native.mjs";

const target = actor("counter", "a");

describe("a start", () => {
  it("calls back in the order of the contract, with what it says", async (t) => {
    const script = new Script();
    const ids = ({ ctx }) => ctx.conns().length;
    const callbacks = {
      onMigrate: script.note("onMigrate", undefined, ({ isNew }) => isNew),
      createState: script.note("createState", bytes("first"), ({ input }) => input),
      onCreate: script.note("onCreate", undefined, ({ input }) => input),
      createVars: script.note("createVars"),
      onWake: script.note("onWake"),
      onBeforeActorStart: script.note("onBeforeActorStart"),
      run: script.note("run", true),
      onBeforeConnect: script.note("onBeforeConnect", undefined, ids),
      createConnState: script.note("createConnState", bytes("own"), ids),
      onConnect: script.note("onConnect", undefined, ids),
      onDisconnectFinal: script.note("onDisconnectFinal", undefined, ids),
      onSleep: script.note("onSleep"),
      actions: { act: script.note("act", none) },
    };
    const host = await opened(t, { counter: typed(callbacks) });

    await host.submitConnected(target, none, "act", none, 0);
    await until(() => script.calls.length === 12, "the last callback");
    const fresh = script.calls.splice(0);
    const bag = host.live(target);
    await host.sleep(bag.identity.actorId);
    await host.submit(target, "act", none, 2);

    assert.deepEqual(fresh, [
      ["onMigrate", true],
      ["createState", null],
      ["onCreate", null],
      "createVars",
      "onWake",
      "onBeforeActorStart",
      "run",
      ["onBeforeConnect", 0],
      ["createConnState", 0],
      ["onConnect", 1],
      "act",
      ["onDisconnectFinal", 0],
    ]);
    assert.deepEqual(script.calls, [
      "onSleep",
      ["onMigrate", false],
      "createVars",
      "onWake",
      "onBeforeActorStart",
      "run",
      "act",
    ]);
  });

  it("has a working database in onMigrate, and the table of workflows in it", async (t) => {
    const seen = [];
    const onMigrate = async (_, { ctx }) => {
      await ctx.sql().exec("CREATE TABLE IF NOT EXISTS t (n)");
      const { rows } = await ctx
        .sql()
        .execute("SELECT name FROM pragma_table_info('_rivet_wf_kv')");
      seen.push(rows.flat());
    };
    const host = await opened(t, { counter: typed({ onMigrate }, { hasDatabase: true }) });

    await awake(host, target);

    assert.deepEqual(seen, [["key", "value"]]);
  });

  it("is new again until it was stored, with the same input", async (t) => {
    const script = new Script();
    let fails = true;
    const callbacks = {
      onMigrate: script.note("onMigrate", undefined, ({ isNew }) => isNew),
      createState: script.note("createState", bytes("first"), ({ input }) => text(input)),
      onCreate: script.note("onCreate", () => {
        if (fails) throw new Error("no");
      }),
    };
    const host = await opened(t, { counter: typed(callbacks) });
    const { id } = await host.ensure(target, "create", bytes("input"));
    await assert.rejects(host.submit({ id }, "get", none, 2), { message: /internal error/ });
    fails = false;

    assert.equal(text(await host.submit({ id }, "get", none, 2)), "first");

    const once = [["onMigrate", true], ["createState", "input"], "onCreate"];
    assert.deepEqual(script.calls, [...once, ...once]);
  });

  it("makes the state of an actor that has none, and only that", async (t) => {
    const script = new Script();
    const stateless = new NapiActorFactory({ actions: { get: async () => none } }, {});
    const host = await opened(t, { counter: stateless });
    const bag = await awake(host, target);
    const stateful = typed({
      onMigrate: script.note("onMigrate", undefined, ({ isNew }) => isNew),
      createState: script.note("createState", bytes("late")),
      onCreate: script.note("onCreate"),
      onWake: script.note("onWake"),
    });

    host.register("counter", stateful, true);
    await until(() => bag.stopped !== undefined);
    const read = text(await host.submit(target, "get", none, 2));
    await host.sleep(host.live(target).identity.actorId);
    await host.submit(target, "get", none, 2);

    assert.equal(read, "late");
    assert.deepEqual(script.calls, [
      ["onMigrate", false],
      "createState",
      "onWake",
      ["onMigrate", false],
      "onWake",
    ]);
  });
});

describe("an action", () => {
  it("has a token that is cancelled when it has ended, and no connection of its own accord", async (t) => {
    const seen = [];
    const act = async (error, { ctx, conn, args, scheduledFire, cancelToken }) => {
      seen.push({ error, conn, args: text(args), scheduledFire, token: cancelToken });
      assert.equal(ctx.name(), "counter");
      assert.equal(cancelToken.aborted(), false);
      return bytes("done");
    };
    const host = await opened(t, { counter: typed({ actions: { "a.b": act } }) });

    assert.equal(text(await host.submit(target, "a.b", bytes("x"), 2)), "done");

    const [{ token, ...told }] = seen;
    assert.deepEqual(told, { error: null, conn: null, args: "x", scheduledFire: undefined });
    assert.ok(token.aborted());
  });

  it("is not found by a name that objects have anyway", async (t) => {
    const host = await opened(t, { counter: typed() });

    for (const name of ["toString", "__proto__", "missing"]) {
      await assert.rejects(host.submit(target, name, none, 2), {
        group: "actor",
        code: "action_not_found",
        message: `Action \`${name}\` was not found.`,
        statusCode: 404,
        public: true,
      });
    }
  });
});

describe("settings", () => {
  it("are ignored where nobody knows them, and absent where they are null", () => {
    const made = new NapiActorFactory(
      { onWake: undefined, actions: {}, unknown: 1 },
      {
        inspectorTestToken: "token",
        preloadMaxWorkflowBytes: 1,
        preloadMaxConnectionsBytes: 1,
        sqliteProfiling: { enabled: true, slowOperationThresholdMs: 1 },
        onRequestTimeoutMs: undefined,
        maxQueueSize: null,
        actions: [{ name: "a.b" }],
        inspectorTabs: [],
      },
    );

    assert.ok(made instanceof NapiActorFactory);
  });

  it("of the inspector's tabs have rules", () => {
    const tab = { id: "mine", label: "Mine", source: "/tmp" };
    for (const tabs of [
      [{ ...tab, id: "a b" }],
      [{ ...tab, id: "" }],
      [{ ...tab, id: "state" }],
      [{ id: "mine", source: "/tmp" }],
      [{ id: "mine", label: "Mine" }],
      [{ id: "mine", hidden: true }],
      [tab, tab],
      [
        { id: "state", hidden: true },
        { id: "state", hidden: true },
      ],
    ]) {
      const make = () => new NapiActorFactory({}, { inspectorTabs: tabs });
      assert.throws(make, /^Error: __RIVET_ERROR_JSON__:/, JSON.stringify(tabs));
    }
    const hidden = ["workflow", "database", "queue", "schedules", "connections", "console"];
    const inspectorTabs = [tab, ...hidden.map((id) => ({ id, hidden: true }))];
    assert.ok(new NapiActorFactory({}, { inspectorTabs }));
  });
});
