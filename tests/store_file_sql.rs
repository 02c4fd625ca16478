//! Authors' statements on the file of an actor: in turns, and in a queue beside them.

#![cfg(feature = "faults")]
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/files.rs"]
mod files;
#[path = "support/store.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use files::*;
use greenroom::ids::{Generation, IdSource};
use greenroom::store::{
    ActorFile, BeginOptions, Bindings, CommitEnd, FileLimits, RowOp, SqlDatabase, SqlError,
    SqlHost, SqlTurn, SqlValue, SqlWork, StoreError, Turn, WriteBatch,
};
use greenroom::time::Clock;
use support::*;

struct Host {
    file: ActorFile,
    generation: Generation,
    /// How many commits were told, and how many of them have ended, with an error or without.
    told: Arc<[AtomicUsize; 3]>,
}

impl SqlHost for Host {
    fn run(&self, work: SqlWork) {
        self.file.perform(self.generation, work);
    }

    fn commits(&self) -> Option<CommitEnd> {
        self.told[0].fetch_add(1, Ordering::Relaxed);
        let told = Arc::clone(&self.told);
        Some(Box::new(move |result| {
            let at = if result.is_ok() { 1 } else { 2 };
            told[at].fetch_add(1, Ordering::Relaxed);
        }))
    }

    fn deadline_changed(&self) {}

    fn failed(&self, _: &SqlError) {}

    fn label(&self) -> String {
        self.file.path()
    }
}

fn database(bench: &Files, n: usize) -> SqlDatabase {
    watched(bench, n).0
}

/// The database, and what it tells of its commits.
fn watched(bench: &Files, n: usize) -> (SqlDatabase, impl Fn() -> [usize; 3] + use<>) {
    let told = Arc::<[AtomicUsize; 3]>::default();
    let (file, generation) = (bench.file(n), bench.actors[n].1);
    let host = Arc::new(Host { file, generation, told: Arc::clone(&told) });
    let ids = Arc::new(IdSource::seeded(1));
    let database = SqlDatabase::new(host, Clock::system(), ids, false);
    (database, move || [0, 1, 2].map(|at| told[at].load(Ordering::Relaxed)))
}

fn none() -> Bindings {
    Bindings::None
}

/// Runs statements in a turn and gives the first value of the last one.
fn in_turn(sql: &mut SqlTurn, turn: &Turn, texts: &[&str]) -> Option<SqlValue> {
    let mut last = None;
    for text in texts {
        let mut rows = sql.run(turn, text, &none()).unwrap();
        last = rows.next_row().and_then(|row| row.into_iter().next());
    }
    last
}

fn count(database: &SqlDatabase) -> i64 {
    let outcome = wait(database.execute("SELECT count(*) FROM t", none())).unwrap();
    match outcome.rows.into_parts().1[..] {
        [SqlValue::Integer(count)] => count,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn both_ways_see_what_the_other_has_committed() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    let database = database(&bench, 0);
    wait(database.exec("CREATE TABLE t (x); INSERT INTO t VALUES (1)")).unwrap();

    let (turn, mut sql) = (bench.turn(0), SqlTurn::default());
    let seen = in_turn(&mut sql, &turn, &["INSERT INTO t VALUES (2)", "SELECT count(*) FROM t"]);
    assert_eq!(seen, Some(SqlValue::Integer(2)));
    assert!(sql.is_writing());
    bench.commit_turn(0, turn, "with it").wait().unwrap();

    assert_eq!(count(&database), 2);
    let bench = bench.reopen();
    assert_eq!(bench.turn(0).number("SELECT count(*) FROM t"), Ok(2));
    assert_eq!(bench.state(0).unwrap(), "with it");
}

#[test]
fn a_statement_is_answered_when_it_is_durable() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    let database = database(&bench, 0);
    bench.faults.hold_syncs(true);

    let mut answer = tokio_test::task::spawn(database.exec("CREATE TABLE t (x)"));
    assert_eq!(bench.state(0), None);
    assert!(answer.poll().is_pending());
    bench.faults.hold_syncs(false);

    wait(answer.into_inner()).unwrap();
}

#[test]
fn what_may_commit_is_told_when_it_is_asked_for_and_what_only_reads_never() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    let (database, told) = watched(&bench, 0);
    bench.faults.hold_syncs(true);

    let asked = database.exec("CREATE TABLE t (x UNIQUE)");
    assert_eq!(told(), [1, 0, 0]);
    assert_eq!(count(&database), 0);
    assert_eq!(told(), [1, 0, 0], "it has been seen and is not durable");
    bench.faults.hold_syncs(false);
    wait(asked).unwrap();
    wait(database.exec("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)")).unwrap_err();

    until("both have ended", || told() == [2, 1, 1]);
}

#[test]
fn for_who_waits_only_what_has_committed_is_told_before_anybody_can_see_it() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    let (database, told) = watched(&bench, 0);
    wait(database.exec("CREATE TABLE t (x UNIQUE)")).unwrap();
    // It is told right behind the answer.
    until("the end of the first is told", || told() == [1, 1, 0]);
    let own = database.for_who_waits();
    let turn = bench.turn(0);

    let waits = own.execute("INSERT INTO t VALUES (1)", none());
    assert_eq!(told(), [1, 1, 0], "nothing has happened yet");
    bench.faults.hold_syncs(true);
    drop(turn);
    assert_eq!(count(&database), 1);
    assert_eq!(told(), [2, 1, 0], "it has been seen and is not durable");
    bench.faults.hold_syncs(false);
    wait(waits).unwrap();
    wait(own.execute("INSERT INTO t VALUES (1)", none())).unwrap_err();
    wait(own.execute("DELETE FROM t WHERE x = 5", none())).unwrap();

    until("all have ended", || told() == [3, 3, 0]);
}

