// Faults of the crossing itself: a drain that throws, panics, arguments that cannot be read. Each
// is an exception for whoever called, and the process and everybody else go on.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { describe, it } from "node:test";

import { actor, awake, bytes, dispatch, none, numbers, opened, script } from "./support/native.mjs";

const require = createRequire(import.meta.url);
const native = require("../index.js");

describe("a drain that throws", () => {
  it("is followed by another one, and nothing is lost", async (t) => {
    const { code, out, err } = await script(
      t,
      `
      import { createRequire } from "node:module";
      const native = createRequire(import.meta.url)(${JSON.stringify(require.resolve("../index.js"))});
      const faults = [];
      process.on("uncaughtException", (fault) => faults.push(fault.message));
      const host = await h.dispatch.openHost();
      host.register("counter", h.numbers());
      const calls = [];
      for (let n = 0; n < 20; n += 1) calls.push(host.submit(h.actor("counter", n % 3), "add", h.none, 2));
      // The next call into Rust is the drain's take.
      native.__panic();
      const results = await Promise.all(calls);
      await host.shutdown(1000);
      console.log(JSON.stringify({ faults, results: results.length }));
      `,
    );

    assert.equal(err, "");
    const { faults, results } = JSON.parse(out.trim().split("\n").at(-1));
    assert.equal(results, 20);
    assert.equal(faults.length, 1);
    assert.equal(code, 0);
  });

  it("because of one job still brings the others", async (t) => {
    const { code, out } = await script(
      t,
      `
      const faults = [];
      process.on("uncaughtException", (fault) => faults.push(fault.message));
      h.dispatch.setLog("debug", () => { throw new Error("sink"); });
      const host = await h.dispatch.openHost();
      host.register("counter", h.numbers());
      await host.submit(h.actor("counter", "a"), "add", h.none, 2);
      h.dispatch.setLog(undefined);
      await h.turn();
      await host.shutdown(1000);
      console.log(faults.length > 0 && faults.every((fault) => fault === "sink"));
      `,
    );

    assert.match(out, /true/);
    assert.equal(code, 0);
  });
});

