// biome-ignore-all lint/suspicious/noSparseArray: holes are among what is tested
// biome-ignore-all lint/suspicious/noThenProperty: it is among what is tested

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { describe, it } from "node:test";
import { runInNewContext } from "node:vm";

import { copy, decode, encode } from "../dist/codec/index.js";
import { chance } from "./support/chance.mjs";

const bytes = new Uint8Array([9, 8, 7, 6, 5, 4, 3, 2]);

/** Every value that must survive, by name. */
const kept = {
  "minus zero": -0,
  "NaN and the infinities": [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  "minus zero in an object": { a: 1, b: -0, c: NaN },
  "integers at the edges": [2 ** 31, 2 ** 32, 2 ** 53, -(2 ** 31) - 1, Number.MAX_SAFE_INTEGER],
  fractions: [0.1, 1e-320, Number.MAX_VALUE, Math.fround(0.3)],
  bigints: [0n, 5n, -5n, 2n ** 63n, 2n ** 64n, -(2n ** 64n), 2n ** 200n],
  "undefined in arrays and objects": [undefined, { a: undefined, b: null }, [undefined]],
  strings: ["", "é", "😀", "x".repeat(70_000), "😀".repeat(40)],
  "lone surrogates": ["\ud800", "a\udc00b", { "k\ud800": 1 }],
  "a __proto__ key": JSON.parse('{"a":1,"__proto__":{"b":2},"c":3}'),
  "awkward keys": {
    constructor: 1,
    hasOwnProperty: 2,
    toString: 3,
    toJSON: 4,
    "": 5,
    7: 6,
    then: 7,
  },
  "an object without a prototype": Object.assign(Object.create(null), { a: 1 }),
  holes: [, 1, , 2, ,],
  "a long array with one element": Object.assign([], { 5000: "x" }),
  dates: [new Date(0), new Date(1_234_567_890_123), new Date(-1), new Date(8.64e15)],
  "a map with object keys": new Map([
    [{ a: 1 }, new Map([[-0, undefined]])],
    ["k", new Set()],
  ]),
  "a set": new Set([1, "1", { a: [undefined] }, new Set([NaN])]),
  "a regular expression": /a+\/[b]/giu,
  bytes: [new Uint8Array([1, 2]), Buffer.from("hi"), new Uint8Array(0), Buffer.alloc(0)],
  "typed arrays": [
    new Int8Array([-1]),
    new Uint8ClampedArray([300]),
    new Int16Array([-2]),
    new Uint16Array([3]),
    new Int32Array([-4]),
    new Uint32Array([5]),
    new Float32Array([1.5, -0]),
    new Float64Array([NaN]),
    new BigInt64Array([-1n]),
    new BigUint64Array([2n ** 64n - 1n]),
  ],
  "empty typed arrays": [new Int8Array(0), new Float64Array(0), new BigInt64Array(0)],
  "views with an offset": [
    new Uint16Array(bytes.buffer, 2, 2),
    bytes.subarray(3, 5),
    new Uint8Array(bytes.buffer, 7),
    new DataView(bytes.buffer, 1, 3),
  ],
  buffers: [bytes.buffer.slice(0), new ArrayBuffer(0), new DataView(new ArrayBuffer(0))],
  "what another realm made": runInNewContext("({a: [1, {b: 2}], m: 1})"),
  "nested deeply": nest(500),
};

function nest(depth) {
  let value = "end";
  for (let at = 0; at < depth; at += 1) value = at % 2 ? [value] : { value };
  return value;
}

class Point {
  x = 1;
}
class List extends Array {}
class Dictionary extends Map {}

const cycle = { list: [] };
cycle.list.push(cycle);
const chain = {};
{
  let at = chain;
  for (let step = 0; step < 20_000; step += 1) at = at.next = {};
}

/** Every value that is refused, with the path at which and the reason. */
const refused = [
  [() => {}, "args", "is a function"],
  [{ a: [1, { run() {} }] }, "args.a[1].run", "is a function"],
  [[Symbol("s")], "args[0]", "is a symbol"],
  [{ "a b": Symbol.iterator }, 'args["a b"]', "is a symbol"],
  [{ p: Promise.resolve() }, "args.p", "is a promise; await it first"],
  [[new WeakMap()], "args[0]", "is a WeakMap"],
  [[new WeakSet()], "args[0]", "is a WeakSet"],
  [{ p: new Point() }, "args.p", "is an instance of the class Point"],
  [new List(), "args", "is an instance of the class List"],
  [new Dictionary(), "args", "is an instance of the class Dictionary"],
  [new URL("http://x"), "args", "is an instance of the class URL"],
  [Object.create({ a: 1 }), "args", "has a prototype of its own"],
  [Object.create(Object.create(null)), "args", "has a prototype of its own"],
  [[new Number(1)], "args[0]", "is an instance of the class Number"],
  [new Map([["k", () => {}]]), 'args.get("k")', "is a function"],
  [new Map([[() => {}, 1]]), "args.keys()[0]", "is a function"],
  [new Map([[{}, Symbol()]]), "args.values()[0]", "is a symbol"],
  [new Set([1, Symbol()]), "args.values()[1]", "is a symbol"],
  [
    Object.assign(new Error("x"), { at: new Point() }),
    "args.at",
    "is an instance of the class Point",
  ],
  [new Error("x", { cause: () => {} }), "args.cause", "is a function"],
  [cycle, "args.list[0]", "is part of a cycle"],
  [{ [Symbol.toStringTag]: "Map", f() {} }, "args.f", "is a function"],
  [new SharedArrayBuffer(1), "args", "is an instance of the class SharedArrayBuffer"],
];

const ways = {
  copied: (value) => copy(value, "args"),
  "encoded and decoded": (value) => decode(encode(value, "args")),
};

for (const [way, through] of Object.entries(ways)) {
  describe(`a value that is ${way}`, () => {
    for (const [value, path, reason] of refused) {
      it(`is refused when ${path} ${reason}`, () => {
        assert.throws(() => through(value), new TypeError(`Value at ${path} ${reason}`));
      });
    }

    it("is refused, and nothing overflows, when it is a list linked 20,000 times", () => {
      assert.throws(
        () => through(chain),
        /^TypeError: Value at args\.next.* is nested deeper than 1000 levels$/,
      );
    });

    for (const [name, value] of Object.entries(kept)) {
      it(`survives exactly: ${name}`, () => {
        const result = through(value);

        assert.deepEqual(result, name.includes("realm") ? { a: [1, { b: 2 }], m: 1 } : value);
      });
    }

    it("makes binary data of another realm data of this one", () => {
      const classes = [ArrayBuffer, Uint8Array, Uint8ClampedArray, Float32Array, BigInt64Array];
      const result = through(
        runInNewContext(
          "({ classes: [ArrayBuffer, Uint8Array, Uint8ClampedArray, Float32Array, BigInt64Array] })",
        ).classes.map((Class) => new Class(2)),
      );

      assert.deepEqual(
        result,
        classes.map((Class) => new Class(2)),
      );
    });

    it("keeps the milliseconds of every date", () => {
      const dates = Array.from(
        { length: 20_000 },
        (_, at) => new Date(2_150_000_000_123 + at * 2_357),
      );

      assert.deepEqual(through(dates), dates);
    });

    it("keeps an invalid date", () => {
      const result = through([new Date(Number.NaN)])[0];

      assert.ok(result instanceof Date);
      assert.ok(Number.isNaN(result.getTime()));
    });

    it("keeps an error's class, message, stack, cause, code and fields", () => {
      const cause = Object.assign(new Error("disk"), { code: "ENOSPC" });
      const error = Object.assign(new RangeError("too far", { cause }), { limit: 3 });

      const result = through({ error }).error;

      assert.ok(result instanceof RangeError);
      assert.equal(result.stack, error.stack);
      assert.equal(result.message, "too far");
      assert.deepEqual(Object.keys(result), ["limit"]);
      assert.equal(result.limit, 3);
      assert.equal(result.cause.code, "ENOSPC");
      assert.equal(result.cause.stack, cause.stack);
    });

    it("keeps the name of an error whose class is not a builtin", () => {
      class Odd extends Error {
        name = "Odd";
        describe() {}
      }

      const result = through(new Odd("x"));

      assert.equal(result.name, "Odd");
      assert.equal(result.constructor, Error);
      assert.equal(String(result), "Odd: x");
    });

    it("keeps the errors of an AggregateError and the code of a DOMException", () => {
      const many = through(new AggregateError([new TypeError("a")], "many"));
      const dom = through(new DOMException("gone", "AbortError"));

      assert.equal(many.name, "AggregateError");
      assert.ok(many.errors[0] instanceof TypeError);
      assert.deepEqual([dom.name, dom.message, dom.code], ["AbortError", "gone", 20]);
    });

    it("shares nothing with its original", () => {
      const original = {
        a: [{ b: 1 }],
        d: new Date(5),
        m: new Map([["k", [1]]]),
        u: new Uint8Array(2),
      };

      const result = through(original);
      result.a[0].b = 2;
      result.d.setTime(9);
      result.m.get("k").push(2);
      result.u[0] = 7;

      assert.deepEqual(original, {
        a: [{ b: 1 }],
        d: new Date(5),
        m: new Map([["k", [1]]]),
        u: new Uint8Array(2),
      });
    });

    it("is not changed itself", () => {
      const original = Object.freeze({
        z: -0,
        list: Object.freeze([Object.freeze(new Map([["a", -0]]))]),
      });

      assert.deepEqual(through(original), { z: -0, list: [new Map([["a", -0]])] });
      assert.ok(Object.is(original.z, -0));
    });

    it("does not pollute prototypes", () => {
      through(JSON.parse('{"__proto__":{"polluted":true}}'));

      assert.equal({}.polluted, undefined);
    });

    it("reads a getter and drops symbol keys", () => {
      assert.deepEqual(
        through({
          get a() {
            return 1;
          },
          [Symbol("s")]: 2,
        }),
        { a: 1 },
      );
    });
  });
}

describe("the bytes of a value", () => {
  it("are none for undefined, and nothing decodes to undefined", () => {
    assert.equal(decode(new Uint8Array(0)), undefined);
    assert.equal(decode(null), undefined);
    assert.equal(decode(encode(undefined, "x")), undefined);
  });

  it("stay as they are when another value is encoded", () => {
    const first = encode({ a: 1 }, "x");
    const before = Buffer.from(first);
    for (let at = 0; at < 5_000; at += 1) encode({ b: "y".repeat(100) }, "x");

    assert.deepEqual(Buffer.from(first), before);
  });
});

describe("any nesting of values that are kept", () => {
  it("comes out of both ways the same", () => {
    const leaves = Object.entries(kept)
      .filter(([name]) => !name.includes("realm"))
      .map(([, value]) => value);
    for (let seed = 1; seed <= 300; seed += 1) {
      const random = chance(seed);
      const build = (depth) => {
        const kind = depth === 0 ? 0 : Math.floor(random() * 6);
        const count = 1 + Math.floor(random() * 3);
        const parts = () => Array.from({ length: count }, () => build(depth - 1));
        if (kind === 1) return parts();
        if (kind === 2) return Object.fromEntries(parts().map((part, at) => [`k${at}`, part]));
        if (kind === 3) return new Map(parts().map((part, at) => [at, part]));
        if (kind === 4) return new Set(parts());
        if (kind === 5) return Object.assign(new Error("e"), { stack: "s", parts: parts() });
        return leaves[Math.floor(random() * leaves.length)];
      };
      const value = build(4);

      const results = Object.values(ways).map((through) => through(value));

      assert.deepEqual(results[0], value, `seed ${seed}, copied`);
      assert.deepEqual(results[1], value, `seed ${seed}, encoded and decoded`);
    }
  });
});

describe("another copy of the codec", () => {
  it("teaches cbor-x nothing again, which would make it slower with each", () => {
    const require = createRequire(import.meta.url);
    const cborX = require("cbor-x/index-no-eval");
    const { addExtension } = cborX;
    let taught = 0;
    cborX.addExtension = (extension) => {
      taught += 1;
      addExtension(extension);
    };
    const file = require.resolve("../dist/codec/index.js");
    // Nothing of what was loaded before, as where a test runner clears the cache.
    for (const path of Object.keys(require.cache)) {
      if (path.includes("/dist/")) delete require.cache[path];
    }
    const again = require(file);
    cborX.addExtension = addExtension;

    assert.notEqual(again.encode, encode);
    assert.equal(taught, 0);
    const value = [-0, new Date(Number.NaN), new Error("e"), new DataView(bytes.buffer), "\ud800"];
    assert.deepEqual(decode(again.encode(value, "v")).slice(2), value.slice(2));
    assert.deepEqual(again.decode(encode(value, "v")).slice(2), value.slice(2));
  });
});
