// A dashboard, as small as it can be: reads and writes BARE of version 6 and JSON over HTTP.

import { decode, encode } from "cbor-x";
import { actorUrl } from "./gateway.mjs";
import { openInspector } from "./socket.mjs";

/** The token of an actor, as those read it who may manage actors. */
export async function tokenOf(url, id) {
  const response = await fetch(`${url}/actors/${id}/kv/keys/Aw==`);
  const { value } = await response.json();
  return Buffer.from(value, "base64").toString();
}

/** Asks an actor's inspector over HTTP: its status and what it says. */
export async function ask(url, name, key, token, method, path, body) {
  const [route, query = ""] = path.split("?");
  const base = actorUrl(url, name, key, `inspector/${route}`);
  const response = await fetch(query === "" ? base : `${base}&${query}`, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return [response.status, JSON.parse(text)];
}

/** Opens the socket of a dashboard that speaks version 6. */
export async function openDashboard(url, name, key, token) {
  return new Dashboard(await openInspector(url, name, key, { token, version: 6 }));
}

/** Messages to the server by their names: number, and how the rest is written. */
const TO_SERVER = {
  PatchState: [0, (out, { state }) => out.data(encode(state))],
  State: [1, (out, { id }) => out.uint(id)],
  Connections: [2, (out, { id }) => out.uint(id)],
  Action: [3, (out, { id, name, args }) => out.uint(id).text(name).data(encode(args))],
  RpcsList: [4, (out, { id }) => out.uint(id)],
  TraceQuery: [5, (out, { id }) => out.uint(id).uint(0).uint(1).uint(1)],
  Queue: [6, (out, { id, limit }) => out.uint(id).uint(limit)],
  WorkflowHistory: [7, (out, { id }) => out.uint(id)],
  WorkflowReplay: [8, (out, { id }) => out.uint(id).uint(0)],
  DatabaseSchema: [9, (out, { id }) => out.uint(id)],
  DatabaseTableRows: [
    10,
    (out, { id, table, limit, offset }) => out.uint(id).text(table).uint(limit).uint(offset),
  ],
  Schedules: [11, (out, { id }) => out.uint(id)],
  ScheduleHistory: [12, (out, { id, scheduleId }) => out.uint(id).text(scheduleId).uint(10)],
  ScheduleDelete: [13, (out, { id, scheduleId, kind }) => out.uint(id).text(scheduleId).text(kind)],
};

const connection = (from) => ({ id: from.text(), details: from.cbor() });

const schedule = (from) => ({
  id: from.text(),
  name: from.optional("text"),
  kind: from.text(),
  action: from.text(),
  args: from.cbor(),
  nextRunAt: from.uint(),
  lastRunAt: from.optional("uint"),
  expression: from.optional("text"),
  timezone: from.optional("text"),
  intervalMs: from.optional("uint"),
  maxHistory: from.optional("uint"),
});

const fire = (from) => ({
  action: from.text(),
  scheduledAt: from.uint(),
  firedAt: from.uint(),
  finishedAt: from.optional("uint"),
  result: from.text(),
  failed: from.flag(),
});

const message = (from) => ({ id: from.uint(), name: from.text(), createdAtMs: from.uint() });

const tab = (from) => ({
  id: from.text(),
  label: from.optional("text"),
  icon: from.optional("text"),
  hidden: from.flag(),
});

/** Messages to the client in the order of version 6. */
const TO_CLIENT = [
  ["StateResponse", (f) => ({ rid: f.uint(), state: f.optional("cbor"), enabled: f.flag() })],
  ["ConnectionsResponse", (f) => ({ rid: f.uint(), connections: f.list(connection) })],
  ["ActionResponse", (f) => ({ rid: f.uint(), output: f.cbor() })],
  ["ConnectionsUpdated", (f) => ({ connections: f.list(connection) })],
  ["QueueUpdated", (f) => ({ queueSize: f.uint() })],
  ["StateUpdated", (f) => ({ state: f.cbor() })],
  ["WorkflowHistoryUpdated", (f) => ({ history: f.data() })],
  ["SchedulesUpdated", (f) => ({ schedules: f.list(schedule) })],
  ["RpcsListResponse", (f) => ({ rid: f.uint(), rpcs: f.list((from) => from.text()) })],
  ["TraceQueryResponse", (f) => ({ rid: f.uint(), payload: f.data() })],
  [
    "QueueResponse",
    (f) => ({
      rid: f.uint(),
      size: f.uint(),
      maxSize: f.uint(),
      messages: f.list(message),
      truncated: f.flag(),
    }),
  ],
  [
    "WorkflowHistoryResponse",
    (f) => ({ rid: f.uint(), history: f.optional("data"), enabled: f.flag() }),
  ],
  [
    "WorkflowReplayResponse",
    (f) => ({ rid: f.uint(), history: f.optional("data"), enabled: f.flag() }),
  ],
  ["SchedulesResponse", (f) => ({ rid: f.uint(), schedules: f.list(schedule) })],
  [
    "ScheduleHistoryResponse",
    (f) => ({ rid: f.uint(), scheduleId: f.text(), history: f.list(fire) }),
  ],
  ["ScheduleDeleteResponse", (f) => ({ rid: f.uint(), scheduleId: f.text(), deleted: f.flag() })],
  ["Error", (f) => ({ message: f.text() })],
  [
    "Init",
    (f) => ({
      connections: f.list(connection),
      state: f.optional("cbor"),
      isStateEnabled: f.flag(),
      rpcs: f.list((from) => from.text()),
      isDatabaseEnabled: f.flag(),
      queueSize: f.uint(),
      workflowHistory: f.optional("data"),
      isWorkflowEnabled: f.flag(),
      tabConfig: f.list(tab),
      schedules: f.list(schedule),
    }),
  ],
  ["DatabaseSchemaResponse", (f) => ({ rid: f.uint(), schema: f.cbor() })],
  ["DatabaseTableRowsResponse", (f) => ({ rid: f.uint(), rows: f.cbor() })],
];

/** A frame, as its name and its fields. */
export function readFrame(bytes) {
  const from = new Reader(bytes);
  const [name, read] = TO_CLIENT[from.uint()];
  const fields = read(from);
  if (from.at !== bytes.length) throw new Error(`${name} has bytes behind it`);
  return [name, fields];
}

class Dashboard {
  constructor(socket) {
    this.socket = socket;
    this.closed = socket.closed;
  }

  say(name, fields) {
    const [tag, write] = TO_SERVER[name];
    const out = new Writer().uint(tag);
    write(out, fields);
    this.socket.send(Buffer.concat(out.parts));
  }

  async next() {
    return readFrame(await this.socket.next());
  }

  /** What comes next under a name; what comes before it is passed over. */
  async heard(wanted, holds = () => true) {
    for (;;) {
      const [name, fields] = await this.next();
      if (name === wanted && holds(fields)) return fields;
    }
  }

  /** Asks, and gives the answer. */
  async ask(name, fields, answer) {
    this.say(name, fields);
    return this.heard(answer);
  }

  end() {
    this.socket.end();
  }
}

class Writer {
  parts = [];

  uint(value) {
    const bytes = [];
    for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
    this.parts.push(Buffer.from([...bytes, value]));
    return this;
  }

  data(bytes) {
    this.uint(bytes.length);
    this.parts.push(Buffer.from(bytes));
    return this;
  }

  text(text) {
    return this.data(Buffer.from(text));
  }
}

class Reader {
  at = 0;

  constructor(bytes) {
    this.bytes = bytes;
  }

  uint() {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  }

  flag() {
    return this.bytes[this.at++] === 1;
  }

  data() {
    const length = this.uint();
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  text() {
    return this.data().toString();
  }

  cbor() {
    return decode(this.data());
  }

  optional(kind) {
    return this.flag() ? this[kind]() : null;
  }

  list(read) {
    return Array.from({ length: this.uint() }, () => read(this));
  }
}
