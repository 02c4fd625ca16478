//! An actor's file when something fails: who is told what, and what is stored afterwards.

#![cfg(feature = "faults")]
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/files.rs"]
mod files;
#[path = "support/store.rs"]
mod support;

use files::*;
use greenroom::store::faults::CommitFault;
use greenroom::store::{Place, PromotionStep, StoreError, WriteBatch};
use support::*;

#[test]
fn nobody_is_answered_before_the_sync() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    bench.faults.hold_syncs(true);

    let sent = bench.send(0, "a");
    // The reading comes after the commit.
    assert_eq!(bench.state(0).unwrap(), "a");
    assert!(sent.is_unanswered());
    bench.faults.hold_syncs(false);

    sent.wait().unwrap();
}

#[test]
fn a_reader_can_wait_for_what_it_has_seen() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    bench.faults.hold_syncs(true);
    let sent = bench.send(0, "a");
    assert_eq!(bench.state(0).unwrap(), "a");
    let file = bench.file(0);

    let mut durable = tokio_test::task::spawn(file.durable(file.begun()));
    assert!(durable.poll().is_pending());
    bench.faults.hold_syncs(false);

    wait(durable.into_inner()).unwrap();
    sent.wait().unwrap();
    wait(file.durable(file.begun())).unwrap();
}

#[test]
fn a_sync_that_failed_is_not_tried_again_and_the_file_is_gone() {
    let bench = Files::new(2);
    bench.promote(0).unwrap();
    bench.promote(1).unwrap();
    bench.save(0, "before").unwrap();
    let generation = bench.actors[0].1;
    bench.faults.fail_syncs(1);

    let failed = bench.save(0, "a");

    assert!(matches!(failed, Err(StoreError::OutcomeUnknown { .. })), "{failed:?}");
    let later = bench.save(0, "b");
    assert!(matches!(later, Err(StoreError::Down { .. })), "{later:?}");
    assert!(matches!(wait(bench.actor(0).load()), Err(StoreError::Down { .. })));
    assert!(!bench.store.revoke(bench.actors[0].0, generation), "its generation has ended");
    until("the file closes", || bench.store.file_stats().open == 1);
    bench.save(1, "goes on").unwrap();

    let bench = bench.reopen();
    let state = bench.state(0).unwrap();
    assert!(state == "before" || state == "a", "{state:?}");
    bench.save(0, "again").unwrap();
}

#[test]
fn everybody_who_waited_for_a_sync_that_failed_is_told() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    bench.faults.hold_syncs(true);
    let sent: Vec<_> = (0..10).map(|n| bench.send(0, format!("{n}"))).collect();
    assert_eq!(bench.state(0).unwrap(), "9");
    let file = bench.file(0);
    let seen = file.begun();
    bench.faults.fail_syncs(1);
    bench.faults.hold_syncs(false);

    for sent in sent {
        assert!(matches!(sent.wait(), Err(StoreError::OutcomeUnknown { .. })));
    }
    assert!(matches!(wait(file.durable(seen)), Err(StoreError::OutcomeUnknown { .. })));
}

#[test]
fn a_turn_that_ends_on_a_file_that_is_gone_is_told() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    bench.faults.hold_syncs(true);
    let sent = bench.send(0, "a");
    assert_eq!(bench.state(0).unwrap(), "a");
    let turn = bench.turn(0);
    turn.begin().unwrap();
    bench.faults.fail_syncs(1);
    bench.faults.hold_syncs(false);
    assert!(matches!(sent.wait(), Err(StoreError::OutcomeUnknown { .. })));

    let ended = bench.commit_turn(0, turn, "b").wait();

    assert!(matches!(ended, Err(StoreError::Down { .. })), "{ended:?}");
    until("the file closes", || bench.store.file_stats().open == 0);
}

#[test]
fn a_commit_that_certainly_failed_changes_nothing_and_the_file_goes_on() {
    for fault in [CommitFault::Full, CommitFault::Busy] {
        let bench = Files::new(1);
        bench.promote(0).unwrap();
        bench.save(0, "before").unwrap();
        bench.faults.fail_commit(fault);

        let failed = bench.save(0, "a");

        match fault {
            CommitFault::Full => assert!(matches!(failed, Err(StoreError::Full { .. }))),
            _ => assert!(matches!(failed, Err(StoreError::Busy { .. }))),
        }
        assert_eq!(bench.state(0).unwrap(), "before");
        bench.save(0, "b").unwrap();
        assert_eq!(bench.reopen().state(0).unwrap(), "b");
    }
}

