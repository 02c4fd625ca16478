// Dashboards that look into actors over HTTP.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { db } from "../dist/db/index.js";
import { actor, queue, UserError } from "../dist/index.js";
import { actorUrl, call } from "./support/gateway.mjs";
import { ask, tokenOf } from "./support/inspector.mjs";
import { inFolder, inMemory, newFolder } from "./support/registry.mjs";

const counter = actor({
  state: { count: 5, tags: new Set(["a"]), big: 7n },
  createConnState: () => ({ seen: new Map([["a", 1]]) }),
  queues: { jobs: queue() },
  actions: {
    add(c, by) {
      c.state.count += by;
      return c.state.count;
    },
    echo: (_c, ...args) => args,
    fail() {
      throw new UserError("no");
    },
    broken() {
      throw new Error("a secret");
    },
    take: (c) => c.queue.next({ names: ["jobs"], timeout: 0 }),
  },
});

const plain = actor({ actions: { hello: () => "hi" } });

const library = actor({
  db: db({
    onMigrate: async (db) => {
      await db.execute(
        "CREATE TABLE IF NOT EXISTS books (id INTEGER PRIMARY KEY, title TEXT, cover BLOB)",
      );
    },
  }),
  actions: {
    add: (c, title) => c.db.execute("INSERT INTO books (title) VALUES (?)", title),
    run: (c, sql) => c.db.execute(sql),
  },
});

