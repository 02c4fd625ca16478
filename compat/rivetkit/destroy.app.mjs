// Destruction, the order of hooks, and what a hook that fails does.

import { actor, event, UserError } from "rivetkit";

import { note } from "./notes.mjs";

const mortal = actor({
  state: { n: 0 },
  events: { bye: event() },
  onDestroy(c) {
    note(c, `onDestroy n=${c.state.n}`);
  },
  onSleep: (c) => note(c, "onSleep"),
  onDisconnect: (c) => note(c, "onDisconnect"),
  actions: {
    set: (c, n) => {
      c.state.n = n;
    },
    get: (c) => c.state.n,
    end: (c) => c.destroy(),
    destroy: (c) => c.destroy(),
    endTwice(c) {
      c.destroy();
      try {
        c.destroy();
        return "twice";
      } catch (error) {
        return `${error.group}.${error.code}`;
      }
    },
  },
});

const ordered = actor({
  onMigrate: (c, isNew) => note(c, `onMigrate ${isNew}`),
  createState: (c) => {
    note(c, "createState");
    return { n: 1 };
  },
  onCreate: (c, input) => note(c, `onCreate ${c.state.n} ${input}`),
  createVars: (c) => {
    note(c, "createVars");
    return {};
  },
  onWake: (c) => note(c, "onWake"),
  run: async (c) => {
    note(c, "run");
  },
  onSleep: (c) => note(c, "onSleep"),
  onBeforeConnect: (c) => note(c, `onBeforeConnect ${c.conns.size}`),
  createConnState: (c) => {
    note(c, `createConnState ${c.conns.size}`);
    return {};
  },
  onConnect: (c) => note(c, `onConnect ${c.conns.size}`),
  onDisconnect: (c) => note(c, `onDisconnect ${c.conns.size}`),
  onBeforeActionResponse: (c, name, _args, output) => {
    note(c, `onBeforeActionResponse ${name}`);
    return output;
  },
  options: { sleepTimeout: 60_000 },
  actions: {
    act: (c) => note(c, "act"),
    rest: (c) => c.sleep(),
  },
});

const failsToStart = actor({
  state: { starts: 0 },
  onCreate(_c, input) {
    if (input === "user") throw new UserError("not this", { code: "not_this" });
    if (input === "plain") throw new Error("a secret");
  },
  actions: { get: (c) => c.state.starts },
});

export const actors = { mortal, ordered, failsToStart };
