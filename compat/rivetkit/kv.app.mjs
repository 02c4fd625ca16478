// The key-value store of an actor.

import { actor } from "rivetkit";

const text = new TextEncoder();
const bytes = (value) => text.encode(value);

const drawer = actor({
  state: { wakes: 0 },
  onWake: (c) => {
    c.state.wakes += 1;
  },
  actions: {
    put: (c, key, value, options) => c.kv.put(key, value, options),
    get: (c, key, options) => c.kv.get(key, options),
    remove: (c, key) => c.kv.delete(key),
    prefix: (c, prefix, options) => c.kv.listPrefix(prefix, options),
    range: (c, from, to, options) => c.kv.listRange(from, to, options),
    removeRange: (c, from, to) => c.kv.deleteRange(from, to),
    async batch(c) {
      const pairs = Array.from({ length: 300 }, (_, n) => [bytes(`b${n}`), bytes(`v${n}`)]);
      for (let index = 0; index < pairs.length; index += 100) {
        await c.kv.batchPut(pairs.slice(index, index + 100));
      }
      await c.kv.batchDelete([bytes("b0"), bytes("b1")]);
      const got = await c.kv.batchGet([bytes("b0"), bytes("none"), bytes("b2"), bytes("b299")]);
      return got.map((each) => each && new TextDecoder().decode(each));
    },
    wakes: (c) => c.state.wakes,
    rest: (c) => c.sleep(),
  },
});

export const actors = { drawer };
