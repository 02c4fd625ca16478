// biome-ignore-all lint/suspicious/noThenProperty: it is among what is tested

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor, setup } from "../dist/index.js";
import { inMemory, schema } from "./support/registry.mjs";

describe("actor() refuses", () => {
  const refused = [
    [{ stat: {} }, 'unknown key "stat" of actor(): did you mean "state"?'],
    [{ onwake() {} }, 'unknown key "onwake" of actor(): did you mean "onWake"?'],
    [
      { onBeforeSubscribe() {} },
      /^unknown key "onBeforeSubscribe" of actor\(\): known are types, state, /,
    ],
    [{ [Symbol("s")]: 1 }, "actor() has an unknown Symbol(s)"],
    [undefined, "actor() takes an object, not undefined"],
    [[], "actor() takes an object, not an array"],
    [{ state: {}, createState() {} }, "actor() has both state and createState: give one of them"],
    [{ vars: {}, createVars() {} }, "actor() has both vars and createVars: give one of them"],
    [{ onWake: 5 }, "onWake of actor() is 5, not a function"],
    [{ run: { rum() {} } }, 'unknown key "rum" of run of actor(): did you mean "run"?'],
    [{ run: {} }, "run of run of actor() is undefined, not a function"],
    [{ actions: [] }, "actions of actor() is an array, not an object"],
    [{ actions: { a: 5 } }, 'actions has 5 at "a": neither a function nor a group'],
    [
      { actions: { g: { a: new Map() } } },
      'actions has an object at "g.a": neither a function nor a group',
    ],
    [{ actions: { "a.b"() {}, a: { b() {} } } }, 'actions has two actions named "a.b"'],
    [{ actions: { ""() {} } }, 'actions has an action named "": it is empty or not printable'],
    [
      { actions: { "a\ud800"() {} } },
      'actions has an action named "a\\ud800": it is empty or not printable',
    ],
    [
      { actions: { a() {} }, internalActions: { a() {} } },
      '"a" is in actions and in internalActions of actor()',
    ],
    [
      { actions: { save() {} }, actionInputSchemas: { sav: schema((v) => v) } },
      'actionInputSchemas names no action "sav": did you mean "save"?',
    ],
    [
      { actions: { save() {} }, actionInputSchemas: { save: 5 } },
      'actionInputSchemas "save" of actor() is 5, not a Standard Schema',
    ],
    [{ inputSchema: {} }, "inputSchema of actor() is an object, not a Standard Schema"],
    [
      { options: { sleepTimout: 1 } },
      'unknown key "sleepTimout" of options of actor(): did you mean "sleepTimeout"?',
    ],
    [
      { options: { sleepTimeout: 0 } },
      "option sleepTimeout is 0, not milliseconds above 0 and up to 2147483647",
    ],
    [
      { options: { actionTimeout: "1s" } },
      'option actionTimeout is "1s", not milliseconds above 0 and up to 2147483647',
    ],
    [
      { options: { actionTimeout: Number.NaN } },
      "option actionTimeout is NaN, not milliseconds above 0 and up to 2147483647",
    ],
    [
      { options: { durability: "never" } },
      'option durability is "never", not "reply" or "interval"',
    ],
    [{ options: { noSleep: "yes" } }, 'option noSleep is "yes", not false or true'],
    [{ options: { maxSchedules: -1 } }, "option maxSchedules is -1, not a whole number from 0"],
    [{ options: { maxSchedules: 1.5 } }, "option maxSchedules is 1.5, not a whole number from 0"],
    [
      { options: { maxQueueSize: 0 } },
      "option maxQueueSize is 0, not a whole number from 1 to 4294967295",
    ],
    [
      { options: { maxConnections: 0 } },
      "option maxConnections is 0, not a whole number from 1 to 4294967295",
    ],
    [{ events: 5 }, "events of actor() is 5, not an object"],
    [
      { events: { a: { schema: 1 } } },
      'schema of event "a" of actor() is 1, not a Standard Schema',
    ],
    [
      { events: { a: { canSubscribe: 1 } } },
      'canSubscribe of event "a" of actor() is 1, not a function',
    ],
    [
      { events: { a: { canSubscibe() {} } } },
      'unknown key "canSubscibe" of event "a" of actor(): did you mean "canSubscribe"?',
    ],
    [
      { connState: 1, createConnState() {} },
      "actor() has both connState and createConnState: give one of them",
    ],
    [{ onConnect: 5 }, "onConnect of actor() is 5, not a function"],
    [{ connParamsSchema: {} }, "connParamsSchema of actor() is an object, not a Standard Schema"],
    [{ onDisconect() {} }, 'unknown key "onDisconect" of actor(): did you mean "onDisconnect"?'],
    [
      { limits: { messagesPerSecond: 0 } },
      "messagesPerSecond of limits of actor() is 0, not a whole number from 1 to 4294967295",
    ],
    [{ limits: { burst: 1 } }, "limits of actor() have burst without messagesPerSecond: give both"],
    [
      { options: { connectionLivenessTimeout: 1 } },
      'key "connectionLivenessTimeout" of options of actor() is not available yet',
    ],
  ];
  for (const [config, message] of refused) {
    it(`${typeof message === "string" ? message : message.source}`, () => {
      assert.throws(
        () => actor(config),
        (error) => {
          assert.equal(error.constructor, TypeError);
          if (typeof message === "string") assert.equal(error.message, message);
          else assert.match(error.message, message);
          return true;
        },
      );
    });
  }

  for (const key of ["inspector"]) {
    it(`${key}, which is not available yet, by name`, () => {
      assert.throws(
        () => actor({ [key]: {} }),
        new TypeError(`key "${key}" of actor() is not available yet`),
      );
    });
  }
});

