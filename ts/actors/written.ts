/** Changes of a turn, as promises that nobody has to wait for. */

import { isRivetError } from "../errors";

/**
 * Makes a change that is committed with its turn. When that fails the generation ends, with a line in the
 * log, and whoever waits for an answer of the actor hears why. So it is no unhandled rejection, which
 * would end the process, where nobody waits for the change itself; what is wrong with the change is one.
 */
export function written<T>(change: () => Promise<T>): Promise<T> {
  const told = new Promise<T>((resolve, reject) => {
    change().then(resolve, (error: unknown) => {
      if (isRivetError(error) && error.group === "storage") told.catch(() => {});
      reject(error);
    });
  });
  return told;
}