#[test]
fn a_turn_that_breaks_a_deferred_foreign_key_certainly_failed_and_the_file_goes_on() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    let turn = bench.turn(0);
    turn.execute("PRAGMA foreign_keys=ON").unwrap();
    turn.begin().unwrap();
    turn.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)").unwrap();
    turn.execute("CREATE TABLE child (of REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
        .unwrap();
    bench.commit_turn(0, turn, "made").wait().unwrap();

    // Twice: the second commit in doubt would end the file.
    for _ in 0..2 {
        let turn = bench.turn(0);
        turn.begin().unwrap();
        turn.execute("INSERT INTO child VALUES (7)").unwrap();

        let failed = bench.commit_turn(0, turn, "orphan").wait();

        let reason = "FOREIGN KEY constraint failed".to_owned();
        assert_eq!(failed, Err(StoreError::TurnLost { reason }));
    }
    let turn = bench.turn(0);
    assert_eq!(turn.number("SELECT count(*) FROM child"), Ok(0));
    bench.commit_turn(0, turn, "next").wait().unwrap();
    assert_eq!(bench.state(0).unwrap(), "next");
}

#[test]
fn a_batch_that_ends_its_generation_by_failing_lets_none_behind_it_pass() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    bench.save(0, "before").unwrap();
    let (number, generation) = bench.actors[0];
    bench.faults.fail_commit(CommitFault::Full);
    let turn = bench.turn(0);
    let fatal = WriteBatch { fails_generation: true, ..state(generation, "a") };
    let sent = [send(&bench.store, number, fatal), bench.send(0, "b")];
    drop(turn);

    let [first, second] = sent.map(Pending::wait);

    assert!(matches!(first, Err(StoreError::Full { .. })));
    assert_eq!(second, Err(StoreError::Stale));
    assert_eq!(bench.state(0).unwrap(), "before");
}

#[test]
fn a_batch_that_ends_its_generation_and_finds_no_file_lets_none_behind_it_pass() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    bench.save(0, "before").unwrap();
    wait(bench.actor(0).rest()).unwrap();
    until("the file closes", || bench.store.file_stats().open == 0);
    let (number, generation) = bench.actors[0];
    let fatal = WriteBatch { fails_generation: true, ..state(generation, "a") };
    let path = bench.file(0).path();
    let aside = format!("{path}.aside");

    std::fs::rename(&path, &aside).unwrap();
    let failed = send(&bench.store, number, fatal).wait();
    std::fs::rename(&aside, &path).unwrap();

    assert!(matches!(failed, Err(StoreError::FileMissing { .. })), "{failed:?}");
    assert_eq!(bench.save(0, "b"), Err(StoreError::Stale));
    assert_eq!(bench.state(0).unwrap(), "before");
}

#[test]
fn after_a_commit_of_unknown_outcome_recovery_decides() {
    for kept in [true, false] {
        let mut bench = Files::new(2);
        bench.promote(0).unwrap();
        bench.promote(1).unwrap();
        bench.save(0, "before").unwrap();
        bench.faults.fail_commit(CommitFault::SyncFailed { kept });
        let turn = bench.turn(0);
        let sent = [bench.send(0, "a"), bench.send(0, "b")];
        drop(turn);

        for answer in sent.map(Pending::wait) {
            assert!(matches!(answer, Err(StoreError::OutcomeUnknown { .. })), "{answer:?}");
        }
        assert_eq!(bench.save(0, "late"), Err(StoreError::Stale), "the generation has ended");
        assert_eq!(bench.state(0).unwrap(), if kept { "a" } else { "before" });
        bench.actors[0].1 = bench.store.open_generation(bench.actors[0].0);
        bench.save(0, "again").unwrap();
        bench.save(1, "untroubled").unwrap();
        assert_eq!(bench.reopen().state(0).unwrap(), "again");
    }
}

#[test]
fn a_second_commit_of_unknown_outcome_in_a_row_ends_the_file() {
    let mut bench = Files::new(1);
    bench.promote(0).unwrap();
    let fault = CommitFault::SyncFailed { kept: false };
    bench.faults.fail_commit(fault);
    bench.save(0, "a").unwrap_err();
    bench.actors[0].1 = bench.store.open_generation(bench.actors[0].0);
    bench.faults.fail_commit(fault);
    bench.save(0, "b").unwrap_err();

    bench.actors[0].1 = bench.store.open_generation(bench.actors[0].0);
    let later = bench.save(0, "c");

    assert!(matches!(later, Err(StoreError::Down { .. })), "{later:?}");
}

