/** What remote clients sent: one that sent what nobody means is told so. */

import { decodeRemote } from "../codec/remote";
import { type ActorSpecifier, messageOf, RivetError } from "../errors";

/**
 * Decodes what a remote client sent.
 *
 * @throws `actor.invalid_request`, public, with the path.
 */
export function readRemote(
  bytes: Uint8Array | null | undefined,
  root: string,
  actor?: ActorSpecifier,
): unknown {
  try {
    return decodeRemote(bytes, root);
  } catch (error) {
    throw new RivetError("actor", "invalid_request", messageOf(error), {
      public: true,
      statusCode: 400,
      actor,
      cause: error,
    });
  }
}
