// biome-ignore-all lint/suspicious/noSparseArray: holes are among what is tested
// biome-ignore-all lint/suspicious/noProto: it is among what is tested

import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { inspect } from "node:util";

import { decode, encode } from "../dist/codec/index.js";
import { adopt, seen } from "../dist/state/index.js";

/** Stands for a generation: holds a state and counts what its proxies announce. */
class Actor {
  called = "state";
  changes = 0;
  suspects = 0;
  forbidden = false;

  constructor(state) {
    this.root = adopt(state, this);
  }

  get state() {
    return seen(this.root, this);
  }

  set state(value) {
    this.root = adopt(value, this);
    this.change();
  }

  permit() {
    if (this.forbidden) throw new Error("not now");
  }

  change() {
    this.permit();
    this.changes += 1;
  }

  suspect() {
    this.suspects += 1;
  }

  stored() {
    return decode(encode(this.root, "state"));
  }
}

class Point {}

let actor;
let state;
beforeEach(() => {
  actor = new Actor({
    n: 1,
    users: [
      { name: "ann", tags: ["a"] },
      { name: "bob", tags: [] },
    ],
    numbers: [3, 1, 2],
    when: new Date(5),
    deep: { map: new Map([["k", 1]]) },
  });
  state = actor.state;
});

describe("state refuses", () => {
  const refused = [
    [() => (state.n = () => {}), "Value at state.n is a function"],
    [() => (state.users[0].x = Symbol("s")), "Value at state.users[0].x is a symbol"],
    [
      () => (state.users[1] = { deep: [new Point()] }),
      "Value at state.users[1].deep[0] is an instance of the class Point",
    ],
    [() => state.users.push(1, { f() {} }), "Value at state.users[3].f is a function"],
    [() => state.numbers.unshift(new WeakMap()), "Value at state.numbers[0] is a WeakMap"],
    [() => state.numbers.splice(1, 0, Symbol()), "Value at state.numbers[1] is a symbol"],
    [() => state.numbers.fill(() => {}), "Value at state.numbers[0] is a function"],
    [
      () => (state.deep.p = Promise.resolve()),
      "Value at state.deep.p is a promise; await it first",
    ],
    [() => (state.deep.self = state), "Value at state.deep.self is part of a cycle"],
    [() => (state.deep.self = { a: [state.deep] }), "Value at state.deep.self is part of a cycle"],
    [() => (actor.state = { f() {} }), "Value at state.f is a function"],
    [() => (state.users.extra = 1), "Value at state.users.extra is a named property of an array"],
    [() => (state[Symbol("s")] = 1), "Value at state has a symbol for a key"],
    [() => (state.deep.__proto__ = {}), "Value at state.deep.__proto__ would replace a prototype"],
    [
      () => Object.defineProperty(state, "g", { get: () => 1 }),
      "Value at state.g is no plain property: it cannot be kept",
    ],
    [
      () => Object.defineProperty(state, "n", { enumerable: false }),
      "Value at state.n is no plain property: it cannot be kept",
    ],
    [
      () => Object.defineProperty(state.users, "length", { writable: false }),
      "Value at state.users.length is no plain property: it cannot be kept",
    ],
    [
      () => Object.freeze(state.deep),
      "Value at state.deep is state and cannot be frozen or sealed",
    ],
    [
      () => Object.setPrototypeOf(state.deep, {}),
      "Value at state.deep is state and keeps its prototype",
    ],
  ];
  for (const [assign, message] of refused) {
    it(`${message.slice(9)}`, () => {
      const before = actor.stored();

      assert.throws(assign, new TypeError(message));

      assert.deepEqual(actor.stored(), before);
      assert.equal(actor.changes, 0);
    });
  }

  it("every change where the owner forbids it", () => {
    actor.forbidden = true;
    const changes = [
      () => (state.n = 2),
      () => (state.n = 1),
      () => delete state.n,
      () => state.users.push(1),
      () => state.numbers.sort(),
      () => (state.users[0].name = "x"),
      () => (state.users.length = 0),
      () => Object.defineProperty(state, "n", { value: 4 }),
      () => Object.assign(state.deep, { a: 1 }),
    ];

    for (const change of changes) assert.throws(change, /not now/);

    assert.equal(actor.stored().users.length, 2);
  });
});

