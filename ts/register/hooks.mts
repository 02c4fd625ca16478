/** The hooks of `greenroom/register` where Node.js runs them in a thread of their own. */

interface Replaced {
  readonly name: string;
  readonly url: string;
}

let replaced: Replaced | undefined;

export function initialize(data: Replaced): void {
  replaced = data;
}

export async function resolve(
  specifier: string,
  context: object,
  next: (specifier: string, context: object) => Promise<{ url: string }>,
): Promise<{ url: string; shortCircuit?: boolean }> {
  if (specifier !== replaced?.name) return next(specifier, context);
  return { url: replaced.url, shortCircuit: true };
}
