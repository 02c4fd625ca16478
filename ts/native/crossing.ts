/**
 * How requests and messages of clients cross: the names of the calls as which they come, and a head as JSON
 * with its length before it and a small body behind it.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";

/** The name under which requests travel. Names of actions have no control characters. */
export const REQUEST = "\u0002request";

/** The name under which messages for queues travel. */
export const SEND = "\u0001send";

const HEAD_LENGTH = 4;

/** A head with what stands behind it. */
export function packHead(head: object, pieces: readonly Uint8Array[]): Uint8Array {
  const json = Buffer.from(JSON.stringify(head));
  const length = Buffer.alloc(HEAD_LENGTH);
  length.writeUInt32LE(json.byteLength);
  return Buffer.concat([length, json, ...pieces]);
}

/** The head and the body of what crossed, a window on it. */
export function unpackHead<H>(packed: Uint8Array): { head: H; body: Buffer } {
  const bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
  const end = HEAD_LENGTH + bytes.readUInt32LE(0);
  const head = JSON.parse(bytes.toString("utf8", HEAD_LENGTH, end)) as H;
  return { head, body: bytes.subarray(end) };
}

/**
 * The address of a host to listen on: IPv4 where a name leads to both, since that is what a browser on
 * `127.0.0.1` can reach.
 */
export async function addressOf(host: string): Promise<string> {
  if (isIP(host) !== 0) return host;
  const found = await lookup(host, { all: true });
  const first = found.find(({ family }) => family === 4) ?? found[0];
  if (first === undefined) throw new TypeError(`host of listen() is ${host}, which has no address`);
  return first.address;
}
