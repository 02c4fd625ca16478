//! What is to be done later, in an actor that lives on a manual clock.

use bytes::Bytes;
use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::behavior::{ActorEvent, CallId, Caller, StopOutcome};
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::core::context::ActorContext;
use greenroom::core::queue::NewMessage;
use greenroom::core::schedule::{
    CronSpec, EverySpec, FireInfo, FireResult, OneShot, Retry, ScheduleError,
};

use greenroom::error::{Error, ErrorCode};
use greenroom::store::FireKind;

use crate::fixture::*;
use crate::messages::{message, plain};

/// When the fixture's clock begins.
const T: i64 = 1_000_000;

fn shot(trigger_at: i64) -> OneShot {
    let args = Bytes::from_static(b"args");
    OneShot { trigger_at, action: "ring".to_owned(), args, retry: None, key: None }
}

fn retried(trigger_at: i64, max_attempts: i64) -> OneShot {
    let retry = Some(Retry { max_attempts, initial_ms: Some(100), max_ms: None });
    OneShot { retry, ..shot(trigger_at) }
}

fn every(name: &str) -> EverySpec {
    EverySpec {
        name: name.to_owned(),
        interval_ms: 5_000,
        action: "tick".to_owned(),
        args: Bytes::new(),
        max_history: None,
        retry: None,
    }
}

/// Makes a change in a turn of its own and waits for it.
async fn done<T>(
    actor: &ActorContext,
    change: impl Future<Output = greenroom::error::Result<T>>,
) -> greenroom::error::Result<T> {
    actor.commit_rows();
    change.await
}

/// Takes the action that waits, and begins it.
fn begin(fixture: &Fixture, actor: &ActorContext) -> (CallId, String, FireInfo) {
    let ActorEvent::Action { call, name, caller, fire, .. } = fixture.script.take("action") else {
        unreachable!()
    };
    assert_eq!(caller, Caller::Schedule);
    actor.begin_call(call);
    (call, name, fire.expect("a schedule says why"))
}

fn failed() -> Error {
    Error::new(ErrorCode::new("user", "failed"), "it failed")
}

async fn stored_alarm(fixture: &Fixture) -> Option<i64> {
    fixture.stored().await.alarm
}

#[tokio::test]
async fn a_one_shot_runs_at_its_deadline_and_not_before() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    let id = done(&actor, actor.schedule().after(5_000.0, shot(0))).await.unwrap();
    assert_eq!(stored_alarm(&fixture).await, Some(T + 5_000));

    fixture.advance_ms(4_999).await;
    assert_eq!(fixture.script.waiting("action"), 0);
    fixture.advance_ms(1).await;

    let (call, name, fire) = begin(&fixture, &actor);
    assert_eq!(name, "ring");
    let (scheduled_at, fired_at) = (T + 5_000, T + 5_000);
    let expected =
        FireInfo { kind: FireKind::At, id, name: None, scheduled_at, fired_at, attempt: 1 };
    assert_eq!(fire, expected);
    assert_eq!(fixture.stored().await.schedules.fires.len(), 1, "on record while it runs");
    actor.finish_call(call, Ok(Bytes::new()));
    fixture.settle().await;
    let stored = fixture.stored().await;
    assert_eq!((stored.alarm, stored.schedules.fires.len()), (None, 0));
}

#[tokio::test]
async fn what_has_passed_is_due_at_once() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");

    done(&actor, actor.schedule().at(shot(-5))).await.unwrap();
    fixture.settle().await;
    fixture.advance_ms(0).await;

    assert_eq!(begin(&fixture, &actor).2.scheduled_at, -5);
}

#[tokio::test]
async fn what_is_refused_changes_nothing() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;

    let refused = actor.schedule().after(f64::NAN, shot(0)).await.unwrap_err();
    let bad = CronSpec {
        name: "n".to_owned(),
        expression: "x".to_owned(),
        timezone: None,
        action: "tick".to_owned(),
        args: Bytes::new(),
        max_history: None,
        retry: None,
    };
    let unreadable = actor.schedule().cron_set(bad).await.unwrap_err();

    assert!(refused.is("schedule", "invalid_time") && refused.is_public());
    assert!(unreadable.is("schedule", "invalid_cron_expression"));
    assert_eq!(actor.commit_rows(), None);
    assert_eq!(actor.next_alarm(), None);
}