#[test]
fn a_promotion_that_failed_leaves_the_actor_where_it_was() {
    use PromotionStep::{Copied, Created, Drained, Synced, Written};
    for step in [Written, Created, Drained, Copied, Synced] {
        let bench = Files::new(1);
        bench.save(0, "before").unwrap();
        bench.faults.fail_promotion(step);
        let (number, generation) = bench.actors[0];

        let promotion = bench.store.promote(number, generation);
        let sent: Vec<_> = (0..50).map(|n| bench.send(0, format!("{n}"))).collect();
        let failed = wait(promotion);

        assert!(matches!(failed, Err(StoreError::Io { .. })), "{step:?}: {failed:?}");
        sent.into_iter().for_each(|sent| sent.wait().unwrap());
        assert_eq!(bench.state(0).unwrap(), "49", "{step:?}");
        assert_eq!(bench.place(0), Place::Shared);
        until("the file is deleted", || bench.files_of(0).is_empty());
        bench.promote(0).unwrap();
        assert_eq!(bench.state(0).unwrap(), "49");
    }
}

#[test]
fn a_switch_in_doubt_is_decided_by_the_directory() {
    for kept in [true, false] {
        let mut bench = Doubt::new();
        bench.fail_switch(kept);

        let failed = bench.files.promote(0);

        assert!(matches!(failed, Err(StoreError::OutcomeUnknown { .. })), "{failed:?}");
        let files = &mut bench.files;
        let number = files.actors[0].0;
        files.actors[0].1 = files.store.open_generation(number);
        let place = if kept { Place::File { n: 1 } } else { Place::Shared };
        assert_eq!(files.place(0), place);
        until("the files are in order", || files.files_of(0).is_empty() != kept);
        assert_eq!(files.state(0).unwrap(), "before");
        files.save(0, "after").unwrap();
        assert_eq!(files.state(0).unwrap(), "after");
    }
}

/// A store whose shared database fails, too.
struct Doubt {
    files: Files,
    store_faults: greenroom::store::Faults,
}

impl Doubt {
    fn new() -> Self {
        let store_faults = greenroom::store::Faults::default();
        let files = Files::with_faults(1, store_faults.clone());
        files.save(0, "before").unwrap();
        Self { files, store_faults }
    }

    fn fail_switch(&self, kept: bool) {
        self.store_faults.fail_commits(1, CommitFault::SyncFailed { kept });
    }
}

#[test]
fn the_directory_hears_of_an_alarm_when_the_actor_sleeps() {
    let bench = Files::new(1);
    bench.arm(0, Some(100)).unwrap();
    bench.promote(0).unwrap();
    bench.arm(0, Some(50)).unwrap();
    assert_eq!(bench.alarm(0), Some(100));

    wait(bench.actor(0).rest()).unwrap();

    assert_eq!(bench.alarm(0), Some(50));
    bench.arm(0, None).unwrap();
    wait(bench.actor(0).rest()).unwrap();
    assert_eq!(bench.alarm(0), None);
}

#[test]
fn an_alarm_that_the_directory_cannot_hear_of_is_not_committed() {
    let doubt = Doubt::new();
    let bench = &doubt.files;
    bench.promote(0).unwrap();
    bench.arm(0, Some(1)).unwrap();
    wait(bench.actor(0).rest()).unwrap();
    doubt.store_faults.fail_commits(1, CommitFault::Full);

    let refused = bench.arm(0, Some(2));

    assert!(matches!(refused, Err(StoreError::Full { .. })), "{refused:?}");
    wait(bench.actor(0).rest()).unwrap();
    assert_eq!(bench.alarm(0), Some(1));
    bench.arm(0, Some(3)).unwrap();
    wait(bench.actor(0).rest()).unwrap();
    assert_eq!(bench.alarm(0), Some(3));
}

#[test]
fn a_turn_may_change_the_alarm_and_what_comes_next_waits_for_it() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    for (n, at) in (0..20).zip(1..) {
        let turn = bench.turn(0);
        turn.begin().unwrap();
        let batch = WriteBatch { alarm: Some(Some(at)), ..state(bench.actors[0].1, "turn") };
        let ended = end_turn(turn, batch);
        let sent = bench.send(0, "after");
        let next = bench.turn(0);
        assert_eq!(next.number("SELECT alarm FROM _gr_file"), Ok(at));
        drop(next);

        ended.wait().unwrap();
        sent.wait().unwrap();
        assert_eq!(bench.state(0).unwrap(), "after");
        if n % 2 == 0 {
            wait(bench.actor(0).rest()).unwrap();
            assert_eq!(bench.alarm(0), Some(at));
        }
    }
}

#[test]
fn a_turn_that_comes_right_after_an_alarm_waits_for_it() {
    for _ in 0..20 {
        let bench = Files::new(1);
        bench.promote(0).unwrap();
        let batch = WriteBatch { alarm: Some(Some(7)), ..bench.batch(0, Vec::new()) };
        let sent = send(&bench.store, bench.actors[0].0, batch);

        let turn = bench.turn(0);

        assert_eq!(turn.number("SELECT alarm FROM _gr_file"), Ok(7));
        drop(turn);
        sent.wait().unwrap();
    }
}
