/** Handles and connections as their users have them: members, and beside them the actor's actions. */

import { checkKeys, describe } from "../definition/keys";
import { checkedArgument, invalidArgument } from "../errors";
import { Connection } from "./connection";
import { type CallAction, withActions } from "./members";
import type { RemoteActor } from "./remote";
import { openSocket, type SocketLike } from "./socket";

/** Makes a handle of an actor. Connections that it opens are told to `opened`. */
export function makeHandle(actor: RemoteActor, opened: (connection: Connection) => void): object {
  const call: CallAction = (name, args) => actor.call(name, args);
  const members = {
    action: async (given: unknown) => {
      const { name, args, signal } = readCall(given);
      return actor.call(name, args, signal);
    },
    send: (name: unknown, body: unknown, options: unknown) => sendTo(actor, name, body, options),
    resolve: () => actor.resolve(),
    connect: (params?: unknown) => {
      actor.checkOpen();
      const connection = new Connection(actor, params);
      opened(connection);
      connection.start();
      return connectionOf(actor, connection);
    },
    fetch: async (input: string | URL | Request, init?: RequestInit) => {
      const { path, request } = await readRequest(input, init);
      return actor.fetch(path, request);
    },
    webSocket: async (path?: string) => {
      actor.checkOpen();
      return openRaw(actor, path);
    },
    getGatewayUrl: async () => actor.settings.base + (await actor.path("")),
  };
  return withActions(members, call);
}

function connectionOf(actor: RemoteActor, connection: Connection): object {
  const call: CallAction = (name, args) => connection.call(name, args);
  const members = {
    action: async (given: unknown) => {
      const { name, args, signal } = readCall(given);
      return connection.call(name, args, signal);
    },
    send: (name: unknown, body: unknown, options: unknown) => sendTo(actor, name, body, options),
    on: (name: string, listener: () => void) => connection.on(name, readListener(listener)),
    once: (name: string, listener: () => void) => connection.once(name, readListener(listener)),
    onOpen: (listener: () => void) => connection.opens.add(readListener(listener)),
    onClose: (listener: () => void) => connection.closes.add(readListener(listener)),
    onError: (listener: () => void) => connection.errors.add(readListener(listener)),
    onStatusChange: (listener: () => void) => connection.statuses.add(readListener(listener)),
    get connStatus() {
      return connection.status;
    },
    get isConnected() {
      return connection.status === "connected";
    },
    get ready() {
      return connection.ready;
    },
    get actorId() {
      return connection.actorId;
    },
    get connId() {
      return connection.connId;
    },
    dispose: async () => connection.dispose(),
  };
  return withActions(members, call);
}

async function sendTo(actor: RemoteActor, name: unknown, body: unknown, given: unknown) {
  if (typeof name !== "string") {
    throw invalidArgument(`send() takes the name of a queue, not ${describe(name)}`);
  }
  const options = (given ?? {}) as Record<string, unknown>;
  const keys = {
    place: "options of send()",
    known: ["wait", "timeout", "signal", "dedupeKey", "delay"],
  };
  checkedArgument(() => checkKeys(options, keys));
  const { wait = false, timeout, dedupeKey, delay } = options;
  if (typeof wait !== "boolean") {
    throw invalidArgument(`wait of options of send() is ${describe(wait)}, not a boolean`);
  }
  if (timeout !== undefined && !(typeof timeout === "number" && timeout >= 0 && wait)) {
    throw invalidArgument("timeout of options of send() is milliseconds, and needs wait: true");
  }
  if (dedupeKey !== undefined && typeof dedupeKey !== "string") {
    throw invalidArgument(`dedupeKey of options of send() is ${describe(dedupeKey)}, not a string`);
  }
  if (delay !== undefined && !(typeof delay === "number" && delay >= 0 && Number.isFinite(delay))) {
    const what = `delay of options of send() is ${describe(delay)}, not milliseconds from 0`;
    throw invalidArgument(what);
  }
  const how = {
    wait,
    timeout,
    ...(dedupeKey !== undefined && { dedupeKey }),
    ...(delay !== undefined && { delay }),
  };
  return actor.send(name, body, how, readSignal(options.signal));
}

async function openRaw(actor: RemoteActor, path: string | undefined): Promise<SocketLike> {
  const within = `/websocket/${(path ?? "").replace(/^\//, "")}`;
  const params = await actor.params();
  return openSocket(actor.settings, await actor.path(within), { encoding: "json", params });
}

async function readRequest(
  input: string | URL | Request,
  init: RequestInit = {},
): Promise<{ path: string; request: RequestInit }> {
  // Only path and query count: the rest of a URL is where the actor is.
  const url = new URL(input instanceof Request ? input.url : String(input), "http://actor");
  const path = `/request${url.pathname}${url.search}`;
  if (!(input instanceof Request)) return { path, request: init };
  const body = input.body === null ? undefined : await input.arrayBuffer();
  const { method, headers, signal } = input;
  return { path, request: { method, headers, signal, ...(body && { body }), ...init } };
}

function readCall(call: unknown): { name: string; args: unknown[]; signal?: AbortSignal } {
  if (typeof call !== "object" || call === null) {
    throw invalidArgument(`action() takes {name, args}, not ${describe(call)}`);
  }
  checkedArgument(() => checkKeys(call, { place: "action()", known: ["name", "args", "signal"] }));
  const { name, args = [], signal } = call as Record<string, unknown>;
  if (typeof name !== "string") {
    throw invalidArgument(`name of action() is ${describe(name)}, not a string`);
  }
  if (!Array.isArray(args)) {
    throw invalidArgument(`args of action() is ${describe(args)}, not a list`);
  }
  const ends = readSignal(signal);
  return { name, args, ...(ends && { signal: ends }) };
}

export function readSignal(signal: unknown): AbortSignal | undefined {
  if (signal === undefined || signal instanceof AbortSignal) return signal;
  throw invalidArgument(`signal is ${describe(signal)}, not an AbortSignal`);
}

function readListener<F>(listener: F): F {
  if (typeof listener === "function") return listener;
  throw invalidArgument(`a listener is a function, not ${describe(listener)}`);
}
