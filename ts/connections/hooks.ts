/** The hooks of connections, for the contract's actor factory. */

import { Context } from "../actors/context";
import type { Live } from "../actors/live";
import { copy, encode } from "../codec";
import type { Definition } from "../definition";
import { RivetError } from "../errors";
import type { NativeConnection } from "../native-half";
import { validate } from "../schema";
import type { Caller } from "../types";
import type { Conn } from "./conn";
import { decodeParams, encodeParams } from "./params";

/** How a client came. */
export interface Head {
  readonly method: string;
  readonly uri: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The standard request that a head is of. */
export function requestOf({ method, uri, headers }: Head): Request {
  return new Request(new URL(uri, "http://127.0.0.1"), {
    method,
    ...(headers === undefined ? {} : { headers }),
  });
}

/** What these hooks get. */
export interface ConnectionPayload {
  readonly conn: NativeConnection;
  readonly request: Head | undefined;
  readonly eventName: string | null;
}

type Body = (live: Live, payload: ConnectionPayload) => unknown;

/** The context of a function that a connection makes run. */
export class ConnectionContext extends Context {
  readonly #conn: Conn | undefined;
  readonly #isRemote: boolean;
  readonly #head: Head | undefined;
  #request: Request | undefined;

  constructor(live: Live, { conn, request }: ConnectionPayload, shown: boolean) {
    super(live, undefined);
    this.#conn = shown ? live.connections.of(conn) : undefined;
    this.#isRemote = conn.isRemote();
    this.#head = request;
  }

  override get conn(): Conn | undefined {
    return this.#conn;
  }

  override get caller(): Caller {
    return this.#isRemote ? "client" : "local";
  }

  override get request(): Request | undefined {
    if (this.#head !== undefined) this.#request ??= requestOf(this.#head);
    return this.#request;
  }
}

/** Those that a definition has, each made by `hook`. */
export function connectionHooks<C>(
  definition: Definition,
  hook: (name: string, body: Body) => C,
): Record<string, C | undefined> {
  const { connParamsSchema: schema } = definition;
  const before = definition.hook("onBeforeConnect");
  const create = definition.hook("createConnState");
  const connect = definition.hook("onConnect");
  const disconnect = definition.hook("onDisconnect");
  const asks = [...definition.events.values()].some(({ canSubscribe }) => canSubscribe);
  return {
    onBeforeConnect:
      before === undefined && schema === undefined
        ? undefined
        : hook("onBeforeConnect", async (live, payload) => {
            let params = decodeParams(payload.conn);
            if (schema !== undefined) {
              params = await validate(schema, params, "connection params");
            }
            await before?.(new ConnectionContext(live, payload, false), params);
            return schema === undefined ? undefined : encodeParams(payload.conn, params);
          }),
    createConnState: definition.hasConnState
      ? hook("createConnState", async (live, payload) => {
          const made =
            create === undefined
              ? definition.config.connState
              : await create(
                  new ConnectionContext(live, payload, false),
                  decodeParams(payload.conn),
                );
          return encode(copy(made, "conn.state"), "conn.state");
        })
      : undefined,
    onConnect: connect && hook("onConnect", (live, payload) => called(connect, live, payload)),
    onDisconnectFinal:
      disconnect === undefined && definition.hook("onWebSocket") === undefined
        ? undefined
        : hook("onDisconnect", async (live, payload) => {
            await live.desk?.made?.gone(payload.conn.id());
            if (disconnect !== undefined) await called(disconnect, live, payload);
          }),
    onBeforeSubscribe: asks ? hook("canSubscribe", maySubscribe) : undefined,
  };
}

async function called(
  written: (c: unknown, ...args: unknown[]) => unknown,
  live: Live,
  payload: ConnectionPayload,
): Promise<void> {
  await written(new ConnectionContext(live, payload, true), live.connections.of(payload.conn));
}

async function maySubscribe(live: Live, payload: ConnectionPayload): Promise<void> {
  const name = payload.eventName ?? "";
  const canSubscribe = live.definition.events.get(name)?.canSubscribe;
  if (canSubscribe === undefined) return;
  const allowed = await canSubscribe(new ConnectionContext(live, payload, true));
  if (allowed === true) return;
  if (allowed !== false) {
    throw new TypeError(`canSubscribe of event ${name} gave ${typeof allowed}, not true or false`);
  }
  throw new RivetError("auth", "forbidden", `Subscribing to event \`${name}\` is not allowed.`, {
    public: true,
    statusCode: 403,
    metadata: { event: name },
    actor: live.specifier,
  });
}
