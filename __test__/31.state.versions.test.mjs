// stateVersion and migrateState: the shape of a stored state changes with the code.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor, setup } from "../dist/index.js";
import { inFolder, inMemory, newFolder } from "./support/registry.mjs";

const actions = {
  read: (c) => c.snapshot(),
  set: (c, state) => {
    c.state = state;
  },
};

/** Runs `body` on a registry of one actor in `folder`, and shuts it down. */
async function on(folder, definition, body) {
  const registry = setup({
    use: { it: actor({ actions, ...definition }) },
    storage: folder,
    logging: { level: "silent" },
  });
  try {
    return await body(registry.client().it.getOrCreate("k"), registry);
  } finally {
    await registry.shutdown({ deadline: 2_000 });
  }
}

const read = (handle) => handle.read();

describe("a state of an older version", () => {
  it("is migrated once, from the version that it was stored with", async () => {
    const folder = await newFolder();
    await on(folder, { state: { name: "ada" } }, read);
    const from = [];
    const second = {
      state: { names: [] },
      stateVersion: 2,
      migrateState: (old, version) => {
        from.push(version);
        return { names: [old.name] };
      },
    };

    const seen = await on(folder, second, read);
    const again = await on(folder, second, read);

    assert.deepEqual(seen, { names: ["ada"] });
    assert.deepEqual(again, { names: ["ada"] });
    assert.deepEqual(from, [0]);
  });

  it("goes on from the version before, large numbers too", async () => {
    const folder = await newFolder();
    const versions = [1, 23, 24, 255, 256, 65_535, 65_536, 2 ** 32 - 1];
    let last = 0;
    for (const stateVersion of versions) {
      const migrateState = (old, from) => {
        assert.equal(from, last);
        return { steps: [...old.steps, stateVersion] };
      };
      const definition = { state: { steps: [] }, stateVersion, migrateState };
      await on(folder, { ...(last === 0 ? { state: { steps: [] } } : definition) }, read);
      const { steps } = await on(folder, definition, read);
      assert.equal(steps.at(-1), stateVersion);
      last = stateVersion;
    }
  });

  it("is migrated before createVars and whatever reads it", async () => {
    const folder = await newFolder();
    await on(folder, { state: { n: 1 } }, read);
    const order = [];
    await on(
      folder,
      {
        state: { m: 0 },
        stateVersion: 1,
        migrateState: (old) => {
          order.push("migrateState");
          return { m: old.n };
        },
        createVars: (c) => {
          order.push(`createVars ${c.state.m}`);
          return {};
        },
        onWake: (c) => void order.push(`onWake ${c.state.m}`),
      },
      read,
    );

    assert.deepEqual(order, ["migrateState", "createVars 1", "onWake 1"]);
  });

  it("is seen migrated by onMigrate, which comes first", async () => {
    const folder = await newFolder();
    await on(folder, { state: { n: 1 } }, read);
    let seen;
    await on(
      folder,
      {
        state: { m: 0 },
        stateVersion: 1,
        migrateState: (old) => ({ m: old.n }),
        onMigrate: (c) => {
          seen = c.snapshot();
        },
      },
      read,
    );

    assert.deepEqual(seen, { m: 1 });
  });

  it("that cannot be migrated fails each start and stays what it was", async () => {
    const folder = await newFolder();
    await on(folder, { state: { n: 1 } }, read);
    const failing = (migrateState) => ({ state: { n: 0 }, stateVersion: 1, migrateState });
    const broken = new Error("no such field");
    const refusals = [
      [
        failing(() => {
          throw broken;
        }),
        /no such field/,
      ],
      [failing(async (old) => old), /Value at state is a promise/],
      [
        failing((old) => {
          old.n += 1;
        }),
        /migrateState returned nothing for a state of version 0/,
      ],
      [failing(() => ({ f: () => 1 })), /Value at state\.f is a function/],
      [{ state: { n: 0 }, stateVersion: 1 }, /has no migrateState that makes it version 1/],
    ];

    for (const [definition, message] of refusals) {
      await on(folder, definition, async (handle) => {
        await assert.rejects(handle.read(), message);
        await assert.rejects(handle.read(), message);
      });
    }

    assert.deepEqual(await on(folder, { state: { n: 0 } }, read), { n: 1 });
  });

  it("keeps what the author did to the state that he was given", async () => {
    const folder = await newFolder();
    await on(folder, { state: { list: [1] } }, read);
    const definition = {
      state: { list: [] },
      stateVersion: 1,
      migrateState: (old) => {
        old.list.push(2);
        return old;
      },
    };

    assert.deepEqual(await on(folder, definition, read), { list: [1, 2] });
    assert.deepEqual(await on(folder, definition, read), { list: [1, 2] });
  });
});

