import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import { describe, it } from "node:test";
import { inspect } from "node:util";

import { actor } from "../dist/index.js";
import { deferred, inMemory, until } from "./support/registry.mjs";

const note = actor({
  createState: (_c, input) => ({ text: input ?? "" }),
  actions: {
    read: (c) => c.state.text,
    write: (c, text) => {
      c.state.text = text;
    },
    append: (c, text) => (c.state.text += text),
    destroy: (c) => c.destroy(),
  },
});

describe("a client refuses", () => {
  const client = inMemory({ note }).client();
  const refused = [
    [() => client.note.get(5), "a key is a string or a list of strings, not 5"],
    [() => client.note.get(["a", 5]), "a part of a key is a string, not 5"],
    [() => client.note.getForId(), "the id of an actor is a string, not undefined"],
    [
      () => client.note.get("a", { sginal: 1 }),
      'unknown key "sginal" of options of get(): did you mean "signal"?',
    ],
    [
      () => client.note.get("a", { poolName: 1 }),
      'key "poolName" of options of get() is not available yet',
    ],
    [
      () => client.note.get("a", { params: 1, getParams: () => 1 }),
      "options of get() have both params and getParams: give one",
    ],
    [() => client.note.get("a", { getParams: 1 }), "getParams of get() is 1, not a function"],
    [
      () => client.note.get("a", { createWithInput: 1 }),
      /^unknown key "createWithInput" of options of get\(\)/,
    ],
    [() => client.note.get("a", { signal: 1 }), "signal of get() is 1, not an AbortSignal"],
    [() => client.get(5), "an actor's name is a string, not 5"],
  ];
  for (const [make, message] of refused) {
    it(String(message), () => {
      assert.throws(make, { name: "TypeError", message });
    });
  }

  it("an id that is none", async () => {
    await assert.rejects(client.note.getForId("nonsense").read(), {
      group: "actor",
      code: "invalid_argument",
      message: '"nonsense" is not the id of an actor',
    });
  });

  it("an input that cannot be sent", async () => {
    await assert.rejects(client.note.create("x", { input: { f() {} } }), {
      message: "Value at input.f is a function",
    });
    await assert.rejects(client.note.getOrCreate("x", { createWithInput: [Symbol()] }).read(), {
      message: "Value at input[0] is a symbol",
    });
  });

  it("a key of action() that it does not have", async () => {
    const handle = client.note.getOrCreate("a");

    await assert.rejects(handle.action({ name: "read", arg: [] }), {
      name: "TypeError",
      group: "actor",
      code: "invalid_argument",
      message: 'unknown key "arg" of action(): did you mean "args"?',
    });
    await assert.rejects(handle.action({ name: "read", skipReadyWait: true }), {
      message: 'key "skipReadyWait" of action() is not available yet',
    });
  });

  it("members that handles do not have yet, by name", async () => {
    const message = (member) => `${member}() of a handle is not available yet`;
    for (const handle of [client.note.get("a"), client.get("elsewhere", "a")]) {
      for (const member of ["fetch", "webSocket", "getGatewayUrl", "reload"]) {
        await assert.rejects(handle[member](), {
          group: "actor",
          code: "invalid_argument",
          message: message(member),
        });
      }
    }
  });

  it("a name that is not registered", async () => {
    await assert.rejects(client.getOrCreate("nobody", "k").read());
    await assert.rejects(client.create("nobody", "k"));
  });
});

