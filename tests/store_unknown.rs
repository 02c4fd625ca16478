//! Commits of unknown outcome: the store stops, reopens, and tells the truth.

#![cfg(feature = "faults")]
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/store_bench.rs"]
mod bench;
#[path = "support/store.rs"]
mod support;

use std::sync::Arc;

use bench::*;
use futures::FutureExt;
use greenroom::store::faults::{CommitFault, Faults};
use greenroom::store::{SharedStore, StoreError, StoreLimits, StoreLocation};
use parking_lot::Mutex;
use support::*;

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
fn a_success_within_a_replay_ends_the_doubt() {
    let bench = Bench::new(4);
    bench.faults.fail_commits(1, CommitFault::SyncFailed { kept: false });
    assert!(is_unknown(&bench.save(3, "x")));

    // The group fails for certain, its first batch passes alone, the second is in doubt.
    let held = bench.store.hold_writer();
    let sent = [bench.send(0, "a"), bench.send(1, "b"), bench.send(2, "c")];
    bench.faults.fail_commits(1, CommitFault::Full);
    bench.faults.pass_commits(1);
    bench.faults.fail_commits(1, CommitFault::SyncFailed { kept: true });
    drop(held);

    let [a, b, c] = sent.map(Pending::wait);
    a.unwrap();
    assert!(is_unknown(&b) && is_unknown(&c));
    assert_eq!((bench.stored(0), bench.stored(1)), ("a".into(), "b".into()));
    assert_eq!(*bench.told.words.lock(), ["stopped", "reopened", "stopped", "reopened"]);
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
