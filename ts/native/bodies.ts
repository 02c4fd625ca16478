/**
 * The contract's streams of HTTP bodies, over the exchange of a request.
 *
 * 1. Whoever writes waits for room, so that nobody is ahead of the client by more than a few pieces.
 * 2. What is written after the end, or when the client has gone, is refused; in words of their own, since
 *    callers tell the two apart by them.
 */
import type { Exchange } from "./exchange.js";

/** What a client sends with a request. */
export class HttpRequestBodyStream {
  readonly #exchange: Exchange;
  #cancelled = false;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }

  /** The next piece; null at the end, and once nothing more is wanted. Rejects where the client broke off. */
  async read(): Promise<Buffer | null> {
    if (this.#cancelled) return null;
    const piece = await this.#exchange.read().catch((error) => {
      // What was broken off from here is no failure of the client's.
      if (this.#cancelled) return null;
      throw error;
    });
    // Of memory of its own: what came is a part of a batch.
    return piece === null ? null : Buffer.from(piece);
  }

  /** Nothing more is wanted of it; harmless when repeated. */
  async cancel(): Promise<void> {
    if (this.#cancelled) return;
    this.#cancelled = true;
    this.#exchange.cancel();
  }
}

/** How long a piece of an answer may be, in bytes: what is longer is sent in several. */
const PIECE = 64 * 1024;

/** The body of an answer. Its head need not be known when the first piece is written. */
export class HttpResponseBodyStream {
  readonly #exchange: Exchange;
  #isClosed = false;
  #hasGone = false;
  #gone: Promise<void> | undefined;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }

  /** Resolves when there was room for it. */
  async write(chunk: Uint8Array): Promise<void> {
    this.#mustBeOpen();
    // Its writer may use its memory again, and the last parts may wait.
    const bytes = Uint8Array.from(chunk);
    for (let at = 0; at < bytes.byteLength; at += PIECE) {
      await this.#exchange.write(bytes.subarray(at, at + PIECE)).catch(() => this.#dropped());
    }
  }

  /** Ends the answer. */
  async end(): Promise<void> {
    this.#mustBeOpen();
    this.#isClosed = true;
    await this.#exchange.end().catch(() => this.#dropped());
  }

  /** Breaks the answer off: the client sees that it is not whole. */
  async error(_message: string): Promise<void> {
    this.#mustBeOpen();
    this.#isClosed = true;
    this.#exchange.fail();
  }

  /** Resolves when the client has gone, or the answer has ended. */
  cancelled(): Promise<void> {
    this.#gone ??= this.#exchange.closed().then(
      () => {
        this.#hasGone = true;
      },
      // An environment that ends has no client to hear of.
      () => {},
    );
    return this.#gone;
  }

  #mustBeOpen(): void {
    if (this.#isClosed) throw new Error("http response body stream is already closed");
    if (this.#hasGone) this.#dropped();
  }

  #dropped(): never {
    throw new Error("http response body stream receiver dropped");
  }
}
