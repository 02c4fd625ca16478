/**
 * What a client throws: errors that an actor or the gateway answered, and its own of the group `client`.
 *
 * 1. Every one of them is a `RivetError`: `group` and `code` say what happened.
 */

import { type ActorSpecifier, RivetError } from "../errors";

/** The client's own codes. */
export type ClientCode =
  | "disposed"
  | "connection_lost"
  | "get_params_failed"
  | "malformed_response"
  | "unreachable"
  | "web_socket_missing";

/** An error of the client itself. */
export function clientError(code: ClientCode, message: string, cause?: unknown): RivetError {
  return new RivetError("client", code, message, { cause });
}

/** What comes with an error from the other end. */
interface From {
  readonly statusCode?: number | undefined;
  readonly rayId?: string | undefined;
}

/** The error whose body was read; `undefined` if it is none. */
export function errorOf(body: unknown, from: From = {}): RivetError | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const { group, code, message, metadata, actor } = body as Record<string, unknown>;
  if (typeof group !== "string" || typeof code !== "string") return undefined;
  return new RivetError(group, code, typeof message === "string" ? message : `${group}.${code}`, {
    // Whoever sent it has taken out what is not public.
    public: true,
    statusCode: from.statusCode,
    rayId: from.rayId,
    metadata: metadata ?? undefined,
    actor: actor as ActorSpecifier | undefined,
  });
}

/** Why a socket was closed: the reason of the server, or that it said none. */
export function closeError(code: number, reason: string): RivetError {
  const [, group, fault, rayId] = /^(\w+)\.(\w+)(?:#(.+))?$/.exec(reason) ?? [];
  if (group === undefined || fault === undefined) {
    const said = reason === "" ? "" : `: ${reason}`;
    return clientError("connection_lost", `the connection was closed with code ${code}${said}`);
  }
  return new RivetError(group, fault, `the connection was closed: ${reason}`, {
    public: true,
    rayId,
  });
}

/** What `error` is called where codes are compared. */
export function nameOf(error: unknown): string {
  return RivetError.isRivetError(error) ? `${error.group}.${error.code}` : "";
}
