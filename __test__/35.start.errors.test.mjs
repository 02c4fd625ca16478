// What a hook of a start throws reaches everyone who waits for the start, with the original as cause.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { actor, UserError } from "../dist/index.js";
import * as native from "./support/native.mjs";
import { inFolder, inMemory, newFolder, schema } from "./support/registry.mjs";

/** What a call is rejected with. */
async function failure(call) {
  const [result] = await Promise.allSettled([call]);
  assert.equal(result.status, "rejected");
  return result.reason;
}

const phases = {
  onMigrate: "on_migrate",
  createState: "create_state",
  onCreate: "on_create",
  createVars: "create_vars",
  onWake: "on_wake",
};

describe("an error of a hook of the start", () => {
  for (const [hook, phase] of Object.entries(phases)) {
    for (const thrown of [
      new TypeError("no luck"),
      new UserError("not today", { code: "closed", metadata: { until: 9 } }),
      Object.freeze(new Error("frozen")),
      "just text",
      undefined,
    ]) {
      it(`is the cause of what its caller gets: ${hook}, ${String(thrown)}`, async () => {
        const starts = actor({
          [hook]: () => {
            throw thrown;
          },
          actions: { ping: () => "pong" },
        });
        const handle = inMemory({ starts }).client().starts.getOrCreate("a");

        const error = await failure(handle.ping());

        assert.equal(error.cause, thrown);
        assert.equal(error.message, thrown instanceof Error ? thrown.message : String(thrown));
        assert.equal(error.code, thrown instanceof UserError ? "closed" : "internal_error");
        assert.equal(error.actor.phase, phase);
        assert.equal(error.actor.actorId, await handle.resolve());
        if (thrown instanceof UserError) assert.deepEqual(error.metadata, { until: 9 });
      });
    }
  }

  it("is that of everyone who waited, each with an error of its own", async () => {
    const thrown = new Error("no luck");
    const starts = actor({
      onWake: async () => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        throw thrown;
      },
      actions: { ping: () => "pong", relay: (c) => c.client().starts.getOrCreate("a").ping() },
    });
    const well = actor({ actions: { relay: (c) => c.client().starts.getOrCreate("a").ping() } });
    const client = inMemory({ starts, well }).client();
    const handle = client.starts.getOrCreate("a");

    const errors = await Promise.all([
      failure(handle.ping()),
      failure(handle.ping()),
      failure(client.starts.getOrCreate("a").ping()),
    ]);

    assert.deepEqual(
      errors.map(({ cause }) => cause === thrown),
      [true, true, true],
    );
    assert.equal(new Set(errors).size, 3);
    const relayed = await failure(client.well.getOrCreate("b").relay());
    assert.equal(relayed.cause.cause, thrown);
  });

  it("is that of its own generation where one fails after the other, and of its own actor", async () => {
    let starts = 0;
    const kinds = actor({
      onWake: async (c) => {
        starts += 1;
        const name = `${c.key} ${starts}`;
        await null;
        throw new Error(name);
      },
      actions: { ping: () => "pong" },
    });
    const client = inMemory({ kinds }).client();
    const keys = Array.from({ length: 20 }, (_, n) => `k${n}`);

    for (let round = 0; round < 3; round += 1) {
      const calls = keys.flatMap((key) => [key, key].map((of) => client.kinds.getOrCreate(of)));
      const errors = await Promise.all(calls.map((handle) => failure(handle.ping())));

      for (const [n, error] of errors.entries()) {
        assert.equal(error.cause.message, error.message);
        assert.equal(error.message.split(" ")[0], keys[Math.floor(n / 2)]);
      }
    }
    assert.ok(starts >= 60);
  });

  it("lets the next start succeed, whose actor knows nothing of it", async () => {
    let fails = true;
    const starts = actor({
      createVars: () => {
        if (fails) throw new Error("no luck");
        return {};
      },
      actions: {
        ping: () => "pong",
        fail: () => {
          throw new Error("an action's");
        },
      },
    });
    const handle = inMemory({ starts }).client().starts.getOrCreate("a");
    await failure(handle.ping());
    fails = false;

    assert.equal(await handle.ping(), "pong");
    assert.equal((await failure(handle.fail())).cause.message, "an action's");
  });

  it("of an input that a schema refuses is the schema's", async () => {
    const inputSchema = schema((input) => {
      if (checks++ > 0) throw new Error("not twice");
      return input;
    });
    let checks = 0;
    const starts = actor({ inputSchema, state: {}, actions: { ping: () => "pong" } });
    const client = inMemory({ starts }).client();
    const handle = await client.starts.create("a", { input: 5 });

    const error = await failure(handle.ping());

    assert.deepEqual([error.group, error.code], ["actor", "validation_error"]);
    assert.equal(error.cause.code, "validation_error");
    assert.match(error.cause.stack, /validate/);
  });

  it("of migrateState is the author's", async () => {
    const folder = await newFolder();
    const first = actor({ state: { n: 1 }, actions: { ping: (c) => c.state.n } });
    const before = inFolder(folder, { starts: first });
    assert.equal(await before.client().starts.getOrCreate("a").ping(), 1);
    await before.shutdown();
    const thrown = new Error("cannot migrate");
    const second = actor({
      state: { n: 1 },
      stateVersion: 1,
      migrateState: () => {
        throw thrown;
      },
      actions: { ping: (c) => c.state.n },
    });
    const handle = inFolder(folder, { starts: second }).client().starts.getOrCreate("a");

    assert.equal((await failure(handle.ping())).cause, thrown);
  });

  it("is not kept once nobody waits, nor without end while somebody does", async (t) => {
    const bad = native.numbers(
      {},
      {},
      {
        onWake() {
          throw new Error("no luck");
        },
      },
    );
    const slow = native.numbers({
      wait: () =>
        new Promise((resolve) => {
          end = resolve;
        }),
    });
    let end;
    const host = await native.opened(t, { bad, slow });
    const bag = await native.awake(host, native.actor("slow", "a"));
    const { failures } = bag.home.tickets;
    const waiting = host.submit(native.actor("slow", "a"), "wait", native.none, 2);

    for (let n = 0; n < 300; n += 1) {
      const error = await failure(host.submit(native.actor("bad", n), "get", native.none, 2));
      assert.equal(error.cause.message, "no luck");
    }
    assert.equal(failures.size, 256);
    await native.until(() => end !== undefined);
    end();
    await waiting;

    assert.equal(failures.size, 0);
  });
});

