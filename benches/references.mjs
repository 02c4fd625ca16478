// What the machine can do at all, for the column beside the figures.

import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import path from "node:path";

/** A plain async function that reads a field, awaited. */
export function plainCall() {
  const state = { count: 0 };
  const read = async (of) => of.count;
  return {
    what: "await of a plain async function",
    operations: 200_000,
    body: async (operations) => {
      for (let i = 0; i < operations; i++) await read(state);
    },
  };
}

/** Pages of 4 KiB appended to a file, each followed by fdatasync: what one durable commit costs at least. */
export function plainSync(folder) {
  const page = Buffer.alloc(4096, 1);
  return {
    what: "4 KiB and fdatasync",
    operations: 400,
    body: (operations) => {
      const descriptor = openSync(path.join(folder, "fdatasync"), "w");
      for (let i = 0; i < operations; i++) {
        writeSync(descriptor, page);
        fdatasyncSync(descriptor);
      }
      closeSync(descriptor);
    },
  };
}
