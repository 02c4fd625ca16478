//! Turns and short statements go on while statements of other actors have every thread of
//! the pool.

#![cfg(feature = "faults")]
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/files.rs"]
mod files;
#[path = "support/store.rs"]
mod support;

use std::sync::{Arc, mpsc};
use std::thread;

use bytes::Bytes;
use files::*;
use greenroom::ids::IdSource;
use greenroom::store::{
    ActorFile, BeginOptions, Bindings, FileLimits, RowOp, SqlDatabase, SqlError, SqlHost,
    SqlOutcome, SqlValue, SqlWork, WriteBatch,
};
use greenroom::time::Clock;
use parking_lot::Mutex;
use support::*;

/// A host whose steps do not let go of their thread.
struct Host {
    file: ActorFile,
    generation: greenroom::ids::Generation,
    arrived: mpsc::Sender<()>,
    released: Mutex<mpsc::Receiver<()>>,
}

impl SqlHost for Host {
    fn run(&self, work: SqlWork) {
        self.file.perform(self.generation, work);
    }

    /// On the thread that has begun the transaction.
    fn deadline_changed(&self) {
        let _ = self.arrived.send(());
        let _ = self.released.lock().recv_timeout(PATIENCE);
    }

    fn failed(&self, _: &SqlError) {}

    fn label(&self) -> String {
        self.file.path()
    }
}

/// The only thread of the pool, until this is dropped.
struct Pool(mpsc::Sender<()>);

impl Drop for Pool {
    fn drop(&mut self) {
        // For what ends the transaction, too.
        for _ in 0..8 {
            let _ = self.0.send(());
        }
    }
}

/// Three actors, of which two have a file.
fn files() -> Files {
    let limits = FileLimits { pool_threads: 1, sync_threads: 1, ..limits() };
    let bench = Files::with_limits(3, limits);
    bench.promote(0).unwrap();
    bench.promote(1).unwrap();
    bench
}

fn starved() -> (Files, Pool) {
    let bench = files();
    let pool = starve(&bench);
    (bench, pool)
}

/// Gives the pool to the first actor.
fn starve(bench: &Files) -> Pool {
    let (arrived, arrives) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let generation = bench.actors[0].1;
    let host = Host { file: bench.file(0), generation, arrived, released: Mutex::new(released) };
    let ids = Arc::new(IdSource::seeded(1));
    let database = SqlDatabase::new(Arc::new(host), Clock::system(), ids, false);
    drop(database.begin(BeginOptions::default()));
    arrives.recv_timeout(PATIENCE).unwrap();
    Pool(release)
}

/// A host that waits for nobody.
struct Ready(ActorFile, greenroom::ids::Generation);

impl SqlHost for Ready {
    fn run(&self, work: SqlWork) {
        self.0.perform(self.1, work);
    }

    fn deadline_changed(&self) {}

    fn failed(&self, _: &SqlError) {}

    fn label(&self) -> String {
        self.0.path()
    }
}

/// The statements of an actor, which has a table with a thousand rows.
fn statements(bench: &Files, n: usize) -> SqlDatabase {
    let host = Arc::new(Ready(bench.file(n), bench.actors[n].1));
    let database = SqlDatabase::new(host, Clock::system(), Arc::new(IdSource::seeded(2)), false);
    wait(database.exec("CREATE TABLE t (x)")).unwrap();
    wait(database.execute(ADD, upto(1_000))).unwrap();
    database
}

/// Adds as many rows as are bound.
const ADD: &str = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?) \
                   INSERT INTO t SELECT x FROM n";
const COUNT: &str = "SELECT count(*) FROM t";

fn upto(rows: i64) -> Bindings {
    Bindings::Positional(vec![SqlValue::Integer(rows)])
}

fn count(outcome: SqlOutcome) -> SqlValue {
    outcome.rows.into_parts().1.remove(0)
}

/// What this gives on a thread of its own, which must not wait for the pool.
fn unhindered<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (give, given) = mpsc::channel();
    thread::spawn(move || drop(give.send(work())));
    given.recv_timeout(PATIENCE / 6).expect("it does not wait for the pool")
}

fn arming(bench: &Files, n: usize, alarm: i64) -> WriteBatch {
    WriteBatch { alarm: Some(Some(alarm)), ..bench.batch(n, Vec::new()) }
}

#[test]
fn a_statement_that_was_short_is_run_by_who_asks_and_one_that_was_not_waits_for_the_pool() {
    let bench = files();
    let database = statements(&bench, 1);
    let one = "INSERT INTO t VALUES (?)";
    wait(database.execute(COUNT, Bindings::None)).unwrap();
    wait(database.execute(one, upto(5))).unwrap();
    wait(database.execute(ADD, upto(5))).unwrap();
    let pool = starve(&bench);

    let own = database.clone();
    let short = unhindered(move || {
        wait(own.execute(one, upto(5))).unwrap();
        wait(own.execute(COUNT, Bindings::None)).unwrap()
    });
    assert_eq!(count(short), SqlValue::Integer(1_007));
    let mut long = tokio_test::task::spawn(database.execute(ADD, upto(5)));
    assert!(long.poll().is_pending(), "what writes the rows of a query is never short");
    // It came later, so it waits, too.
    let mut behind = tokio_test::task::spawn(database.execute(COUNT, Bindings::None));
    assert!(behind.poll().is_pending());
    drop(pool);

    wait(long.into_inner()).unwrap();
    assert_eq!(count(wait(behind.into_inner()).unwrap()), SqlValue::Integer(1_012));
}