#[tokio::test]
async fn a_schedule_is_committed_with_the_turn_that_made_it() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;

    let mut made = tokio_test::task::spawn(actor.schedule().at(shot(T + 5_000)));
    assert_eq!(actor.schedule().list().unwrap().len(), 1, "it is seen at once");
    fixture.settle().await;
    tokio_test::assert_pending!(made.poll());
    assert!(fixture.stored().await.schedules.pending.is_empty());

    actor.commit_rows();
    made.await.unwrap();
    assert_eq!(fixture.stored().await.schedules.pending.len(), 1);
}

#[tokio::test]
async fn a_scheduled_action_keeps_the_actor_awake_and_its_schedules_do_not() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    done(&actor, actor.schedule().at(shot(T + 5_000))).await.unwrap();
    fixture.advance_ms(5_000).await;
    let (call, ..) = begin(&fixture, &actor);
    done(&actor, actor.schedule().at(shot(T + 10_000_000))).await.unwrap();

    // Within the action's own timeout.
    fixture.advance_ms(50_000).await;
    assert!(fixture.host.intents.lock().is_empty());
    actor.finish_call(call, Ok(Bytes::new()));
    fixture.advance_ms(30_000).await;

    assert_eq!(fixture.host.intents.lock().len(), 1);
}

#[tokio::test]
async fn an_interval_skips_while_it_runs_and_its_history_tells() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    done(&actor, actor.schedule().cron_every(every("beat"))).await.unwrap();
    fixture.advance_ms(5_000).await;
    let (call, _, fire) = begin(&fixture, &actor);
    assert_eq!((fire.kind, fire.name.as_deref()), (FireKind::Every, Some("beat")));

    fixture.advance_ms(6_000).await;
    assert_eq!(fixture.script.waiting("action"), 0);
    actor.finish_call(call, Err(failed()));
    fixture.settle().await;

    let history = actor.schedule().cron_history("beat", None).await.unwrap();
    assert_eq!(history.len(), 2);
    assert_eq!(history[0].result, FireResult::Skipped);
    assert!(matches!(&history[1].result, FireResult::Error(error) if error.code == "failed"));
    assert_eq!(history[1].finished_at, Some(T + 11_000));
    fixture.advance_ms(4_000).await;
    assert_eq!(begin(&fixture, &actor).2.scheduled_at, T + 15_000);
}

#[tokio::test]
async fn an_action_that_takes_too_long_has_failed() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    done(&actor, actor.schedule().at(retried(T + 1, 1))).await.unwrap();
    fixture.advance_ms(1).await;
    let (call, ..) = begin(&fixture, &actor);

    fixture.advance_ms(60_000).await;

    let dead = actor.schedule().dead().unwrap();
    assert_eq!((dead.len(), dead[0].error.code.as_str()), (1, "action_timed_out"));
    actor.finish_call(call, Ok(Bytes::new()));
    assert_eq!(actor.schedule().dead().unwrap().len(), 1);
}

#[tokio::test]
async fn an_action_that_fails_is_tried_again_and_then_given_up() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    let id = done(&actor, actor.schedule().at(retried(T + 1, 2))).await.unwrap();
    fixture.advance_ms(1).await;
    let (first, _, fire) = begin(&fixture, &actor);
    assert_eq!(fire.attempt, 1);
    actor.finish_call(first, Err(failed()));

    fixture.advance_ms(100).await;
    let (second, _, fire) = begin(&fixture, &actor);
    assert_eq!((fire.attempt, fire.scheduled_at), (2, T + 1));
    actor.finish_call(second, Err(failed()));
    fixture.settle().await;

    assert_eq!(actor.schedule().dead().unwrap()[0].id, id);
    assert!(done(&actor, actor.schedule().dead_retry(&id)).await.unwrap());
    fixture.settle().await;
    fixture.advance_ms(0).await;
    let (third, ..) = begin(&fixture, &actor);
    actor.finish_call(third, Ok(Bytes::new()));
    fixture.settle().await;
    assert!(fixture.stored().await.schedules.fires.is_empty());
}

