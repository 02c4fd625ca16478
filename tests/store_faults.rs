//! Group commit when something certainly fails: who is told what, and what is
//! stored afterwards.

#![cfg(feature = "faults")]
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/store_bench.rs"]
mod bench;
#[path = "support/store.rs"]
mod support;

use bench::*;
use greenroom::store::faults::CommitFault;
use greenroom::store::{StoreError, StoreLimits, WriteBatch};
use rusqlite::Connection;
use support::*;

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
fn a_failure_that_ends_the_generation_takes_what_it_has_queued_with_it() {
    let bench = Bench::new(1);
    let (number, generation) = bench.actors[0];
    let held = bench.store.hold_writer();
    let ending =
        |bytes: &'static str| WriteBatch { fails_generation: true, ..state(generation, bytes) };
    let first = send(&bench.store, number, ending("lost"));
    let second = send(&bench.store, number, ending("lost as well"));
    // Of the group, and of the first batch in its replay.
    bench.faults.fail_commits(2, CommitFault::Full);

    drop(held);

    assert!(matches!(first.wait(), Err(StoreError::Full { .. })));
    assert_eq!(second.wait(), Err(StoreError::Stale));
    assert_eq!(bench.after_a_crash(0).unwrap(), "first");
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
fn a_batch_that_ends_its_generation_and_is_refused_lets_none_behind_it_pass() {
    let limits = StoreLimits { queue_bytes: 10_000, ..StoreLimits::default() };
    let bench = Bench::with_limits(2, limits);
    let (number, generation) = bench.actors[0];
    let held = bench.store.hold_writer();
    let other = bench.send(1, vec![0; 8_000]);

    let fatal = WriteBatch { fails_generation: true, ..state(generation, vec![0; 8_000]) };
    let refused = send(&bench.store, number, fatal).wait();
    let behind = bench.send(0, "behind");
    drop(held);

    assert!(matches!(refused, Err(StoreError::Overloaded { .. })), "{refused:?}");
    assert_eq!(behind.wait(), Err(StoreError::Stale));
    other.wait().unwrap();
    assert_eq!(bench.stored(0), "first");
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
    let empty = |generation| WriteBatch {
        generation,
        ops: Vec::new(),
        alarm: None,
        fails_generation: false,
    };

    assert_eq!(send(&bench.store, number, empty(generation)).wait(), Ok(()));
    bench.store.revoke(number, generation);
    assert_eq!(send(&bench.store, number, empty(generation)).wait(), Err(StoreError::Stale));
}