describe("a handle", () => {
  const registry = inMemory({ note });
  const client = registry.client();

  it("is no promise, no JSON and shows nothing of its inside", async () => {
    const handle = client.note.getOrCreate("quiet");

    assert.equal(handle.then, undefined);
    assert.equal(await handle, handle);
    assert.equal(JSON.stringify(handle), "{}");
    assert.equal(inspect(handle), "ActorHandle {}");
    assert.equal(typeof String(handle), "string");
  });

  it("is made by each method, by name and by accessor", async () => {
    const made = await client.note.create("made", { input: "first" });
    const id = await made.resolve();

    assert.equal(await made.read(), "first");
    assert.equal(await client.note.get("made").read(), "first");
    assert.equal(await client.note.getForId(id).read(), "first");
    assert.equal(await client.get("note", "made").read(), "first");
    assert.equal(await client.getForId("note", id).read(), "first");
    assert.equal(await client.getOrCreate("note", ["made"]).read(), "first");
    assert.equal(await (await client.create("note", "other", { input: "o" })).read(), "o");
    await client.dispose();
    assert.equal(await made.read(), "first");
  });

  it("tells keys with the same joined form apart", async () => {
    await client.note.getOrCreate(["a", "b"]).write("two parts");
    await client.note.getOrCreate("a/b").write("one part");

    assert.equal(await client.note.getOrCreate(["a", "b"]).read(), "two parts");
    assert.equal(await client.note.getOrCreate([]).read(), "");
    assert.equal(await client.note.getOrCreate("").read(), "");
  });

  it("resolves to the id of an actor that is not started for it", async () => {
    const handle = client.note.getOrCreate("resolved", { createWithInput: "r" });
    const id = await handle.resolve();

    assert.equal((await registry.actor(id).info()).awake, false);
    assert.equal(await handle.resolve(), id);
    assert.equal(await client.note.getForId(id).read(), "r");
  });

  it("stays valid when its actor sleeps, and is created anew when it was destroyed", async () => {
    const handle = client.note.getOrCreate("again", { createWithInput: "fresh" });
    await handle.write("old");
    await registry.actor(handle).sleep();
    assert.equal(await handle.read(), "old");
    const byId = client.note.getForId(await handle.resolve());
    await registry.actor(handle).destroy();

    await assert.rejects(byId.read(), { code: "not_found" });
    assert.equal(await handle.read(), "fresh");
  });

  it("survives a destroy by its own action", async () => {
    const handle = client.note.getOrCreate("suicide");
    await handle.write("x");
    await handle.destroy();

    await until(async () => (await handle.read().catch(() => "gone")) === "", "it is made anew");
  });

  it("serves calls that are made at once while it starts", async () => {
    const handle = client.note.getOrCreate("burst");
    const parts = Array.from({ length: 300 }, (_, at) => `${at},`);

    await Promise.all(parts.map((part) => handle.append(part)));

    assert.equal(await handle.read(), parts.join(""));
  });

  it("runs author code in no caller's async context, whichever way", async () => {
    const store = new AsyncLocalStorage();
    const { spy } = inMemory({
      spy: actor({ actions: { look: () => store.getStore() } }),
    }).client();
    const handle = spy.getOrCreate();
    for (const _way of ["ordinary", "in place"]) {
      assert.equal(await store.run("secret", () => handle.look()), undefined);
    }
  });

  it("runs author code in the async context of no other actor, however busy the thread is", async () => {
    const store = new AsyncLocalStorage();
    const changed = deferred();
    const heard = [];
    const changer = actor({
      state: { n: 0 },
      actions: {
        change: (c) =>
          store.run("secret", async () => {
            await new Promise((resolve) => setTimeout(resolve, 1));
            c.state.n += 1;
            changed.resolve();
          }),
      },
    });
    const spy = actor({
      state: { n: 0 },
      onStateChange: () => heard.push(store.getStore()),
      actions: {
        look(c, ms) {
          const end = performance.now() + ms;
          while (performance.now() < end);
          c.state.n += 1;
          return store.getStore();
        },
      },
    });
    const client = inMemory({ changer, spy }).client();
    const [busy, other] = [client.spy.getOrCreate(), client.changer.getOrCreate()];
    await busy.look(0);
    await other.resolve();
    const change = other.change();
    await changed.promise;

    // The first one uses up what time there is, so that most begin when the loop has turned.
    const looks = Array.from({ length: 100 }, (_, at) => busy.look(at === 0 ? 10 : 0));
    const seen = await Promise.all(looks);
    await change;

    assert.deepEqual(new Set([...seen, ...heard]), new Set([undefined]));
    assert.ok(heard.length > 1, "onStateChange ran");
  });
});