#[test]
fn a_transaction_commits_rows_of_the_actor_with_it_or_not_at_all() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    let database = database(&bench, 0);
    wait(database.exec("CREATE TABLE t (x)")).unwrap();

    for (round, ends_well) in [(1, false), (2, true)] {
        let transaction = wait(database.begin(BeginOptions::default())).unwrap();
        wait(transaction.execute("INSERT INTO t VALUES (1)", none())).unwrap();
        let refused = bench.file(0).turn(bench.actors[0].1);
        assert!(matches!(refused, Err(StoreError::TransactionOpen { .. })));
        let waiting = bench.send_ops(0, vec![RowOp::PutInitialized(true)]);
        assert!(waiting.is_unanswered());
        let batch = bench.batch(0, vec![RowOp::PutState(Bytes::from(format!("{round}")))]);
        if ends_well {
            wait(transaction.commit_with(bench.file(0).rows(batch))).unwrap();
        } else {
            wait(transaction.roll_back()).unwrap();
        }
        waiting.wait().unwrap();
    }

    assert_eq!(count(&database), 1);
    assert_eq!(bench.state(0).unwrap(), "2");
}

#[test]
fn a_transaction_changes_the_alarm_once_the_directory_knows() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    let database = database(&bench, 0);
    let armed = |at| WriteBatch { alarm: Some(Some(at)), ..bench.batch(0, Vec::new()) };

    let transaction = wait(database.begin(BeginOptions::default())).unwrap();
    wait(transaction.commit_with(bench.file(0).rows(armed(1)))).unwrap_err();
    let transaction = wait(database.begin(BeginOptions::default())).unwrap();
    // In the middle of a transaction, too.
    wait(bench.file(0).open_alarm()).unwrap();
    wait(transaction.commit_with(bench.file(0).rows(armed(2)))).unwrap();

    assert_eq!(bench.turn(0).number("SELECT alarm FROM _gr_file"), Ok(2));
    wait(bench.actor(0).rest()).unwrap();
    assert_eq!(bench.alarm(0), Some(2));
}

#[test]
fn a_generation_that_ended_runs_no_statement() {
    let mut bench = Files::new(1);
    bench.promote(0).unwrap();
    let database = database(&bench, 0);
    wait(database.exec("CREATE TABLE t (x)")).unwrap();
    bench.actors[0].1 = bench.store.open_generation(bench.actors[0].0);

    let late = wait(database.exec("INSERT INTO t VALUES (1)"));

    assert!(late.is_err());
    assert_eq!(bench.turn(0).number("SELECT count(*) FROM t"), Ok(0));
}

#[test]
fn what_an_author_set_or_made_for_the_connection_lasts_for_the_generation() {
    let limits = FileLimits { open_files: 1, pool_threads: 1, ..FileLimits::default() };
    let mut bench = Files::with_limits(2, limits);
    bench.promote(0).unwrap();
    bench.promote(1).unwrap();
    let database = database(&bench, 0);
    wait(database.exec("PRAGMA foreign_keys = ON")).unwrap();
    // Another file opens, so this one closes.
    bench.save(1, "x").unwrap();
    bench.save(1, "y").unwrap();
    wait(database.exec("CREATE TABLE p (x PRIMARY KEY); CREATE TABLE c (x REFERENCES p)")).unwrap();
    wait(database.exec("INSERT INTO c VALUES (7)")).unwrap_err();
    wait(database.exec("CREATE TEMP TABLE t (x); INSERT INTO t VALUES (1)")).unwrap();
    bench.save(1, "z").unwrap();
    assert_eq!(count(&database), 1);

    bench.actors[0].1 = bench.store.open_generation(bench.actors[0].0);
    bench.load(0);

    let next = self::database(&bench, 0);
    wait(next.execute("SELECT count(*) FROM t", none())).unwrap_err();
    wait(next.exec("INSERT INTO c VALUES (7)")).unwrap();
}

#[test]
fn an_author_reads_the_rows_of_the_actor_and_writes_none() {
    let bench = Files::new(1);
    bench.save(0, "mine").unwrap();
    bench.promote(0).unwrap();
    let database = database(&bench, 0);

    let sql = "SELECT CAST(state AS TEXT) FROM _rivet_actor_state";
    let outcome = wait(database.execute(sql, none())).unwrap();

    assert_eq!(outcome.rows.into_parts().1, [SqlValue::Text("mine".into())]);
    for sql in ["DELETE FROM _gr_state", "UPDATE _gr_file SET num = 1", "DROP TABLE _gr_kv"] {
        wait(database.execute(sql, none())).unwrap_err();
    }
    wait(database.exec("INSERT INTO _rivet_wf_kv VALUES (x'01', x'02')")).unwrap();
    assert_eq!(bench.state(0).unwrap(), "mine");
}
