//! One-shots, limits, and the wake-up of `run`.

use super::*;
use crate::store::{InvalidRow, StoredSchedules};

#[test]
fn one_shots_are_listed_by_deadline_and_cancelled_once() {
    let mut desk = Desk::new();
    let later = desk.at(T + 10_000, "later").unwrap();
    let sooner = desk.at(T + 5_000, "sooner").unwrap();

    let list = desk.schedules.list().unwrap();
    assert_eq!(list.iter().map(|event| event.id.as_str()).collect::<Vec<_>>(), [&sooner, &later]);
    assert_eq!(desk.schedules.get(&sooner).unwrap().as_ref(), Some(&list[0]));
    assert_eq!((list[0].run_at, &list[0].args[..]), (T + 5_000, &b"args"[..]));
    assert_eq!(desk.schedules.next_alarm(), Some(T + 5_000));

    let cancelled = desk.schedules.cancel(&sooner).unwrap();
    assert!(desk.write(cancelled));
    assert_eq!(desk.schedules.cancel(&sooner).unwrap(), (false, Vec::new()));
    assert_eq!(desk.schedules.get(&sooner).unwrap(), None);
    assert_eq!(desk.schedules.next_alarm(), Some(T + 10_000));
    desk.crash();
    assert_eq!(desk.schedules.list().unwrap().len(), 1);
}

#[test]
fn a_job_is_no_one_shot_and_the_other_way_round() {
    let mut desk = Desk::new();
    desk.every(every("beat", 5_000, "tick")).unwrap();
    let id = desk.at(T + 1, "once").unwrap();

    assert_eq!(desk.schedules.cancel("cron:beat").unwrap(), (false, Vec::new()));
    assert_eq!(desk.schedules.get("cron:beat").unwrap(), None);
    assert_eq!(desk.schedules.cron_get(&id).unwrap(), None);
    assert_eq!(desk.schedules.list().unwrap().len(), 1);
    assert_eq!(desk.schedules.cron_list().unwrap().len(), 1);
}

#[test]
fn a_one_shot_is_gone_before_it_runs_and_leaves_nothing_when_it_ends() {
    let mut desk = Desk::new();
    let id = desk.at(T + 5_000, "ring").unwrap();
    assert!(desk.take(T + 4_999).is_empty());

    let taken = desk.take_one(T + 5_003);

    assert_eq!((taken.action.as_str(), &taken.args[..]), ("ring", &b"args"[..]));
    let fire = FireInfo {
        kind: FireKind::At,
        id,
        name: None,
        scheduled_at: T + 5_000,
        fired_at: T + 5_003,
        attempt: 1,
    };
    assert_eq!(taken.fire, fire);
    assert!(desk.disk.pending.is_empty() && desk.schedules.list().unwrap().is_empty());
    assert!(desk.take(T + 10_000).is_empty());
    assert_eq!(desk.schedules.next_alarm(), None);

    desk.finish(taken.run, failed());
    assert!(desk.disk.fires.is_empty());
}

#[test]
fn all_that_is_due_is_taken_at_once_by_deadline_and_then_id() {
    let mut desk = Desk::new();
    for n in 0..129 {
        desk.at(T + n % 3, "ring").unwrap();
    }

    let taken = desk.take(T + 10);

    let order: Vec<_> = taken.iter().map(|one| (one.fire.scheduled_at, &one.fire.id)).collect();
    assert_eq!(taken.len(), 129);
    assert!(order.is_sorted());
    assert!(desk.disk.pending.is_empty() && desk.take(T + 20).is_empty());
}

#[test]
fn a_one_shot_that_never_ended_is_found_dead_and_does_not_run_again() {
    let mut desk = Desk::new();
    let id = desk.at(T, "ring").unwrap();
    desk.take_one(T);

    desk.now = T + 7;
    desk.crash();

    assert!(desk.take(T + 100_000).is_empty());
    let dead = desk.schedules.dead().unwrap();
    assert_eq!((dead[0].id.as_str(), dead[0].died_at, dead[0].attempts), (id.as_str(), T + 7, 1));
    assert_eq!(
        (dead[0].error.group.as_str(), dead[0].error.code.as_str()),
        ("schedule", "interrupted")
    );
    assert_eq!(dead.len(), 1);
}

#[test]
fn what_is_due_stays_while_taking_is_suspended() {
    let mut desk = Desk::new();
    desk.at(T, "ring").unwrap();
    desk.schedules.suspend();

    assert!(desk.take(T + 1).is_empty());
    desk.at(T + 2, "cleanup").unwrap();
    desk.crash();

    assert_eq!(desk.take(T + 2).len(), 2);
}

#[test]
fn a_key_stands_for_one_one_shot_until_that_is_finished() {
    let mut desk = Desk::new();
    let keyed = |trigger_at| OneShot { trigger_at, key: Some("mail".to_owned()), ..shot("ring") };
    let first = desk.shot(keyed(T + 5)).unwrap();

    assert_eq!(desk.shot(keyed(T + 9)).unwrap(), first);
    desk.crash();
    assert_eq!(desk.shot(keyed(T + 9)).unwrap(), first);
    assert_eq!(desk.schedules.list().unwrap()[0].run_at, T + 5);
    let taken = desk.take_one(T + 5);
    assert_eq!(desk.shot(keyed(T + 9)).unwrap(), first, "it runs");
    desk.finish(taken.run, Ok(()));

    let second = desk.shot(keyed(T + 9)).unwrap();
    assert_ne!(second, first);
    let cancelled = desk.schedules.cancel(&second).unwrap();
    assert!(desk.write(cancelled));
    assert_ne!(desk.shot(keyed(T + 9)).unwrap(), second);
    let long = OneShot { key: Some("k".repeat(129)), ..shot("ring") };
    assert!(matches!(desk.shot(long), Err(ScheduleError::InvalidKey { .. })));
}