describe("a handle that creates its actor with an input", () => {
  it("keeps the order of its calls, though the first ones wait for the creation", async () => {
    const client = inMemory({ note }).client();
    const handle = client.note.getOrCreate("ordered", { createWithInput: ">" });
    const calls = [];
    for (let n = 0; n < 40; n += 1) {
      calls.push(handle.append(String.fromCharCode(65 + n)));
      // Lets the first calls get everywhere on their way.
      if (n % 4 === 0) await null;
      if (n % 8 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(calls);
    const expected = Array.from({ length: 40 }, (_, n) => String.fromCharCode(65 + n)).join("");
    assert.equal(await handle.read(), `>${expected}`);
  });

  it("lets a call that was given up not be overtaken by what came after it", async () => {
    const client = inMemory({ note }).client();
    const handle = client.note.getOrCreate("given up", { createWithInput: ">" });
    const stop = new AbortController();
    const first = handle.append("a");
    const second = handle.action({ name: "append", args: ["b"], signal: stop.signal });
    stop.abort(new Error("enough"));
    await assert.rejects(second, { message: "enough" });
    const third = handle.append("c");
    assert.deepEqual(await Promise.all([first, third]), [">a", ">ac"]);
  });
});

describe("a member of a handle", () => {
  const grouped = actor({
    state: { n: 0 },
    actions: { inc: (c) => (c.state.n += 1), "deep.inc": (c) => (c.state.n += 10) },
  });
  const client = inMemory({ grouped }).client();

  it("works when it was taken out of the handle", async () => {
    const { inc, action, resolve, deep, unknown } = client.grouped.getOrCreate("taken");
    assert.equal(await inc(), 1);
    assert.equal(await action({ name: "inc" }), 2);
    assert.equal(await deep.inc(), 12);
    const inner = deep.inc;
    assert.deepEqual(await Promise.all([inner(), [1].map(inc)[0]]), [22, 23]);
    assert.equal(await resolve(), await client.grouped.get("taken").resolve());
    await assert.rejects(unknown(), { code: "action_not_found" });
  });

  it("is the same each time, belongs to its handle alone and can be replaced", async () => {
    const a = client.grouped.getOrCreate("a");
    const b = client.grouped.getOrCreate("b");
    assert.equal(a.inc, a.inc);
    assert.notEqual(a.inc, b.inc);
    await a.inc();
    assert.deepEqual([await a.inc(), await b.inc()], [2, 1]);
    assert.deepEqual(Object.keys(a), []);
    b.inc = () => "mock";
    assert.deepEqual([b.inc(), await a.inc()], ["mock", 3]);
  });
});

describe("what is refused before it is sent", () => {
  const client = inMemory({ note }).client();
  const invalid = { name: "TypeError", group: "actor", code: "invalid_argument" };

  it("is a key with half of a surrogate pair, by name", () => {
    for (const key of ["\ud800", ["a", "b\udc00"], "\udc00\ud800"]) {
      assert.throws(() => client.note.getOrCreate(key), {
        ...invalid,
        message:
          /^a key has no half of a surrogate pair, as "(\\ud800|b\\udc00|\\udc00\\ud800)" has$/,
      });
    }
  });

  it("is not a key with a whole pair", async () => {
    assert.equal(await client.note.getOrCreate("\u{1f600}").append("x"), "x");
  });

  it("has a group and a code", async () => {
    assert.throws(() => client.note.get(5), invalid);
    assert.throws(() => client.note.get([5]), invalid);
    assert.throws(() => client.note.get(new Array(1)), invalid);
    assert.throws(() => client.note.getForId(5), invalid);
    const handle = client.note.getOrCreate("args");
    for (let way = 0; way < 2; way += 1) {
      await assert.rejects(
        handle.append(() => {}),
        invalid,
      );
      await handle.read();
    }
    await assert.rejects(client.note.create("input", { input: Symbol() }), invalid);
  });
});

it("many calls with one signal are no leak", async () => {
  const waiting = actor({
    actions: {
      look: async (c) => {
        c.abortSignal;
        await new Promise((resolve) => setImmediate(resolve));
      },
      fan: async (c) => {
        const to = c.client().waiting.getOrCreate("to");
        await to.look();
        const signal = c.abortSignal;
        const call = () => to.action({ name: "look", signal });
        await Promise.all(Array.from({ length: 30 }, call));
      },
    },
  });
  const warnings = [];
  const note = (warning) => warnings.push(warning.message);
  process.on("warning", note);
  await inMemory({ waiting }).client().waiting.getOrCreate("from").fan();
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", note);
  assert.deepEqual(warnings, []);
});

it("many calls that wait for the folder to open listen to their signal once", async () => {
  const signal = new AbortController().signal;
  const handle = inMemory({ note }).client().note.getOrCreate("a", { signal });

  const calls = Array.from({ length: 30 }, () => handle.read());
  const listening = getEventListeners(signal, "abort").length;
  await Promise.all(calls);

  assert.equal(listening, 1);
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

describe("a call with a signal of its own, through a handle with another one", () => {
  const hanging = actor({ actions: { hang: () => new Promise(() => {}), ready: () => 1 } });
  const starts = [
    ["that waits for the folder to open", (_handle) => {}],
    ["in place", (handle) => handle.ready()],
    ["that waits its turn", (handle) => handle.ready().then(() => void handle.ready())],
  ];
  for (const [which, begin] of starts) {
    for (const first of ["own", "handle"]) {
      it(`${which} ends with the one that fires first: ${first}`, async () => {
        const stops = { own: new AbortController(), handle: new AbortController() };
        const client = inMemory({ hanging }).client();
        await begin(client.hanging.getOrCreate("a"));
        const handle = client.hanging.getOrCreate("a", { signal: stops.handle.signal });

        const call = handle.action({ name: "hang", signal: stops.own.signal });
        stops[first].abort(new Error(first));
        for (const { signal } of Object.values(stops)) {
          assert.equal(getEventListeners(signal, "abort").length, 0);
        }
        for (const stop of Object.values(stops)) stop.abort(new Error("too late"));

        await assert.rejects(call, { message: first });
        const again = handle.action({ name: "hang", signal: stops.own.signal });
        await assert.rejects(again, (error) => [first, "too late"].includes(error.message));
      });
    }
  }
});