describe("other errors of an author's code around an action", () => {
  for (const way of ["the ordinary way", "in place"]) {
    it(`are the cause of what the caller gets: ${way}`, async () => {
      const thrown = new Error("after the action");
      const around = actor({
        onBeforeActionResponse: (_c, name, _args, output) => {
          if (name === "answer") throw thrown;
          return output;
        },
        actionInputSchemas: {
          checked: schema(() => {
            throw new Error("wrong arguments");
          }),
          broken: {
            "~standard": {
              version: 1,
              vendor: "test",
              validate() {
                throw thrown;
              },
            },
          },
        },
        actions: { ping: () => "pong", answer: () => 1, checked: () => 1, broken: () => 1 },
      });
      const client = inMemory({ around }).client();
      const handle = (name) => client.around.getOrCreate(name);
      if (way === "in place") for (const n of ["a", "b", "c"]) await handle(n).ping();

      assert.equal((await failure(handle("a").answer())).cause, thrown);
      assert.equal((await failure(handle("b").broken())).cause, thrown);
      const refused = await failure(handle("c").checked());
      assert.deepEqual(refused.metadata, { issues: [{ message: "wrong arguments" }] });
      assert.equal(refused.cause.code, "validation_error");
      assert.match(refused.cause.stack, /validate/);
    });
  }
});
