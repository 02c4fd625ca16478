/**
 * The socket of a connection, opened again whenever it is lost.
 *
 * 1. It is connected once the server has said `Init`, and not before.
 * 2. One that was lost after it had been connected for a while is opened again at once; otherwise after
 *    waits that double from 250 ms to 30 s.
 * 3. One that was never connected and that the server refuses for good is not tried again.
 * 4. Nothing that a socket says is heard once another one took its place, or after the end.
 */

import type { RivetError } from "../errors";
import type { ActorConnStatus } from "../types/connected";
import { type Encoded, type Frame, readFrame } from "./encoding";
import { clientError, closeError, errorOf } from "./errors";
import { mayPass } from "./http";
import type { RemoteActor } from "./remote";
import { openSocket, type SocketLike } from "./socket";
import { Backoff } from "./timers";

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** How long a connection has to last until its loss is nothing that is likely to repeat. */
const STEADY_MS = 1_000;
/** How long the server may take to say `Init`: the hooks of a connection have 15 s together. */
const PATIENCE_MS = 30_000;

/** What a link tells of. Nothing here may throw. */
export interface LinkListener {
  status(status: ActorConnStatus): void;
  /** The server took the connection. */
  opened(actorId: string, connId: string): void;
  /** Any other frame. */
  frame(frame: Frame): void;
  /** An attempt or a connection failed. `refused`: by the server, which will not change its mind. */
  lost(error: RivetError, refused: boolean): void;
  /** There will be no other attempt. */
  over(error: RivetError): void;
}

export class Link {
  readonly #actor: RemoteActor;
  readonly #params: unknown;
  readonly #listener: LinkListener;
  readonly #backoff: Backoff;
  #status: ActorConnStatus = "idle";
  #socket: SocketLike | undefined;
  /** Counts attempts: what belongs to an older one is not heard (4). */
  #attempt = 0;
  #timer: unknown;
  #wasConnected = false;
  #atOnce = false;
  /** What the server said before it closed the socket. */
  #fault: RivetError | undefined;

  constructor(actor: RemoteActor, params: unknown, listener: LinkListener) {
    this.#actor = actor;
    this.#params = params;
    this.#listener = listener;
    const { timers } = actor.settings;
    this.#backoff = new Backoff(timers, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  }

  get status(): ActorConnStatus {
    return this.#status;
  }

  /** Opens the socket. */
  async start(): Promise<void> {
    this.#attempt += 1;
    const attempt = this.#attempt;
    this.#become("connecting");
    const { settings, encoding } = this.#actor;
    try {
      const params = await this.#actor.params(this.#params);
      const path = await this.#actor.path("/connect");
      if (attempt !== this.#attempt) return;
      this.#open(attempt, openSocket(settings, path, { encoding: encoding.name, params }));
    } catch (error) {
      // A signal may have any reason.
      const known = error instanceof Error ? error : clientError("disposed", String(error), error);
      if (attempt === this.#attempt) this.#lose(known as RivetError);
    }
  }

  /** Sends a frame; only while connected. */
  send(frame: Encoded): void {
    this.#socket?.send(frame);
  }

  /** Closes the socket and opens no other. */
  end(): void {
    this.#leave()?.close(1000, "Disposed");
    this.#become("idle");
  }

  #open(attempt: number, socket: SocketLike): void {
    this.#socket = socket;
    this.#fault = undefined;
    this.#after(PATIENCE_MS, () => {
      socket.close();
      this.#lose(clientError("connection_lost", `no answer for ${PATIENCE_MS / 1_000} s`));
    });
    const ours = (): boolean => attempt === this.#attempt;
    socket.addEventListener("message", ({ data }) => {
      if (ours()) this.#hear(data);
    });
    socket.addEventListener("close", ({ code, reason }) => {
      if (ours()) this.#lose(this.#fault ?? closeError(code, reason));
    });
    // A close follows, and says more.
    socket.addEventListener("error", () => {});
  }

  #hear(data: unknown): void {
    let frame: Frame;
    try {
      frame = readFrame(this.#actor.encoding, data);
    } catch (error) {
      this.#leave()?.close(1000, "malformed frame");
      this.#lose(error as RivetError);
      return;
    }
    const { tag, val } = frame;
    if (tag === "Init") this.#connected(String(val.actorId), String(val.connectionId));
    else if (tag === "Error" && val.actionId === null) this.#fault = errorOf(val);
    else this.#listener.frame(frame);
  }

  #connected(actorId: string, connId: string): void {
    this.#wasConnected = true;
    this.#after(STEADY_MS, () => {
      this.#backoff.reset();
      this.#atOnce = true;
    });
    // Subscriptions and calls that wait leave before anybody hears of it and calls.
    this.#status = "connected";
    this.#listener.opened(actorId, connId);
    if (this.#status === "connected") this.#listener.status("connected");
  }

  #lose(error: RivetError): void {
    this.#leave();
    this.#actor.forget();
    const { group, code } = error;
    const refused = !mayPass(error) && (group !== "client" || code === "web_socket_missing");
    const over = refused && !this.#wasConnected;
    this.#become(over ? "idle" : "disconnected");
    this.#listener.lost(error, refused);
    if (over) {
      this.#listener.over(error);
    } else if (this.#status === "disconnected") {
      const wait = this.#atOnce ? 0 : this.#backoff.take();
      this.#atOnce = false;
      this.#after(wait, () => void this.start());
    }
  }

  /** Forgets the socket, and returns it. */
  #leave(): SocketLike | undefined {
    this.#attempt += 1;
    const socket = this.#socket;
    this.#socket = undefined;
    this.#actor.settings.timers.clearTimeout(this.#timer);
    return socket;
  }

  #after(ms: number, run: () => void): void {
    const { timers } = this.#actor.settings;
    timers.clearTimeout(this.#timer);
    this.#timer = timers.setTimeout(run, ms);
  }

  #become(status: ActorConnStatus): void {
    if (this.#status === status) return;
    this.#status = status;
    this.#listener.status(status);
  }
}
