//! Retries and fires that were given up.

use super::*;
use crate::store::FireState;

fn retried(trigger_at: i64) -> OneShot {
    OneShot { trigger_at, retry: retry(3), ..shot("ring") }
}

#[test]
fn a_one_shot_is_tried_until_it_succeeds() {
    let mut desk = Desk::new();
    let id = desk.shot(retried(T)).unwrap();
    let first = desk.take_one(T);

    let finished = desk.finish(first.run, failed());
    assert_eq!(finished.retry_at, Some(T + 100));
    assert_eq!(desk.schedules.list().unwrap()[0].run_at, T + 100);
    assert_eq!(desk.schedules.next_alarm(), Some(T + 100));
    assert!(desk.take(T + 99).is_empty());
    let second = desk.take_one(T + 100);
    assert_eq!((second.fire.id.as_str(), second.fire.attempt), (id.as_str(), 2));
    assert_eq!((second.fire.scheduled_at, second.fire.fired_at), (T, T + 100));
    desk.finish(second.run, Ok(()));

    assert!(desk.disk.fires.is_empty() && desk.schedules.next_alarm().is_none());
}

#[test]
fn an_attempt_that_another_one_may_follow_lets_nobody_sleep_through_its_end() {
    let mut desk = Desk::new();
    desk.shot(OneShot { trigger_at: T, retry: retry(2), ..shot("ring") }).unwrap();
    let first = desk.take_one(T);
    assert_eq!((desk.schedules.next_alarm(), desk.schedules.wake_at()), (None, Some(T)));

    desk.finish(first.run, failed());
    assert_eq!(desk.schedules.wake_at(), Some(T + 100));
    let last = desk.take_one(T + 100);
    assert_eq!(desk.schedules.wake_at(), None, "nothing follows the last one");

    desk.finish(last.run, Ok(()));
    desk.shot(OneShot { trigger_at: T + 100, ..shot("ring") }).unwrap();
    desk.take_one(T + 100);
    assert_eq!(desk.schedules.wake_at(), None, "nor one that runs at most once");
}

#[test]
fn after_the_last_attempt_it_is_dead_and_can_be_brought_back() {
    let mut desk = Desk::new();
    let id = desk.shot(retried(T)).unwrap();
    for at in [T, T + 100, T + 300] {
        let taken = desk.take_one(at);
        desk.finish(taken.run, failed());
    }
    desk.crash();

    assert!(desk.take(T + 1_000_000).is_empty());
    let dead = desk.schedules.dead().unwrap();
    assert_eq!((dead.len(), dead[0].id.as_str(), dead[0].attempts), (1, id.as_str(), 3));
    assert_eq!((dead[0].error.code.as_str(), dead[0].died_at), ("failed", T + 300));
    let brought_back = desk.schedules.dead_retry(&id, desk.now).unwrap();
    assert!(desk.write(brought_back));
    desk.crash();
    let taken = desk.take_one(desk.now);
    assert_eq!(taken.fire.attempt, 1);
    desk.finish(taken.run, Ok(()));
    assert!(desk.disk.fires.is_empty());
    assert_eq!(desk.schedules.dead_retry(&id, desk.now).unwrap(), (false, Vec::new()));
}

#[test]
fn the_dead_can_be_deleted() {
    let mut desk = Desk::new();
    let id = desk.shot(OneShot { retry: retry(1), ..shot("ring") }).unwrap();
    let taken = desk.take_one(T);
    assert_eq!(desk.finish(taken.run, failed()).died, Some(id.clone()));

    let deleted = desk.schedules.dead_delete(&id).unwrap();

    assert!(desk.write(deleted));
    assert!(desk.disk.fires.is_empty() && desk.schedules.dead().unwrap().is_empty());
    assert_eq!(desk.schedules.dead_delete(&id).unwrap(), (false, Vec::new()));
}

#[test]
fn the_number_of_an_attempt_is_stored_before_it_runs() {
    let mut desk = Desk::new();
    desk.shot(retried(T)).unwrap();

    for (at, attempt) in [(T, 1), (T + 100, 2), (T + 300, 3)] {
        let taken = desk.take_one(at);
        assert_eq!(taken.fire.attempt, attempt);
        let stored = desk.disk.fires.values().next().unwrap();
        assert_eq!((stored.attempt, &stored.state), (attempt, &FireState::Running));
        desk.crash();
    }

    assert!(desk.take(T + 1_000_000).is_empty());
    let dead = desk.schedules.dead().unwrap();
    assert_eq!((dead[0].attempts, dead[0].error.code.as_str()), (3, "interrupted"));
}

#[test]
fn a_one_shot_that_waits_to_be_tried_again_can_be_cancelled_and_counts() {
    let mut desk = Desk::of(Disk::default(), 1);
    let id = desk.shot(retried(T)).unwrap();
    let taken = desk.take_one(T);
    assert_eq!(desk.schedules.cancel(&id).unwrap(), (false, Vec::new()), "it runs");
    desk.finish(taken.run, failed());
    assert!(desk.at(T, "other").is_err());

    let cancelled = desk.schedules.cancel(&id).unwrap();

    assert!(desk.write(cancelled));
    assert!(desk.disk.fires.is_empty() && desk.take(T + 1_000).is_empty());
    assert!(desk.at(T + 5_000, "other").is_ok());
}

