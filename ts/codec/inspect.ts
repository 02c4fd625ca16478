/**
 * The slow walk over a value: finds the first part that is refused, with its path.
 *
 * 1. It visits parts in the order in which the copier and the encoder do, so all name the same part.
 * 2. Cycles are told from mere depth here only; the fast walks stop at {@link MAX_DEPTH}.
 */

import { classify, MAX_DEPTH, refusePrimitive } from "./classify";
import { errorFields } from "./parts";
import { unwrap } from "./proxies";

/** A part that is refused. */
export interface Finding {
  /** Where it is, such as `args[0].when`. */
  readonly path: string;
  /** Ends the sentence "Value at x ...". */
  readonly reason: string;
}

/**
 * Finds the first refused part of `value`. Objects for which `known` says yes were checked before
 * and are not entered.
 */
export function inspect(
  value: unknown,
  root: string,
  known?: (value: object) => boolean,
): Finding | undefined {
  return visit(value, { path: [root], above: [], known });
}

interface Walk {
  readonly path: string[];
  readonly above: object[];
  readonly known: ((value: object) => boolean) | undefined;
}

function visit(value: unknown, walk: Walk): Finding | undefined {
  if (typeof value !== "object" || value === null) {
    const reason = refusePrimitive(value);
    return reason === undefined ? undefined : { path: walk.path.join(""), reason };
  }
  if (walk.known?.(value)) return undefined;
  const raw = unwrap(value);
  const kind = classify(raw);
  const found = (reason: string): Finding => ({ path: shorten(walk.path), reason });
  if (typeof kind === "object") return found(kind.reason);
  if (walk.above.length > MAX_DEPTH) {
    return found(
      walk.above.includes(raw) ? "is part of a cycle" : `is nested deeper than ${MAX_DEPTH} levels`,
    );
  }
  // Short chains of ancestors only: a long one would make this quadratic, and depth ends it anyway.
  if (walk.above.length < 100 && walk.above.includes(raw)) return found("is part of a cycle");
  walk.above.push(raw);
  const result = visitParts(raw, kind, walk);
  walk.above.pop();
  return result;
}

function visitParts(raw: object, kind: string, walk: Walk): Finding | undefined {
  const into = (step: string, part: unknown): Finding | undefined => {
    walk.path.push(step);
    const found = visit(part, walk);
    walk.path.pop();
    return found;
  };
  if (kind === "object") {
    for (const key of Object.keys(raw)) {
      const found = into(member(key), (raw as Record<string, unknown>)[key]);
      if (found) return found;
    }
  } else if (kind === "array") {
    for (const [index, part] of (raw as unknown[]).entries()) {
      const found = into(`[${index}]`, part);
      if (found) return found;
    }
  } else if (kind === "map") {
    for (const [index, [key, part]] of [...(raw as Map<unknown, unknown>)].entries()) {
      const found =
        into(`.keys()[${index}]`, key) ??
        into(isPrimitive(key) ? `.get(${quote(key)})` : `.values()[${index}]`, part);
      if (found) return found;
    }
  } else if (kind === "set") {
    for (const [index, part] of [...(raw as Set<unknown>)].entries()) {
      const found = into(`.values()[${index}]`, part);
      if (found) return found;
    }
  } else if (kind === "error") {
    for (const [key, part] of errorFields(raw as Error)) {
      const found = into(member(key), part);
      if (found) return found;
    }
  }
  return undefined;
}

/** How a property is written after its object. */
export function member(key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

function isPrimitive(value: unknown): boolean {
  return typeof value !== "object" && typeof value !== "function";
}

function quote(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

/** Deep paths are cut in the middle: nobody reads a thousand steps. */
export function shorten(path: readonly string[]): string {
  if (path.length <= 40) return path.join("");
  return `${path.slice(0, 20).join("")}...${path.slice(-5).join("")}`;
}
