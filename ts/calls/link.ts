/**
 * The session of a connection, opened again whenever it is lost.
 *
 * 1. It is connected once the actor has accepted it, and not before.
 * 2. One that was lost is opened again at once, and after waits that double from 250 ms to 30 s when that
 *    fails.
 * 3. One that was never connected and is refused is not tried again, nor any other once the registry was
 *    shut down.
 * 4. What an older session says is not heard.
 */

import { throughBoundary } from "../actors/action";
import { encode } from "../codec";
import { messageOf, RivetError, readingArgument } from "../errors";
import { clockwork, type Host, type Session } from "../native-half";
import type { ActorConnStatus } from "../types";
import type { Reach } from "./reach";

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;

/** After so long a session counts as one that lasts. */
const STEADY_MS = 1_000;

/** What a link tells of. */
export interface LinkListener {
  status(status: ActorConnStatus): void;
  /** The actor took the connection. */
  opened(connId: string, actorId: string): void;
  event(name: string, args: Uint8Array): void;
  /** An attempt failed, or the connection was lost. */
  lost(error: RivetError): void;
  /** There will be no other attempt. */
  over(error: RivetError): void;
}

export class Link {
  readonly #reach: Reach;
  readonly #params: () => Promise<Uint8Array>;
  readonly #listener: LinkListener;
  #status: ActorConnStatus = "idle";
  #session: Session | undefined;
  /** Counts attempts (4). */
  #attempt = 0;
  #pause = 0;
  #wasConnected = false;
  #isOver = false;

  constructor(reach: Reach, params: () => Promise<Uint8Array>, listener: LinkListener) {
    this.#reach = reach;
    this.#params = params;
    this.#listener = listener;
  }

  get status(): ActorConnStatus {
    return this.#status;
  }

  /** The session, while it is connected. */
  get session(): Session | undefined {
    return this.#status === "connected" ? this.#session : undefined;
  }

  /** Opens a session. */
  async start(): Promise<void> {
    this.#attempt += 1;
    const attempt = this.#attempt;
    const isOurs = (): boolean => attempt === this.#attempt && !this.#isOver;
    this.#become("connecting");
    let params: Uint8Array;
    let host: Host;
    try {
      params = await this.#params();
      host = await this.#reach.arrive();
    } catch (error) {
      if (isOurs()) this.#refused(asRivetError(error));
      return;
    }
    if (!isOurs()) return;
    try {
      this.#session = this.#reach.open(host, params, {
        accepted: (connId, actor) => {
          if (isOurs()) this.#connected(connId, actor.actorId);
        },
        event: (name, args) => {
          if (isOurs()) this.#listener.event(name, args);
        },
        refused: (error) => {
          if (isOurs()) this.#refused(throughBoundary(error) as RivetError);
        },
        closed: (code, reason) => {
          if (isOurs()) this.#lose(closedWith(code, reason));
        },
      });
    } catch (error) {
      this.#refused(asRivetError(error));
    }
  }

  /** Gives a session up that is not as it is to be, and opens the next. */
  renew(error: RivetError): void {
    if (this.#isOver) return;
    this.#session?.close();
    this.#lose(error);
  }

  /** Closes the session and opens no other. */
  end(): void {
    this.#isOver = true;
    this.#attempt += 1;
    this.#session?.close();
    this.#session = undefined;
    this.#become("idle");
  }

  #connected(connId: string, actorId: string): void {
    this.#wasConnected = true;
    // One that is accepted and closed at once is not to be opened as fast as that goes.
    const attempt = this.#attempt;
    clockwork.later(STEADY_MS, () => {
      if (attempt === this.#attempt) this.#pause = 0;
    });
    // Subscriptions and calls that wait leave before anybody hears of it and calls.
    this.#status = "connected";
    this.#listener.opened(connId, actorId);
    if (this.#status === "connected") this.#listener.status("connected");
  }

  #refused(error: RivetError): void {
    this.#lose(error, isForGood(error) || (!this.#wasConnected && error.group !== "client"));
  }

  #lose(error: RivetError, isFinal = false): void {
    this.#attempt += 1;
    this.#session = undefined;
    if (isFinal) this.#isOver = true;
    this.#become(isFinal ? "idle" : "disconnected");
    this.#listener.lost(error);
    if (isFinal) this.#listener.over(error);
    else if (!this.#isOver) this.#again();
  }

  /** See (2). A listener may have ended it. */
  #again(): void {
    const attempt = this.#attempt;
    const start = (): void => {
      if (attempt === this.#attempt && !this.#isOver) void this.start();
    };
    if (this.#pause === 0) clockwork.setImmediate(start);
    else clockwork.later(this.#pause, start);
    this.#pause = Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, this.#pause * 2));
  }

  #become(status: ActorConnStatus): void {
    if (this.#status === status) return;
    this.#status = status;
    this.#listener.status(status);
  }
}

/** Whether there is nothing left to connect to (3). */
function isForGood({ group, code }: RivetError): boolean {
  return (
    (group === "registry" && code === "shut_down") || (group === "testing" && code === "crashed")
  );
}

/** Parameters as they are passed, read now: the caller may change them. */
export function encodedParams(params: unknown): Uint8Array {
  return readingArgument(() => encode(params, "params"));
}

/** Why a session was closed: its reason is `group.code`, or what the actor said. */
function closedWith(code: number, reason: string): RivetError {
  const dot = reason.indexOf(".");
  const isCode = /^[a-z_]+\.[a-z_]+$/.test(reason);
  const [group, name] = isCode
    ? [reason.slice(0, dot), reason.slice(dot + 1)]
    : ["client", "connection_lost"];
  const why = reason === "" ? `with code ${code}` : `with code ${code}: ${reason}`;
  return new RivetError(group, name, `the connection was closed ${why}`, {
    metadata: { code, reason },
  });
}

function asRivetError(error: unknown): RivetError {
  if (error instanceof RivetError) return error;
  return new RivetError("client", "connection_lost", messageOf(error), { cause: error });
}