describe("state notices", () => {
  const changes = {
    "an assignment": () => (state.n = 2),
    "an assignment deep inside": () => (state.users[0].name = "eve"),
    "an increment": () => state.n++,
    "a new property": () => (state.fresh = { a: 1 }),
    "undefined for a property that was not there": () => (state.nothing = undefined),
    "minus zero for zero": () => {
      state.zero = 0;
      actor.changes = 0;
      state.zero = -0;
    },
    "a deletion": () => delete state.users[0].tags,
    "Object.assign": () => Object.assign(state.deep, { a: 1 }),
    "Object.defineProperty": () =>
      Object.defineProperty(state.deep, "n", {
        value: 4,
        writable: true,
        enumerable: true,
        configurable: true,
      }),
    "a shorter length": () => (state.users.length = 1),
    "an index": () => (state.numbers[1] = 9),
    push: () => state.numbers.push(4),
    pop: () => state.numbers.pop(),
    shift: () => state.numbers.shift(),
    unshift: () => state.numbers.unshift(0),
    splice: () => state.numbers.splice(1, 1),
    sort: () => state.numbers.sort(),
    reverse: () => state.numbers.reverse(),
    fill: () => state.numbers.fill(7),
    copyWithin: () => state.numbers.copyWithin(0, 1),
    "a change made through a proxy that a method gave": () => {
      state.users.find((user) => user.name === "bob").name = "rob";
    },
    "a change made while iterating": () => {
      for (const user of state.users) if (user.name === "ann") user.name = "eve";
    },
    "a change made through Object.values": () => {
      Object.values(state)[1][0].name = "eve";
    },
    "a change made through a descriptor": () => {
      Object.getOwnPropertyDescriptor(state, "deep").value.x = 1;
    },
    "a change made in a sort's comparison": () => {
      state.users.filter(() => true)[0].tags.push("x");
    },
    "a change to what destructuring took": () => {
      const {
        users: [first],
      } = state;
      first.tags[0] = "b";
    },
    "a change to what spread took": () => {
      const { deep } = { ...state };
      deep.x = 1;
    },
    "a replaced state": () => (actor.state = { n: 9 }),
  };
  for (const [name, change] of Object.entries(changes)) {
    it(`${name}, once`, () => {
      const before = encode(actor.root, "state").toString("hex");

      change();

      assert.notEqual(encode(actor.root, "state").toString("hex"), before);
      assert.equal(actor.changes, 1);
    });
  }

  it("nothing when nothing changes", () => {
    state.n = 1;
    state.users[0].name = "ann";
    state.numbers.length = 3;
    delete state.absent;
    [].concat(state.users, state.numbers.slice());
    state.numbers.push();
    JSON.stringify(state.users);
    inspect(state);

    assert.equal(actor.changes, 0);
  });

  it("that a part which cannot be watched was handed out", () => {
    assert.equal(actor.suspects, 0);
    state.when.setTime(9);
    state.deep.map.set("k", 2);

    assert.equal(actor.suspects, 2);
    assert.deepEqual(actor.stored().when, new Date(9));
  });
});

