//! Cron jobs and intervals: cadence, overlap, history.

use super::*;
use crate::store::{HistoryResult, HistoryRow};

#[test]
fn what_is_wrong_is_refused_in_the_order_of_the_rules() {
    let mut desk = Desk::new();
    let bad = CronSpec {
        name: String::new(),
        timezone: Some("Mars".to_owned()),
        max_history: Some(1_001),
        ..cron("", "x")
    };
    let code =
        |refused: Result<(), ScheduleError>| Error::from(refused.unwrap_err()).code.to_string();

    assert_eq!(code(desk.cron(bad.clone())), "invalid_name");
    let bad = CronSpec { name: "n".to_owned(), ..bad };
    assert_eq!(code(desk.cron(bad.clone())), "invalid_timezone");
    let bad = CronSpec { timezone: None, ..bad };
    assert_eq!(code(desk.cron(bad.clone())), "invalid_cron_expression");
    let never = CronSpec { expression: "0 0 31 2 *".to_owned(), ..bad.clone() };
    assert_eq!(code(desk.cron(never)), "invalid_cron_expression");
    let bad = CronSpec { expression: "* * * * *".to_owned(), ..bad };
    assert_eq!(code(desk.cron(bad)), "invalid_max_history");
    let short = EverySpec { max_history: Some(-1), ..every("n", 4_999, "tick") };
    assert_eq!(code(desk.every(short.clone())), "invalid_interval");
    assert_eq!(code(desk.every(EverySpec { interval_ms: 5_000, ..short })), "invalid_max_history");
    assert_eq!(
        code(desk.every(EverySpec { retry: retry(0), ..every("n", 5_000, "tick") })),
        "invalid_retry"
    );
    assert!(desk.disk.pending.is_empty() && desk.schedules.revision() == 0);
}

#[test]
fn setting_a_job_again_keeps_its_deadline_while_its_cadence_stays() {
    let mut desk = Desk::new();
    desk.every(every("beat", 5_000, "tick")).unwrap();
    assert_eq!((desk.job("beat").next_run_at, desk.job("beat").max_history), (T + 5_000, 100));

    desk.now = T + 1_000;
    desk.every(every("beat", 5_000, "tock")).unwrap();
    assert_eq!(
        (desk.job("beat").next_run_at, desk.job("beat").action.as_str()),
        (T + 5_000, "tock")
    );
    desk.every(every("beat", 10_000, "tock")).unwrap();
    assert_eq!(desk.job("beat").next_run_at, T + 11_000);
    desk.cron(cron("beat", "0 9 * * *")).unwrap();
    let first = desk.job("beat").next_run_at;
    desk.now = first + 5;
    desk.cron(cron("beat", "0 9 * * *")).unwrap();
    assert_eq!(desk.job("beat").next_run_at, first, "overdue, and kept");
    let elsewhere =
        CronSpec { timezone: Some("Asia/Tokyo".to_owned()), ..cron("beat", "0 9 * * *") };
    desk.cron(elsewhere).unwrap();
    assert!(desk.job("beat").next_run_at > desk.now);
}

#[test]
fn a_job_that_still_runs_is_skipped_and_its_deadlines_stay_anchored() {
    let mut desk = Desk::new();
    desk.every(every("beat", 5_000, "tick")).unwrap();
    let running = desk.take_one(T + 5_000);
    assert_eq!(desk.job("beat").next_run_at, T + 10_000);

    assert!(desk.take(T + 16_000).is_empty());

    assert_eq!(desk.job("beat").next_run_at, T + 20_000);
    assert_eq!(desk.job("beat").last_run_at, Some(T + 5_000));
    assert_eq!(desk.results("beat"), ["skipped", "running"]);
    desk.finish(running.run, Ok(()));
    assert_eq!(desk.results("beat"), ["skipped", "ok"]);
    let history = desk.history("beat");
    assert_eq!((history[0].scheduled_at, history[0].fired_at), (T + 10_000, T + 16_000));
    assert_eq!(desk.take(T + 20_000).len(), 1);
}

#[test]
fn what_was_missed_fires_once_for_the_stored_deadline() {
    let mut desk = Desk::new();
    desk.every(every("beat", 5_000, "tick")).unwrap();
    desk.cron(cron("cron", "* * * * *")).unwrap();
    desk.now = T + 86_400_000;
    desk.crash();

    let taken = desk.take(desk.now);

    assert_eq!(taken.len(), 2);
    assert_eq!((taken[0].fire.scheduled_at, taken[0].fire.fired_at), (T + 5_000, T + 86_400_000));
    assert!(desk.take(desk.now).is_empty());
    assert_eq!(desk.job("beat").next_run_at, T + 86_405_000);
}

