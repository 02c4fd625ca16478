import { expectTypeOf } from "expect-type";
import { type ActionContextOf, actor, type SqlValue } from "greenroom";
import { type DatabaseProvider, db, migrations, type RawAccess } from "greenroom/db";

// `c.db` is what the provider gives, in every function.
const store = actor({
  state: { n: 0 },
  db: db({ onMigrate: (raw) => void expectTypeOf(raw).toEqualTypeOf<RawAccess>() }),
  migrations: [
    { version: 1, sql: "CREATE TABLE t (a)" },
    { version: 2, up: (raw) => void expectTypeOf(raw).toEqualTypeOf<RawAccess>() },
  ],
  onMigrate: (c) => void expectTypeOf(c.db).toEqualTypeOf<RawAccess>(),
  onCreate: (c) => void expectTypeOf(c.db).toEqualTypeOf<RawAccess>(),
  onWake: (c) => void expectTypeOf(c.db).toEqualTypeOf<RawAccess>(),
  actions: {
    rows: (c) => c.db.execute<{ a: number }>("SELECT a FROM t"),
    loose: (c) => c.db.execute("SELECT a FROM t"),
    inside: (c) => c.db.transaction(async (tx) => (await tx.execute("SELECT 1")).length),
    one: (c) => c.sql.exec<{ a: number }>("SELECT a FROM t").one().a,
    some: (c) => c.sql.exec("SELECT a FROM t").toArray(),
    raw: (c) => [...c.sql.exec("SELECT a FROM t").raw<[number]>()],
  },
});
type Actions = NonNullable<(typeof store)[keyof typeof store & symbol]>["actions"];
expectTypeOf<ReturnType<Actions["rows"]>>().toEqualTypeOf<Promise<{ a: number }[]>>();
expectTypeOf<ReturnType<Actions["loose"]>>().toEqualTypeOf<Promise<Record<string, unknown>[]>>();
expectTypeOf<ReturnType<Actions["inside"]>>().toEqualTypeOf<Promise<number>>();
expectTypeOf<ReturnType<Actions["one"]>>().toEqualTypeOf<number>();
expectTypeOf<ReturnType<Actions["some"]>>().toEqualTypeOf<Record<string, SqlValue>[]>();
expectTypeOf<ReturnType<Actions["raw"]>>().toEqualTypeOf<[number][]>();
expectTypeOf<ActionContextOf<typeof store>["db"]>().toEqualTypeOf<RawAccess>();

// Any provider will do.
declare const own: DatabaseProvider<{ query(): number }>;
actor({ db: own, actions: { go: (c) => expectTypeOf(c.db.query()).toEqualTypeOf<number>() } });

// Without one there is none.
actor({
  actions: {
    // @ts-expect-error no db was declared
    go: (c) => c.db.execute("SELECT 1"),
  },
});

// A step is SQL or a function, not both.
// @ts-expect-error both
migrations({ migrations: [{ version: 1, sql: "", up: () => {} }] });
// @ts-expect-error neither
migrations({ migrations: [{ version: 1 }] });
// @ts-expect-error misspelt
db({ onMigrat: () => {} });
