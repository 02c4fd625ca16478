// A program in three versions, one after the other on the same folder: how stored state changes its shape.
//
//     npm run example -- versions

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { actor, setup } from "greenroom";

const first = actor({
  state: { name: "" },
  actions: {
    rename(c, name: string) {
      c.state.name = name;
    },
  },
});

interface Profile {
  names: string[];
  since: number;
}

/** Each step makes the shape of the version after it, so that a state of any age gets here. */
const steps: ((old: never) => unknown)[] = [
  (old: { name: string }) => ({ names: old.name.split(" ") }),
  (old: { names: string[] }): Profile => ({ ...old, since: 1843 }),
];

const third = actor({
  stateVersion: steps.length,
  migrateState: (old, from) =>
    steps.slice(from).reduce<unknown>((state, step) => step(state as never), old) as Profile,
  createState: (): Profile => ({ names: [], since: new Date().getFullYear() }),
  actions: {
    show: (c) => `${c.state.names.join(", ")}, since ${c.state.since}`,
  },
});

const storage = await mkdtemp(path.join(tmpdir(), "greenroom-example-versions-"));

const before = setup({ use: { profile: first }, storage });
await before.client().profile.getOrCreate("ada").rename("Ada Lovelace");
await before.shutdown();

const after = setup({ use: { profile: third }, storage });
console.log(await after.client().profile.get("ada").show());
await after.shutdown();

// The first program does not touch what it cannot understand.
const rolledBack = setup({ use: { profile: first }, storage });
await assert.rejects(rolledBack.client().profile.get("ada").rename("x"), {
  code: "state_version_newer",
  metadata: { stored: 2, supported: 0 },
});
await rolledBack.shutdown();
console.log("the program before refuses it, and nothing is lost");

await rm(storage, { recursive: true });
