//! What an author's synchronous statements cost on the connection of an actor's file,
//! beside the same statements without the engine. The file is on the disk of the
//! temporary directory; compare runs of one machine only.

#![allow(clippy::unwrap_used, reason = "a failure ends the run")]

use divan::Bencher;
use greenroom::store::{Bindings, SqlSession, SqlTurn, SqlValue, UserSql};
use rusqlite::Connection;

const ROWS: i64 = 10_000;
const SELECT: &str = "SELECT id, name, score FROM t WHERE id = ?";
const INSERT: &str = "INSERT INTO t (name, score) VALUES (?, ?)";

fn main() {
    divan::main();
}

struct File {
    _dir: tempfile::TempDir,
    sqlite: Connection,
    user: UserSql,
}

impl File {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut sqlite = Connection::open(dir.path().join("a.db")).unwrap();
        sqlite
            .execute_batch(
                "PRAGMA locking_mode=EXCLUSIVE;
                 PRAGMA journal_mode=WAL;
                 PRAGMA synchronous=NORMAL;
                 PRAGMA cache_size=-2048;
                 CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, score REAL);
                 BEGIN;",
            )
            .unwrap();
        for id in 0..ROWS {
            sqlite
                .prepare_cached("INSERT INTO t VALUES (?, ?, ?)")
                .unwrap()
                .execute((id, format!("name {id}"), id as f64 / 3.0))
                .unwrap();
        }
        sqlite.execute_batch("COMMIT").unwrap();
        let user = UserSql::install(&mut sqlite).unwrap();
        Self { _dir: dir, sqlite, user }
    }

    fn session(&self) -> SqlSession<'_> {
        self.user.on(&self.sqlite)
    }
}

/// Ids all over the table.
fn ids() -> impl FnMut() -> i64 {
    let mut id = 0;
    move || {
        id = (id + 7_919) % ROWS;
        id
    }
}

fn person() -> Bindings {
    Bindings::Positional(vec!["somebody".into(), 0.5.into()])
}

#[divan::bench]
fn select_by_key(bencher: Bencher<'_, '_>) {
    let file = File::new();
    let (mut turn, mut next) = (SqlTurn::default(), ids());
    bencher.bench_local(|| {
        let bindings = Bindings::Positional(vec![SqlValue::Integer(next())]);
        turn.run(&file.session(), SELECT, &bindings).unwrap().next_row()
    });
}

#[divan::bench]
fn select_by_key_without_engine(bencher: Bencher<'_, '_>) {
    let file = File::new();
    let mut next = ids();
    bencher.bench_local(|| {
        let mut statement = file.sqlite.prepare_cached(SELECT).unwrap();
        statement
            .query_row([next()], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, f64>(2)?))
            })
            .unwrap()
    });
}

/// One more statement of a turn that writes.
#[divan::bench]
fn insert_in_a_turn(bencher: Bencher<'_, '_>) {
    let file = File::new();
    let mut turn = SqlTurn::default();
    bencher.bench_local(|| turn.run(&file.session(), INSERT, &person()).unwrap());
}

/// A whole turn of one statement, with BEGIN and COMMIT.
#[divan::bench]
fn turn_of_one_insert(bencher: Bencher<'_, '_>) {
    let file = File::new();
    bencher.bench_local(|| {
        SqlTurn::default().run(&file.session(), INSERT, &person()).unwrap();
        file.sqlite.prepare_cached("COMMIT").unwrap().execute([]).unwrap();
    });
}

#[divan::bench]
fn turn_of_one_insert_without_engine(bencher: Bencher<'_, '_>) {
    let file = File::new();
    bencher.bench_local(|| {
        file.sqlite.prepare_cached("BEGIN").unwrap().execute([]).unwrap();
        file.sqlite.prepare_cached(INSERT).unwrap().execute(("somebody", 0.5)).unwrap();
        file.sqlite.prepare_cached("COMMIT").unwrap().execute([]).unwrap();
    });
}