describe("setup() refuses", () => {
  const one = actor({ actions: { a() {} } });
  const refused = [
    [{ use: { one }, storag: "x" }, 'unknown key "storag" of setup(): did you mean "storage"?'],
    [{ use: { one }, httpPort: 1 }, 'key "httpPort" of setup() is not available yet'],
    [{}, "use of setup() is undefined, not an object of actors"],
    [{ use: { one: {} } }, 'use of setup() has an object at "one", not the result of actor()'],
    [
      { use: { getOrCreate: one } },
      'no actor can be named "getOrCreate": clients have a member of that name',
    ],
    [{ use: { then: one } }, 'no actor can be named "then": clients have a member of that name'],
    [
      { use: { ["é".repeat(33)]: one } },
      `no actor can be named "${"é".repeat(33)}": a name has 1 to 64 bytes and no control characters`,
    ],
    [
      { use: { "a\ud800": one } },
      'no actor can be named "a\\ud800": a name has 1 to 64 bytes and no control characters',
    ],
    [
      { use: { one: actor({ actions: { connect() {} } }) } },
      'actor "one" cannot have an action "connect": handles have a member "connect"',
    ],
    [
      { use: { one: actor({ actions: { resolve: { x() {} } } }) } },
      'actor "one" cannot have an action "resolve.x": handles have a member "resolve"',
    ],
    [
      { use: { one: actor({ actions: { g: { then() {} } } }) } },
      'actor "one" cannot have an action "g.then": handles have a member "then"',
    ],
    [
      { use: { one: actor({ internalActions: { send() {} } }) } },
      'actor "one" cannot have an action "send": handles have a member "send"',
    ],
    [{ use: { one }, storage: "" }, 'storage of setup() is "", not a folder or ":memory:"'],
    [
      { use: { one }, storage: ":memroy:" },
      'storage of setup() is ":memroy:": did you mean ":memory:"?',
    ],
    [{ use: { one }, threads: 2 }, 'option threads is 2, not "exclusive" or "shared"'],
    [{ use: { one }, lockTimeout: -1 }, "lockTimeout of setup() is -1, not milliseconds from 0"],
    [
      { use: { one }, logging: { level: "loud" } },
      'level of logging is "loud", not one of trace, debug, info, warn, error, fatal, silent',
    ],
    [{ use: { one }, logging: { sink: 1 } }, "sink of logging is 1, not a function"],
  ];
  for (const [config, message] of refused) {
    it(message, () => {
      assert.throws(() => setup(config), new TypeError(message));
    });
  }
});

describe("actor() and setup() accept", () => {
  it("types, a run with a name, groups without a prototype and schemas that are functions", () => {
    const schemaFunction = Object.assign(
      () => {},
      schema((v) => v),
    );

    const definition = actor({
      types: {},
      run: { run: async () => {}, name: "loop", icon: "x" },
      actions: Object.assign(Object.create(null), { a() {}, g: { b() {} } }),
      actionInputSchemas: { a: schemaFunction, "g.b": schema((v) => v) },
    });

    assert.deepEqual([...definition.actions.keys()], ["a", "g.b"]);
    setup({ use: { definition }, storage: ":memory:" });
  });

  it("nothing at all, and open nothing for it", () => {
    setup({ use: { empty: actor({}) }, storage: "/nowhere/that/exists" });
  });

  it("an ignored option, with a warning", async () => {
    const warned = new Promise((resolve) => process.once("warning", resolve));

    actor({ options: { onDestroyTimeout: 5 } });

    assert.match((await warned).message, /onDestroyTimeout of actor\(\) has no effect/);
  });
});

describe("a duration that is no whole number of milliseconds", () => {
  it("is rounded up: a part of one is not no time at all", async () => {
    const quick = actor({
      actions: { ping: () => "pong" },
      options: { actionTimeout: 0.5 },
    });
    const handle = inMemory({ quick }).client().quick.getOrCreate("a");
    // Some may take longer than a millisecond on a machine that is busy. Not all of them do.
    const results = [];
    for (let n = 0; n < 200 && !results.includes("pong"); n += 1) {
      results.push(await handle.ping().catch(({ code }) => code));
    }

    assert.ok(results.includes("pong"), `${results.length} calls took too long`);
  });
});
