/**
 * What somebody who looks into an actor is told, in the form of clients, and what he changes.
 *
 * 1. A value that has no form of clients is shown as nothing, so that the rest is.
 */

import { decode, encode } from "../codec";
import { decodeRemote, encodeRemote } from "../codec/remote";
import { INSPECT, Wanted } from "../native-half";
import type { Live } from "./live";

export { INSPECT };

const NOTHING = new Uint8Array(0);

const LENGTH = 4;

/** Answers a wish of somebody who looks. */
export function inspect(live: Live, args: Uint8Array): Uint8Array {
  const rest = args.subarray(1);
  switch (args[0]) {
    case Wanted.STATE:
      if (!live.definition.hasState) return NOTHING;
      return shown(() => live.loaded());
    case Wanted.PATCH:
      live.state = decodeRemote(rest, "state");
      return NOTHING;
    case Wanted.SHOWN:
      return packed([...parts(rest)].map((bytes) => shown(() => decode(bytes))));
    case Wanted.READ:
      return encode(decodeRemote(rest, "value"), "value");
    default:
      // There are no workflows here.
      return NOTHING;
  }
}

/** See (1). */
function shown(read: () => unknown): Uint8Array {
  const value = read();
  try {
    return encodeRemote(value, "value");
  } catch {
    return encodeRemote(null, "value");
  }
}

/** Values, each behind its length. */
function* parts(bytes: Uint8Array): Generator<Uint8Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; ) {
    const start = at + LENGTH;
    at = start + view.getUint32(at, true);
    yield bytes.subarray(start, at);
  }
}

function packed(values: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(
    values.flatMap((value) => {
      const length = Buffer.alloc(LENGTH);
      length.writeUInt32LE(value.length);
      return [length, value];
    }),
  );
}
