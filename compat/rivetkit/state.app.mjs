// State and vars: where they come from, what they hold, and what outlives a sleep.

import { actor } from "rivetkit";

const rest = (c) => c.sleep();

const fixed = actor({
  state: { list: [], deep: { n: 0 } },
  actions: {
    push: (c, value) => c.state.list.push(value),
    deepen: (c) => {
      c.state.deep.n += 1;
      return c.state.deep.n;
    },
    get: (c) => c.state,
  },
});

const made = actor({
  createState: async (c, input) => ({ input, key: c.key, wakes: 0, kept: null }),
  onWake: (c) => {
    c.state.wakes += 1;
  },
  actions: {
    get: (c) => c.state,
    wakes: (c) => c.state.wakes,
    keep: (c, value) => {
      c.state.kept = value;
    },
    replace: (c, value) => {
      c.state = value;
    },
    async keepAndSave(c, value) {
      c.state.kept = value;
      await c.saveState({ immediate: true });
    },
    refused(c) {
      try {
        c.state.kept = () => {};
        return "kept";
      } catch (error) {
        return error.name;
      }
    },
    rest,
  },
});

const watched = actor({
  state: { n: 0 },
  vars: { seen: [], thrown: [] },
  onStateChange(c, next) {
    c.vars.seen.push(next.n);
    try {
      c.state.n = 99;
    } catch (error) {
      c.vars.thrown.push(`${error.group}.${error.code}`);
    }
  },
  actions: {
    set: (c, n) => {
      c.state.n = n;
    },
    get: (c) => c.state.n,
    seen: (c) => c.vars.seen,
    thrown: (c) => c.vars.thrown,
  },
});

const none = actor({
  actions: {
    state(c) {
      try {
        return c.state;
      } catch (error) {
        return `${error.group}.${error.code}`;
      }
    },
  },
});

/** A constant, of which every actor has its own, and a function and an object that are not data. */
const constant = actor({
  state: { wakes: 0 },
  vars: { list: [] },
  onWake: (c) => {
    c.state.wakes += 1;
  },
  actions: {
    push: (c, value) => c.vars.list.push(value),
    list: (c) => c.vars.list,
    wakes: (c) => c.state.wakes,
    rest,
  },
});

const dynamic = actor({
  state: { wakes: 0 },
  createVars: async (c) => ({
    key: c.key,
    map: new Map(),
    double: (n) => n * 2,
    wakes: c.state.wakes,
  }),
  onWake: (c) => {
    c.state.wakes += 1;
  },
  actions: {
    double: (c, n) => c.vars.double(n),
    put: (c, key, value) => c.vars.map.set(key, value).size,
    size: (c) => c.vars.map.size,
    about: (c) => ({ key: c.vars.key, wakes: c.vars.wakes }),
    replace: (c) => {
      c.vars = { ...c.vars, double: (n) => n * 20 };
    },
    wakes: (c) => c.state.wakes,
    rest,
  },
});

export const actors = { fixed, made, watched, none, constant, dynamic };
