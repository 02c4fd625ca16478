// A dashboard with RivetKit's own codec, over a socket.

import assert from "node:assert/strict";
import { once } from "node:events";
import { before, describe, it } from "node:test";
import { decode, encode } from "cbor-x";
import {
  CURRENT_VERSION,
  decodeWorkflowHistoryTransport,
  TO_CLIENT_VERSIONED,
  TO_SERVER_VERSIONED,
} from "rivetkit/inspector/client";
import { WebSocket } from "ws";

import { appOf, fresh, until, within } from "./support.mjs";

const TOKEN = "token-of-the-tests";
const app = appOf({ areas: ["inspector"], env: { _RIVET_TEST_INSPECTOR_TOKEN: TOKEN } });

const bytesOf = (value) => new Uint8Array(encode(value)).buffer;
const read = (data) => decode(new Uint8Array(data));

/** A dashboard that speaks the newest version, or says none. */
class Dashboard {
  #frames = [];
  #waiting = [];
  #says;

  constructor(url, id, token = TOKEN, version = CURRENT_VERSION) {
    const query = version === undefined ? "" : `?protocol_version=${version}`;
    const endpoint = url.replace("http", "ws");
    const protocols = ["rivet", `rivet_inspector_token.${token}`];
    this.#says = version !== undefined;
    this.socket = new WebSocket(`${endpoint}/gateway/${id}/inspector/connect${query}`, protocols);
    this.socket.on("message", (frame) => {
      this.#frames.push(new Uint8Array(frame));
      this.#waiting.shift()?.();
    });
    this.closed = once(this.socket, "close").then(([code, reason]) => [code, reason.toString()]);
    this.closed.catch(() => {});
  }

  async heard(wanted, holds = () => true) {
    for (;;) {
      if (this.#frames.length === 0) {
        await within(new Promise((told) => this.#waiting.push(told)), `${wanted} comes`);
      }
      const frame = this.#frames.shift();
      const { body } = this.#says
        ? TO_CLIENT_VERSIONED.deserialize(frame, CURRENT_VERSION)
        : TO_CLIENT_VERSIONED.deserializeWithEmbeddedVersion(frame);
      if (body.tag === wanted && holds(body.val)) return body.val;
    }
  }

  say(tag, val) {
    this.socket.send(TO_SERVER_VERSIONED.serialize({ body: { tag, val } }, CURRENT_VERSION));
  }

  async ask(tag, val, answer) {
    this.say(tag, val);
    return this.heard(answer);
  }
}

describe("a dashboard over a socket", () => {
  let handle;
  let id;
  before(async () => {
    handle = app.client().glass.getOrCreate(fresh("glass"));
    await handle.add(1);
    id = await handle.resolve();
  });

  it("is refused without the token, and with a version that nobody speaks", async () => {
    const guess = new Dashboard(app.url, id, "guess");
    assert.equal((await guess.closed)[0], 1008);
    const unknown = new Dashboard(app.url, id, TOKEN, 7);
    assert.equal((await unknown.closed)[0], 1002);
  });

  it("is told everything first", async () => {
    const dashboard = new Dashboard(app.url, id);

    const init = await dashboard.heard("Init");

    assert.deepEqual(read(init.state), { n: 2 });
    assert.deepEqual([...init.rpcs].sort(), ["add", "get"]);
    assert.deepEqual(
      [init.isStateEnabled, init.isDatabaseEnabled, init.isWorkflowEnabled],
      [true, true, true],
    );
    await until(async () => {
      const asked = ["WorkflowHistoryRequest", { id: 1n }, "WorkflowHistoryResponse"];
      const { history } = await dashboard.ask(...asked);
      return history !== null && decodeWorkflowHistoryTransport(history).entries.length >= 1;
    }, "the step of the workflow is shown");
    dashboard.socket.close();
  });

  it("is told of changes, also of those that are not stored yet, and calls actions", async () => {
    const dashboard = new Dashboard(app.url, id);
    await dashboard.heard("Init");

    await handle.add(1);
    await dashboard.heard("StateUpdated", ({ state }) => read(state).n === 3);
    const call = { id: 7n, name: "add", args: bytesOf([2]) };
    const { rid, output } = await dashboard.ask("ActionRequest", call, "ActionResponse");

    assert.deepEqual([rid, read(output)], [7n, 5]);
    dashboard.socket.close();
  });

  it("puts a state in the place of the actor's, which its own code goes on with", async () => {
    const dashboard = new Dashboard(app.url, id);
    await dashboard.heard("Init");

    dashboard.say("PatchStateRequest", { state: bytesOf({ n: 40 }) });
    await dashboard.heard("StateUpdated", ({ state }) => read(state).n === 40);
    const { state } = await dashboard.ask("StateRequest", { id: 8n }, "StateResponse");
    assert.deepEqual(read(state), { n: 40 });
    // RivetKit's own runtime tells its layer nothing of it: there it is 7.
    assert.equal(await handle.add(2), 42);
    dashboard.socket.close();
  });

  it("sees tables and rows", async () => {
    const dashboard = new Dashboard(app.url, id);
    await dashboard.heard("Init");

    const { schema } = await dashboard.ask(
      "DatabaseSchemaRequest",
      { id: 1n },
      "DatabaseSchemaResponse",
    );
    assert.ok(read(schema).tables.some(({ table }) => table.name === "things"));
    const wanted = { id: 2n, table: "things", limit: 10n, offset: 0n };
    const { result } = await dashboard.ask(
      "DatabaseTableRowsRequest",
      wanted,
      "DatabaseTableRowsResponse",
    );
    assert.deepEqual(read(result), [{ id: 1, name: "one" }]);
    dashboard.socket.close();
  });
});
