//! The write-ahead log: how large it may become and when it is copied.

#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/store.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use greenroom::ids::Generation;
use greenroom::store::{ActorNumber, ActorStoreRef, SharedStore, StoreLocation, StoreOptions};
use greenroom::time::Clock;
use rusqlite::Connection;
use support::*;

/// Commits `left` states of this actor, each after the answer to the one before.
fn chain(
    actor: ActorStoreRef,
    generation: Generation,
    left: u32,
    end: std::sync::mpsc::Sender<()>,
) {
    let Some(next_left) = left.checked_sub(1) else { return end.send(()).unwrap() };
    let next = Arc::clone(&actor);
    let done = Box::new(move |result: Result<(), _>| {
        result.unwrap();
        chain(next, generation, next_left, end);
    });
    actor.commit(state(generation, left.to_string()), done);
}

/// A folder in memory where there is one: the rule is about frames, not about
/// the speed of a disk.
fn fast_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Runs `commits` commits one after the other.
fn run_chain(store: &Arc<SharedStore>, number: ActorNumber, generation: Generation, commits: u32) {
    let (end, ended) = std::sync::mpsc::channel();
    chain(store.actor(number), generation, commits, end);
    ended.recv_timeout(5 * PATIENCE).unwrap();
}

#[test]
fn the_log_stays_bounded_under_twenty_thousand_commits() {
    let dir = fast_folder();
    let store = open(dir.path());
    let number = make(&store, 1).number;
    let generation = store.open_generation(number);
    let before = store.stats();

    run_chain(&store, number, generation, 20_000);

    let stats = store.stats();
    assert_eq!(stats.commits - before.commits, 20_000);
    assert!(stats.checkpoints >= 5, "{stats:?}");
    assert!(stats.largest_wal_frames < 4_062, "{stats:?}");
    let log = dir.path().join("actors.db-wal").metadata().unwrap().len();
    assert!(log < 4_062 * 4_120, "{log} bytes");
    assert_eq!(stored(&store, number), Some(Bytes::from_static(b"1")));
}

#[test]
fn an_idle_store_copies_its_log_after_half_a_second_of_its_own_clock() {
    let dir = tempfile::tempdir().unwrap();
    let manual = Clock::manual(0);
    let options = StoreOptions::new(manual.clock());
    let store = SharedStore::open(StoreLocation::Folder(dir.path().into()), options).unwrap();
    make(&store, 1);

    manual.advance(Duration::from_millis(499));
    make(&store, 2);
    manual.advance(Duration::from_millis(499));
    assert_eq!(store.stats().checkpoints, 0);
    manual.advance(Duration::from_millis(1));

    until("the checkpoint", || store.stats().checkpoints == 1);
    make(&store, 3);
    assert_eq!(store.stats().checkpoints, 1);
}

#[test]
fn a_reader_that_pins_the_log_delays_its_copy_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let numbers: Vec<_> = (0..40).map(|n| make(&store, n).number).collect();
    let generations: Vec<_> = numbers.iter().map(|&n| store.open_generation(n)).collect();
    let write_all = |text: &'static str| {
        let sent: Vec<_> = numbers
            .iter()
            .zip(&generations)
            .map(|(&number, &generation)| {
                let bytes = text.repeat(100_000).into_bytes();
                send(&store, number, state(generation, bytes))
            })
            .collect();
        sent.into_iter().for_each(|sent| sent.wait().unwrap());
    };
    let pin = Connection::open(dir.path().join("actors.db")).unwrap();
    pin.execute_batch("BEGIN; SELECT count(*) FROM directory;").unwrap();

    // Different bytes each time: SQLite writes no page that stays the same.
    for text in ["1", "2", "3", "4"] {
        write_all(text);
    }
    until("a checkpoint that was cut short", || store.stats().checkpoints_cut_short > 0);
    assert!(store.stats().largest_wal_frames > 2_000, "{:?}", store.stats());
    pin.execute_batch("COMMIT").unwrap();
    let before = store.stats().checkpoints;
    write_all("b");

    until("a whole checkpoint", || store.stats().checkpoints > before);
    write_all("c");
    assert!(store.stats().wal_frames < 2_000, "{:?}", store.stats());
    assert!(numbers.iter().all(|&n| stored(&store, n).unwrap() == "c".repeat(100_000)));
}

#[test]
fn a_log_left_by_a_crash_is_copied_once_the_store_is_idle() {
    let dir = tempfile::tempdir().unwrap();
    let manual = Clock::manual(0);
    let options = StoreOptions::new(manual.clock());
    let store = SharedStore::open(StoreLocation::Folder(dir.path().into()), options).unwrap();

    manual.advance(Duration::from_secs(1));

    until("the checkpoint", || store.stats().checkpoints == 1);
}