describe("a state of a newer version", () => {
  const newer = { state: { n: 7 }, stateVersion: 3 };

  it("refuses the start, and names both numbers", async () => {
    const folder = await newFolder();
    await on(folder, newer, read);
    let ran = false;
    const hooks = {
      createVars: () => {
        ran = true;
      },
      onMigrate: (c) => {
        ran = true;
        c.state = { n: 0 };
      },
    };

    for (const older of [
      { state: { n: 0 } },
      { state: { n: 0 }, stateVersion: 2, migrateState: (old) => old, ...hooks },
      { state: { n: 0 }, run: hooks.createVars },
    ]) {
      await on(folder, older, (handle) =>
        assert.rejects(handle.read(), (error) => {
          assert.equal(error.group, "actor");
          assert.equal(error.code, "state_version_newer");
          const supported = older.stateVersion ?? 0;
          assert.match(error.message, new RegExp(`version 3, newer than version ${supported} `));
          assert.deepEqual(error.metadata, { stored: 3, supported });
          return true;
        }),
      );
    }

    assert.equal(ran, false);
    assert.deepEqual(await on(folder, newer, read), { n: 7 });
  });
});

describe("a new actor", () => {
  it("has the version of its code from the start, and migrates nothing", async () => {
    const folder = await newFolder();
    const definition = {
      state: { n: 1 },
      stateVersion: 5,
      migrateState: () => assert.fail("nothing to migrate"),
      onMigrate: (c, isNew) => isNew && assert.equal(c.state, undefined),
    };

    await on(folder, definition, (handle) => handle.set({ n: 2 }));

    assert.deepEqual(await on(folder, definition, read), { n: 2 });
  });

  it("may hold any value behind its version, one that looks like the envelope too", async () => {
    const folder = await newFolder();
    const value = [5, { n: -0, map: new Map([[1n, undefined]]) }];
    const definition = { createState: () => null, stateVersion: 5 };
    await on(folder, definition, (handle) => handle.set(value));
    assert.deepEqual(await on(folder, definition, read), value);
  });

  it("is saved at intervals with its version, too", async () => {
    const folder = await newFolder();
    const definition = { state: { n: 0 }, stateVersion: 2, options: { durability: "interval" } };
    await on(folder, definition, (handle) => handle.set({ n: 4 }));
    const next = {
      ...definition,
      stateVersion: 3,
      migrateState: (old, from) => ({ ...old, from }),
    };
    assert.deepEqual(await on(folder, next, read), { n: 4, from: 2 });
    assert.deepEqual(await on(folder, next, read), { n: 4, from: 2 });
  });
});

it("what is no version is refused by name", () => {
  for (const stateVersion of [0, -1, 1.5, "1", Number.NaN, 2 ** 32]) {
    assert.throws(
      () => actor({ state: {}, stateVersion }),
      /stateVersion of actor\(\) is .*, not a whole number from 1 to 4294967295/,
    );
  }
  assert.throws(() => actor({ stateVersion: 1 }), /stateVersion without state/);
  assert.throws(() => actor({ state: {}, migrateState: () => ({}) }), /without stateVersion/);
  assert.throws(
    () => actor({ state: {}, stateVersion: 1, migrateState: 1 }),
    /migrateState of actor\(\) is 1, not a function/,
  );
});

it("a second setup with a newer version migrates a live actor at its next wake", async () => {
  const folder = await newFolder();
  const first = inFolder(folder, { it: actor({ actions, state: { n: 1 } }) });
  const handle = first.client().it.getOrCreate("k");
  await handle.read();
  const second = inFolder(folder, {
    it: actor({
      actions,
      state: { m: 0 },
      stateVersion: 1,
      migrateState: (old) => ({ m: old.n + 1 }),
    }),
  });
  await second.client().it.getOrCreate("other").read();

  assert.deepEqual(await handle.read(), { n: 1 });
  await second.actor(handle).sleep();
  assert.deepEqual(await handle.read(), { m: 2 });
});

it("an actor without state is started as before", async () => {
  const registry = inMemory({ it: actor({ actions: { hi: () => "hi" } }) });
  assert.equal(await registry.client().it.getOrCreate("k").hi(), "hi");
});
