//! What waits for the end of a transaction that an author began by hand.

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
use futures::FutureExt;
use greenroom::ids::{Generation, IdSource};
use greenroom::store::{
    ActorFile, BeginOptions, Bindings, SharedStore, SqlDatabase, SqlError, SqlHost, SqlWork,
    StoreError, StoreLocation, StoreOptions, WriteBatch,
};
use greenroom::time::{Clock, Duration, ManualClock};
use support::*;

const LONG: Duration = Duration::from_secs(60);
const MOMENT: Duration = Duration::from_millis(1);
const TOO_LONG: StoreError = StoreError::ManualTransactionOpen { timeout_ms: 60_000 };

struct Host {
    file: ActorFile,
    generation: Generation,
}

impl SqlHost for Host {
    fn run(&self, work: SqlWork) {
        self.file.perform(self.generation, work);
    }

    fn deadline_changed(&self) {}

    fn failed(&self, _: &SqlError) {}

    fn label(&self) -> String {
        self.file.path()
    }
}

/// An actor with a file and a table on a clock that stands still.
fn bench() -> (ManualClock, Files, SqlDatabase) {
    let clock = Clock::manual(0);
    let bench = Files::on_clock(clock.clock(), limits());
    bench.promote(0).unwrap();
    let host = Host { file: bench.file(0), generation: bench.actors[0].1 };
    let ids = Arc::new(IdSource::seeded(1));
    let database = SqlDatabase::new(Arc::new(host), clock.clock(), ids, false);
    run(&database, "CREATE TABLE t (x)");
    (clock, bench, database)
}

fn run(database: &SqlDatabase, sql: &str) {
    wait(database.execute(sql, Bindings::None)).unwrap();
}

#[test]
fn a_batch_that_waits_for_longer_than_a_minute_fails_and_the_transaction_stays() {
    let (clock, bench, database) = bench();
    run(&database, "BEGIN");
    run(&database, "INSERT INTO t VALUES (1)");

    let waits = bench.send(0, "held up");
    clock.advance(LONG - MOMENT);
    bench.others_run();
    assert!(waits.is_unanswered());
    clock.advance(MOMENT);

    assert_eq!(waits.wait(), Err(TOO_LONG));
    assert!(database.is_transaction_open());
    run(&database, "COMMIT");
    bench.save(0, "after it").unwrap();
    assert_eq!(bench.turn(0).number("SELECT count(*) FROM t"), Ok(1));
    assert_eq!(bench.state(0).unwrap(), "after it");
}

#[test]
fn each_waits_for_a_minute_of_its_own_and_what_waited_when_it_began_from_then_on() {
    let (clock, bench, database) = bench();
    let turn = bench.turn(0);
    let begun = database.execute("BEGIN", Bindings::None);
    let first = bench.send(0, "first");
    clock.advance(LONG);
    drop(turn);
    wait(begun).unwrap();
    clock.advance(LONG / 2);
    let second = bench.send(0, "second");

    clock.advance(LONG / 2 - MOMENT);
    bench.others_run();
    assert!(first.is_unanswered());
    clock.advance(MOMENT);
    assert_eq!(first.wait(), Err(TOO_LONG));
    clock.advance(LONG / 2 - MOMENT);
    bench.others_run();
    assert!(second.is_unanswered());
    clock.advance(MOMENT);
    assert_eq!(second.wait(), Err(TOO_LONG));
}

#[test]
fn a_reading_behind_a_batch_that_waits_fails_or_is_served_as_that_is() {
    let (clock, bench, database) = bench();
    bench.put(0, "k", "v").unwrap();
    run(&database, "BEGIN");
    let read = || bench.actor(0).kv_get(vec![Bytes::from_static(b"k")]);
    let value = || Ok(vec![Some(Bytes::from_static(b"v"))]);

    let (batch, with_it) = (bench.send(0, "one"), read());
    clock.advance(MOMENT);
    let after_it = read();
    clock.advance(LONG - MOMENT);
    assert_eq!(batch.wait(), Err(TOO_LONG));
    assert_eq!(wait(with_it), Err(TOO_LONG));
    assert_eq!(wait(after_it), value(), "nothing is before it any more");

    let (batch, behind) = (bench.send(0, "two"), read());
    clock.advance(LONG - MOMENT);
    run(&database, "ROLLBACK");
    batch.wait().unwrap();
    assert_eq!(wait(behind), value());
}

