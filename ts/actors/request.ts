/**
 * Requests of clients that an author's `onRequest` answers, as the standard `Request` and `Response`.
 *
 * They come as a call under a name that no action can have.
 *
 * 1. The head of an answer waits for the changes made before it, and so does each piece behind it.
 * 2. An answer that comes in pieces keeps the actor awake until it has ended, or its client has gone. It
 *    is broken off with the generation that gives it.
 * 3. What fails behind the head breaks the answer off, and is logged.
 */

import type { Call } from "../calls/call";
import { mayLeave } from "../calls/departures";
import {
  type Begun,
  checkResponse,
  pack,
  type Rest,
  requestOf,
  respond,
  unpack,
} from "../gateway/message";
import { dispatch, type Exchange } from "../native-half";
import { forCaller } from "./action";
import { Context } from "./context";
import type { Live } from "./live";

/** What a request brings along. */
export interface RequestPayload {
  readonly args?: Uint8Array;
  readonly signal: AbortSignal;
}

/** Has the author answer a request. */
export async function answerRequest(
  live: Live,
  call: Call,
  payload: RequestPayload,
): Promise<Uint8Array> {
  const onRequest = live.definition.hook("onRequest");
  const { head, body } = unpack(payload.args ?? new Uint8Array());
  const exchange = dispatch.http.exchange(head.exchange);
  const gone = new AbortController();
  const sending = new Sending(live, exchange, gone);
  try {
    const answer = async (): Promise<Uint8Array> => {
      const request = requestOf(
        head,
        body,
        exchange,
        AbortSignal.any([call.signal, gone.signal]),
        true,
      );
      call.request = request;
      const response = await onRequest?.(new Context(live, call), request);
      checkResponse(response, "onRequest");
      return pack(response, sending);
    };
    return await live.during("onRequest", answer, call);
  } catch (thrown) {
    throw forCaller(thrown, live);
  } finally {
    // The body of the answer may be made of that of the request.
    if (!sending.hasBegun) exchange.cancel();
    call.release();
  }
}

/** An answer that comes in pieces (2). */
class Sending implements Rest {
  hasBegun = false;
  readonly #live: Live;
  readonly #exchange: Exchange;
  readonly #gone: AbortController;

  /** `gone` is aborted when the client goes before the end. */
  constructor(live: Live, exchange: Exchange, gone: AbortController) {
    this.#live = live;
    this.#exchange = exchange;
    this.#gone = gone;
  }

  begin(body: Begun): void {
    this.hasBegun = true;
    const live = this.#live;
    const sent = respond(this.#exchange, body, this.#gone, {
      ready: () => mayLeave(live, undefined),
      whenOver: (told) => live.bag.whenStopped(told),
    }).catch((error) => {
      live.log.error({ msg: "the body of an answer failed", err: error });
    });
    live.bag.context.keepAwake(sent);
  }
}
