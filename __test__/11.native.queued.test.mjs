// Calls of an actor in the caller's own environment that have to wait their turn: only their number
// crosses, and they begin, end and are given up like all others.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import {
  actor,
  add,
  awake,
  bytes,
  dispatch,
  none,
  numbers,
  opened,
  until,
} from "./support/native.mjs";

/** An actor whose call `blocking` has been accepted and has not begun: the next ones queue. */
async function busy(t, config = {}, callbacks = {}) {
  const host = await opened(t, { counter: numbers({}, config, callbacks) });
  const target = actor("counter", "a");
  const bag = await awake(host, target);
  const blocking = host.submit(target, "add", none, 2);
  return { host, target, bag, blocking };
}

describe("a queued call", () => {
  it("is refused once its actor has stopped", async (t) => {
    const { host, bag, blocking } = await busy(t);
    await blocking;
    await host.sleep(bag.identity.actorId);

    assert.equal(
      dispatch.queued(bag, () => 1),
      undefined,
    );
  });

  it("is refused when its caller has given it up already", async (t) => {
    const { bag } = await busy(t);

    assert.equal(
      dispatch.queued(bag, () => 1, AbortSignal.abort()),
      undefined,
    );
  });

  it("begins after what was accepted before it, and never on its caller's stack", async (t) => {
    const { bag, blocking } = await busy(t);
    const events = [];

    const call = dispatch.queued(bag, () => {
      events.push(`begins with ${bag.extension.n}`);
      return { kept: bag };
    });
    events.push("returned");
    const answer = await call;
    await blocking;

    assert.deepEqual(events, ["returned", "begins with 1"]);
    assert.equal(answer.kept, bag, "the result has not crossed");
    assert.equal(bag.open.size, 0);
  });

  it("rejects with the very error that its function threw", async (t) => {
    const { bag } = await busy(t);
    const thrown = new RangeError("mine");

    await assert.rejects(
      dispatch.queued(bag, () => {
        throw thrown;
      }),
      (error) => error === thrown,
    );
  });

  it("that was given up before its turn does not begin, and its caller has the reason", async (t) => {
    const { host, bag } = await busy(t);
    const control = new AbortController();
    let begun = false;
    const call = dispatch.queued(
      bag,
      () => {
        begun = true;
      },
      control.signal,
    );

    control.abort(new Error("enough"));

    await assert.rejects(call, { message: "enough" });
    await until(() => bag.open.size === 0, "the call to be released");
    assert.equal(begun, false);
    const { actorId } = bag.identity;
    await until(async () => (await host.info(actorId)).holds.length === 0, "it to hold nothing");
  });

  it("that waits longer than its actor's timeout is a timeout and does not begin", async (t) => {
    const { host, bag, blocking } = await busy(t, { actionTimeoutMs: 300 });
    const late = assert.rejects(blocking, { code: "action_timed_out" });
    let begun = false;
    const call = dispatch.queued(bag, () => {
      begun = true;
    });

    // The thread is held, so that the deadline passes before the turn comes.
    const end = performance.now() + 350;
    while (performance.now() < end);

    await assert.rejects(call, { code: "action_timed_out" });
    await late;
    await until(() => bag.open.size === 0, "the call to be released");
    assert.equal(begun, false);
    const { actorId } = bag.identity;
    await until(async () => (await host.info(actorId)).holds.length === 0, "it to hold nothing");
  });

  it("is answered with the error that ends its generation", async (t) => {
    let broken = false;
    const encodeState = (bag) => {
      if (broken) throw new TypeError("cannot encode");
      return bytes(bag.extension.n);
    };
    const { bag, blocking } = await busy(t, {}, { encodeState });
    broken = true;
    const lost = assert.rejects(blocking);
    const alive = setInterval(() => {}, 1_000);
    t.after(() => clearInterval(alive));

    await assert.rejects(
      dispatch.queued(bag, () => new Promise(() => {})),
      { metadata: { error: "TypeError: cannot encode" } },
    );
    await lost;
    assert.equal(bag.stopped.outcome, "broken");
  });

  it("leaves only once what it may reveal is durable", async (t) => {
    const { bag } = await busy(t);
    let durableAtAnswer;

    const call = dispatch
      .queued(bag, () => add(bag, "5"))
      .then((value) => {
        durableAtAnswer = [bag.dirty, bag.inFlight];
        return value;
      });

    assert.equal(await call, 6);
    assert.deepEqual(durableAtAnswer, [false, 0]);
  });
});
