import { expectTypeOf } from "expect-type";
import { actor } from "greenroom";
import { type Awake, type TestRuntime, testRuntime } from "greenroom/testing";

const plain = actor({ state: { n: 0 }, actions: { add: (c, by: number) => (c.state.n += by) } });
const needs = actor({
  createVars: (_c, deps: { model: (text: string) => Promise<string> }) => ({ model: deps.model }),
  actions: { ask: (c, text: string) => c.vars.model(text) },
});

const runtime = testRuntime({ use: { plain }, seed: 1, now: new Date(0), stallTimeout: 100 });
expectTypeOf(runtime).toExtend<TestRuntime<{ plain: typeof plain }>>();
expectTypeOf(runtime.client.plain.getOrCreate("a").add(1)).toEqualTypeOf<Promise<number>>();
expectTypeOf(runtime.clock.now()).toEqualTypeOf<number>();
expectTypeOf(runtime.awake()).toEqualTypeOf<Promise<Awake[]>>();
expectTypeOf(runtime.crash()).toEqualTypeOf<Promise<void>>();
runtime.crash({ down: "8 hours" });
runtime.restart({ down: 1_000 });
// @ts-expect-error: no duration
runtime.restart({ down: "soon" });
runtime.clock.advance(1);
runtime.clock.advance("30 days");
runtime.clock.advance("1 ms");
runtime.evict(runtime.client.plain.getOrCreate("a"));
runtime.crashAt("after_commit");

// @ts-expect-error: no unit of time
runtime.clock.advance("3 parsecs");
// @ts-expect-error: no point at which a process dies
runtime.crashAt("at_noon");
// @ts-expect-error: this actor needs deps
testRuntime({ use: { needs } });
testRuntime({ use: { needs }, deps: { model: async (text) => text } });
// @ts-expect-error: a test runtime is always in memory
testRuntime({ use: { plain }, storage: "folder" });