describe("a panic", () => {
  /** How each exported item is called; the class `X` for its methods as `X#method`. */
  const calls = (context, conn) => {
    const { ActorContext, CancellationToken, CoreRegistry, NapiActorFactory } = native;
    const kv = context.kv();
    const sql = context.sql();
    const transaction = native.sqlTransaction(sql, "none");
    const whole = native.stateTransactionBegin(context, null, 1);
    const schedule = context.schedule();
    const messages = context.queue();
    const message = native.queueMessage(messages, 1, "x", none, 0, 1, true);
    const factory = () => new NapiActorFactory({});
    const given = {
      broadcast: ["x", none],
      queueHibernationRemoval: ["x"],
      sameActorInstance: [context],
      setAlarm: [1],
      decodeInspectorRequest: [none, 6],
      encodeInspectorResponse: [none, 6],
    };
    return {
      __jobFields: () => native.__jobFields(),
      __plainCommits: () => native.__plainCommits("x", 1, 1, 1),
      actorContext: () => native.actorContext(1, 1),
      audience: () => native.audience(1, "x"),
      broadcastTo: () => native.broadcastTo(1, true, "x", none),
      completeSave: () => native.completeSave(1, 1, {}),
      connConnect: () => native.connConnect(context, none, null, 1),
      connDisconnect: () => native.connDisconnect(conn, "x", 1),
      connection: () => native.connection(1, 1, "x"),
      connectionIds: () => native.connectionIds(1),
      connectionOfCall: () => native.connectionOfCall(1, 1, 1),
      connectionOfHook: () => native.connectionOfHook(1, 1, 1),
      admit: () => native.admit(1),
      awaitDestroyed: () => native.awaitDestroyed(context, 1),
      awaitFlushed: () => native.awaitFlushed(context, 1),
      awaitSaved: () => native.awaitSaved(context, {}, 1),
      awaitSave: () => native.awaitSave(context, true, -1, 1),
      awaitTrackedWork: () => native.awaitTrackedWork(context, 1, true),
      beginSleep: () => native.beginSleep(1, 1, 1),
      beginRegion: () => native.beginRegion(1, 0),
      breakGeneration: () => native.breakGeneration(1, none),
      cancel: () => native.cancel(1, 1),
      cancelCall: () => native.cancelCall(1, 1),
      checkInspectorToken: () => native.checkInspectorToken(context, "x", null),
      decodeInspectorRequest: () => native.decodeInspectorRequest(none, 6),
      encodeInspectorResponse: () => native.encodeInspectorResponse(none, 6),
      clockNow: () => native.clockNow(1),
      closeTrial: () => native.closeTrial(1),
      crashAt: () => native.crashAt(1, "after_commit", 1),
      crashHost: () => native.crashHost(1, 1),
      exchangeCancel: () => native.exchangeCancel(1, true),
      exchangeClosed: () => native.exchangeClosed(1, 1, 1),
      exchangeEnd: () => native.exchangeEnd(1, 1, 1),
      exchangeRead: () => native.exchangeRead(1, 1, 1),
      exchangeWrite: () => native.exchangeWrite(1, 1, none, 1),
      failNextCommit: () => native.failNextCommit(1),
      openTrial: () => native.openTrial(1, "{}"),
      outputMayLeave: () => native.outputMayLeave(1, 1),
      openTrialHost: () => native.openTrialHost(1, 1),
      stepTrial: () => native.stepTrial(1, 1),
      trialDue: () => native.trialDue(1),
      trialNow: () => native.trialNow(1),
      commit: () => native.commit(1, none),
      commitRows: () => native.commitRows(1),
      complete: () => native.complete(1, 1, 0, none),
      cronDelete: () => native.cronDelete(schedule, "x", 1),
      cronEvery: () => native.cronEvery(schedule, "x", 5_000, "a", none, null, 1),
      cronHistory: () => native.cronHistory(schedule, "x", null, 1),
      cronJobs: () => native.cronJobs(schedule, null, 1),
      cronSet: () => native.cronSet(schedule, "x", "* * * * *", null, "a", none, null, 1),
      deadDelete: () => native.deadDelete(schedule, "x", 1),
      deadFires: () => native.deadFires(schedule, 1),
      deadRetry: () => native.deadRetry(schedule, "x", 1),
      endRegion: () => native.endRegion(1, 1),
      endSleep: () => native.endSleep(1, 1),
      ensure: () => native.ensure(1, "{}", "get", null, 1),
      finish: () => native.finish(1, 1),
      finishCall: () => native.finishCall(1, 1, 0, none),
      gatewayMetrics: () => native.gatewayMetrics(1),
      sendParts: () => native.sendParts(none),
      renewCall: () => native.renewCall(1, 1),
      flushSync: () => native.flushSync([], 1),
      kvDelete: () => native.kvDelete(kv, [none], 1),
      kvDeleteRange: () => native.kvDeleteRange(kv, none, none, 1),
      kvGet: () => native.kvGet(kv, [none], 1),
      kvList: () => native.kvList(kv, none, null, false, -1, 1),
      kvPut: () => native.kvPut(kv, [none], [none], 1),
      letGo: () => native.letGo(1),
      tunnelOpen: () => native.tunnelOpen(1, 1, null),
      tunnelRead: () => native.tunnelRead(1, 1, 1),
      tunnelWrite: () => native.tunnelWrite(1, 1, null, 1),
      gatewayRequest: () => native.gatewayRequest(1, 1, "{}", null, 1),
      answerAsked: () => native.answerAsked(1, 1, none),
      live: () => native.live(1, "{}"),
      logRejection: () => native.logRejection(1, "x"),
      manage: () => native.manage(1, "list", "{}", 1),
      markDirty: () => native.markDirty(1),
      openEnv: () => native.openEnv(() => {}),
      openHost: () => native.openHost(1, "{}", 1),
      queue: () => native.queue(1),
      queueComplete: () => native.queueComplete(messages, 1, 1, null, 1),
      queueCompleteById: () => native.queueCompleteById(messages, 1, "x", null, 1),
      queueDead: () => native.queueDead(messages, 0, 1, 1),
      queueDeadDelete: () => native.queueDeadDelete(messages, 1, 1),
      queueDeadRetry: () => native.queueDeadRetry(messages, 1, 1),
      queueMessage: () => native.queueMessage(messages, 1, "x", none, 0, 1, true),
      queueMessageComplete: () => native.queueMessageComplete(message, null, 1),
      queueReceive: () => native.queueReceive(messages, [], 1, false, 0, null, 1),
      saveWithWorkflow: () => native.saveWithWorkflow(context, [none], [none], 1),
      queueRelease: () => native.queueRelease(messages, 1, 1, -1, null, 1),
      queueReset: () => native.queueReset(messages, 1),
      queueSend: () => native.queueSend(messages, "x", none, 0, null, 1),
      queueSendAndWait: () => native.queueSendAndWait(messages, "x", none, 0, null, 0, null, 1),
      queueWaitAvailable: () => native.queueWaitAvailable(messages, [], 0, null, 1),
      register: (made) => native.register(1, "x", made),
      requestSave: () => native.requestSave(1, false, -1),
      scheduleCancel: () => native.scheduleCancel(schedule, "x", 1),
      scheduleEvents: () => native.scheduleEvents(schedule, null, 1),
      scheduleOnce: () => native.scheduleOnce(schedule, 1, true, "a", none, null, 1),
      setRunWake: () => native.setRunWake(context, null, 1),
      setLogSink: () => native.setLogSink(1, null),
      stateTransactionBegin: () => native.stateTransactionBegin(context, null, 1),
      stateTransactionBeginSql: () => native.stateTransactionBeginSql(whole, 1),
      stateTransactionCommit: () => native.stateTransactionCommit(whole, {}, true, 1),
      stateTransactionEnded: () => native.stateTransactionEnded(whole, 1),
      stateTransactionExec: () => native.stateTransactionExec(whole, "SELECT 1", 1),
      stateTransactionExecute: () =>
        native.stateTransactionExecute(whole, "SELECT 1", null, true, 1),
      stateTransactionNow: () => native.stateTransactionNow(whole, "SELECT 1", Buffer.alloc(64), 0),
      stateTransactionRollBack: () => native.stateTransactionRollBack(whole, 1),
      storedState: () => native.storedState(1),
      sqlBatch: () => native.sqlBatch(sql, ["SELECT 1"], [none], true, 1),
      sqlBegin: () => native.sqlBegin(sql, null, null, 1),
      sqlClose: () => native.sqlClose(sql, true, 1),
      sqlExec: () => native.sqlExec(sql, "SELECT 1", true, 1),
      sqlExecute: () => native.sqlExecute(sql, "SELECT 1", null, true, 1),
      sqlInTurn: () => native.sqlInTurn(sql, "SELECT 1", Buffer.alloc(64), 0),
      sqlTransaction: () => native.sqlTransaction(sql, "none"),
      sqlTransactionEnd: () => native.sqlTransactionEnd(transaction, true, 1),
      sqlTransactionExec: () => native.sqlTransactionExec(transaction, "SELECT 1", 1),
      sqlTransactionExecute: () => native.sqlTransactionExecute(transaction, "SELECT 1", null, 1),
      sqlTurnEnded: () => native.sqlTurnEnded(sql),
      sessionCall: () => native.sessionCall(1, 1, "a", none, 2, 1, false),
      sessionClose: () => native.sessionClose(1),
      sessionOpen: () => native.sessionOpen(1, "{}", none, true),
      sessionSubscribe: () => native.sessionSubscribe(1, 1, "x", true, 1),
      submitConnected: () => native.submitConnected(1, "{}", none, "a", none, 2, 1, false),
      submit: () => native.submit(1, "{}", "a", none, 2, 1, false),
      take: () => native.take(1),
      webSocket: () => native.webSocket(1, 1),
      webSocketClose: () => native.webSocketClose(1, 1, 1000, ""),
      webSocketSend: () => native.webSocketSend(1, 1, none, false),
      ActorContext: undefined,
      WebSocket: undefined,
      "WebSocket#send": () => native.webSocket(1, 1).send(none, true),
      ConnHandle: undefined,
      "ConnHandle#id": () => conn.id(),
      "ConnHandle#isHibernatable": () => conn.isHibernatable(),
      "ConnHandle#isRemote": () => conn.isRemote(),
      "ConnHandle#isVisible": () => conn.isVisible(),
      "ConnHandle#params": () => conn.params(),
      "ConnHandle#request": () => conn.request(),
      "ConnHandle#requestHeader": () => conn.requestHeader("x"),
      "ConnHandle#send": () => conn.send("x", none),
      "ConnHandle#state": () => conn.state(),
      JsActorStateTransaction: undefined,
      "JsActorStateTransaction#isOpen": () => whole.isOpen(),
      "JsActorStateTransaction#kv": () => whole.kv(),
      "JsActorStateTransaction#queue": () => whole.queue(),
      "JsActorStateTransaction#schedule": () => whole.schedule(),
      JsNativeDatabase: undefined,
      JsSqliteTransaction: undefined,
      "JsNativeDatabase#metrics": () => sql.metrics(),
      "JsNativeDatabase#takeLastKvError": () => sql.takeLastKvError(),
      Kv: undefined,
      Schedule: undefined,
      Queue: undefined,
      QueueMessage: undefined,
      CancellationToken: () => new CancellationToken(),
      CoreRegistry: () => new CoreRegistry(),
      NapiActorFactory: () => factory(),
      "CancellationToken#aborted": (_, token) => token.aborted(),
      "CancellationToken#cancel": (_, token) => token.cancel(),
      "CoreRegistry#register": (made, _, registry) => registry.register("x", made),
      "CoreRegistry#names": (_, __, registry) => registry.names(),
      "CoreRegistry#close": (_, __, registry) => registry.close(),
      "Queue#maxSize": () => messages.maxSize(),
      "Queue#inspectMessages": () => messages.inspectMessages(),
      "QueueMessage#id": () => message.id(),
      "QueueMessage#name": () => message.name(),
      "QueueMessage#body": () => message.body(),
      "QueueMessage#createdAt": () => message.createdAt(),
      "QueueMessage#deliveryCount": () => message.deliveryCount(),
      "QueueMessage#isCompletable": () => message.isCompletable(),
      "NapiActorFactory#number": (made) => made.number,
      "NapiActorFactory#gated": (made) => made.gated,
      ...Object.fromEntries(
        Object.getOwnPropertyNames(ActorContext.prototype)
          .filter((name) => name !== "constructor")
          .map((name) => [`ActorContext#${name}`, () => context[name](...(given[name] ?? []))]),
      ),
    };
  };

  /** Everything that Rust exports. */
  function exported() {
    const names = [];
    for (const [name, value] of Object.entries(native)) {
      if (typeof value !== "function" || name === "__panic") continue;
      names.push(name);
      if (!/^[A-Z]/.test(name)) continue;
      for (const [method, property] of Object.entries(
        Object.getOwnPropertyDescriptors(value.prototype),
      )) {
        const body = String(property.value ?? property.get);
        if (method !== "constructor" && /native code/.test(body)) names.push(`${name}#${method}`);
      }
    }
    return names;
  }

  it("in any exported function is an exception, and the process lives", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const bag = await awake(host, actor("counter", "a"));
    const made = new native.NapiActorFactory({});
    const token = new native.CancellationToken();
    const registry = new native.CoreRegistry();
    const table = calls(bag.context, await bag.context.connectConn(none));
    const names = exported();

    for (const name of names) {
      assert.ok(name in table, `${name} is not in the table of this test`);
      const call = table[name];
      if (call === undefined) continue;
      assert.ok(native.__panic(), "this build has no traps");
      assert.throws(() => call(made, token, registry), /trap that a test has set/, name);
    }

    assert.ok(names.length > 50, `only ${names.length} exports`);
    assert.equal(await dispatch.inPlace(bag, () => 7), 7);
  });

  it("a thousand times in a row is a thousand exceptions", () => {
    for (let n = 0; n < 1_000; n += 1) {
      native.__panic();
      assert.throws(() => native.admit(1), /trap/);
    }
  });
});

