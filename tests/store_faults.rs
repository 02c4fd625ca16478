//! Group commit under faults: who is told what, and what is stored afterwards.

#![cfg(feature = "faults")]
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/store.rs"]
mod support;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use greenroom::ids::Generation;
use greenroom::store::faults::{CommitFault, Faults};
use greenroom::store::{
    ActorNumber, SharedStore, StoreError, StoreLimits, StoreLocation, StoreObserver, WriteBatch,
};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension};
use support::*;

/// A store in a folder, the faults that it will meet, and a few live actors.
struct Bench {
    dir: tempfile::TempDir,
    store: Arc<SharedStore>,
    faults: Faults,
    told: Arc<Told>,
    actors: Vec<(ActorNumber, Generation)>,
}

/// What the observer was told, in order.
#[derive(Default)]
struct Told {
    words: Mutex<Vec<String>>,
    revoked: Mutex<Vec<(ActorNumber, Generation)>>,
    /// Called when the store has stopped and is not reopened yet.
    on_stop: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl StoreObserver for Told {
    fn failed_stop(&self, revoked: &[(ActorNumber, Generation)]) {
        self.words.lock().push("stopped".into());
        self.revoked.lock().extend(revoked);
        let on_stop = self.on_stop.lock().take();
        if let Some(on_stop) = on_stop {
            on_stop();
        }
    }

    fn reopened(&self) {
        self.words.lock().push("reopened".into());
    }

    fn down(&self, error: &StoreError) {
        self.words.lock().push(format!("down: {error}"));
    }
}

impl Bench {
    fn new(actors: u64) -> Self {
        Self::with_limits(actors, StoreLimits::default())
    }

    fn with_limits(actors: u64, limits: StoreLimits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let told = Arc::new(Told::default());
        let mut options = options();
        options.faults = faults.clone();
        options.observer = Some(told.clone());
        options.limits = limits;
        let store = SharedStore::open(StoreLocation::Folder(dir.path().into()), options).unwrap();
        let actors = (0..actors).map(|n| {
            let number = make(&store, n).number;
            let generation = store.open_generation(number);
            save(&store, number, generation, "first").unwrap();
            (number, generation)
        });
        let actors = actors.collect();
        Self { dir, store, faults, told, actors }
    }

    /// Takes a state of the n-th actor.
    fn send(&self, n: usize, bytes: impl Into<Bytes>) -> Pending {
        let (number, generation) = self.actors[n];
        send(&self.store, number, state(generation, bytes))
    }

    fn save(&self, n: usize, bytes: impl Into<Bytes>) -> Result<(), StoreError> {
        self.send(n, bytes).wait()
    }

    fn stored(&self, n: usize) -> Bytes {
        stored(&self.store, self.actors[n].0).unwrap()
    }

