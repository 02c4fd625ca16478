// A reporter of node:test: one line of JSON for every test, with the names of what it is within.

export default async function* outcomes(source) {
  const names = [];
  for await (const { type, data } of source) {
    if (type === "test:start") {
      names.length = data.nesting;
      names[data.nesting] = data.name;
    }
    if (type !== "test:pass" && type !== "test:fail") continue;
    if (data.details.type === "suite") continue;
    const name = [...names.slice(0, data.nesting), data.name].join(": ");
    const error = data.details.error?.cause ?? data.details.error;
    const why = type === "test:fail" ? String(error?.message ?? error).split("\n")[0] : undefined;
    yield `${JSON.stringify({ name, passed: type === "test:pass", why })}\n`;
  }
}
