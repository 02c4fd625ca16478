import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";

import { ActorError, actor, RivetError, UserError } from "../dist/index.js";
import { inMemory } from "./support/registry.mjs";

const thrown = {
  plain: new TypeError("plain", { cause: "why" }),
  user: new UserError("no seats", { code: "sold_out", metadata: { left: 0, big: 5n, f() {} } }),
  own: new RivetError("shop", "closed", "we are closed", { public: true, statusCode: 423 }),
  frozen: Object.freeze(new Error("frozen")),
  text: "just text",
  nothing: undefined,
  shaped: { __type: "ActorError", group: "other", code: "copy", message: "from another copy" },
};
const hostile = new Proxy(
  {},
  {
    get() {
      throw new Error("do not look");
    },
  },
);

const thrower = actor({
  state: { n: 0 },
  actions: {
    fail: (_c, which) => {
      throw thrown[which];
    },
    failLater: async (_c, which) => {
      await null;
      throw thrown[which];
    },
    hostile: () => {
      throw hostile;
    },
    relay: (c, which) => c.client().thrower.getOrCreate("inner").fail(which),
    ok: () => true,
  },
});

/** What a call is rejected with. */
async function failure(call) {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error("it was not rejected");
}

describe("an error of an action", () => {
  const { thrower: actors } = inMemory({ thrower }).client();
  const cases = [
    [
      "plain",
      {
        group: "rivetkit",
        code: "internal_error",
        message: "plain",
        public: false,
        statusCode: 500,
      },
    ],
    [
      "user",
      {
        group: "user",
        code: "sold_out",
        message: "no seats",
        public: true,
        statusCode: 400,
        metadata: { left: 0, big: "5" },
      },
    ],
    [
      "own",
      { group: "shop", code: "closed", message: "we are closed", public: true, statusCode: 423 },
    ],
    ["frozen", { group: "rivetkit", code: "internal_error", message: "frozen" }],
    ["text", { group: "rivetkit", code: "internal_error", message: "just text" }],
    ["nothing", { group: "rivetkit", code: "internal_error", message: "undefined" }],
    ["shaped", { group: "other", code: "copy", message: "from another copy" }],
  ];
  for (const [which, expected] of cases) {
    it(`reaches the caller the same on both ways: ${which}`, async () => {
      const handle = actors.getOrCreate(`way-${which}`);

      const ordinary = await failure(handle.fail(which));
      const inPlace = await failure(handle.failLater(which));

      for (const error of [ordinary, inPlace]) {
        assert.ok(error instanceof RivetError);
        assert.equal(error.name, "RivetError");
        for (const [key, value] of Object.entries(expected))
          assert.deepEqual(error[key], value, key);
        assert.equal(error.cause, thrown[which]);
        assert.equal(error.actor.actorId, await handle.resolve());
        assert.equal(error.actor.generation >= 0, true);
      }
      assert.deepEqual({ ...ordinary }, { ...inPlace });
    });
  }

  it("is never changed", async () => {
    const before = Object.getOwnPropertyNames(thrown.plain).sort();

    await failure(actors.getOrCreate("keep").fail("plain"));

    assert.deepEqual(Object.getOwnPropertyNames(thrown.plain).sort(), before);
    assert.match(thrown.plain.stack, /22\.errors/);
  });

  it("that cannot be looked at ends the call all the same, and the actor lives", async () => {
    const handle = actors.getOrCreate("hostile");
    for (const _way of ["ordinary", "in place"]) {
      assert.equal((await failure(handle.hostile())).code, "internal_error");
    }
    assert.equal(await handle.ok(), true);
  });

  it("keeps its group, code and actor through another actor", async () => {
    const error = await failure(actors.getOrCreate("outer").relay("user"));

    assert.deepEqual([error.group, error.code, error.message], ["user", "sold_out", "no seats"]);
    assert.equal(error.actor.actorId, await actors.get("inner").resolve());
    assert.equal(error.cause.cause, thrown.user);
  });
});

describe("an actor that does not exist", () => {
  const { thrower: actors } = inMemory({ thrower }).client();

  it("is told from others", async () => {
    await assert.rejects(actors.get("nobody").ok(), {
      group: "actor",
      code: "not_found",
      statusCode: 404,
    });
    await assert.rejects(actors.get("nobody").resolve(), { group: "actor", code: "not_found" });
  });

  it("cannot be created twice", async () => {
    await actors.create("twin");

    await assert.rejects(actors.create("twin"), { group: "actor", code: "already_exists" });
  });
});

describe("a call that takes too long", () => {
  it("names its actor the same on both ways, whatever its key", async () => {
    const slow = actor({
      actions: { wait: () => new Promise(() => {}), ping: () => {} },
      options: { actionTimeout: 10, sleepGracePeriod: 1 },
    });
    const { slow: actors } = inMemory({ slow }).client();
    for (const key of [[], ["a", "b"], ["a/b", "c\\d"], ["", "x"]]) {
      const handle = actors.getOrCreate(key);

      const ordinary = await failure(handle.wait());
      const inPlace = await failure(handle.wait());

      assert.equal(ordinary.code, "action_timed_out");
      assert.deepEqual({ ...inPlace }, { ...ordinary });
    }
  });
});

