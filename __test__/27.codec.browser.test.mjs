// CBOR as the client writes and reads it, with cbor-x as the other end.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { Encoder } from "cbor-x";
import { readCbor } from "../dist/codec/cbor-read.js";
import { writeCbor } from "../dist/codec/cbor-write.js";
import { chance } from "./support/chance.mjs";

const cborX = new Encoder({ useRecords: false, mapsAsObjects: true, tagUint8Array: true });
const hex = (bytes) => Buffer.from(bytes).toString("hex");

const values = {
  "small integers": [0, 23, 24, 255, 256, 65_535, 65_536, 2 ** 32 - 1, -1, -24, -25, -257],
  "other numbers": [2 ** 32, -(2 ** 32) - 1, 2 ** 53, 0.1, NaN, Infinity, 1e300],
  bigints: [0n, -1n, 2n ** 64n - 1n, -(2n ** 64n), 2n ** 64n, 2n ** 200n, -(2n ** 70n)],
  simple: [true, false, null, undefined],
  strings: ["", "é", "😀", "x".repeat(70_000)],
  nested: [[], [[1]], {}, { a: { b: [{}] } }, { "": 1 }],
  dates: [new Date(0), new Date(1_500), new Date(-1), new Date(8.64e15)],
  collections: [new Set([1, new Set(["a"])]), new Map([[{ a: 1 }, new Map([[1, [2n]]])]])],
  "typed arrays": [
    new Int16Array([-2]),
    new Float32Array([1.5]),
    new Float64Array([NaN]),
    new BigUint64Array([2n ** 64n - 1n]),
    new Uint16Array(new Uint8Array([9, 8, 7, 6]).buffer, 2, 1),
  ],
  "a regular expression": [/a+\/[b]/giu, /x/],
  "a long list": [Array.from({ length: 70_000 }, (_, at) => at)],
};

describe("CBOR without Node", () => {
  for (const [name, list] of Object.entries(values)) {
    it(`has ${name}, as any other encoder has them`, () => {
      for (const value of list) {
        assert.deepEqual(readCbor(writeCbor(value)), value);
        assert.deepEqual(readCbor(cborX.encode(value)), value);
        assert.deepEqual(cborX.decode(writeCbor(value)), value);
      }
    });
  }

  it("has bytes and -0 as they are", () => {
    assert.deepEqual(readCbor(cborX.encode(new Uint8Array([1, 2]))), new Uint8Array([1, 2]));
    assert.deepEqual(readCbor(cborX.encode(Buffer.from([1, 2]))), new Uint8Array([1, 2]));
    assert.equal(hex(writeCbor(new Uint8Array([1, 2]))), "d840420102");
    assert.deepEqual(readCbor(writeCbor(new Uint8Array(0))), new Uint8Array(0));
    assert.deepEqual(cborX.decode(writeCbor(-0)), -0);
    assert.deepEqual(readCbor(writeCbor(-0)), -0);
  });

  it("keeps an error's name and message", () => {
    const error = readCbor(writeCbor(new RangeError("far")));

    assert(error instanceof RangeError);
    assert.equal(error.message, "far");
  });

  it("keeps every millisecond of a date", () => {
    const random = chance(3);
    for (let round = 0; round < 5_000; round += 1) {
      const date = new Date(Math.floor(random() * 4e12));
      assert.deepEqual(readCbor(writeCbor(date)), date);
    }
  });

  it("writes ids as 64 bits, and numbers as short as they are", () => {
    assert.equal(hex(writeCbor(1n)), "1b0000000000000001");
    assert.equal(hex(writeCbor([1, 500])), "82011901f4");
  });

  it("reads what is written with an indefinite length", () => {
    const read = (text) => readCbor(Buffer.from(text, "hex"));

    assert.deepEqual(read("9f01820203ff"), [1, [2, 3]]);
    assert.deepEqual(read("bf6161017f61626163ff02ff"), { a: 1, bc: 2 });
    assert.deepEqual(read("5f41014102ff"), new Uint8Array([1, 2]));
    assert.deepEqual(read("d90103bf0102ff"), new Map([[1, 2]]));
    assert.deepEqual(read("f93e00"), 1.5);
    assert.deepEqual(read("d9ffff63616263"), "abc");
  });

  it("keeps a __proto__ key", () => {
    const read = readCbor(writeCbor(JSON.parse('{"__proto__":1}')));

    assert.deepEqual(Object.keys(read), ["__proto__"]);
    assert.equal(Object.getPrototypeOf(read), Object.prototype);
  });

  it("refuses what is no CBOR", () => {
    for (const text of [
      "",
      "18",
      "6261",
      "8201",
      "0101",
      "1c",
      "ff",
      "81ff",
      "5bffffffffffffffff",
      "9bffffffffffffffff",
      "bf01ff",
      "a1810101",
      "5f6161ff",
      "f800",
      "1f",
      "81".repeat(2_000),
    ]) {
      assert.throws(() => readCbor(Buffer.from(text, "hex")), /^TypeError: not CBOR at byte/, text);
    }
  });

  it("reads any bytes or refuses them", () => {
    const random = chance(11);
    for (let round = 0; round < 20_000; round += 1) {
      const bytes = Uint8Array.from({ length: 1 + random() * 12 }, () => random() * 256);
      try {
        readCbor(bytes);
      } catch (error) {
        assert.match(String(error), /^TypeError: not CBOR/, hex(bytes));
      }
    }
  });
});
