// What a turn changed commits together, and nothing it may reveal leaves before.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import {
  actor,
  add,
  awake,
  bytes,
  dispatch,
  folder,
  none,
  numbers,
  opened,
  text,
  turn,
  until,
} from "./support/native.mjs";

/** A type that counts how often its state is encoded. */
function counted(config, fail = () => {}) {
  const encodes = [];
  const factory = numbers({}, config, {
    encodeState(bag) {
      fail(bag);
      encodes.push(bag.extension.n);
      return bytes(bag.extension.n);
    },
  });
  return { factory, encodes };
}

describe("an answer in place", () => {
  it("that may reveal a change leaves when that is durable", async (t) => {
    const host = await opened(t, { counter: numbers() }, { path: folder(t) });
    const bag = await awake(host, actor("counter", "a"));
    const before = bag.durable;

    await dispatch.inPlace(bag, () => add(bag, 1));

    assert.ok(bag.durable > before);
    assert.equal(bag.dirty, false);
    assert.equal(text(bag.context.state()), "1");
  });

  it("that read what is not durable waits, though it changed nothing", async (t) => {
    const host = await opened(t, { counter: numbers() }, { path: folder(t) });
    const bag = await awake(host, actor("counter", "a"));
    const before = bag.durable;
    const order = [];

    const write = dispatch.inPlace(bag, () => add(bag, 1)).then(() => order.push("write"));
    const read = dispatch
      .inPlace(bag, () => bag.extension.n)
      .then((n) => {
        order.push("read");
        assert.equal(n, 1);
        assert.ok(bag.durable > before);
      });
    await Promise.all([write, read]);

    assert.deepEqual(order, ["write", "read"]);
  });

  it("that fails waits as well", async (t) => {
    const host = await opened(t, { counter: numbers() }, { path: folder(t) });
    const bag = await awake(host, actor("counter", "a"));
    const before = bag.durable;

    await assert.rejects(
      dispatch.inPlace(bag, () => {
        add(bag, 1);
        throw new Error("after the change");
      }),
      { message: "after the change" },
    );

    assert.ok(bag.durable > before);
  });

  it("of a clean actor leaves within the same turn", async (t) => {
    const host = await opened(t, { counter: numbers() }, { path: folder(t) });
    const bag = await awake(host, actor("counter", "a"));
    let turned = false;
    setImmediate(() => {
      turned = true;
    });

    await dispatch.inPlace(bag, () => bag.extension.n);

    assert.equal(turned, false);
  });

  it("leaves at once where answers do not wait, and the change is saved later", async (t) => {
    const { factory, encodes } = counted({ durability: "interval", stateSaveIntervalMs: 30 });
    const host = await opened(t, { counter: factory }, { path: folder(t) });
    const bag = await awake(host, actor("counter", "a"));
    encodes.length = 0;

    await dispatch.inPlace(bag, () => add(bag, 1));
    assert.deepEqual(encodes, []);
    await until(() => text(bag.context.state()) === "1");

    assert.deepEqual(encodes, [1]);
  });
});