    /// One group of the given states, one for each of the first actors.
    fn group(&self, states: &[&'static str]) -> Vec<Result<(), StoreError>> {
        let held = self.store.hold_writer();
        let sent: Vec<_> = (0..).zip(states).map(|(n, &state)| self.send(n, state)).collect();
        drop(held);
        sent.into_iter().map(Pending::wait).collect()
    }

    /// What a crash at this moment would leave of the n-th actor.
    fn after_a_crash(&self, n: usize) -> Option<Bytes> {
        state_in_copy(self.dir.path(), self.actors[n].0)
    }
}

/// Copies database and log and lets a fresh connection recover them. Another
/// process copies: closing a descriptor of the file would drop SQLite's locks.
fn state_in_copy(folder: &Path, number: ActorNumber) -> Option<Bytes> {
    let copy = tempfile::tempdir().unwrap();
    for file in ["actors.db", "actors.db-wal"] {
        if folder.join(file).exists() {
            let copied = Command::new("cp").arg(folder.join(file)).arg(copy.path()).status();
            assert!(copied.unwrap().success());
        }
    }
    let sqlite = Connection::open(copy.path().join("actors.db")).unwrap();
    let sound: String = sqlite.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    sqlite
        .query_row("SELECT state FROM state WHERE num = ?1", [number.0], |row| {
            row.get::<_, Vec<u8>>(0)
        })
        .optional()
        .unwrap()
        .map(Bytes::from)
}

fn is_unknown(result: &Result<(), StoreError>) -> bool {
    matches!(result, Err(StoreError::OutcomeUnknown { .. }))
}

fn is_full(result: &Result<(), StoreError>) -> bool {
    matches!(result, Err(StoreError::Full { .. }))
}

#[test]
fn batches_that_wait_together_share_one_commit() {
    let bench = Bench::new(8);
    let before = bench.store.stats();

    let answers = bench.group(&["a"; 8]);

    assert_eq!(answers, vec![Ok(()); 8]);
    let after = bench.store.stats();
    assert_eq!(after.commits - before.commits, 1);
    assert_eq!(after.batches - before.batches, 8);
    assert_eq!(after.largest_group, 8);
}

#[test]
fn nobody_is_answered_while_the_commit_has_not_happened() {
    let bench = Bench::new(2);
    let held = bench.store.hold_writer();
    let sent = [bench.send(0, "a"), bench.send(1, "b")];

    assert!(sent.iter().all(Pending::is_unanswered));
    assert_eq!(bench.after_a_crash(0).unwrap(), "first");

    drop(held);
    sent.into_iter().for_each(|sent| sent.wait().unwrap());
    assert_eq!(bench.after_a_crash(0).unwrap(), "a");
    assert_eq!(bench.after_a_crash(1).unwrap(), "b");
}

#[test]
fn a_group_holds_no_more_than_its_limit() {
    let limits = StoreLimits { group_batches: 3, ..StoreLimits::default() };
    let bench = Bench::with_limits(7, limits);
    let before = bench.store.stats().commits;

    bench.group(&["a"; 7]).into_iter().for_each(Result::unwrap);

    assert_eq!(bench.store.stats().commits - before, 3);
    assert_eq!(bench.store.stats().largest_group, 3);
}

#[test]
fn a_batch_that_fails_alone_takes_no_neighbour_with_it() {
    let bench = Bench::new(2);
    let before = bench.store.stats().commits;
    let held = bench.store.hold_writer();

    let first = bench.send(0, "a");
    let taken_id = bench.store.create(new_actor(0, &["other"]));
    let second = bench.send(1, "b");
    drop(held);

    first.wait().unwrap();
    second.wait().unwrap();
    assert!(matches!(wait(taken_id), Err(StoreError::Sqlite { .. })));
    assert_eq!((bench.stored(0), bench.stored(1)), ("a".into(), "b".into()));
    assert_eq!(bench.store.stats().commits - before, 1);
    assert_eq!(bench.store.stats().replays, 0);
}

#[test]
fn a_transaction_that_sqlite_threw_away_is_replayed_batch_by_batch() {
    for lost in 0..4 {
        let bench = Bench::new(4);
        bench.faults.lose_transaction_after(lost);

        let answers = bench.group(&["a", "b", "c", "d"]);

        assert_eq!(answers, vec![Ok(()); 4], "lost at {lost}");
        for (n, state) in ["a", "b", "c", "d"].into_iter().enumerate() {
            assert_eq!(bench.stored(n), state);
            assert_eq!(bench.after_a_crash(n).unwrap(), state);
        }
        assert_eq!(bench.store.stats().replays, 1);
    }
}

#[test]
fn a_batch_that_fails_again_in_its_replay_fails_alone() {
    for fault in [CommitFault::Full, CommitFault::Busy] {
        let bench = Bench::new(4);
        // The group's commit, and that of its first batch alone.
        bench.faults.fail_commits(2, fault);

        let answers = bench.group(&["a", "b", "c", "d"]);

        let path = bench.dir.path().join("actors.db").display().to_string();
        let error = match fault {
            CommitFault::Full => StoreError::Full { path },
            _ => StoreError::Busy { path },
        };
        assert_eq!(answers, [Err(error), Ok(()), Ok(()), Ok(())]);
        for (n, state) in ["first", "b", "c", "d"].into_iter().enumerate() {
            assert_eq!(
                (bench.stored(n), bench.after_a_crash(n).unwrap()),
                (state.into(), state.into())
            );
        }
    }
}

#[test]
fn a_commit_without_room_fails_for_certain_and_the_next_one_works() {
    let bench = Bench::new(1);
    bench.faults.fail_commits(1, CommitFault::Full);

    assert!(is_full(&bench.save(0, "a")));
    assert_eq!((bench.stored(0), bench.after_a_crash(0)), ("first".into(), Some("first".into())));

    bench.save(0, "b").unwrap();
    assert_eq!(bench.after_a_crash(0).unwrap(), "b");
    assert!(bench.told.words.lock().is_empty());
}

#[test]
fn while_there_is_no_room_small_batches_pass_beside_one_that_is_too_large() {
    let bench = Bench::new(4);
    bench.faults.limit_pages(200);
    let held = bench.store.hold_writer();

    let large = bench.send(0, vec![1; 5 << 20]);
    let small = [bench.send(1, "b"), bench.send(2, "c"), bench.send(3, "d")];
    drop(held);

    assert!(is_full(&large.wait()));
    small.into_iter().for_each(|sent| sent.wait().unwrap());
    assert_eq!(bench.stored(0), "first");
    assert_eq!(bench.after_a_crash(3).unwrap(), "d");

    bench.faults.limit_pages(100_000);
    bench.save(0, vec![1; 5 << 20]).unwrap();
    assert_eq!(bench.stored(0).len(), 5 << 20);
}

#[test]
fn a_real_lack_of_room_in_a_group_fails_the_large_batch_only() {
    // Both batches fit into one group, so the group itself finds no room.
    let bench = Bench::new(4);
    bench.faults.limit_pages(200);
    let held = bench.store.hold_writer();

    let sent = [
        bench.send(1, "b"),
        bench.send(0, vec![1; 1 << 20]),
        bench.send(2, "c"),
        bench.send(3, "d"),
    ];
    drop(held);

    let [b, large, c, d] = sent.map(Pending::wait);
    assert_eq!((b, c, d), (Ok(()), Ok(()), Ok(())));
    assert!(is_full(&large));
    assert_eq!(bench.store.stats().replays, 1);
    for (n, state) in [(0, "first"), (1, "b"), (2, "c"), (3, "d")] {
        assert_eq!(bench.after_a_crash(n).unwrap(), state);
    }
}

#[test]
fn without_room_groups_are_single_batches_until_one_commits() {
    let bench = Bench::new(4);
    bench.faults.fail_commits(1, CommitFault::Full);
    let first = bench.save(0, "a");
    let before = bench.store.stats().commits;

    let answers = bench.group(&["e", "f", "g", "h"]);

    assert!(is_full(&first));
    assert_eq!(answers, vec![Ok(()); 4]);
    // One batch alone, and after its success the other three together.
    assert_eq!(bench.store.stats().commits - before, 2);
}

#[test]
fn after_a_commit_of_unknown_outcome_reads_agree_with_what_a_crash_would_leave() {
    for (fault, kept) in [
        (CommitFault::SyncFailed { kept: true }, true),
        (CommitFault::SyncFailed { kept: false }, false),
        (CommitFault::IndexCannotGrow { kept: true }, true),
        (CommitFault::IndexCannotGrow { kept: false }, false),
    ] {
        let bench = Bench::new(3);
        bench.faults.fail_commits(1, fault);

        let answers = bench.group(&["a", "b", "c"]);

        assert!(answers.iter().all(is_unknown), "{answers:?}");
        for (n, new) in ["a", "b", "c"].into_iter().enumerate() {
            let truth = if kept { new } else { "first" };
            assert_eq!(bench.stored(n), truth, "{fault:?}");
            assert_eq!(bench.after_a_crash(n).unwrap(), truth, "{fault:?}");
        }
        assert_eq!(*bench.told.words.lock(), ["stopped", "reopened"]);
        assert_eq!(bench.store.stats().fail_stops, 1);
    }
}

#[test]
fn a_fail_stop_answers_what_is_queued_and_ends_the_generations_that_wrote() {
    let limits = StoreLimits { group_batches: 1, ..StoreLimits::default() };
    let bench = Bench::with_limits(3, limits);
    let bystander = bench.actors[2];
    bench.faults.fail_commits(1, CommitFault::SyncFailed { kept: false });
    let held = bench.store.hold_writer();

    let in_doubt = bench.send(0, "a");
    let queued = bench.send(1, "b");
    let creation = bench.store.create(new_actor(9, &["nine"]));
    let destruction = bench.store.destroy(bench.actors[1].0);
    drop(held);

    assert!(is_unknown(&in_doubt.wait()));
    assert!(is_unknown(&queued.wait()));
    assert!(matches!(wait(creation), Err(StoreError::OutcomeUnknown { .. })));
    assert!(matches!(wait(destruction), Err(StoreError::OutcomeUnknown { .. })));
    assert_eq!(*bench.told.revoked.lock(), bench.actors[..2]);
    // The old generations are refused, new ones and those that waited for nothing work.
    assert_eq!(bench.save(0, "x"), Err(StoreError::Stale));
    assert_eq!(bench.save(1, "x"), Err(StoreError::Stale));
    bench.save(2, "y").unwrap();
    let next = bench.store.open_generation(bench.actors[0].0);
    assert!(next > bystander.1);
    save(&bench.store, bench.actors[0].0, next, "z").unwrap();
    assert_eq!(bench.stored(0), "z");
}

#[test]
fn an_actor_whose_destruction_is_in_doubt_is_written_by_nobody_until_it_is_opened_again() {
    for kept in [true, false] {
        let bench = Bench::new(1);
        let (number, generation) = bench.actors[0];
        bench.faults.fail_commits(1, CommitFault::SyncFailed { kept });

        let destruction = wait(bench.store.destroy(number));

        assert!(matches!(destruction, Err(StoreError::OutcomeUnknown { .. })));
        assert_eq!(*bench.told.revoked.lock(), [(number, generation)]);
        let gone = if kept { StoreError::NotFound } else { StoreError::Stale };
        assert_eq!(bench.save(0, "x"), Err(gone));
        let next = bench.store.open_generation(number);
        let saved = save(&bench.store, number, next, "x");
        assert_eq!(saved, if kept { Err(StoreError::NotFound) } else { Ok(()) });
    }
}

#[test]
fn while_the_store_is_stopped_nothing_is_read() {
    let bench = Bench::new(1);
    let (number, _) = bench.actors[0];
    let reading = Arc::new(Mutex::new(None));
    let (begun, store) = (Arc::clone(&reading), Arc::downgrade(&bench.store));
    *bench.told.on_stop.lock() = Some(Box::new(move || {
        let mut load = store.upgrade().unwrap().actor(number).load();
        assert!((&mut load).now_or_never().is_none());
        *begun.lock() = Some(load);
    }));
    bench.faults.fail_commits(1, CommitFault::SyncFailed { kept: true });

    assert!(is_unknown(&bench.save(0, "a")));

    until("the store has stopped", || reading.lock().is_some());
    let load = reading.lock().take().unwrap();
    assert_eq!(wait(load).unwrap().state.unwrap(), "a");
}

#[test]
fn writes_that_come_while_the_store_is_stopped_are_committed_after_it() {
    let bench = Bench::new(2);
    let (number, generation) = bench.actors[1];
    let sent = Arc::new(Mutex::new(None));
    let (begun, store) = (Arc::clone(&sent), Arc::downgrade(&bench.store));
    *bench.told.on_stop.lock() = Some(Box::new(move || {
        let store = store.upgrade().unwrap();
        *begun.lock() = Some(send(&store, number, state(generation, "b")));
    }));
    bench.faults.fail_commits(1, CommitFault::SyncFailed { kept: false });

    assert!(is_unknown(&bench.save(0, "a")));

    until("the store has stopped", || sent.lock().is_some());
    let sent = sent.lock().take().unwrap();
    // It came too late to be answered with the others, or was among them.
    let answer = sent.wait();
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(bench.stored(1), "b");
}

#[test]
fn an_unknown_outcome_within_a_replay_stops_the_store_too() {
    let bench = Bench::new(4);
    bench.faults.fail_commits(1, CommitFault::Full);
    bench.faults.fail_commits(1, CommitFault::SyncFailed { kept: true });

    let answers = bench.group(&["a", "b", "c", "d"]);

    assert!(answers.iter().all(is_unknown), "{answers:?}");
    for (n, truth) in ["a", "first", "first", "first"].into_iter().enumerate() {
        assert_eq!(
            (bench.stored(n), bench.after_a_crash(n).unwrap()),
            (truth.into(), truth.into())
        );
    }
}

#[test]
fn a_second_unknown_outcome_before_a_success_takes_the_store_down() {
    let bench = Bench::new(2);
    bench.faults.fail_commits(2, CommitFault::SyncFailed { kept: false });

    assert!(is_unknown(&bench.save(0, "a")));
    assert!(is_unknown(&bench.save(1, "b")));

    until("the store is down", || bench.told.words.lock().len() == 4);
    let refused = wait(bench.store.actor(bench.actors[0].0).load()).unwrap_err();
    let StoreError::Down { reason, .. } = &refused else { panic!("{refused}") };
    assert!(reason.contains("second"), "{reason}");
    let down = format!("down: {refused}");
    assert_eq!(*bench.told.words.lock(), ["stopped", "reopened", "stopped", down.as_str()]);
    assert_eq!(bench.save(1, "c"), Err(refused.clone()));
    assert_eq!(wait(bench.store.create(new_actor(9, &[]))), Err(refused));
    // Closing frees the folder, and what is there can be opened again.
    wait(bench.store.close());
    assert_eq!(bench.save(1, "c"), Err(StoreError::Closed));
    let store = open(bench.dir.path());
    assert_eq!(stored(&store, bench.actors[1].0).unwrap(), "first");
}

#[test]
fn unknown_outcomes_with_a_success_between_them_do_not_take_the_store_down() {
    let bench = Bench::new(3);

    for n in 0..3 {
        bench.faults.fail_commits(1, CommitFault::SyncFailed { kept: true });
        assert!(is_unknown(&bench.save(n, "a")));
        let next = bench.store.open_generation(bench.actors[n].0);
        save(&bench.store, bench.actors[n].0, next, "b").unwrap();
    }

    assert_eq!(bench.store.stats().fail_stops, 3);
}

#[test]
fn a_store_that_cannot_be_reopened_is_down_and_says_why() {
    let bench = Bench::new(1);
    bench.faults.fail_commits(1, CommitFault::SyncFailed { kept: true });
    bench.faults.fail_reopens(1);

    assert!(is_unknown(&bench.save(0, "a")));

    let refused = wait(bench.store.find_by_id(id(0))).unwrap_err();
    assert!(
        matches!(&refused, StoreError::Down { reason, .. } if reason.contains("reopened")),
        "{refused}"
    );
    wait(bench.store.close());
    let store = open(bench.dir.path());
    assert_eq!(stored(&store, bench.actors[0].0).unwrap(), "a");
}

#[test]
fn in_memory_an_unknown_outcome_is_what_the_connection_shows() {
    for (fault, truth) in [
        (CommitFault::SyncFailed { kept: true }, "a"),
        (CommitFault::SyncFailed { kept: false }, "first"),
    ] {
        let mut options = options();
        let faults = Faults::default();
        options.faults = faults.clone();
        let store = SharedStore::open(StoreLocation::Memory, options).unwrap();
        let number = make(&store, 1).number;
        let generation = store.open_generation(number);
        save(&store, number, generation, "first").unwrap();
        faults.fail_commits(1, fault);

        assert!(is_unknown(&save(&store, number, generation, "a")));

        assert_eq!(stored(&store, number).unwrap(), truth);
        let next = store.open_generation(number);
        save(&store, number, next, "b").unwrap();
        assert_eq!(stored(&store, number).unwrap(), "b");
    }
}

#[test]
fn what_a_generation_has_queued_is_refused_once_it_has_ended() {
    let bench = Bench::new(2);
    let (number, old) = bench.actors[0];
    let (revoked_number, revoked) = bench.actors[1];
    let held = bench.store.hold_writer();

    let queued = bench.send(0, "old");
    let of_revoked = bench.send(1, "old");
    let next = bench.store.open_generation(number);
    assert!(bench.store.revoke(revoked_number, revoked));
    let fresh = send(&bench.store, number, state(next, "new"));
    drop(held);

    assert_eq!(queued.wait(), Err(StoreError::Stale));
    assert_eq!(of_revoked.wait(), Err(StoreError::Stale));
    fresh.wait().unwrap();
    assert!(!bench.store.revoke(number, old));
    assert_eq!((bench.stored(0), bench.stored(1)), ("new".into(), "first".into()));
}

#[test]
fn within_a_group_nothing_is_written_to_an_actor_behind_its_destruction() {
    let bench = Bench::new(2);
    let held = bench.store.hold_writer();

    let before = bench.send(0, "before");
    let destruction = bench.store.destroy(bench.actors[0].0);
    let behind = bench.send(0, "behind");
    let neighbour = bench.send(1, "b");
    drop(held);

    before.wait().unwrap();
    assert_eq!(wait(destruction), Ok(true));
    assert_eq!(behind.wait(), Err(StoreError::NotFound));
    neighbour.wait().unwrap();
    assert_eq!(bench.after_a_crash(1).unwrap(), "b");
}

#[test]
fn creations_of_one_key_within_a_group_make_one_actor() {
    for fault in [None, Some(CommitFault::Full)] {
        let bench = Bench::new(0);
        bench.faults.fail_commits(fault.iter().count(), CommitFault::Full);
        let held = bench.store.hold_writer();

        let made: Vec<_> = (0..5).map(|n| bench.store.create(new_actor(n, &["same"]))).collect();
        drop(held);

        let made: Vec<_> = made.into_iter().map(|made| wait(made).unwrap()).collect();
        assert_eq!(made.iter().filter(|made| made.created).count(), 1);
        assert!(made.iter().all(|one| one.row == made[0].row));
    }
}

#[test]
fn what_would_weigh_too_much_is_refused_before_it_waits() {
    let limits = StoreLimits { queue_bytes: 10_000, ..StoreLimits::default() };
    let bench = Bench::with_limits(2, limits);
    let held = bench.store.hold_writer();

    let taken = bench.send(0, vec![0; 8_000]);
    let refused = bench.send(1, vec![0; 8_000]).wait();
    drop(held);

    let Err(StoreError::Overloaded { waiting_bytes, limit_bytes }) = refused else {
        panic!("{refused:?}")
    };
    assert!(waiting_bytes > 16_000 && limit_bytes == 10_000);
    taken.wait().unwrap();
    bench.save(1, vec![0; 8_000]).unwrap();
}

#[test]
fn a_store_that_is_held_commits_what_waits_when_it_is_closed() {
    let bench = Bench::new(1);
    let held = bench.store.hold_writer();
    let sent = bench.send(0, "a");

    let closed = bench.store.close();
    drop(held);
    wait(closed);

    sent.wait().unwrap();
    assert_eq!(bench.after_a_crash(0).unwrap(), "a");
}

#[test]
fn a_sweep_without_room_is_tried_again_after_the_next_commit() {
    let bench = Bench::new(2);
    let sqlite = Connection::open(bench.dir.path().join("actors.db")).unwrap();
    let garbage = || -> i64 {
        sqlite.query_row("SELECT count(*) FROM garbage", [], |row| row.get(0)).unwrap()
    };
    let number = bench.actors[0].0;
    let held = bench.store.hold_writer();
    let destruction = bench.store.destroy(number);
    drop(held);
    assert_eq!(wait(destruction), Ok(true));
    until("the first sweep", || garbage() == 0);

    // The commit of a destruction passes, that of the sweep behind it does not.
    bench.faults.lose_transaction_after(1);
    let other = bench.actors[1].0;
    assert_eq!(wait(bench.store.destroy(other)), Ok(true));
    until("a sweep that failed", || bench.store.stats().full == 1);
    assert_eq!(garbage(), 1);
    make(&bench.store, 7);

    until("the sweep", || garbage() == 0);
}

#[test]
fn an_empty_batch_is_answered_in_its_turn() {
    let bench = Bench::new(1);
    let (number, generation) = bench.actors[0];
    let empty = |generation| WriteBatch { generation, ops: Vec::new(), alarm: None };

    assert_eq!(send(&bench.store, number, empty(generation)).wait(), Ok(()));
    bench.store.revoke(number, generation);
    assert_eq!(send(&bench.store, number, empty(generation)).wait(), Err(StoreError::Stale));
}
