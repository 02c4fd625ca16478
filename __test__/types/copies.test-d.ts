import { expectTypeOf } from "expect-type";
import { type ActorHandle, actor, type BackupReport, setup } from "greenroom";

const note = actor({ state: { text: "" }, actions: { read: (c) => c.state.text } });
const registry = setup({ use: { note }, storage: ":memory:" });
const managed = registry.actor("id");

expectTypeOf(managed.export("note.db")).toEqualTypeOf<Promise<void>>();
managed.export("note.db", { replace: true });
const imported = registry.import("note.db", { name: "note", key: ["a", "b"] });
expectTypeOf(imported).toEqualTypeOf<Promise<ActorHandle<typeof note>>>();
registry.import("note.db", { name: "note" });
imported.then((handle) => expectTypeOf(handle.read()).toEqualTypeOf<Promise<string>>());
expectTypeOf(registry.backup("copy")).toEqualTypeOf<Promise<BackupReport>>();

// @ts-expect-error: it is replaced or not
managed.export("note.db", { replace: "yes" });
// @ts-expect-error: no actor of this registry
registry.import("note.db", { name: "nobody" });
// @ts-expect-error: a copy does not say what it is called
registry.import("note.db");
// @ts-expect-error: parts of keys are strings
registry.import("note.db", { name: "note", key: 5 });
// @ts-expect-error: a copy goes somewhere
registry.backup();
