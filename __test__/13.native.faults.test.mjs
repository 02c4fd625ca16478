// biome-ignore-all lint/suspicious/noThenProperty: odd thenables are what is tested here.
// Whatever author code throws or gives back ends in exactly one end of its call.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { describe, it } from "node:test";

import {
  actor,
  awake,
  bytes,
  dispatch,
  none,
  numbers,
  opened,
  script,
  text,
} from "./support/native.mjs";

const require = createRequire(import.meta.url);
const native = require("../index.js");

class Subclassed extends Promise {}

const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};

/** Each throws or gives back something odd; the value says whether it must reject. */
const ODD = {
  "throws undefined": [
    () => {
      throw undefined;
    },
    true,
  ],
  "throws null": [
    () => {
      throw null;
    },
    true,
  ],
  "throws a string": [
    () => {
      throw "text";
    },
    true,
  ],
  "throws a symbol": [
    () => {
      throw Symbol("s");
    },
    true,
  ],
  "throws a frozen error": [
    () => {
      throw Object.freeze(new Error("frozen"));
    },
    true,
  ],
  "throws an object whose properties throw": [
    () => {
      throw {
        get message() {
          throw new Error("no");
        },
      };
    },
    true,
  ],
  "throws a revoked proxy": [
    () => {
      throw revoked();
    },
    true,
  ],
  "rejects with undefined": [
    async () => {
      throw undefined;
    },
    true,
  ],
  "gives back a thenable whose then throws": [
    () => ({
      then() {
        throw new Error("then");
      },
    }),
    true,
  ],
  "gives back an object whose then cannot be read": [
    () => ({
      get then() {
        throw new Error("get");
      },
    }),
    true,
  ],
  "gives back a thenable that answers twice": [
    () => ({
      then(ok, no) {
        ok(undefined);
        no(new Error("late"));
        ok(undefined);
      },
    }),
    false,
  ],
  "gives back a thenable of a thenable": [
    () => ({
      then(ok) {
        ok({
          then(again) {
            again(undefined);
          },
        });
      },
    }),
    false,
  ],
  "gives back a promise of another class": [() => Subclassed.resolve(undefined), false],
  "gives back a promise whose constructor cannot be read": [
    () =>
      Object.defineProperty(Promise.resolve(), "constructor", {
        get() {
          throw new Error("constructor");
        },
      }),
    true,
  ],
  "gives back a promise with a then of its own": [
    () =>
      Object.assign(Promise.resolve(), {
        then(ok) {
          ok(undefined);
        },
      }),
    false,
  ],
  "is not async at all": [() => undefined, false],
};

const caught = (promise) =>
  promise.then(
    () => ({ rejected: false }),
    (error) => ({ rejected: true, error }),
  );

describe("a function that", () => {
  for (const [name, [odd, rejects]] of Object.entries(ODD)) {
    it(`${name} ends once, whichever way it was called`, async (t) => {
      const factory = numbers({}, {}, { actions: { odd, get: async () => none } });
      const host = await opened(t, { odd: factory });
      const target = actor("odd", "a");
      const bag = await awake(host, target);

      const placed = await caught(dispatch.inPlace(bag, odd));
      const queued = await caught(host.submit(target, "odd", none, 2));

      assert.equal(placed.rejected, rejects, String(name));
      assert.equal(queued.rejected, rejects);
      assert.equal(bag.open.size, 0);
      assert.deepEqual((await host.info(bag.identity.actorId)).holds, []);
      assert.equal(await dispatch.inPlace(bag, () => 1), 1);
    });
  }

  it("throws a frozen error has it given to its caller untouched", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const bag = await awake(host, actor("counter", "a"));
    const frozen = Object.freeze(new Error("frozen"));

    await assert.rejects(
      dispatch.inPlace(bag, () => {
        throw frozen;
      }),
      (error) => error === frozen,
    );
  });

  it("throws has the original as the cause of what its caller in this environment gets", async (t) => {
    const thrown = new RangeError("mine");
    const host = await opened(t, {
      counter: numbers({
        fail() {
          throw thrown;
        },
      }),
    });

    await assert.rejects(host.submit(actor("counter", "a"), "fail", none, 2), (error) => {
      assert.equal(error.cause, thrown);
      assert.equal(error.code, "internal_error");
      assert.equal(error.metadata.error, "RangeError: mine");
      assert.equal(error.actor.key, "a");
      return true;
    });
  });

  it("is no action is refused by name", async (t) => {
    const host = await opened(t, { counter: numbers() });

    for (const name of ["nope", "constructor", "__proto__"]) {
      await assert.rejects(host.submit(actor("counter", "a"), name, none, 2), {
        group: "actor",
        code: "action_not_found",
        message: `Action \`${name}\` was not found.`,
        public: true,
        statusCode: 404,
      });
    }
  });

  it("gives back what is no bytes is an error of its own", async (t) => {
    const factory = numbers({}, {}, { actions: { get: async () => "text" } });
    const host = await opened(t, { odd: factory });

    await assert.rejects(host.submit(actor("odd", "a"), "get", none, 2), {
      code: "internal_error",
    });
  });
});

