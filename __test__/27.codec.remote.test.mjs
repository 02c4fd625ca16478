// biome-ignore-all lint/suspicious/noSparseArray: holes are among what is tested

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { Encoder, Tag } from "cbor-x";
import { fromCompat, toCompat } from "../dist/codec/compat.js";
import { decodeRemote, encodeRemote } from "../dist/codec/remote.js";
import { SPARSE } from "../dist/codec/tags.js";
import { chance } from "./support/chance.mjs";

const bytes = new Uint8Array([1, 2]);

/** What clients read for a value; the forms are those that the published client writes and reads. */
const golden = {
  "a bigint": [5n, ["$BigInt", "5"]],
  "a negative bigint": [-3n, ["$BigInt", "-3"]],
  undefined: [undefined, ["$Undefined", 0]],
  bytes: [bytes, ["$Uint8Array", "AQI="]],
  "an array buffer": [bytes.buffer, ["$ArrayBuffer", "AQI="]],
  "no bytes": [new Uint8Array(0), ["$Uint8Array", ""]],
  "a set": [new Set([1, 2n]), ["$Set", [1, ["$BigInt", "2"]]]],
  "a set that reads like a pair": [new Set(["$BigInt", "1"]), ["$Set", ["$BigInt", "1"]]],
  "a list that reads like a pair": [
    ["$x", 1],
    ["$$x", 1],
  ],
  "an escaped list": [
    ["$$x", 1],
    ["$$$x", 1],
  ],
  "a list of a dollar": [
    ["$", 1n],
    ["$$", ["$BigInt", "1"]],
  ],
  "a list of one": [["$x"], ["$x"]],
  "a list of three": [
    ["$x", 1, 2],
    ["$x", 1, 2],
  ],
  "something deep": [{ a: [{ b: new Set([5n]) }] }, { a: [{ b: ["$Set", [["$BigInt", "5"]]] }] }],
  "a __proto__ key": [JSON.parse('{"__proto__":1}'), JSON.parse('{"__proto__":1}')],
};

/** Writes JSON and reads it again, as two ends do. */
const overJson = (value) =>
  fromCompat(JSON.parse(JSON.stringify(toCompat(value, "value"))), "value");

const overCbor = (value) => decodeRemote(encodeRemote(value, "value"), "value");

describe("toCompat()", () => {
  it("refuses what JSON has no form for, with its path", () => {
    let deep = 1;
    for (let level = 0; level < 1_100; level += 1) deep = new Set([[{ deep }]]);
    const cyclic = {};
    cyclic.self = cyclic;
    for (const [value, message] of [
      [{ a: new Map() }, "Value at args.a is a Map, for which JSON has no form"],
      [[/a/], "Value at args[0] is a RegExp, for which JSON has no form"],
      [new Error("x"), "Value at args is an Error, for which JSON has no form"],
      [new Float32Array(1), "Value at args is a Float32Array, for which JSON has no form"],
      [new Set([Number.NaN]), "Value at args.values()[0] is NaN, for which JSON has no form"],
      [new Date(Number.NaN), "Value at args is an invalid date, for which JSON has no form"],
      [() => 1, "Value at args is a function"],
      [[Promise.resolve()], "Value at args[0] is a promise; await it first"],
      [new (class Foo {})(), "Value at args is an instance of the class Foo"],
    ]) {
      assert.throws(() => toCompat(value, "args"), { name: "TypeError", message });
    }
    assert.throws(() => toCompat(deep, "args"), /is nested deeper than 1000 levels$/);
    assert.throws(() => toCompat(cyclic, "args"), /\.self is part of a cycle$/);
  });

  for (const [name, [value, form]] of Object.entries(golden)) {
    it(`writes ${name} as the published client does, and reads it back`, () => {
      const before = structuredClone(value);

      assert.deepEqual(toCompat(value, "value"), form);
      assert.deepEqual(fromCompat(form, "value"), value);
      assert.deepEqual(overJson(value), value);
      assert.deepEqual(value, before);
    });
  }

  it("returns what needs no change as it is", () => {
    const value = { a: [1, "x", null, { b: true }], c: new Date(0) };

    assert.equal(toCompat(value, "value"), value);
    assert.equal(fromCompat(value, "value"), value);
  });

  it("keeps the parts that need no change", () => {
    const same = { deep: [1] };

    const form = toCompat({ same, other: 1n }, "value");

    assert.equal(form.same, same);
    assert.deepEqual(form, { same, other: ["$BigInt", "1"] });
  });
});

describe("fromCompat()", () => {
  it("refuses pairs that nobody writes", () => {
    for (const [form, message] of [
      [["$Date", 0], 'Value at output is a pair of the unknown name "$Date"'],
      [{ a: ["$BigInt", "1.5"] }, "Value at output.a is no content of $BigInt"],
      [["$BigInt", 1], "Value at output is no content of $BigInt"],
      [["$Uint8Array", "*"], "Value at output is no content of $Uint8Array"],
      [["$Set", 1], "Value at output is no content of $Set"],
    ]) {
      assert.throws(() => fromCompat(form, "output"), { name: "TypeError", message });
    }
  });

  it("keeps pairs of unknown names where it is told to", () => {
    const form = [["$x", ["$BigInt", "1"]]];

    assert.deepEqual(fromCompat(form, "args", { unknown: "keep" }), [["$x", 1n]]);
  });
});