describe("a call that is made wrongly", () => {
  const wrong = { name: "TypeError", group: "actor", code: "invalid_argument" };

  it("rejects with actor.invalid_argument", async () => {
    const { thrower: actors } = inMemory({ thrower }).client();
    const handle = actors.getOrCreate("a");
    const { signal } = new AbortController();

    for (const call of [5, null, {}, { name: 5 }, { name: "ok", args: 5 }]) {
      await assert.rejects(handle.action(call), wrong);
    }
    await assert.rejects(handle.action({ name: "ok", signal: {} }), wrong);
    for (const options of [
      5,
      { inputs: 5 },
      { params: () => {} },
      { region: "x" },
      { signal: {} },
    ]) {
      await assert.rejects(actors.create("b", options), wrong);
    }
    assert.equal(await handle.action({ name: "ok", signal }), true);
  });

  it("throws it where nothing is returned to wait for", () => {
    const { thrower: actors } = inMemory({ thrower }).client();

    assert.throws(() => actors.get("a", { inputs: 5 }), wrong);
    assert.throws(() => actors.get(5), wrong);
  });
});

describe("RivetError and UserError", () => {
  it("are recognised by their shape", () => {
    const shape = { __type: "RivetError", group: "user", code: "x", message: "m" };

    assert.ok(shape instanceof RivetError);
    assert.ok(shape instanceof UserError);
    assert.ok(UserError.is(shape));
    assert.ok(RivetError.isRivetError(shape) && RivetError.isActorError(shape));
    assert.equal(ActorError, RivetError);
    for (const other of [
      null,
      undefined,
      5,
      "x",
      {},
      new Error("x"),
      { ...shape, code: 5 },
      hostile,
    ]) {
      assert.equal(other instanceof RivetError, false);
      assert.equal(UserError.is(other), false);
    }
    assert.equal(UserError.is({ ...shape, group: "actor" }), false);
  });

  it("tell a class that an author derives apart", () => {
    class SoldOut extends UserError {}

    assert.ok(new SoldOut("x") instanceof SoldOut);
    assert.ok(new SoldOut("x") instanceof UserError);
    assert.equal(new UserError("x") instanceof SoldOut, false);
  });

  it("have the defaults of the public API", () => {
    const user = new UserError("m");
    const own = new RivetError("g", "c", "m");

    assert.deepEqual(
      [user.group, user.code, user.public, user.statusCode],
      ["user", "user_error", true, 400],
    );
    assert.deepEqual(
      [own.public, own.statusCode, own.metadata, own.name],
      [false, 500, undefined, "RivetError"],
    );
    assert.deepEqual(Object.keys(own).sort(), ["__type", "code", "group", "public", "statusCode"]);
  });
});

describe("an error of an action whose changes were lost", () => {
  for (const way of ["ordinary way", "in place"]) {
    it(`says that they were lost, ${way}`, async () => {
      const spoilt = actor({
        state: { n: 0, kept: new Map() },
        actions: {
          wake: () => {},
          spoil: (c) => {
            c.state.n += 1;
            // Nothing can keep it, which only the encoding finds out.
            c.state.kept.set("f", () => {});
            throw new UserError("no seats");
          },
          read: (c) => c.state.n,
        },
      });
      const handle = inMemory({ spoilt }).client().spoilt.getOrCreate("k");
      if (way === "in place") await handle.wake();
      const error = await handle.spoil().catch((error) => error);
      assert.deepEqual([error.group, error.code], ["actor", "state_not_storable"]);
      if (way === "ordinary way") assert.equal(error.cause.message, "no seats");
      assert.equal(await handle.read(), 0);
    });
  }
});

describe("a failure that no caller hears", () => {
  for (const way of [
    "the ordinary way",
    "in place",
    "of an action that does not exist, in place",
  ]) {
    it(`is reported as unhandled: ${way}`, () => {
      const program = `
        import { actor, setup } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url))};
        const thrower = actor({ actions: {
          wake: () => {},
          fail: () => { throw new Error("unheard"); },
        } });
        const registry = setup({ use: { thrower }, storage: ":memory:" });
        process.on("unhandledRejection", (error) => console.log("unhandled", error.code));
        const handle = registry.client().thrower.getOrCreate("k");
        if (${way !== "the ordinary way"}) await handle.wake();
        void handle.${way.startsWith("of an action") ? "nothing" : "fail"}();
        await handle.wake();
        await registry.shutdown();`;
      const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
        encoding: "utf8",
        timeout: 10_000,
      });
      const code = way.startsWith("of an action") ? "action_not_found" : "internal_error";
      assert.equal(stdout, `unhandled ${code}\n`);
    });
  }
});