describe("a call that takes too long", () => {
  it("in place is answered once, told, and released when its function ends", async (t) => {
    const host = await opened(t, { slow: numbers({}, { actionTimeoutMs: 30 }) });
    const bag = await awake(host, actor("slow", "a"));
    // A call in place does not keep the process alive by itself.
    const alive = setInterval(() => {}, 1_000);
    t.after(() => clearInterval(alive));
    let release;
    let scope;

    const call = dispatch.inPlace(bag, (given) => {
      scope = given;
      return new Promise((resolve) => {
        release = resolve;
      });
    });
    await assert.rejects(call, { group: "actor", code: "action_timed_out", statusCode: 408 });

    assert.ok(scope.signal.aborted);
    assert.equal(bag.open.size, 1);
    release("late");
    await dispatch.inPlace(bag, () => 0);
    assert.equal(bag.open.size, 0);
  });

  it("and cannot be interrupted is a timeout all the same", async (t) => {
    const host = await opened(t, { slow: numbers({}, { actionTimeoutMs: 20 }) });
    const bag = await awake(host, actor("slow", "a"));

    const call = dispatch.inPlace(bag, () => {
      const end = Date.now() + 60;
      while (Date.now() < end);
      return "late";
    });

    await assert.rejects(call, { code: "action_timed_out" });
  });
});

describe("a caller that gives up", () => {
  it("is answered at once, and the function is told", async (t) => {
    let aborted;
    const began = Promise.withResolvers?.() ?? deferred();
    const wait = (_bag, _args, payload) =>
      new Promise((resolve) => {
        aborted = payload.signal;
        payload.signal.addEventListener("abort", () => resolve(undefined));
        began.resolve();
      });
    const host = await opened(t, { slow: numbers({ wait }) });
    const control = new AbortController();
    const target = actor("slow", "a");

    const call = host.submit(target, "wait", none, 2, { signal: control.signal });
    await began.promise;
    control.abort(new Error("enough"));

    await assert.rejects(call, { message: "enough" });
    assert.equal(text(await host.submit(target, "get", none, 2)), "0");
    assert.ok(aborted.aborted);
  });

  it("in place is answered at once with its reason, and the call ends with its function", async (t) => {
    const host = await opened(t, { slow: numbers() });
    const bag = await awake(host, actor("slow", "a"));
    const control = new AbortController();
    let release;
    let scope;

    const call = dispatch.inPlace(
      bag,
      (given) => {
        scope = given;
        return new Promise((resolve) => {
          release = resolve;
        });
      },
      control.signal,
    );
    await dispatch.inPlace(bag, () => 0);
    control.abort(new Error("enough"));

    await assert.rejects(call, { message: "enough" });
    assert.ok(scope.signal.aborted);
    assert.equal(bag.open.size, 1);
    release();
    await dispatch.inPlace(bag, () => 0);
    assert.equal(bag.open.size, 0);
    assert.deepEqual((await host.info(bag.identity.actorId)).holds, []);
  });

  it("in place before its call has begun is not run", async (t) => {
    let ran = false;
    const host = await opened(t, { slow: numbers() });
    const bag = await awake(host, actor("slow", "a"));
    const control = new AbortController();

    const call = dispatch.inPlace(
      bag,
      () => {
        ran = true;
      },
      control.signal,
    );
    control.abort(new Error("enough"));

    await assert.rejects(call, { message: "enough" });
    await dispatch.inPlace(bag, () => 0);
    assert.equal(ran, false);
    assert.equal(bag.open.size, 0);
  });

  it("before its actor has started is not run at all", async (t) => {
    let ran = false;
    const host = await opened(t, {
      slow: numbers({
        run: () => {
          ran = true;
        },
      }),
    });
    const control = new AbortController();
    const target = actor("slow", "a");

    const call = host.submit(target, "run", none, 2, { signal: control.signal });
    control.abort(new Error("enough"));

    await assert.rejects(call, { message: "enough" });
    assert.equal(text(await host.submit(target, "get", none, 2)), "0");
    assert.equal(ran, false);
  });
});