#[test]
fn what_waits_is_done_when_the_database_closes() {
    let (clock, bench, database) = bench();
    run(&database, "BEGIN");
    run(&database, "INSERT INTO t VALUES (1)");
    let waits = bench.send(0, "kept");
    clock.advance(LONG - MOMENT);

    wait(database.close()).unwrap();

    waits.wait().unwrap();
    assert_eq!(bench.turn(0).number("SELECT count(*) FROM t"), Ok(0));
}

#[test]
fn a_transaction_with_a_handle_may_take_its_own_time() {
    let (clock, bench, database) = bench();
    let timeout = Some(LONG * 5);
    let options = BeginOptions { timeout, ..BeginOptions::default() };
    let transaction = wait(database.begin(options)).unwrap();
    let waits = bench.send(0, "after it");
    clock.advance(LONG * 4);
    bench.others_run();
    assert!(waits.is_unanswered());

    wait(transaction.commit()).unwrap();

    waits.wait().unwrap();
}

#[test]
fn a_batch_that_fails_for_it_ends_the_generation_that_says_so() {
    let (clock, bench, database) = bench();
    run(&database, "BEGIN");
    let (number, generation) = bench.actors[0];
    let batch = |bytes| WriteBatch { fails_generation: true, ..state(generation, bytes) };
    let first = send(&bench.store, number, batch("first"));
    clock.advance(MOMENT);
    let second = send(&bench.store, number, batch("second"));
    clock.advance(LONG - MOMENT);

    assert_eq!(first.wait(), Err(TOO_LONG));
    // The end of the generation undoes the transaction, and lets in nothing of it.
    assert_eq!(bench.state(0), None);
    assert_eq!(second.wait(), Err(StoreError::Stale));
}

/// The answer of a store that waits for its turns.
fn served<T>(store: &SharedStore, answer: impl Future<Output = T>) -> T {
    let mut answer = std::pin::pin!(answer);
    loop {
        if let Some(value) = answer.as_mut().now_or_never() {
            return value;
        }
        assert!(store.serve_one(), "it has its turns");
    }
}

#[test]
fn without_threads_the_clock_asks_for_a_turn_when_it_is_time() {
    let clock = Clock::manual(0);
    let mut options = StoreOptions::new(clock.clock());
    let asked = Arc::new(AtomicUsize::new(0));
    let asks = Arc::clone(&asked);
    options.waits_for_turn = Some(Arc::new(move || {
        asks.fetch_add(1, Ordering::Relaxed);
    }));
    let store = SharedStore::open(StoreLocation::Memory, options).unwrap();
    let number = served(&store, store.create(new_actor(1, &["1"]))).unwrap().row.number;
    let generation = store.open_generation(number);
    let file = store.promote_now(number, generation).unwrap();
    let host = Arc::new(Host { file, generation });
    let database = SqlDatabase::new(host, clock.clock(), Arc::new(IdSource::seeded(1)), false);
    served(&store, database.execute("BEGIN", Bindings::None)).unwrap();

    let waits = send(&store, number, state(generation, "held up"));
    while store.serve_one() {}
    clock.advance(LONG - MOMENT);
    while store.serve_one() {}
    assert!(waits.is_unanswered());
    let before = asked.load(Ordering::Relaxed);
    assert_eq!(clock.step(LONG), Some(LONG - MOMENT));
    assert_eq!(asked.load(Ordering::Relaxed), before + 1);
    while store.serve_one() {}

    assert_eq!(waits.wait(), Err(TOO_LONG));
    served(&store, database.execute("COMMIT", Bindings::None)).unwrap();
    served(&store, store.close());
}
