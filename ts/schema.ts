/** Validation by a Standard Schema, synchronous or not. */

import type { StandardSchemaV1 } from "@standard-schema/spec";

import { RivetError } from "./errors";

/** Whether a value is a Standard Schema. Some are functions with properties. */
export function isSchema(value: unknown): value is StandardSchemaV1 {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard = (value as { "~standard"?: { validate?: unknown } })["~standard"];
  return typeof standard?.validate === "function";
}

/**
 * Validates `value` and gives what the schema makes of it.
 *
 * @param what names the value in the error, such as ``action `x` arguments``.
 * @throws `actor.validation_error`, public, with the issues in its metadata.
 */
export async function validate(
  schema: StandardSchemaV1,
  value: unknown,
  what: string,
): Promise<unknown> {
  return validated(schema, value, what);
}

/** As {@link validate}, and at once where the schema is synchronous: what follows keeps its order. */
export function validated(
  schema: StandardSchemaV1,
  value: unknown,
  what: string,
): unknown | Promise<unknown> {
  const result = schema["~standard"].validate(value);
  if (!("then" in result)) return read(result, what);
  return Promise.resolve(result).then((ended) => read(ended, what));
}

function read(result: StandardSchemaV1.Result<unknown>, what: string): unknown {
  if (result.issues !== undefined) {
    throw new RivetError("actor", "validation_error", `Invalid ${what}`, {
      public: true,
      statusCode: 400,
      metadata: { issues: result.issues.map(plainIssue) },
    });
  }
  return result.value;
}

function plainIssue(issue: StandardSchemaV1.Issue): {
  message: string;
  path?: (string | number)[];
} {
  const path = issue.path?.map((step) => {
    const key = typeof step === "object" ? step.key : step;
    return typeof key === "number" ? key : String(key);
  });
  return path === undefined ? { message: issue.message } : { message: issue.message, path };
}