#[test]
fn two_names_may_run_together_and_one_name_never_twice() {
    let mut desk = Desk::new();
    desk.every(every("a", 5_000, "tick")).unwrap();
    desk.every(every("b", 5_000, "tick")).unwrap();
    let taken = desk.take(T + 5_000);
    assert_eq!(taken.len(), 2);
    assert_eq!(taken[0].fire.name.as_deref(), Some("a"));
    assert_eq!((taken[0].fire.id.as_str(), taken[0].fire.kind), ("a", FireKind::Every));

    let deleted = desk.schedules.cron_delete("a").unwrap();
    desk.write(deleted);
    desk.every(every("a", 5_000, "tick")).unwrap();
    desk.finish(taken[1].run, Ok(()));

    let again = desk.take(T + 10_000);
    assert_eq!(again.iter().map(|one| one.fire.id.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(desk.results("a"), ["skipped"]);
    desk.finish(taken[0].run, Ok(()));
    assert!(desk.take(T + 15_000).iter().any(|one| one.fire.id == "a"));
}

#[test]
fn a_job_of_an_unknown_action_is_deleted_unless_it_was_replaced() {
    let mut desk = Desk::new();
    desk.every(every("gone", 5_000, "missing")).unwrap();
    desk.every(every("mended", 5_000, "missing")).unwrap();
    let taken = desk.take(T + 5_000);
    desk.every(every("mended", 5_000, "present")).unwrap();

    let gone = desk.finish(taken[0].run, unknown());
    let mended = desk.finish(taken[1].run, unknown());

    assert_eq!((gone.deleted.as_deref(), mended.deleted), (Some("gone"), None));
    assert_eq!(desk.schedules.cron_get("gone").unwrap(), None);
    assert_eq!(desk.job("mended").action, "present");
    let history = desk.history("gone");
    assert_eq!(history.len(), 1, "the failure stays readable");
    assert!(
        matches!(&history[0].result, FireResult::Error(error) if error.code == "action_not_found")
    );
}

#[test]
fn deleting_a_job_deletes_its_history() {
    let mut desk = Desk::new();
    desk.every(every("beat", 5_000, "tick")).unwrap();
    let taken = desk.take_one(T + 5_000);
    let deleted = desk.schedules.cron_delete("beat").unwrap();
    assert!(desk.write(deleted));
    desk.finish(taken.run, Ok(()));

    desk.every(every("beat", 5_000, "tick")).unwrap();

    assert!(desk.history("beat").is_empty());
    assert!(desk.disk.history.is_empty());
}

#[test]
fn a_history_keeps_the_newest_and_none_when_told_so() {
    let mut desk = Desk::new();
    let kept =
        |max_history| EverySpec { max_history: Some(max_history), ..every("beat", 5_000, "tick") };
    desk.every(kept(2)).unwrap();
    for n in 1..=3 {
        let taken = desk.take_one(T + n * 5_000);
        desk.finish(taken.run, Ok(()));
    }
    let fired: Vec<_> = desk.history("beat").iter().map(|fire| fire.fired_at - T).collect();
    assert_eq!(fired, [15_000, 10_000]);

    desk.every(kept(0)).unwrap();
    assert!(desk.history("beat").is_empty());
    let taken = desk.take_one(T + 20_000);
    desk.finish(taken.run, failed());
    assert!(desk.disk.history.is_empty());
    assert_eq!(desk.job("beat").last_run_at, Some(T + 20_000));
}

#[test]
fn an_actor_keeps_9_900_rows_of_history_whenever_it_prunes() {
    let mut desk = Desk::new();
    desk.every(every("beat", 5_000, "tick")).unwrap();
    for id in 1..=10_001 {
        let row = HistoryRow {
            id,
            schedule_id: format!("cron:{}", id % 11),
            action: "tick".to_owned(),
            scheduled_at: id,
            fired_at: id,
            finished_at: Some(id),
            attempt: 1,
            result: HistoryResult::Ok,
        };
        desk.disk.history.insert(id, row);
    }
    desk.crash();

    desk.take_one(T + 5_000);

    let fired: Vec<_> = desk.disk.history.values().map(|row| row.fired_at).collect();
    assert_eq!((fired.len(), fired[0], fired[9_899]), (9_900, 103, T + 5_000));
}

#[test]
fn an_attempt_that_never_ended_is_interrupted_and_stays_so() {
    let mut desk = Desk::new();
    desk.every(every("beat", 5_000, "tick")).unwrap();
    let taken = desk.take_one(T + 5_000);
    desk.now = T + 6_000;
    desk.crash();

    let first = &desk.history("beat")[0];
    assert_eq!(first.finished_at, Some(T + 6_000));
    assert!(matches!(&first.result, FireResult::Error(error) if error.code == "interrupted"));
    desk.finish(taken.run, Ok(()));
    assert_eq!(desk.results("beat"), ["error"]);
    assert_eq!(desk.take(T + 10_000).len(), 1, "the next deadline is served");
}

#[test]
fn a_year_of_an_hourly_job_is_8760_fires_each_once() {
    const YEAR_MS: i64 = 365 * 86_400_000;
    let mut desk = Desk::new();
    desk.cron(cron("hourly", "0 * * * *")).unwrap();

    let mut fires = 0;
    while let Some(at) = desk.schedules.next_alarm().filter(|at| *at <= T + YEAR_MS) {
        let taken = desk.take_one(at);
        assert_eq!(taken.fire.scheduled_at, at);
        desk.finish(taken.run, Ok(()));
        fires += 1;
    }

    assert_eq!(fires, 8_760);
}