#[tokio::test]
async fn how_a_fire_ended_is_committed_with_what_its_action_changed() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    done(&actor, actor.schedule().at(shot(T + 1))).await.unwrap();
    fixture.advance_ms(1).await;
    let (call, ..) = begin(&fixture, &actor);
    let batches = fixture.store.stats().batches;

    actor.mark_dirty();
    actor.finish_call(call, Ok(Bytes::new()));
    fixture.settle().await;
    assert_eq!(fixture.stored().await.schedules.fires.len(), 1);
    let state = greenroom::core::behavior::StateDelta::ActorState(Bytes::from_static(b"rung"));
    actor.commit_state(vec![state]);
    fixture.settle().await;

    let stored = fixture.stored().await;
    assert_eq!((stored.schedules.fires.len(), stored.state.as_deref()), (0, Some(&b"rung"[..])));
    assert_eq!(fixture.store.stats().batches, batches + 1);
}

#[tokio::test]
async fn a_one_shot_does_not_run_again_when_its_generation_breaks() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    let id = done(&actor, actor.schedule().at(shot(T + 1))).await.unwrap();
    let again = done(&actor, actor.schedule().at(retried(T + 1, 3))).await.unwrap();
    fixture.advance_ms(1).await;
    assert_eq!(fixture.script.waiting("action"), 2);
    actor.break_generation(Error::internal("a crash"));
    fixture.settle().await;
    fixture.script.events.lock().clear();

    let next = fixture.started().await;
    assert_eq!(next.schedule().dead().unwrap()[0].id, id);
    assert_eq!(next.schedule().dead().unwrap()[0].error.code, "interrupted");
    fixture.advance_ms(100).await;

    let (_, _, fire) = begin(&fixture, &next);
    assert_eq!((fire.id, fire.attempt), (again, 2));
    assert_eq!(fixture.script.waiting("action"), 0);
}

#[tokio::test]
async fn what_is_due_while_the_actor_stops_runs_once_after_its_next_start() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("on_sleep");
    actor.stop(StopReason::Sleep);
    fixture.settle().await;

    done(&actor, actor.schedule().at(shot(T + 1))).await.unwrap();
    fixture.advance_ms(100).await;
    assert_eq!(fixture.script.count("action"), 0);
    fixture.script.answer_hook("on_sleep");
    fixture.settle().await;
    assert_eq!(fixture.host.outcomes.lock().as_slice(), [StopOutcome::Slept]);
    assert_eq!(stored_alarm(&fixture).await, Some(T + 1));
    assert_eq!(actor.next_alarm(), Some(T + 1));

    fixture.script.release("on_sleep");
    let next = fixture.started().await;
    fixture.advance_ms(100).await;
    assert_eq!(fixture.script.count("action"), 1);
    assert_eq!(next.next_alarm(), None);
}

#[tokio::test]
async fn a_slow_scheduled_action_ends_before_the_actor_sleeps() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    done(&actor, actor.schedule().at(shot(T + 1))).await.unwrap();
    fixture.advance_ms(1).await;
    let (call, ..) = begin(&fixture, &actor);

    actor.stop(StopReason::Sleep);
    fixture.advance_ms(1_000).await;
    assert!(fixture.host.outcomes.lock().is_empty());
    actor.finish_call(call, Ok(Bytes::new()));
    fixture.settle().await;

    assert_eq!(fixture.host.outcomes.lock().as_slice(), [StopOutcome::Slept]);
    assert!(fixture.stored().await.schedules.fires.is_empty());
}