describe("arguments that cannot be read", () => {
  it("are refused with a name for what is wrong", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const invalid = { group: "napi", code: "invalid_argument" };

    await assert.rejects(host.submit({ id: "no-id" }, "get", none, 2), {
      group: "actor",
      code: "invalid_argument",
    });
    await assert.rejects(host.submit({ key: [] }, "get", none, 2), invalid);
    await assert.rejects(host.ensure(actor("counter", "a"), "maybe"), invalid);
    await assert.rejects(host.submit(actor("", "a"), "get", none, 2), {
      group: "actor",
      code: "invalid_argument",
    });
    assert.throws(() => host.register("", numbers()), { code: "invalid_argument" });
    assert.throws(() => numbers({}, { durability: "never" }), /durability/);
  });

  it("of a host that is not open are refused", () => {
    assert.throws(() => native.register(99_999, "x", numbers()), {
      group: "napi",
      code: "invalid_argument",
    });
    assert.equal(native.live(99_999, "{}"), 0);
  });

  it("in the bridge form say what they say", () => {
    let thrown;
    try {
      native.register(99_999, "x", numbers());
    } catch (error) {
      thrown = error;
    }

    assert.ok(thrown instanceof Error);
    assert.ok(thrown.message.startsWith("__RIVET_ERROR_JSON__:{"));
    assert.deepEqual(thrown.metadata, { argument: "host", reason: "it is not open" });
    assert.equal(bytes(1).length, 1);
  });
});
