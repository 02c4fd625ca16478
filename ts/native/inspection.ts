/**
 * What somebody who looks into an actor of the contract needs of its functions: it comes as a call under a name
 * that no action can have, one byte for what is wanted and the rest behind it.
 *
 * 1. What changes messages and schedules from outside is committed with a turn of the author's, never in the
 *    middle of one.
 * 2. The layer above reads a state once in a generation. A state that is put in its place is read again, since
 *    what it keeps is forgotten in the step in which the commit begins: no save of the old one comes behind.
 */
import type { ActionPayload } from "./actions.js";
import { bytesOf } from "./delta.js";
import type { Callback, Callbacks } from "./factory.js";

/** The name under which it comes. Names of actions have no control characters. */
export const INSPECT = "\u0004inspect";

/** What is wanted. */
export const Wanted = {
  /** The state in the form of clients; no bytes where there is none. */
  STATE: 0,
  /** To put another state in its place. */
  PATCH: 1,
  /** Values of the author's in the form of clients. */
  SHOWN: 2,
  /** A value of a client in the form of the author's. */
  READ: 3,
  /** What a workflow did: no bytes without one, else 0, or 1 and it. */
  HISTORY: 4,
  /** To have it run again: 0 from the beginning, or 1 and the id of an entry. Answered as HISTORY. */
  REPLAY: 5,
  /** That messages and schedules, changed from outside, are stored with a turn. */
  STORE: 6,
} as const;

const NOTHING = new Uint8Array(0);

/** What the layer above keeps of a state that it has read (2). */
interface Kept {
  persistState?: { state?: unknown };
}

/** Functions with what somebody who looks needs; what they answer themselves is theirs. */
export function withInspection(callbacks: Callbacks): Callbacks {
  const { actions } = callbacks;
  const written = actions !== undefined && Object.hasOwn(actions, INSPECT) && actions[INSPECT];
  const inspect: Callback<ActionPayload> = (_, payload) => {
    if (payload.args[0] !== Wanted.STORE) {
      if (!written) return answer(callbacks, payload);
      return (written as Callback<ActionPayload>)(null, payload);
    }
    payload.bag.home.turns.wrote(payload.bag);
    return NOTHING;
  };
  const own = { [INSPECT]: inspect };
  return { ...callbacks, actions: Object.assign(Object.create(null), actions, own) };
}

async function answer(callbacks: Callbacks, payload: ActionPayload): Promise<Uint8Array> {
  const { ctx } = payload;
  const rest = payload.args.subarray(1);
  switch (payload.args[0]) {
    case Wanted.STATE:
      return stateOf(callbacks, payload);
    case Wanted.PATCH: {
      await patch(payload, new Uint8Array(rest));
      return NOTHING;
    }
    case Wanted.HISTORY:
      return told(callbacks.getWorkflowHistory, { ctx });
    case Wanted.REPLAY: {
      const entryId = rest[0] === 1 ? Buffer.from(rest.subarray(1)).toString("utf8") : undefined;
      return told(callbacks.replayWorkflow, { ctx, entryId });
    }
    default:
      // Values are in the form of clients.
      return new Uint8Array(rest);
  }
}

/** See (2). */
async function patch({ ctx, bag }: ActionPayload, state: Uint8Array): Promise<void> {
  const forget = () => {
    const { persistState } = ctx.runtimeState() as Kept;
    if (persistState !== undefined) persistState.state = undefined;
  };
  const saving = ctx.saveState({ state });
  bag.patched = state;
  forget();
  try {
    await saving;
  } catch (error) {
    // What is stored is read again, unless another one is on its way.
    if (bag.patched === state) forget();
    throw error;
  } finally {
    if (bag.patched === state) bag.patched = undefined;
  }
}

async function stateOf(callbacks: Callbacks, payload: ActionPayload): Promise<Uint8Array> {
  const { ctx, bag } = payload;
  const serialize = callbacks.serializeState as Callback<unknown> | undefined;
  if (typeof serialize !== "function") return bag.storedState();
  const given = (await serialize(null, { ctx, bag, reason: "inspector" })) as {
    state?: unknown;
  } | null;
  return bytesOf(given?.state) ?? NOTHING;
}

async function told(callback: unknown, payload: object): Promise<Uint8Array> {
  if (typeof callback !== "function") return NOTHING;
  const history = bytesOf(await callback(null, payload));
  return history === undefined ? Uint8Array.of(0) : Buffer.concat([Uint8Array.of(1), history]);
}
