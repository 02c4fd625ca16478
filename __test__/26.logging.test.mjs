import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";

import { actor } from "../dist/index.js";
import { inMemory, until } from "./support/registry.mjs";

const talker = actor({
  state: { big: "" },
  actions: {
    say: (c, level, ...line) => c.log[level](...line),
    child: (c) => c.log.child({ part: "p" }).warn({ msg: "from a child", n: 1 }),
    spin: () => {
      const end = Date.now() + 230;
      while (Date.now() < end);
    },
    grow: (c) => {
      c.state.big = "x".repeat(1_100_000);
    },
    shrink: (c) => {
      c.state.big += "y";
    },
  },
});

/** An actor whose lines are kept. */
function listening(level, baseLogger) {
  const lines = [];
  const to = baseLogger === undefined ? { sink: (line) => lines.push(line) } : { baseLogger };
  const registry = inMemory({ talker }, { logging: { level, ...to } });
  return { lines, handle: registry.client().talker.getOrCreate(["a", "b"]) };
}

describe("the log of an actor", () => {
  it("leaves out what is below the level, and everything when silent", async () => {
    const { lines, handle } = listening("warn");
    const silent = listening("silent");

    for (const level of ["trace", "debug", "info"]) await handle.say(level, "no");
    for (const level of ["warn", "error", "fatal"]) await handle.say(level, "yes");
    await silent.handle.say("fatal", "no");

    assert.deepEqual(
      lines.map(({ level, msg }) => [level, msg]),
      [
        ["warn", "yes"],
        ["error", "yes"],
        ["fatal", "yes"],
      ],
    );
    assert.deepEqual(silent.lines, []);
  });

  it("survives a sink that throws", async () => {
    const sink = () => {
      throw new Error("sink");
    };
    const write = process.stderr.write;
    let written = "";
    process.stderr.write = (text) => {
      written += text;
      return true;
    };
    try {
      const registry = inMemory({ talker }, { logging: { sink } });
      await registry.client().talker.getOrCreate().say("error", "x");
    } finally {
      process.stderr.write = write;
    }

    assert.match(written, /the sink of the log failed/);
  });

  it("is bound to the actor, and takes fields, a message or both", async () => {
    const { lines, handle } = listening("trace");
    await handle.say("info", { n: 1, msg: "both in one" });
    await handle.say("info", { n: 2 }, "apart");
    await handle.say("info", "alone");
    await handle.child();

    const own = lines.filter((line) => line.actorName === "talker");
    assert.deepEqual(
      own.map(({ level, msg, n, part }) => [level, msg, n, part]),
      [
        ["info", "both in one", 1, undefined],
        ["info", "apart", 2, undefined],
        ["info", "alone", undefined, undefined],
        ["warn", "from a child", 1, "p"],
      ],
    );
    for (const line of own) {
      assert.deepEqual(line.actorKey, ["a", "b"]);
      assert.equal(line.actorId, await handle.resolve());
      assert.equal(typeof line.generation, "number");
      assert.ok(Math.abs(line.time - Date.now()) < 60_000);
    }
  });

  it("goes to a base logger with its level, fields and message, and without a time", async () => {
    const lines = [];
    const method = (level) => (fields, msg) => lines.push([level, fields.n ?? fields.part, msg]);
    const levels = ["trace", "debug", "info", "warn", "error", "fatal"];
    const baseLogger = Object.fromEntries(levels.map((level) => [level, method(level)]));
    const { handle } = listening(undefined, { ...baseLogger, level: "warn" });
    const own = listening(undefined, { ...baseLogger, level: "loud" });
    const chosen = listening("error", { ...baseLogger, level: "trace" });

    await handle.say("info", "not at its level");
    await handle.say("warn", { n: 1 }, "both");
    await handle.say("fatal", "message");
    await handle.child();
    await chosen.handle.say("warn", "not at the level of the options");
    assert.deepEqual(lines, [
      ["warn", 1, "both"],
      ["fatal", undefined, "message"],
      ["warn", 1, "from a child"],
    ]);

    lines.length = 0;
    await own.handle.say("trace", { n: 2 }, "a level of its own: it decides");
    assert.ok(lines.some(([level, n]) => level === "trace" && n === 2));
  });

  it("refuses a base logger that lacks a level, and one beside a sink", () => {
    const lacking = { trace() {}, debug() {}, info() {}, warn() {} };
    assert.throws(() => listening("warn", lacking), /without a method error, fatal/);
    const baseLogger = { ...lacking, error() {}, fatal() {} };
    assert.throws(
      () => inMemory({ talker }, { logging: { baseLogger, sink() {} } }),
      /both sink and baseLogger/,
    );
  });

  it("warns of an action that holds the thread, by name", async () => {
    const { lines, handle } = listening("warn");
    await handle.spin();

    assert.match(lines[0].msg, /^action spin held the thread for \d+ ms$/);
  });

  it("warns of a large state, once", async () => {
    const { lines, handle } = listening("warn");
    await handle.grow();
    await handle.shrink();
    await until(() => lines.length > 0, "it warned");

    assert.equal(lines.length, 1);
    assert.match(lines[0].msg, /^the state has 1100\d+ bytes/);
  });

  it("is quiet by default and writes lines of JSON on stderr", () => {
    const dist = new URL("../dist/index.js", import.meta.url).href;
    const body = `
      import { actor, setup } from ${JSON.stringify(dist)};
      const a = actor({ state: { n: 0 }, actions: { go: (c) => { c.log.info("no"); c.log.warn({ msg: "yes", n: 5n, error: new TypeError("why") }); } } });
      const registry = setup({ use: { a }, storage: ":memory:" });
      await registry.client().a.getOrCreate().go();
      await registry.shutdown();
    `;
    const { stdout, stderr, status } = spawnSync(
      process.execPath,
      ["--input-type=module", "-e", body],
      { encoding: "utf8", env: { ...process.env, GREENROOM_LOG_LEVEL: "" } },
    );

    assert.deepEqual([stdout, status], ["", 0]);
    const line = JSON.parse(stderr);
    assert.deepEqual(
      [line.level, line.msg, line.n, line.error.message],
      ["warn", "yes", "5", "why"],
    );
  });
});