describe("state behaves like a plain object", () => {
  it("is the same object whenever it is read", () => {
    assert.equal(state.users, state.users);
    assert.equal(
      state.users[0],
      state.users.find((user) => user.name === "ann"),
    );
    assert.equal(actor.state, state);
  });

  it("finds what was pushed, by the object and by what is read back", () => {
    const user = { name: "cy" };
    state.users.push(user);

    assert.ok(state.users.includes(user));
    assert.ok(state.users.includes(state.users[2]));
    assert.equal(state.users.indexOf(user), 2);
    assert.equal(state.users.lastIndexOf(state.users[0]), 0);
    assert.equal(state.users.indexOf({ name: "cy" }), -1);
  });

  it("iterates with all helpers that iterators have on this platform", () => {
    const own = [1, 2].values();
    const theirs = state.numbers.values();

    for (const name of ["map", "filter", "take", "toArray", "reduce", Symbol.iterator]) {
      assert.equal(typeof theirs[name], typeof own[name], String(name));
    }
    if (theirs.map !== undefined) {
      assert.deepEqual(theirs.map((n) => n * 2).toArray(), [6, 2, 4]);
    }
    assert.deepEqual([...state.numbers.values()], [3, 1, 2]);
  });

  it("passes deepEqual, JSON, spread, Array.isArray and in", () => {
    assert.deepEqual(state.numbers, [3, 1, 2]);
    assert.equal(JSON.stringify(state.users[0]), '{"name":"ann","tags":["a"]}');
    assert.deepEqual({ ...state.users[1] }, { name: "bob", tags: [] });
    assert.ok(Array.isArray(state.users));
    assert.ok("n" in state && !("x" in state));
    assert.deepEqual(Object.keys(state.deep), ["map"]);
    assert.deepEqual(
      [...state.numbers.entries()],
      [
        [0, 3],
        [1, 1],
        [2, 2],
      ],
    );
    assert.deepEqual(
      state.numbers.map((n, at, list) => n + at + list.length),
      [6, 5, 7],
    );
    assert.deepEqual(state.numbers.concat([9]), [3, 1, 2, 9]);
    assert.deepEqual(state.numbers.toSorted(), [1, 2, 3]);
    assert.equal(
      state.numbers.reduce((a, b) => a + b),
      6,
    );
    assert.equal(state.numbers.at(-1), 2);
  });

  it("gives dates, maps and the like whole", () => {
    assert.equal(new Date(state.when).getTime(), 5);
    assert.equal(Map.prototype.get.call(state.deep.map, "k"), 1);
    assert.deepEqual(structuredClone(state.deep.map), new Map([["k", 1]]));
  });

  it("keeps parts of itself that are moved around", () => {
    const first = state.users[0];
    actor.state = { ...state, users: state.users.filter((user) => user.name === "ann") };
    first.name = "eve";

    assert.equal(actor.stored().users[0].name, "eve");
    assert.equal(actor.state.users[0], first);
  });

  it("sorts by what the author sees, and returns itself", () => {
    const sorted = state.users.sort((a, b) => (a.name < b.name ? 1 : -1));

    assert.equal(sorted, state.users);
    assert.deepEqual(
      actor.stored().users.map((user) => user.name),
      ["bob", "ann"],
    );
  });

  it("takes a frozen object as a copy that can be changed", () => {
    state.config = Object.freeze({ a: Object.freeze([1]) });
    state.box = { inner: Object.freeze({ list: Object.freeze([]) }) };
    state.config.a.push(2);
    state.box.inner.list.push(3);

    assert.deepEqual(actor.stored().config, { a: [1, 2] });
    assert.deepEqual(actor.stored().box, { inner: { list: [3] } });
  });

  it("keeps holes", () => {
    state.numbers[5] = 1;
    delete state.numbers[0];

    assert.equal(state.numbers.length, 6);
    assert.deepEqual(actor.stored().numbers, [, 1, 2, , , 1]);
  });

  it("never lets the prototype of objects become state", () => {
    const proto = state.deep.__proto__;

    assert.equal(proto, Object.prototype);
  });

  it("keeps an own __proto__ key that came with a value", () => {
    state.json = JSON.parse('{"__proto__":{"a":1}}');
    state.json.__proto__.a = 2;

    assert.equal(JSON.stringify(actor.stored().json), '{"__proto__":{"a":2}}');
    assert.equal({}.a, undefined);
  });

  it("gives an object that inherits from it properties of its own", () => {
    const child = Object.create(state);
    child.n = 5;

    assert.equal(state.n, 1);
    assert.equal(actor.changes, 0);
  });
});

describe("two actors", () => {
  it("never share what was assigned to both", () => {
    const shared = { list: [{ n: 0 }], inner: { x: 1 } };
    const other = new Actor({});
    state.shared = shared;
    other.state.shared = shared;
    other.state.box = { inner: shared.inner };

    state.shared.list[0].n = 1;
    state.shared.inner.x = 2;
    other.state.box.inner.x = 3;

    assert.deepEqual(other.stored().shared, { list: [{ n: 0 }], inner: { x: 1 } });
    assert.equal(actor.stored().shared.inner.x, 2);
    assert.equal(other.stored().box.inner.x, 3);
  });
});

describe("what cannot be watched", () => {
  it("is whole also after it was assigned", () => {
    state.tags = new Map([["a", new Set([1])]]);
    state.list = [new Date(7)];
    state.tags.get("a").add(2);

    assert.equal(state.list[0].getTime(), 7);
    assert.deepEqual(actor.stored().tags, new Map([["a", new Set([1, 2])]]));
    assert.ok(actor.suspects > 0);
  });

  it("is never shared by two actors", () => {
    const shared = new Map();
    const other = new Actor({});
    state.shared = shared;
    other.state.shared = shared;
    state.shared.set("k", 1);

    assert.equal(other.state.shared.size, 0);
  });
});
