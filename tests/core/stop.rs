//! Stopping: the grace period, its deadline, the last save, and who is told what.

use std::sync::Arc;

use bytes::Bytes;
use greenroom::core::actor::activity::WorkKind;
use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::behavior::{ActorEvent, StateDelta, StopOutcome};
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::core::context::Admission;
use greenroom::error::Error;
use greenroom::time::Duration;

use crate::fixture::{Fixture, call, error_code, is_open};

fn brief() -> ActorConfig {
    ActorConfig { sleep_grace_period: Duration::from_millis(100), ..ActorConfig::default() }
}

#[tokio::test]
async fn a_stop_runs_its_hook_once_saves_and_is_reported_once() {
    for (reason, hook, outcome) in [
        (StopReason::Sleep, "on_sleep", StopOutcome::Slept),
        (StopReason::Destroy, "on_destroy", StopOutcome::Destroyed),
    ] {
        let fixture = Fixture::new().await;
        let actor = fixture.started().await;
        *fixture.script.state.lock() = Some(Bytes::from_static(b"last"));
        assert!(!actor.aborted());

        actor.stop(reason);
        actor.stop(reason);
        fixture.settle().await;

        assert!(actor.aborted());
        assert_eq!(*fixture.host.outcomes.lock(), [outcome]);
        assert_eq!(fixture.script.count(hook), 1);
        let story = fixture.script.story();
        assert_eq!(story[story.len() - 4..], ["abort", hook, "serialize_state_save", "stopped"]);
        assert_eq!(fixture.stored().await.state.as_deref(), Some(&b"last"[..]));
        actor.stop(reason);
        fixture.settle().await;
        assert_eq!(fixture.host.outcomes.lock().len(), 1);
    }
}

#[tokio::test]
async fn a_destroy_during_the_grace_of_a_sleep_is_ignored() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("on_sleep");
    actor.stop(StopReason::Sleep);
    fixture.settle().await;

    actor.stop(StopReason::Destroy);
    fixture.script.answer_hook("on_sleep");
    fixture.settle().await;

    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept]);
    assert_eq!(fixture.script.count("on_destroy"), 0);
}

#[tokio::test]
async fn work_holds_the_grace_period_until_it_ends() {
    for kind in WorkKind::ALL {
        let fixture = Fixture::new().await;
        let actor = fixture.started().await;
        let region = actor.begin_region(kind);

        actor.stop(StopReason::Sleep);
        fixture.advance_ms(14_999).await;
        assert!(fixture.host.outcomes.lock().is_empty(), "{kind:?}");
        drop(region);
        fixture.settle().await;

        assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept], "{kind:?}");
        assert!(!actor.shutdown_deadline().is_cancelled());
    }
}

#[tokio::test]
async fn stuck_tracked_work_is_dropped_at_the_deadline_and_not_before() {
    for reason in [StopReason::Sleep, StopReason::Destroy] {
        let fixture = Fixture::with(brief()).await;
        let actor = fixture.started().await;
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        actor.wait_until(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });

        actor.stop(reason);
        fixture.advance_ms(99).await;
        assert!(fixture.host.outcomes.lock().is_empty());
        assert_eq!(Arc::strong_count(&alive), 2);
        fixture.advance_ms(1).await;

        assert_eq!(fixture.host.outcomes.lock().len(), 1);
        assert_eq!(Arc::strong_count(&alive), 1);
        assert!(actor.shutdown_deadline().is_cancelled());
    }
}

#[tokio::test]
async fn a_stuck_hook_or_run_is_given_up_at_the_deadline() {
    for held in ["on_sleep", "run"] {
        let mut fixture = Fixture::with(brief()).await;
        fixture.hooks.run = true;
        fixture.script.hold(held);
        let actor = fixture.started().await;

        actor.stop(StopReason::Sleep);
        fixture.advance_ms(99).await;
        assert!(fixture.host.outcomes.lock().is_empty(), "{held}");
        fixture.advance_ms(1).await;

        assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept], "{held}");
        assert_eq!(fixture.script.count("deadline_reached"), 1, "{held}");
    }
}

#[tokio::test]
async fn a_destroy_does_not_wait_for_the_run_handler() {
    let mut fixture = Fixture::new().await;
    fixture.hooks.run = true;
    fixture.script.hold("run");
    let actor = fixture.started().await;

    actor.stop(StopReason::Destroy);
    fixture.settle().await;

    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Destroyed]);
}

