// Errors in the form in which the contract's callers read them.
import assert from "node:assert/strict";

import { BRIDGE_PREFIX } from "greenroom/native";

const KEYS = ["actor", "code", "group", "message", "metadata", "public", "rayId", "statusCode"];

/** The record in the message of an error. */
export function recordOf(error) {
  assert.ok(error instanceof Error, `${error} is no error`);
  assert.ok(error.message.startsWith(BRIDGE_PREFIX), error.message);
  const record = JSON.parse(error.message.slice(BRIDGE_PREFIX.length));
  assert.deepEqual(Object.keys(record), KEYS);
  return record;
}

/** Whether an error is of these names, and has what `more` says of it. */
export const bridged =
  (group, code, more = {}) =>
  (error) => {
    const record = recordOf(error);
    const { metadata, ...rest } = more;
    assert.deepEqual([record.group, record.code], [group, code], record.message);
    if ("metadata" in more) assert.deepEqual(record.metadata, metadata);
    for (const [key, value] of Object.entries(rest)) assert.deepEqual(record[key], value, key);
    return true;
  };
