// biome-ignore-all lint/suspicious/noThenProperty: odd thenables are what is tested here.
// Whatever author code throws or gives back ends in exactly one end of its call.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor, awake, dispatch, none, numbers, opened, text } from "./support/native.mjs";

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
    // Long enough for the call that wakes it, on a busy machine too.
    const host = await opened(t, { slow: numbers({}, { actionTimeoutMs: 300 }) });
    const bag = await awake(host, actor("slow", "a"));

    const call = dispatch.inPlace(bag, () => {
      const end = Date.now() + 350;
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
