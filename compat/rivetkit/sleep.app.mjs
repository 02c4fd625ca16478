// Sleep: what brings it, what holds it off, what it ends, and how actors come back.

import { actor } from "rivetkit";

import { note, noted } from "./notes.mjs";

const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const rest = (c) => c.sleep();

const idle = actor({
  ...noted,
  options: { sleepTimeout: 600 },
  actions: {
    nothing: () => {},
    work: async (_c, ms) => {
      await delay(ms);
      return "worked";
    },
    hold: (c, ms) => {
      c.keepAwake(delay(ms));
    },
    holdFor: (c, ms) => c.keepAwake(delay(ms).then(() => "held")),
  },
});

const patient = actor({
  ...noted,
  options: { sleepTimeout: 60_000, sleepGracePeriod: 5_000 },
  actions: {
    nothing: () => {},
    rest,
    /** Sleeps while work of it goes on, which the grace waits for. */
    restAfter(c, ms) {
      c.waitUntil(delay(ms).then(() => note(c, "waited")));
      c.sleep();
    },
    restTwice(c) {
      c.sleep();
      c.sleep();
    },
  },
});

const hasty = actor({
  ...noted,
  options: { sleepTimeout: 60_000, sleepGracePeriod: 300 },
  actions: {
    nothing: () => {},
    restAfter(c, ms) {
      c.waitUntil(delay(ms));
      c.sleep();
    },
  },
});

const wakeful = actor({
  ...noted,
  options: { noSleep: true, sleepTimeout: 100 },
  actions: { nothing: () => {} },
});

const runner = actor({
  ...noted,
  options: { sleepTimeout: 250 },
  async run(c) {
    note(c, "run");
    c.abortSignal.addEventListener("abort", () => note(c, "aborted"));
    for (let tick = 0; tick < 20 && !c.aborted; tick += 1) await delay(50);
    note(c, "ran");
  },
  actions: { nothing: () => {}, rest },
});

const failing = actor({
  ...noted,
  options: { sleepTimeout: 60_000 },
  run(c) {
    note(c, "run");
    throw new Error("it does not run");
  },
  actions: { nothing: () => "awake", rest },
});

export const actors = { idle, patient, hasty, wakeful, runner, failing };