#[test]
fn while_a_fire_of_a_job_waits_to_be_tried_again_its_deadlines_are_skipped() {
    let mut desk = Desk::new();
    let slow = Some(Retry { max_attempts: 2, initial_ms: Some(7_000), max_ms: None });
    desk.every(EverySpec { retry: slow, ..every("beat", 5_000, "tick") }).unwrap();
    let first = desk.take_one(T + 5_000);
    desk.finish(first.run, failed());
    desk.crash();

    assert!(desk.take(T + 10_000).is_empty());
    let second = desk.take_one(T + 12_000);

    assert_eq!((second.fire.scheduled_at, second.fire.attempt), (T + 5_000, 2));
    assert_eq!(second.fire.name.as_deref(), Some("beat"));
    assert!(desk.take(T + 15_000).is_empty());
    let finished = desk.finish(second.run, failed());
    assert!(finished.died.is_some());
    assert_eq!(desk.results("beat"), ["skipped", "error", "skipped", "error"]);
    assert_eq!(desk.take(T + 20_000).len(), 1);
    assert_eq!(desk.schedules.dead().unwrap()[0].name.as_deref(), Some("beat"));
}

#[test]
fn a_fire_that_is_brought_back_waits_for_the_one_that_runs() {
    let mut desk = Desk::new();
    desk.every(EverySpec { retry: retry(1), ..every("beat", 5_000, "tick") }).unwrap();
    let first = desk.take_one(T + 5_000);
    let died = desk.finish(first.run, failed()).died.unwrap();
    let running = desk.take_one(T + 10_000);

    let brought_back = desk.schedules.dead_retry(&died, T + 10_001).unwrap();
    assert!(desk.write(brought_back));
    assert!(desk.take(T + 10_001).is_empty());
    assert!(desk.schedules.next_alarm() > Some(T + 10_001), "it does not spin");
    desk.finish(running.run, Ok(()));

    let again = desk.take_one(T + 11_001);
    assert_eq!(again.fire.scheduled_at, T + 5_000);
    desk.finish(again.run, Ok(()));
    assert!(desk.disk.fires.is_empty());
}

#[test]
fn deleting_a_job_ends_the_attempts_of_its_fire() {
    let mut desk = Desk::new();
    desk.every(EverySpec { retry: retry(5), ..every("waits", 5_000, "tick") }).unwrap();
    desk.every(EverySpec { retry: retry(5), ..every("runs", 5_000, "tick") }).unwrap();
    let taken = desk.take(T + 5_000);
    let of = |name: &str| taken.iter().find(|one| one.fire.id == name).unwrap().run;
    desk.finish(of("waits"), failed());

    for name in ["waits", "runs"] {
        let deleted = desk.schedules.cron_delete(name).unwrap();
        assert!(desk.write(deleted));
    }
    assert_eq!(desk.finish(of("runs"), failed()).retry_at, None);

    assert!(desk.disk.fires.is_empty() && desk.disk.history.is_empty());
    assert_eq!(desk.schedules.next_alarm(), None);
}

#[test]
fn a_job_of_an_unknown_action_is_not_tried_again() {
    let mut desk = Desk::new();
    desk.every(EverySpec { retry: retry(5), ..every("beat", 5_000, "missing") }).unwrap();
    let taken = desk.take_one(T + 5_000);

    let finished = desk.finish(taken.run, unknown());

    assert_eq!((finished.retry_at, finished.deleted.as_deref()), (None, Some("beat")));
    assert!(finished.died.is_some());
    assert_eq!(desk.schedules.next_alarm(), None);
}

#[test]
fn the_oldest_of_too_many_dead_make_room() {
    let mut desk = Desk::new();
    let mut first = None;
    let mut forgotten = Vec::new();
    for n in 0..=i64::try_from(MAX_DEAD).unwrap() {
        let id = desk.shot(OneShot { trigger_at: T + n, retry: retry(1), ..shot("ring") }).unwrap();
        first.get_or_insert(id);
        let taken = desk.take_one(T + n);
        forgotten.extend(desk.finish(taken.run, failed()).forgotten);
    }

    assert_eq!(forgotten, [first.unwrap()]);
    assert_eq!(desk.schedules.dead().unwrap().len(), MAX_DEAD);
    assert_eq!(desk.disk.fires.len(), MAX_DEAD);
}

#[test]
fn a_key_is_free_once_its_one_shot_is_dead() {
    let mut desk = Desk::new();
    let keyed = || OneShot { retry: retry(1), key: Some("k".to_owned()), ..shot("ring") };
    let dead = desk.shot(keyed()).unwrap();
    let taken = desk.take_one(T);
    desk.finish(taken.run, failed());

    let fresh = desk.shot(keyed()).unwrap();

    assert_ne!(fresh, dead);
    let brought_back = desk.schedules.dead_retry(&dead, T).unwrap();
    assert!(desk.write(brought_back));
    assert_eq!(desk.shot(keyed()).unwrap(), fresh, "the one that was brought back has no key");
}
