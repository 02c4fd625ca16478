/** Which actor a handle means, as URLs say it. */

import { toBase64 } from "../codec/base64";
import { writeCbor } from "../codec/cbor-write";
import { toCompat } from "../codec/compat";
import type { Settings } from "./options";

/** An actor by its id, or by its name and key. */
export type Target =
  | { readonly id: string }
  | { readonly name: string; readonly key: readonly string[]; readonly create?: Creation };

/** With what an actor is created that is not there. */
export interface Creation {
  readonly input: unknown;
}

/** The longest input that travels in URLs, in bytes; longer ones are sent once, in a body. */
const MAX_INPUT_IN_URL = 1_024;

/** The one pool that there is. */
const POOL = "default";

/**
 * Where `path` within the actor is, below the base; `undefined` when a URL cannot name the actor and its id
 * has to be looked up.
 */
export function gatewayPath(settings: Settings, target: Target, path: string): string | undefined {
  const [before, query] = splitOnce(path, "?");
  if ("id" in target) {
    return `/gateway/${encodeURIComponent(target.id)}${before}${query === undefined ? "" : `?${query}`}`;
  }
  const parameters = gatewayQuery(settings, target);
  if (parameters === undefined) return undefined;
  const all = query ? `${query}&${parameters}` : parameters;
  return `/gateway/${encodeURIComponent(target.name)}${before}?${all}`;
}

function gatewayQuery(
  settings: Settings,
  { key, create }: Exclude<Target, { id: string }>,
): string | undefined {
  // Parts are joined by commas there, and nothing is no part.
  if (key.some((part) => part === "" || part.includes(","))) return undefined;
  const parameters = new URLSearchParams({
    "rvt-namespace": settings.namespace,
    "rvt-method": create === undefined ? "get" : "getOrCreate",
  });
  if (key.length > 0) parameters.set("rvt-key", key.join(","));
  if (create !== undefined) {
    parameters.set("rvt-runner", POOL);
    const input = encodeInput(create.input);
    if (input !== undefined) {
      if (input.length > MAX_INPUT_IN_URL) return undefined;
      parameters.set("rvt-input", urlSafe(toBase64(input)));
    }
    parameters.set("rvt-crash-policy", "sleep");
  }
  return parameters.toString();
}

/** The body that makes an actor. */
export function creationBody(name: string, key: readonly string[], { input }: Creation): string {
  const bytes = encodeInput(input);
  return JSON.stringify({
    name,
    key: serializeKey(key),
    runner_name_selector: POOL,
    crash_policy: "sleep",
    ...(bytes !== undefined && { input: toBase64(bytes) }),
  });
}

/** A key as one text: parts between slashes, of which one within a part is escaped. */
export function serializeKey(key: readonly string[]): string {
  if (key.length === 0) return "/";
  const escaped = (part: string): string =>
    part === "" ? "\\0" : part.replaceAll("\\", "\\\\").replaceAll("/", "\\/");
  return key.map(escaped).join("/");
}

function encodeInput(input: unknown): Uint8Array | undefined {
  return input === undefined ? undefined : writeCbor(toCompat(input, "input", "cbor"));
}

function urlSafe(base64: string): string {
  return base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function splitOnce(text: string, by: string): [string, string | undefined] {
  const at = text.indexOf(by);
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}
