/** Runs one action: schema, author's function, `onBeforeActionResponse`. */

import type { Call } from "../calls/call";
import { withoutStack } from "../codec/parts";
import { remoteMetadata } from "../codec/remote";
import { callersError, RivetError } from "../errors";
import { clockwork, once } from "../native-half";
import { giveBack } from "../queue/give-back";
import { validate } from "../schema";
import { Context } from "./context";
import type { Live } from "./live";

/**
 * Runs the action `name` and gives what `carry` makes of its result when the function ends: it may
 * alias state that changes afterwards.
 */
export async function runAction<T>(
  live: Live,
  call: Call,
  name: string,
  internal: boolean,
  args: unknown[],
  carry: (output: unknown) => T,
): Promise<T> {
  const action = live.definition.action(name, internal);
  if (action === undefined) throw actionNotFound(name, live);
  const context = new Context(live, call);
  try {
    const body = async (): Promise<T> => {
      const schema = live.definition.argumentSchemas.get(name);
      const checked = schema === undefined ? args : await checkArguments(live, name, args);
      const began = clockwork.now();
      const { fire } = call;
      // Behind whatever the schema made of the arguments.
      const given =
        fire === undefined ? action(context, ...checked) : action(context, ...checked, fire);
      const held = clockwork.now() - began;
      if (held > HELD_MS) warnOfHeld(live, name, held);
      let output = await given;
      const before = live.definition.hook("onBeforeActionResponse");
      if (before !== undefined) output = await before(context, name, checked, output);
      return carry(output);
    };
    const output = await live.during(name, body, call);
    const told = live.desk?.told();
    if (told !== undefined) await told;
    const statements = call.endStatements();
    if (statements !== undefined) await statements;
    return output;
  } catch (thrown) {
    const { queue } = Context.inside(context);
    if (queue !== undefined) await giveBack(live, queue, thrown);
    const statements = call.endStatements();
    if (statements !== undefined) await statements;
    throw forCaller(thrown, live, call.caller === "client");
  } finally {
    call.release();
  }
}

/** An action that holds the thread for so many milliseconds is warned of: nothing can cut it off. */
const HELD_MS = 200;

function warnOfHeld(live: Live, name: string, held: number): void {
  live.log.warn({
    msg: `action ${name} held the thread for ${Math.round(held)} ms`,
    action: name,
  });
}

async function checkArguments(live: Live, name: string, args: unknown[]): Promise<unknown[]> {
  const schema = live.definition.argumentSchemas.get(name);
  if (schema === undefined) return args;
  const checked = await validate(schema, args, `action \`${name}\` arguments`);
  if (!Array.isArray(checked)) {
    throw new TypeError(`the schema of action ${name} makes no list of arguments`);
  }
  return checked;
}

/** `actor.action_not_found`. */
export function actionNotFound(name: string, live: Live | undefined): RivetError {
  return new RivetError("actor", "action_not_found", `Action \`${name}\` was not found.`, {
    public: true,
    statusCode: 404,
    metadata: { action: name },
    actor: live?.specifier,
  });
}

/** One for all copies of this module: the actor may run the code of another one than its caller. */
const wrappers = once("wrappers", () => new WeakSet<object>());

/** What the caller gets for what an author's function threw, and {@link throughBoundary} knows again. */
export function forCaller(thrown: unknown, live: Live, remote = false): RivetError {
  const error = callersError(thrown, live.specifier, remote ? remoteMetadata : undefined);
  wrappers.add(error);
  return error;
}

/**
 * What a caller of the same environment gets: the error that {@link forCaller} made, whichever way
 * the call took. The native half hands it over as the cause of its own. Where that one says something
 * else, such as that what the action changed was lost, the caller has to hear it.
 */
export function throughBoundary(error: unknown): unknown {
  const cause = (error as { cause?: unknown } | null | undefined)?.cause;
  if (typeof cause !== "object" || cause === null || !wrappers.has(cause)) return error;
  const [told, made] = [error as RivetError, cause as RivetError];
  const same =
    told.group === made.group && told.code === made.code && told.message === made.message;
  if (!same) return error;
  const phase = told.actor?.phase;
  return phase === undefined ? made : ofStart(made, phase);
}

/** The error of a start for one of those who waited for it: of its own, since they are several. */
function ofStart(made: RivetError, phase: string): RivetError {
  const { group, code, message, statusCode, metadata, rayId, actor, cause } = made;
  return withoutStack(
    () =>
      new RivetError(group, code, message, {
        public: made.public,
        statusCode,
        metadata,
        rayId,
        actor: actor && { ...actor, phase },
        cause,
      }),
  );
}