#[tokio::test]
async fn a_schedule_made_while_the_actor_is_created_is_stored_with_its_first_state() {
    let fixture = Fixture::new().await;
    fixture.script.hold("on_create");
    let actor = fixture.generation();
    let starting = actor.clone();
    let start = tokio::spawn(async move { starting.start().await });
    fixture.settle().await;

    actor.schedule().at(shot(T + 5_000)).await.unwrap();
    assert_eq!(actor.schedule().cron_history("beat", None).await.unwrap(), []);
    fixture.script.answer_hook("on_create");
    start.await.unwrap().unwrap();
    fixture.settle().await;

    assert_eq!(fixture.stored().await.schedules.pending.len(), 1);
    assert_eq!(stored_alarm(&fixture).await, Some(T + 5_000));
    fixture.advance_ms(5_000).await;
    assert_eq!(fixture.script.count("action"), 1);
}

#[tokio::test]
async fn run_is_active_again_when_its_wake_up_comes() {
    let mut fixture = Fixture::new().await;
    fixture.hooks.run = true;
    let actor = fixture.started().await;
    assert_eq!(fixture.script.count("run"), 1);
    done(&actor, actor.schedule().set_run_wake(Some(T + 5_000))).await.unwrap();
    assert_eq!(stored_alarm(&fixture).await, Some(T + 5_000));

    fixture.advance_ms(5_000).await;

    assert_eq!(fixture.script.count("run"), 2);
    assert_eq!(fixture.stored().await.schedules.run_wake_at, None);
    assert_eq!(stored_alarm(&fixture).await, None);
}

#[tokio::test]
async fn with_saves_by_interval_a_fire_waits_for_no_save() {
    let config =
        ActorConfig { has_state: true, durability: Durability::Interval, ..ActorConfig::default() };
    let fixture = Fixture::with(config).await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    done(&actor, actor.schedule().at(shot(T + 10))).await.unwrap();
    actor.mark_dirty();

    fixture.advance_ms(10).await;

    let (call, ..) = begin(&fixture, &actor);
    actor.finish_call(call, Ok(Bytes::new()));
    fixture.settle().await;
    assert!(fixture.stored().await.schedules.fires.is_empty());
}

#[tokio::test]
async fn what_a_start_tidies_up_in_the_queue_leaves_the_alarm_of_the_schedules() {
    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
    let fixture = Fixture::with(ActorConfig::default()).await;
    let actor = fixture.started().await;
    let due = T + 3 * i64::try_from(DAY_MS).unwrap();
    done(&actor, actor.schedule().at(shot(due))).await.unwrap();
    let keyed = NewMessage { dedupe_key: Some("key".into()), ..message("job") };
    done(&actor, actor.queue().send(keyed)).await.unwrap();
    assert_eq!(actor.queue().receive(plain()).await.unwrap().len(), 1);
    actor.stop(StopReason::Sleep);
    fixture.advance_ms(DAY_MS).await;

    fixture.started().await;

    assert!(fixture.stored().await.queue.sent_keys.is_empty(), "the key is forgotten");
    assert_eq!(stored_alarm(&fixture).await, Some(due));
}

#[tokio::test]
async fn a_generation_that_is_over_refuses_changes() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    actor.break_generation(Error::from(ScheduleError::Interrupted));

    let refused = actor.schedule().at(shot(T)).await.unwrap_err();

    assert!(refused.is("schedule", "interrupted"));
    assert!(actor.schedule().list().is_err());
}

#[tokio::test]
async fn an_hourly_job_over_thirty_days_runs_720_times() {
    let fixture = Fixture::with(ActorConfig { no_sleep: true, ..ActorConfig::default() }).await;
    let actor = fixture.started().await;
    let hourly = CronSpec {
        name: "hourly".to_owned(),
        expression: "0 * * * *".to_owned(),
        timezone: None,
        action: "tick".to_owned(),
        args: Bytes::new(),
        max_history: Some(10),
        retry: None,
    };
    done(&actor, actor.schedule().cron_set(hourly)).await.unwrap();

    fixture.advance_ms(30 * 24 * 3_600_000).await;

    assert_eq!(fixture.script.count("action"), 720);
    let history = actor.schedule().cron_history("hourly", Some(1_000)).await.unwrap();
    assert_eq!(history.len(), 10);
}