describe("the inspector over HTTP", () => {
  let registry;
  let url;
  let client;
  before(async () => {
    registry = inMemory({ counter, plain, library });
    ({ url } = await registry.listen({ port: 0 }));
    client = registry.client();
  });
  after(() => registry.shutdown());

  const made = async (name, key) => {
    const id = await client[name].getOrCreate(key).resolve();
    return { id, token: await tokenOf(url, id) };
  };

  it("lets nobody in without the token of the very actor, and makes no actor for anybody", async () => {
    const { token } = await made("counter", ["auth"]);
    const other = await made("counter", ["auth", "other"]);
    const unauthorized = {
      group: "inspector",
      code: "unauthorized",
      message: "Inspector request requires a valid bearer token",
      metadata: null,
    };

    for (const given of [undefined, "", "x", other.token, `${token}x`, token.slice(1)]) {
      const refused = await ask(url, "counter", ["auth"], given, "GET", "state");
      assert.deepEqual(refused, [401, unauthorized]);
    }
    const [status, none] = await ask(url, "counter", ["never"], token, "GET", "state");
    assert.deepEqual([status, none.group, none.code], [404, "actor", "not_found"]);
    const { actors } = await (await fetch(`${url}/actors?name=counter&key=never`)).json();
    assert.deepEqual(actors, []);
  });

  it("has a token of 32 bytes that stays with the folder", async () => {
    const folder = await newFolder();
    const tokens = [];
    for (let opening = 0; opening < 2; opening += 1) {
      const registry = inFolder(folder, { counter });
      const { url } = await registry.listen({ port: 0 });
      const id = await registry.client().counter.getOrCreate(["a"]).resolve();
      tokens.push(await tokenOf(url, id));
      await registry.shutdown();
    }

    assert.equal(tokens[0], tokens[1]);
    assert.match(tokens[0], /^[\w-]{43}$/);
  });

  it("accepts one token for all actors where the environment names it as it begins to listen", async (t) => {
    const { token } = await made("counter", ["env"]);
    process.env._RIVET_TEST_INSPECTOR_TOKEN = "for-all";
    t.after(() => delete process.env._RIVET_TEST_INSPECTOR_TOKEN);
    const listener = await registry.listen({ port: 0 });
    const id = await client.counter.getOrCreate(["env"]).resolve();

    const rpcs = async (given) =>
      (await ask(listener.url, "counter", ["env"], given, "GET", "rpcs"))[0];
    assert.equal(await tokenOf(listener.url, id), "for-all");
    assert.deepEqual([await rpcs("for-all"), await rpcs(token)], [200, 401]);
    assert.equal((await ask(url, "counter", ["env"], token, "GET", "rpcs"))[0], 200);
    await listener.close();
  });

  it("shows the state in the form of clients, and replaces it", async () => {
    const { token } = await made("counter", ["state"]);
    const at = (...more) => ask(url, "counter", ["state"], token, ...more);

    assert.deepEqual(await at("GET", "state"), [
      200,
      {
        state: { count: 5, tags: ["$Set", ["a"]], big: ["$BigInt", "7"] },
        isStateEnabled: true,
      },
    ]);
    const state = { count: 42, tags: ["$Set", ["b"]], big: ["$BigInt", "1"] };
    assert.deepEqual(await at("PATCH", "state", { state }), [200, { ok: true }]);
    assert.deepEqual(await call(url, "counter", ["state"], "add", [1]), { output: 43 });
    const [, shown] = await at("GET", "state");
    assert.deepEqual(shown.state, { ...state, count: 43 });
    for (const body of ["", "{", "[]", "{}"]) {
      const [status, refused] = await at("PATCH", "state", body);
      assert.deepEqual([status, refused.code], [400, "invalid_request"], body);
    }
  });

  it("says of an actor without state and database that it has none", async () => {
    const { token } = await made("plain", ["a"]);
    const at = (...more) => ask(url, "plain", ["a"], token, ...more);

    assert.deepEqual(await at("GET", "state"), [200, { state: null, isStateEnabled: false }]);
    const [patched, noState] = await at("PATCH", "state", { state: 1 });
    assert.deepEqual([patched, noState.code], [400, "state_not_enabled"]);
    const [status, noDatabase] = await at("GET", "database/schema");
    assert.deepEqual([status, noDatabase.group, noDatabase.code], [400, "database", "not_enabled"]);
    assert.deepEqual(await at("GET", "summary"), [
      200,
      {
        state: null,
        isStateEnabled: false,
        connections: [],
        rpcs: ["hello"],
        queueSize: 0,
        isDatabaseEnabled: false,
        isWorkflowEnabled: false,
        workflowHistory: null,
      },
    ]);
  });

  it("runs actions with a list or with an object, and says what they throw as clients hear it", async () => {
    const { token } = await made("counter", ["actions"]);
    const act = (name, body) =>
      ask(url, "counter", ["actions"], token, "POST", `action/${name}`, body);

    assert.deepEqual(await act("echo", { args: [1, ["$BigInt", "2"]] }), [
      200,
      { output: [1, ["$BigInt", "2"]] },
    ]);
    assert.deepEqual(await act("echo", { properties: { a: 1 } }), [200, { output: [{ a: 1 }] }]);
    assert.deepEqual(await act("echo", {}), [200, { output: [] }]);
    assert.deepEqual(await act("add", { args: [10] }), [200, { output: 15 }]);
    for (const body of [{ args: [], properties: {} }, { properties: [1] }]) {
      const [status, refused] = await act("echo", body);
      assert.deepEqual([status, Object.keys(refused)], [400, ["error"]]);
    }
    const codes = [
      ["none", 404, "action_not_found"],
      ["fail", 500, "user_error"],
      ["broken", 500, "internal_error"],
      ["%04inspect", 404, "action_not_found"],
    ];
    for (const [name, status, code] of codes) {
      const [answered, refused] = await act(name, {});
      assert.deepEqual([answered, refused.code], [status, code], name);
      assert.doesNotMatch(refused.message, /secret/);
    }
  });

  it("says what failed inside where the registry shows that to clients", async () => {
    const registry = inMemory({ counter }, { exposeErrors: true });
    const { url } = await registry.listen({ port: 0 });
    const id = await registry.client().counter.getOrCreate([]).resolve();
    const token = await tokenOf(url, id);

    const [status, failed] = await ask(url, "counter", [], token, "POST", "action/broken", {});

    assert.deepEqual([status, failed.code], [500, "internal_error"]);
    assert.match(failed.message, /a secret/);
    await registry.shutdown();
  });

  it("shows who is connected", async () => {
    const { token } = await made("counter", ["conns"]);
    const connection = client.counter.getOrCreate(["conns"]).connect({ name: "ann" });
    await connection.echo();

    const [status, { connections }] = await ask(
      url,
      "counter",
      ["conns"],
      token,
      "GET",
      "connections",
    );

    assert.equal(status, 200);
    assert.equal(connections.length, 1);
    assert.equal(connections[0].type, null);
    const { details } = connections[0];
    assert.deepEqual(details.params, { name: "ann" });
    assert.equal(details.stateEnabled, true);
    assert.equal(details.subscriptions, 0);
    await connection.dispose();
  });

  it("shows, fills and empties the queue", async () => {
    const { token } = await made("counter", ["queue"]);
    const at = (...more) => ask(url, "counter", ["queue"], token, ...more);

    const [sent, first] = await at("POST", "queue", {
      name: "jobs",
      body: { n: ["$BigInt", "1"] },
    });
    await at("POST", "queue", { name: "jobs", body: 2 });
    assert.equal(sent, 200);
    assert.deepEqual([typeof first.id, first.name], ["string", "jobs"]);
    const [, listed] = await at("GET", "queue?limit=1");
    assert.deepEqual([listed.size, listed.truncated, listed.messages.length], [2, true, 1]);
    assert.equal(String(listed.messages[0].id), first.id);
    const taken = await client.counter.getOrCreate(["queue"]).take();
    assert.deepEqual(taken?.body, { n: 1n });
    assert.deepEqual(await at("DELETE", "queue"), [200, {}]);
    assert.equal((await at("GET", "queue"))[1].size, 0);
    for (const body of [{ name: "" }, {}, "no json"]) {
      const [status, refused] = await at("POST", "queue", body);
      assert.deepEqual([status, refused.code], [400, "invalid_request"]);
    }
    assert.equal((await at("GET", "queue?limit=x"))[0], 400);
  });

  it("shows tables, rows and what statements answer", async () => {
    const { token } = await made("library", ["a"]);
    const at = (...more) => ask(url, "library", ["a"], token, ...more);
    for (const title of ["Emma", "Ulysses"]) await client.library.getOrCreate(["a"]).add(title);

    const [, { schema }] = await at("GET", "database/schema");
    assert.deepEqual(
      schema.tables.map(({ table, records }) => [table, records]),
      [[{ schema: "main", name: "books", type: "table" }, 2]],
    );
    assert.deepEqual(
      schema.tables[0].columns.map(({ name }) => name),
      ["id", "title", "cover"],
    );
    const rows = await at("GET", "database/rows?table=books&limit=1&offset=1");
    assert.deepEqual(rows, [200, { rows: [{ id: 2, title: "Ulysses", cover: null }] }]);
    const execute = (body) => at("POST", "database/execute", body);
    const insert = "INSERT INTO books (id, title, cover) VALUES (:id, :title, :cover)";
    const book = { id: 9, title: "Middlemarch", cover: ["$Uint8Array", "AQI="] };
    assert.deepEqual(await execute({ sql: insert, properties: book }), [200, { rows: [] }]);
    assert.deepEqual(await execute({ sql: "SELECT * FROM books WHERE id = ?", args: [9] }), [
      200,
      { rows: [book] },
    ]);
    assert.deepEqual(await execute({ sql: "SELECT 9007199254740993 AS n" }), [
      200,
      { rows: [{ n: ["$BigInt", "9007199254740993"] }] },
    ]);
    for (const body of [
      {},
      { sql: "SELECT 1", args: [], properties: {} },
      { sql: "SELECT ?", args: [{}] },
    ]) {
      assert.equal((await execute(body))[0], 400);
    }
    assert.equal((await execute({ sql: "no sql" }))[0], 500);
    for (const sql of ["BEGIN", "commit", "SAVEPOINT a"]) {
      assert.deepEqual([(await execute({ sql }))[0], sql], [400, sql]);
    }
    assert.equal((await at("GET", "database/rows?limit=1"))[0], 400);
  });

  it("waits with a statement for the end of a transaction that the author has begun by hand", async () => {
    const { token } = await made("library", ["by hand"]);
    const library = client.library.getOrCreate(["by hand"]);
    const execute = (sql) =>
      ask(url, "library", ["by hand"], token, "POST", "database/execute", { sql });
    await library.run("BEGIN");

    const inserted = execute("INSERT INTO books (title) VALUES ('theirs')");
    // Behind it, through the same door.
    await ask(url, "library", ["by hand"], token, "GET", "rpcs");
    const added = library.add("ours");
    await library.run("ROLLBACK");
    await added;

    assert.deepEqual(await inserted, [200, { rows: [] }]);
    const [, { rows }] = await execute("SELECT title FROM books");
    assert.deepEqual(rows, [{ title: "theirs" }]);
  });

  it("has no workflows, traces or other routes", async () => {
    const { token } = await made("counter", ["rest"]);
    const at = (...more) => ask(url, "counter", ["rest"], token, ...more);
    const none = { history: null, isWorkflowEnabled: false };

    assert.deepEqual(await at("GET", "workflow-history"), [200, none]);
    assert.deepEqual(await at("POST", "workflow/replay", {}), [200, none]);
    assert.deepEqual(await at("GET", "traces"), [200, { otlp: [], clamped: false }]);
    assert.equal((await at("GET", "nothing"))[0], 404);
    assert.equal((await at("PUT", "state", {}))[0], 404);
  });

  it("serves styles to everybody, and no page yet", async () => {
    const styles = await fetch(actorUrl(url, "plain", ["files"], "inspector/tab.css"));
    assert.equal(styles.headers.get("content-type"), "text/css; charset=utf-8");
    assert.equal(styles.headers.get("referrer-policy"), "no-referrer");
    assert.match(await styles.text(), /--rivet-background/);
    for (const [path, code] of [
      ["inspector/ui", "ui_asset_not_found"],
      ["inspector/ui/index.js", "ui_asset_not_found"],
      ["inspector/custom-tabs/none/", "custom_tab_not_found"],
    ]) {
      const response = await fetch(actorUrl(url, "plain", ["files"], path));
      assert.deepEqual([response.status, (await response.json()).code], [404, code]);
    }
    const { actors } = await (await fetch(`${url}/actors?name=plain&key=files`)).json();
    assert.deepEqual(actors, []);
  });
});
