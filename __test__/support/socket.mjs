// A client of `/connect` that speaks JSON, as small as it can be: what it hears are parsed messages.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { request } from "node:http";

/** Connects to an actor, which is made if it is missing, and resolves with what speaks for the client. */
export async function openSocket(url, name, key, params) {
  return new Socket(...(await upgraded(url, name, key, "connect", params)));
}

/** The same for a raw socket: what it hears are texts and buffers. */
export async function openRaw(url, name, key, path = "", params = undefined) {
  return new Socket(...(await upgraded(url, name, key, `websocket/${path}`, params)), true);
}

/**
 * The same for the inspector of an actor: what it hears are frames. Without a `version` none is said.
 */
export async function openInspector(url, name, key, { token, version } = {}) {
  const path = `inspector/connect${version === undefined ? "" : `?protocol_version=${version}`}`;
  const more = token === undefined ? [] : [`rivet_inspector_token.${token}`];
  return new Socket(...(await upgraded(url, name, key, path, undefined, more)), true);
}

async function upgraded(url, name, key, path, params, more = []) {
  const { hostname, port } = new URL(url);
  const query = new URLSearchParams({
    "rvt-namespace": "default",
    "rvt-method": "getOrCreate",
    "rvt-runner": "default",
    ...(key.length === 0 ? {} : { "rvt-key": key.join(",") }),
  });
  const protocols = ["rivet", "rivet_encoding.json", ...more];
  if (params !== undefined) {
    protocols.push(`rivet_conn_params.${encodeURIComponent(JSON.stringify(params))}`);
  }
  const asked = request({
    hostname,
    port,
    path: `/gateway/${name}/${path}${path.includes("?") ? "&" : "?"}${query}`,
    headers: {
      connection: "upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": randomBytes(16).toString("base64"),
      "sec-websocket-protocol": protocols.join(", "),
    },
  });
  asked.end();
  const [, socket, head] = await once(asked, "upgrade");
  return [socket, head];
}

class Socket {
  /** What came and was not taken. */
  #messages = [];
  #waiting = [];
  #socket;
  #bytes = Buffer.alloc(0);
  #ids = 0;
  #close;
  #isRaw;
  /** How it was closed, as `{code, reason}`. */
  closed = new Promise((resolve) => {
    this.#close = resolve;
  });

  constructor(socket, head, isRaw = false) {
    this.#socket = socket;
    this.#isRaw = isRaw;
    socket.on("data", (bytes) => this.#read(bytes));
    socket.on("error", () => {});
    socket.on("close", () => this.#close({ code: 1006, reason: "" }));
    if (head.length > 0) this.#read(head);
  }

  /** The next message, as `[tag, value]`; of a raw socket as it is. */
  async next() {
    if (this.#messages.length === 0) await new Promise((resolve) => this.#waiting.push(resolve));
    const message = this.#messages.shift();
    return this.#isRaw ? message : [message.tag, message.val];
  }

  /** Sends text or bytes over a raw socket. */
  send(data) {
    const isText = typeof data === "string";
    this.#write(isText ? 1 : 2, Buffer.from(data));
  }

  /** Closes a raw socket. */
  close(code, reason) {
    const frame = Buffer.alloc(2 + Buffer.byteLength(reason));
    frame.writeUInt16BE(code);
    frame.write(reason, 2);
    this.#write(8, frame);
  }

  /** Subscribes to an event. */
  subscribe(eventName, subscribe = true) {
    this.#send({ tag: "SubscriptionRequest", val: { eventName, subscribe } });
  }

  /** Calls an action: its id. */
  call(name, ...args) {
    const id = this.#ids;
    this.#ids += 1;
    this.#send({ tag: "ActionRequest", val: { id: ["$BigInt", String(id)], name, args } });
    return id;
  }

  end() {
    this.#socket.destroy();
  }

  #send(body) {
    this.#write(1, Buffer.from(JSON.stringify({ body })));
  }

  #write(kind, payload) {
    const length =
      payload.length < 126
        ? [0x80 | payload.length]
        : [0xfe, payload.length >> 8, payload.length & 255];
    const mask = randomBytes(4);
    const masked = payload.map((byte, at) => byte ^ mask[at % 4]);
    this.#socket.write(Buffer.concat([Buffer.from([0x80 | kind, ...length]), mask, masked]));
  }

  #read(bytes) {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    while (this.#bytes.length >= 2) {
      const short = this.#bytes[1] & 127;
      const [length, at] = short === 126 ? [this.#bytes.readUInt16BE(2), 4] : [short, 2];
      if (this.#bytes.length < at + length) return;
      this.#frame(this.#bytes[0] & 15, this.#bytes.subarray(at, at + length));
      this.#bytes = this.#bytes.subarray(at + length);
    }
  }

  #frame(kind, payload) {
    if (kind === 8) {
      const code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
      this.#close({ code, reason: payload.subarray(2).toString() });
      this.end();
      return;
    }
    if (kind !== 1 && kind !== 2) return;
    const text = payload.toString();
    const raw = kind === 1 ? text : Buffer.from(payload);
    this.#messages.push(this.#isRaw ? raw : JSON.parse(text).body);
    this.#waiting.shift()?.();
  }
}