describe("encodeRemote()", () => {
  const native = new Encoder({ useRecords: false, mapsAsObjects: true });

  it("gives any reader of CBOR the value, with pairs where CBOR would lose it", () => {
    const cases = [
      [-0, 0],
      [
        [, 1],
        [undefined, 1],
      ],
      [5n, 5n],
      [undefined, undefined],
      [new Date(1_500), new Date(1_500)],
      [new Map([["a", new Set([1n])]]), new Map([["a", new Set([1n])]])],
      [bytes.buffer, ["$ArrayBuffer", "AQI="]],
      [new Map([["a", ["$x", 1]]]), new Map([["a", ["$$x", 1]]])],
      [Object.assign(Object.create(null), { constructor: 1 }), { constructor: 1 }],
    ];

    for (const [value, read] of cases) {
      const found = native.decode(encodeRemote(value, "value"));
      assert.deepEqual(found, read);
    }
  });

  it("refuses what the codec of this process refuses", () => {
    assert.throws(() => encodeRemote([() => 1], "output"), {
      message: "Value at output[0] is a function",
    });
  });

  it("gives an actor the value again", () => {
    const { "a __proto__ key": _spoilt, ...kept } = golden;
    for (const [value] of Object.values(kept)) assert.deepEqual(overCbor(value), value);
    const value = { d: new Date(5), m: new Map([[1, [2n]]]), t: new Float32Array([1]), r: /a/g };
    assert.deepEqual(overCbor(value), value);
  });
});

describe("decodeRemote()", () => {
  const client = new Encoder({ useRecords: false, structuredClone: true });

  it("refuses a value that is larger than its bytes", () => {
    let value = [];
    for (let level = 0; level < 40; level += 1) value = [value, value];

    assert.throws(
      () => decodeRemote(client.encode(value), "args"),
      /has more parts than were sent$/,
    );
  });

  it("refuses cycles", () => {
    const value = [];
    value.push(value, ...Array(2_000).fill(0));

    assert.throws(() => decodeRemote(client.encode(value), "args"), /is part of a cycle$/);
  });

  it("refuses a list with holes that is longer than its bytes", () => {
    const holes = client.encode(new Tag([2 ** 32 - 1], SPARSE));

    assert.throws(() => decodeRemote(holes, "args"), /has more parts than were sent$/);
  });

  it("keeps a pair of an unknown name, as clients that speak CBOR send lists", () => {
    assert.deepEqual(decodeRemote(client.encode([["$x", 1]]), "args"), [["$x", 1]]);
  });

  it("reads no bytes as undefined", () => {
    assert.equal(decodeRemote(new Uint8Array(0), "args"), undefined);
    assert.equal(decodeRemote(null, "args"), undefined);
  });

  it("leaves nothing on an error but its name and message", () => {
    let cause = ["x"];
    for (let level = 0; level < 40; level += 1) cause = [cause, cause];
    const sent = client.encode(new Tag(["TypeError", "m", { cause }], 27));
    const read = decodeRemote(sent, "args");
    assert.ok(read instanceof Error);
    assert.deepEqual([read.message, read.cause], ["m", undefined]);
  });

  it("makes nothing but regular expressions and errors of a generic object", () => {
    const found = decodeRemote(client.encode(new Tag(["eval", "globalThis.ran = 1"], 27)), "args");

    assert(found instanceof Error);
    assert.equal(globalThis.ran, undefined);
  });
});

describe("values in the forms of clients", () => {
  const random = chance(7);
  const pick = (list) => list[Math.floor(random() * list.length)];
  const leaf = () =>
    pick([
      () => Math.floor(random() * 1e6) - 5e5,
      () => random(),
      () => pick(["", "$x", "$$x", "$BigInt", "$Undefined", "é😀", "__proto__"]),
      () => BigInt(Math.floor(random() * 1e15)) * (random() < 0.5 ? -1n : 1n),
      () => pick([null, undefined, true, false]),
      () => new Uint8Array(Math.floor(random() * 5)).fill(7),
      () => new Uint8Array(Math.floor(random() * 5)).fill(9).buffer,
    ])();
  const any = (depth) => {
    const many = () => Array.from({ length: Math.floor(random() * 4) }, () => any(depth - 1));
    if (depth === 0) return leaf();
    return pick([
      leaf,
      many,
      () => [pick(["$x", "$$", "$Set", "$BigInt"]), any(depth - 1)],
      () => new Set(many()),
      () => Object.fromEntries(many().map((part) => [pick(["a", "b", "$c", "d"]), part])),
    ])();
  };

  it("come back as they were, over JSON and over CBOR", () => {
    for (let round = 0; round < 2_000; round += 1) {
      const value = any(4);
      assert.deepEqual(overJson(value), value);
      assert.deepEqual(overCbor(value), value);
    }
  });
});
