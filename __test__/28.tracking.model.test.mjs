import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { decode, encode } from "../dist/codec/index.js";
import { adopt, seen } from "../dist/state/index.js";
import { chance } from "./support/chance.mjs";

/** Stands for a generation: notes whether its proxies announced a change. */
class Actor {
  called = "state";
  changed = false;

  constructor(state) {
    this.root = adopt(state, this);
  }

  get state() {
    return seen(this.root, this);
  }

  permit() {}

  change() {
    this.changed = true;
  }

  suspect() {}
}

const start = () => ({ list: [3, { a: 1 }, [1, 2]], map: { x: { y: [0] } }, n: 1 });

/** One step: something done to a state, the same to a plain one and to one behind proxies. */
function step(random) {
  const pick = (...from) => from[Math.floor(random() * from.length)];
  const value = pick(
    () => Math.floor(random() * 5),
    () => ({ fresh: [Math.floor(random() * 3)] }),
    () => [{}, "s"],
    () => undefined,
    () => -0,
  );
  const made = value();
  const copyOfMade = () => structuredClone(made);
  const at = Math.floor(random() * 4);
  const key = pick("x", "y", "z", "0");
  const other = pick("x", "y", "z", "list", "map");
  const where = pick(
    (s) => s,
    (s) => s.list,
    (s) => s.map,
    (s) => s.map?.x,
    (s) => (Array.isArray(s.list) ? s.list.find((part) => Array.isArray(part)) : undefined),
    (s) => (Array.isArray(s.list) ? s.list[at] : undefined),
  );
  const toList = pick(
    (l) => l.push(copyOfMade()),
    (l) => l.pop(),
    (l) => l.shift(),
    (l) => l.unshift(copyOfMade(), 7),
    (l) => l.splice(at, 1, copyOfMade()),
    (l) => l.reverse(),
    (l) => l.sort((a, b) => String(a).localeCompare(String(b))),
    (l) => l.fill(at, 1, 2),
    (l) => l.copyWithin(0, 1),
    (l) => (l.length = Math.min(l.length, at)),
    (l) => (l[at] = copyOfMade()),
    (l) => delete l[at],
    (l) => l.map((part) => part),
    (l) => l.filter((part) => typeof part === "object").length,
    (l) => [...l.entries()].length,
  );
  const toObject = pick(
    (o) => (o[key] = copyOfMade()),
    (o) => delete o[key],
    (o) => Object.assign(o, { [key]: copyOfMade(), w: at }),
    (o) => (o[key] = o[other] ?? 1),
    (o) => Object.keys(o).length,
    (o) => JSON.stringify(o),
    (o) => ({ ...o }),
  );
  // What chance decides is decided here, so that both states get the same.
  return (state) => {
    const target = where(state);
    if (Array.isArray(target)) toList(target);
    else if (typeof target === "object" && target !== null) toObject(target);
  };
}

describe("any sequence of changes to a state", () => {
  it("has the effect that it has on a plain object, and is announced if it changed anything", () => {
    for (let seed = 1; seed <= 400; seed += 1) {
      const random = chance(seed);
      const plain = start();
      const actor = new Actor(start());
      for (let count = 0; count < 40; count += 1) {
        const change = step(random);
        const before = encode(actor.root, "state").toString("hex");
        actor.changed = false;
        const outcomes = [plain, actor.state].map((state) => {
          try {
            change(state);
            return "done";
          } catch (error) {
            return error.message;
          }
        });
        const after = encode(actor.root, "state");

        const where = `seed ${seed}, step ${count}`;
        // A cycle is refused in a state and not in a plain object: the run ends there.
        if (outcomes[1] !== outcomes[0]) {
          assert.match(outcomes[1], /part of a cycle/, where);
          break;
        }
        assert.deepEqual(decode(after), plain, where);
        if (after.toString("hex") !== before) assert.ok(actor.changed, `${where} was announced`);
      }
    }
  });
});