#[test]
fn a_reading_that_is_not_short_this_time_is_cut_off_and_done_by_the_pool() {
    let bench = files();
    let database = statements(&bench, 1);
    let pairs = "SELECT count(*) FROM t, t AS u WHERE t.x <= ?";
    wait(database.execute(pairs, upto(0))).unwrap();
    let pool = starve(&bench);

    let mut long = tokio_test::task::spawn(database.execute(pairs, upto(1_000)));
    assert!(long.poll().is_pending());
    assert_eq!(bench.turn(1).number(COUNT), Ok(1_000), "the connection is free");
    drop(pool);

    assert_eq!(count(wait(long.into_inner()).unwrap()), SqlValue::Integer(1_000_000));
}

#[test]
fn a_turn_moves_its_actor_and_sets_an_alarm_while_others_have_the_pool() {
    let (bench, pool) = starved();
    let (actor, generation) = (bench.actor(2), bench.actors[2].1);

    let turn = unhindered(move || {
        let turn = actor.own_file_now(generation).unwrap().turn(generation).unwrap();
        turn.share();
        turn.begin().unwrap();
        turn.execute("CREATE TABLE t (x)").unwrap();
        turn
    });
    end_turn(turn, arming(&bench, 2, 5_000)).wait().unwrap();

    let file = bench.file(2);
    let seen = unhindered(move || {
        file.turn(generation).unwrap().number("SELECT count(*) FROM sqlite_schema WHERE name='t'")
    });
    assert_eq!(seen, Ok(1));
    drop(pool);
    assert_eq!(bench.reopen().place(2), greenroom::store::Place::File { n: 1 });
}

#[test]
fn a_turn_commits_what_sets_an_alarm_before_it_while_others_have_the_pool() {
    let (bench, pool) = starved();
    let (number, generation) = bench.actors[1];
    let armed = send(&bench.store, number, arming(&bench, 1, 5_000));

    let file = bench.file(1);
    unhindered(move || drop(file.turn(generation).unwrap()));

    armed.wait().unwrap();
    drop(pool);
}

#[test]
fn a_turn_behind_a_transaction_commits_that_while_others_have_the_pool() {
    let bench = files();
    let (database, generation) = (statements(&bench, 1), bench.actors[1].1);
    let transaction = wait(database.begin(BeginOptions::default())).unwrap();
    wait(transaction.execute("INSERT INTO t VALUES (?)", upto(1))).unwrap();
    let pool = starve(&bench);
    let batch = bench.batch(1, vec![RowOp::PutState(Bytes::from_static(b"with it"))]);
    let committed = bench.file(1).commit_with(transaction, batch);

    let file = bench.file(1);
    let seen = unhindered(move || file.turn_behind(generation).unwrap().number(COUNT));

    assert_eq!(seen, Ok(1_001));
    wait(committed).unwrap();
    drop(pool);
    assert_eq!(bench.reopen().state(1).unwrap(), "with it");
}

#[test]
fn a_turn_behind_a_transaction_that_sets_an_alarm_commits_that_while_others_have_the_pool() {
    let bench = files();
    let (database, generation) = (statements(&bench, 1), bench.actors[1].1);
    let transaction = wait(database.begin(BeginOptions::default())).unwrap();
    wait(transaction.execute("INSERT INTO t VALUES (?)", upto(1))).unwrap();
    let pool = starve(&bench);
    let committed = bench.file(1).commit_with(transaction, arming(&bench, 1, 5_000));
    // It is asked for as soon as the directory knows of the alarm.
    let committed = std::thread::spawn(move || wait(committed));

    let file = bench.file(1);
    let seen = unhindered(move || file.turn_behind(generation).unwrap().number(COUNT));

    assert_eq!(seen, Ok(1_001));
    committed.join().unwrap().unwrap();
    drop(pool);
}

#[test]
fn a_turn_commits_the_one_that_was_parked_while_the_disk_is_slow() {
    let (bench, pool) = starved();
    let generation = bench.actors[1].1;
    bench.faults.hold_syncs(true);
    // The sync thread waits for the disk from here on.
    let first = bench.commit_turn(1, bench.turn(1), "first");
    let turn = bench.turn(1);
    turn.share();
    turn.begin().unwrap();
    turn.execute("CREATE TABLE t (x)").unwrap();
    let parked = end_turn(turn, arming(&bench, 1, 5_000));

    let file = bench.file(1);
    let seen = unhindered(move || {
        file.turn(generation).unwrap().number("SELECT count(*) FROM sqlite_schema WHERE name='t'")
    });

    assert_eq!(seen, Ok(1));
    assert!(parked.is_unanswered());
    bench.faults.hold_syncs(false);
    first.wait().unwrap();
    parked.wait().unwrap();
    drop(pool);
}
