// A Standard Schema by hand, as Zod, Valibot and others make them.

import type { StandardSchemaV1 } from "@standard-schema/spec";

/** A schema of what `read` makes of a value; what it throws says why a value is refused. */
export function schema<In, Out>(read: (value: unknown) => Out): StandardSchemaV1<In, Out> {
  return {
    "~standard": {
      version: 1,
      vendor: "booking-example",
      validate(value) {
        try {
          return { value: read(value) };
        } catch (error) {
          return { issues: [{ message: (error as Error).message }] };
        }
      },
    },
  };
}

/** A whole number from 1 to `most`; `what` names it where it is refused. */
export function whole(value: unknown, what: string, most: number): number {
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= most) {
    return value as number;
  }
  throw new Error(`${what} is ${String(value)}, not a whole number from 1 to ${most}`);
}