#[tokio::test]
async fn a_call_that_is_open_at_the_deadline_hears_that_the_actor_stops() {
    let fixture = Fixture::with(brief()).await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    let mut answer = call(&actor, "stuck");
    fixture.script.begin(&actor);

    actor.stop(StopReason::Sleep);
    fixture.advance_ms(99).await;
    assert!(is_open(&mut answer), "accepted work is finished, if it can be");
    fixture.advance_ms(1).await;

    assert_eq!(error_code(&mut answer), "actor/stopping");
}

#[tokio::test]
async fn a_failing_hook_stops_nothing() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    *fixture.script.fail.lock() = Some(("on_sleep", Error::internal("no")));

    actor.stop(StopReason::Sleep);
    fixture.settle().await;

    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept]);
}

#[tokio::test]
async fn a_hook_whose_reply_is_dropped_does_not_hold_the_grace_period() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("on_sleep");
    actor.stop(StopReason::Sleep);
    fixture.settle().await;

    drop(fixture.script.take("on_sleep"));
    fixture.settle().await;

    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept]);
}

#[tokio::test]
async fn what_a_state_change_callback_does_in_the_grace_period_is_saved() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    actor.begin_on_state_change();
    actor.stop(StopReason::Sleep);
    fixture.advance_ms(25).await;
    assert!(fixture.host.outcomes.lock().is_empty());

    *fixture.script.state.lock() = Some(Bytes::from_static(b"changed"));
    actor.end_on_state_change();
    fixture.settle().await;

    assert_eq!(fixture.stored().await.state.as_deref(), Some(&b"changed"[..]));
}

#[tokio::test]
async fn a_serialisation_that_does_not_end_is_given_up_after_its_cap() {
    let fixture = Fixture::with(brief()).await;
    let actor = fixture.started().await;
    fixture.script.hold("serialize_state_save");

    actor.stop(StopReason::Sleep);
    fixture.advance_ms(14_999).await;
    assert!(fixture.host.outcomes.lock().is_empty());
    fixture.advance_ms(1).await;

    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept]);
}

#[tokio::test]
async fn a_save_that_was_asked_for_too_late_fails_and_does_not_hang() {
    let config = ActorConfig { durability: Durability::Interval, ..ActorConfig::default() };
    let fixture = Fixture::with(config).await;
    let actor = fixture.started().await;
    fixture.script.hold("serialize_state_save");
    actor.stop(StopReason::Sleep);
    fixture.settle().await;

    let late = actor.clone();
    let save = tokio::spawn(async move { late.request_save_and_wait(Default::default()).await });
    fixture.settle().await;
    let ActorEvent::SerializeState { reply, .. } = fixture.script.take("serialize_state_save")
    else {
        unreachable!()
    };
    reply.send(Err(Error::internal("cannot")));
    fixture.settle().await;

    assert_eq!(save.await.unwrap().unwrap_err().code, "stopping");
    let after = actor.request_save_and_wait(Default::default()).await;
    assert_eq!(after.unwrap_err().code, "stopping");
}

#[tokio::test]
async fn nothing_is_taken_while_the_last_state_is_saved() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("serialize_state_save");
    actor.stop(StopReason::Sleep);
    fixture.settle().await;

    assert_eq!(actor.admission(), Admission::Wait);
    let mut answer = call(&actor, "late");
    assert_eq!(error_code(&mut answer), "actor/stopping");
    let delta = StateDelta::ActorState(Bytes::from_static(b"late"));
    assert!(actor.commit_state(vec![delta]).is_none());
    fixture.script.answer_snapshot(b"last");
    fixture.settle().await;

    assert_eq!(fixture.stored().await.state.as_deref(), Some(&b"last"[..]));
}

#[tokio::test]
async fn completion_of_a_destroy_is_seen_by_those_who_wait_for_it() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let waiting = actor.clone();
    let waiter = tokio::spawn(async move { waiting.wait_for_destroy_completion().await });

    actor.stop(StopReason::Destroy);
    fixture.settle().await;
    assert!(!waiter.is_finished(), "the directory still has it");
    actor.mark_destruction(true);

    assert!(waiter.await.unwrap());
    assert!(actor.wait_for_destroy_completion().await);
}

#[tokio::test]
async fn the_first_word_on_the_destruction_of_a_generation_holds() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;

    actor.mark_destruction(false);
    actor.mark_destruction(true);

    assert!(!actor.wait_for_destroy_completion().await);
}