#[test]
fn the_limit_holds_for_what_is_new_only() {
    let mut desk = Desk::of(Disk::default(), 1);
    desk.every(every("beat", 5_000, "tick")).unwrap();
    let full = ScheduleError::MaxSchedulesExceeded { maximum: 1 };

    assert_eq!(desk.at(T, "ring"), Err(full.clone()));
    assert_eq!(desk.cron(cron("other", "* * * * *")), Err(full.clone()));
    desk.every(every("beat", 6_000, "tick")).unwrap();
    let deleted = desk.schedules.cron_delete("beat").unwrap();
    assert!(desk.write(deleted));
    desk.at(T, "ring").unwrap();

    desk.maximum = 0;
    desk.crash();
    assert_eq!(desk.schedules.list().unwrap().len(), 1);
    let none = ScheduleError::MaxSchedulesExceeded { maximum: 0 };
    assert_eq!(desk.at(T, "ring"), Err(none));
}

#[test]
fn what_was_taken_frees_its_place() {
    let mut desk = Desk::of(Disk::default(), 1);
    desk.at(T, "ring").unwrap();

    desk.take_one(T);

    assert!(desk.at(T + 1, "ring").is_ok());
}

#[test]
fn what_is_due_beyond_all_moments_needs_no_alarm() {
    let mut desk = Desk::new();
    desk.at(i64::MAX, "never").unwrap();

    assert_eq!(desk.schedules.next_alarm(), None);
    assert!(desk.take(i64::MAX).is_empty());
    assert_eq!(desk.schedules.list().unwrap()[0].run_at, limits::MAX_MOMENT_MS);
}

#[test]
fn a_row_that_breaks_its_rules_fails_every_call_and_nothing_is_taken() {
    let row = InvalidRow { schedule_id: "x".to_owned(), reason: "unknown kind 9".to_owned() };
    let stored = StoredSchedules { invalid: Some(row), ..Desk::new().disk.stored() };
    let (mut schedules, ops) = Schedules::load(stored, 10, T);
    let ids = IdSource::seeded(1);
    let code = |error: ScheduleError| Error::from(error).code.to_string();

    assert_eq!(ops, []);
    assert_eq!(code(schedules.list().unwrap_err()), "invalid_schedule_row");
    assert_eq!(code(schedules.at(shot("ring"), &ids).unwrap_err()), "invalid_schedule_row");
    assert_eq!(code(schedules.cron_delete("x").unwrap_err()), "invalid_schedule_row");
    assert_eq!(schedules.take_due(T, &ids), (Vec::new(), Vec::new()));
}

#[test]
fn the_wake_up_of_run_is_consumed_once_and_restored_unless_it_was_set_again() {
    let mut desk = Desk::new();
    let set = desk.schedules.set_run_wake(Some(T + 5));
    desk.write(set);
    assert_eq!(desk.schedules.next_alarm(), Some(T + 5));
    assert_eq!(desk.schedules.consume_run_wake(T + 4), (None, Vec::new()));
    desk.crash();

    let consumed = desk.schedules.consume_run_wake(T + 5);
    let consumed = desk.write(consumed).unwrap();
    assert_eq!((desk.disk.run_wake_at, desk.schedules.next_alarm()), (None, None));

    let restored = desk.schedules.restore_run_wake(consumed);
    assert!(desk.write(restored));
    assert_eq!(desk.disk.run_wake_at, Some(T + 5));
    assert_eq!(desk.schedules.restore_run_wake(consumed), (false, Vec::new()));
    let consumed = desk.schedules.consume_run_wake(T + 5);
    let consumed = desk.write(consumed).unwrap();
    let cleared = desk.schedules.set_run_wake(None);
    desk.write(cleared);
    assert_eq!(desk.schedules.restore_run_wake(consumed), (false, Vec::new()));
}

#[test]
fn each_change_raises_the_revision_and_nothing_else_does() {
    let mut desk = Desk::new();
    desk.every(every("beat", 5_000, "tick")).unwrap();
    assert_eq!(desk.schedules.revision(), 1);
    let taken = desk.take_one(T + 5_000);
    assert_eq!(desk.schedules.revision(), 2);
    desk.finish(taken.run, Ok(()));
    assert_eq!(desk.schedules.revision(), 3);
    let deleted = desk.schedules.cron_delete("beat").unwrap();
    desk.write(deleted);
    assert_eq!(desk.schedules.revision(), 4);

    desk.finish(taken.run, Ok(()));
    desk.take(T + 9_000);
    assert_eq!(desk.schedules.cron_delete("beat").unwrap(), (false, Vec::new()));
    assert_eq!(desk.schedules.revision(), 4);
}
