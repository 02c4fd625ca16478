// Chains of calls in place leave the event loop its turns.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor, awake, dispatch, none, numbers, opened } from "./support/native.mjs";

describe("a loop of calls in place", () => {
  it("lets a timer beside it have its turns", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const bag = await awake(host, actor("counter", "a"));
    let ticks = 0;
    const timer = setInterval(() => {
      ticks += 1;
    }, 1);

    const end = Date.now() + 600;
    let calls = 0;
    while (Date.now() < end) {
      await dispatch.inPlace(bag, () => bag.extension.n);
      calls += 1;
    }
    clearInterval(timer);

    // Without a budget there is not one tick; with it there are some hundred.
    assert.ok(ticks >= 10, `${ticks} ticks beside ${calls} calls`);
  });

  it("shares one budget between all actors", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const bags = [];
    for (let n = 0; n < 8; n += 1) bags.push(await awake(host, actor("counter", n)));
    let ticks = 0;
    const timer = setInterval(() => {
      ticks += 1;
    }, 1);

    const end = Date.now() + 300;
    await Promise.all(
      bags.map(async (bag) => {
        while (Date.now() < end) await dispatch.inPlace(bag, () => 0);
      }),
    );
    clearInterval(timer);

    assert.ok(ticks >= 5, `${ticks} ticks`);
  });

  it("lets commits of other actors end meanwhile", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const busy = await awake(host, actor("counter", "busy"));
    let durable = false;
    const write = host.submit(actor("counter", "writer"), "add", none, 2).then(() => {
      durable = true;
    });

    const end = Date.now() + 5_000;
    while (!durable && Date.now() < end) await dispatch.inPlace(busy, () => 0);

    assert.ok(durable);
    await write;
  });
});

describe("a recursion without end", () => {
  it("leaves nothing open", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const bag = await awake(host, actor("counter", "a"));
    const down = (depth) => down(depth + 1) + 1;

    await assert.rejects(
      dispatch.inPlace(bag, () => down(0)),
      RangeError,
    );

    assert.equal(bag.open.size, 0);
    assert.deepEqual((await host.info(bag.identity.actorId)).holds, []);
    assert.equal(await dispatch.inPlace(bag, () => 7), 7);
  });

  it("does not deepen the stack when it goes through calls", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const bag = await awake(host, actor("counter", "a"));
    const down = (left) =>
      left === 0 ? 0 : dispatch.inPlace(bag, () => down(left - 1)).then((n) => n + 1);

    assert.equal(await down(20_000), 20_000);
    assert.equal(bag.open.size, 0);
  });
});