describe("changes", () => {
  it("of one turn are encoded once, whichever way they came", async (t) => {
    const { factory, encodes } = counted();
    const host = await opened(t, { counter: factory }, { path: folder(t) });
    const target = actor("counter", "a");
    const bag = await awake(host, target);
    encodes.length = 0;
    await turn();

    // Fewer than after which the budget looks at the clock, so that it is one turn.
    const calls = Array.from({ length: 20 }, () => dispatch.inPlace(bag, () => add(bag, 1)));
    assert.ok(calls.every((call) => call !== undefined));
    await Promise.all(calls);

    assert.deepEqual(encodes, [20]);
  });

  it("made while a commit is on its way share the next one", async (t) => {
    const onTheirWay = [];
    const { factory, encodes } = counted({}, (bag) => onTheirWay.push(bag.inFlight));
    const host = await opened(t, { counter: factory }, { path: folder(t) });
    const bag = await awake(host, actor("counter", "a"));
    encodes.length = 0;
    onTheirWay.length = 0;

    const first = dispatch.inPlace(bag, () => add(bag, 1));
    await until(() => bag.inFlight !== 0 || bag.durable > 1);
    const later = Array.from({ length: 20 }, () => dispatch.inPlace(bag, () => add(bag, 1)));
    await Promise.all([first, ...later]);

    // However the budget of the loop divides them, none is encoded while one is on its way.
    assert.deepEqual(new Set(onTheirWay), new Set([0]));
    assert.ok(encodes.length < later.length, `${encodes.length} encodes for 21 calls`);
    assert.equal(text(bag.context.state()), "21");
  });

  it("of the ordinary way are durable with their answer", async (t) => {
    const host = await opened(t, { counter: numbers() }, { path: folder(t) });
    const target = actor("counter", "a");

    const answers = await Promise.all(
      Array.from({ length: 40 }, () => host.submit(target, "add", none, 2)),
    );

    assert.deepEqual(
      answers.map((answer) => Number(text(answer))),
      Array.from({ length: 40 }, (_, n) => n + 1),
    );
    const { context } = await awake(host, target);
    assert.equal(text(context.state()), "40");
  });

  it("outside of any call are saved at the end of the turn", async (t) => {
    const host = await opened(t, { counter: numbers() }, { path: folder(t) });
    const bag = await awake(host, actor("counter", "a"));

    add(bag, 9);
    await until(() => text(bag.context.state()) === "9");
  });

  it("made while the actor starts are stored with it", async (t) => {
    for (const hook of ["onCreate", "onWake", "onBeforeActorStart"]) {
      const path = folder(t);
      const callbacks = {
        [hook](_, { bag }) {
          bag.extension ??= { n: 0 };
          add(bag, 5);
        },
      };
      const host = await opened(t, { [hook]: numbers({}, {}, callbacks) }, { path });
      const target = actor(hook, "a");

      const answer = await host.submit(target, "get", none, 2);

      assert.equal(text(answer), "5", hook);
      // Open to calls in place only once the host has seen that nobody else waits.
      const { context } = await awake(host, target);
      assert.equal(text(context.state()), "5", hook);
    }
  });

  it("made while the actor goes to sleep are there when it wakes", async (t) => {
    const callbacks = {
      onSleep(_, { bag }) {
        add(bag, 7);
      },
    };
    const host = await opened(t, { counter: numbers({}, {}, callbacks) }, { path: folder(t) });
    const target = actor("counter", "a");
    const bag = await awake(host, target);

    await host.sleep(bag.identity.actorId);

    assert.equal(text(await host.submit(target, "get", none, 2)), "7");
  });
});

describe("flush", () => {
  it("resolves when all so far is durable, and the gate is open then", async (t) => {
    const host = await opened(t, { counter: numbers() }, { path: folder(t) });
    const bag = await awake(host, actor("counter", "a"));
    assert.equal(dispatch.gate(bag), undefined);

    add(bag, 3);
    assert.ok(dispatch.gate(bag) instanceof Promise);
    await dispatch.flush(bag);

    assert.equal(text(bag.context.state()), "3");
    await until(() => dispatch.gate(bag) === undefined);
  });

  it("of a generation that is over is refused", async (t) => {
    const host = await opened(t, { counter: numbers() });
    const bag = await awake(host, actor("counter", "a"));
    await host.sleep(bag.identity.actorId);

    await assert.rejects(dispatch.flush(bag), { group: "actor", code: "stopping" });
  });
});

describe("a state that cannot be encoded", () => {
  it("breaks the generation: what waited is an error, and the next call sees what was durable", async (t) => {
    let broken = false;
    const { factory } = counted({}, () => {
      if (broken) throw new TypeError("cannot encode a function");
    });
    const host = await opened(t, { counter: factory }, { path: folder(t) });
    const target = actor("counter", "a");
    await host.submit(target, "add", bytes(2), 2);
    const bag = await awake(host, target);
    broken = true;

    const placed = dispatch.inPlace(bag, () => add(bag, 1));
    const running = dispatch.inPlace(bag, () => new Promise(() => {}));
    const alive = setInterval(() => {}, 1_000);
    t.after(() => clearInterval(alive));

    const expected = {
      code: "internal_error",
      metadata: { error: "TypeError: cannot encode a function" },
    };
    await assert.rejects(placed, expected);
    await assert.rejects(running, expected);
    assert.equal(bag.stopped.outcome, "broken");
    assert.equal(
      dispatch.inPlace(bag, () => 1),
      undefined,
    );

    broken = false;
    assert.equal(text(await host.submit(target, "get", none, 2)), "2");
    await turn();
  });
});