function deferred() {
  let resolve;
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

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
  const calls = (context) => {
    const { ActorContext, CancellationToken, CoreRegistry, NapiActorFactory } = native;
    const factory = () => new NapiActorFactory({});
    return {
      __jobFields: () => native.__jobFields(),
      actorContext: () => native.actorContext(1, 1),
      admit: () => native.admit(1),
      awaitDestroyed: () => native.awaitDestroyed(context, 1),
      awaitFlushed: () => native.awaitFlushed(context, 1),
      awaitSave: () => native.awaitSave(context, true, -1, 1),
      awaitTrackedWork: () => native.awaitTrackedWork(context, 1, true),
      beginRegion: () => native.beginRegion(1, 0),
      breakGeneration: () => native.breakGeneration(1, none),
      cancel: () => native.cancel(1, 1),
      cancelCall: () => native.cancelCall(1, 1),
      commit: () => native.commit(1, none),
      complete: () => native.complete(1, 1, 0, none),
      endRegion: () => native.endRegion(1, 1),
      ensure: () => native.ensure(1, "{}", "get", null, 1),
      finish: () => native.finish(1, 1),
      finishCall: () => native.finishCall(1, 1, 0, none),
      flushSync: () => native.flushSync([], 1),
      live: () => native.live(1, "{}"),
      logRejection: () => native.logRejection(1, "x"),
      manage: () => native.manage(1, "list", "{}", 1),
      markDirty: () => native.markDirty(1),
      openEnv: () => native.openEnv(() => {}),
      openHost: () => native.openHost(1, "{}", 1),
      register: (made) => native.register(1, "x", made),
      requestSave: () => native.requestSave(1, false, -1),
      setLogSink: () => native.setLogSink(1, null),
      submit: () => native.submit(1, "{}", "a", none, 2, 1, false),
      take: () => native.take(1),
      ActorContext: undefined,
      CancellationToken: () => new CancellationToken(),
      CoreRegistry: () => new CoreRegistry(),
      NapiActorFactory: () => factory(),
      "CancellationToken#aborted": (_, token) => token.aborted(),
      "CancellationToken#cancel": (_, token) => token.cancel(),
      "CoreRegistry#register": (made, _, registry) => registry.register("x", made),
      "CoreRegistry#names": (_, __, registry) => registry.names(),
      "CoreRegistry#close": (_, __, registry) => registry.close(),
      "NapiActorFactory#number": (made) => made.number,
      "NapiActorFactory#gated": (made) => made.gated,
      ...Object.fromEntries(
        Object.getOwnPropertyNames(ActorContext.prototype)
          .filter((name) => name !== "constructor")
          .map((name) => [
            `ActorContext#${name}`,
            () => context[name](name === "sameActorInstance" ? context : undefined),
          ]),
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
    const table = calls(bag.context);
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

    await assert.rejects(host.submit({ id: "no-id" }, "get", none, 2), invalid);
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
