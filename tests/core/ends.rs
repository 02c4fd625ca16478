//! The last moments of a generation: nothing that is not stored is told as done,
//! and nobody is left waiting.

use bytes::Bytes;
use greenroom::core::actor::InPlace;
use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::behavior::{ActorEvent, StateDelta, StopOutcome};
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::error::Error;
use greenroom::time::Duration;

use crate::fixture::{Fixture, call, error_code, is_open};

fn delta(state: &'static [u8]) -> Vec<StateDelta> {
    vec![StateDelta::ActorState(Bytes::from_static(state))]
}

fn take_snapshot(fixture: &Fixture) -> greenroom::core::behavior::Reply<Vec<StateDelta>> {
    let ActorEvent::SerializeState { reply, .. } = fixture.script.take("serialize_state_save")
    else {
        unreachable!()
    };
    reply
}

#[tokio::test]
async fn an_answer_whose_change_cannot_be_serialised_at_the_end_fails() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    fixture.script.hold("serialize_state_save");
    let mut answer = call(&actor, "change");
    let id = fixture.script.begin(&actor);
    actor.mark_dirty();
    actor.finish_call(id, Ok(Bytes::new()));

    actor.stop(StopReason::Sleep);
    fixture.settle().await;
    assert!(is_open(&mut answer));
    take_snapshot(&fixture).send(Err(Error::internal("cannot")));
    fixture.settle().await;

    assert_eq!(error_code(&mut answer), "actor/stopping");
    let outcomes = fixture.host.outcomes.lock().clone();
    assert!(matches!(outcomes[..], [StopOutcome::Broken(_)]), "{outcomes:?}");
}

#[tokio::test]
async fn a_change_after_the_last_snapshot_is_not_told_as_done() {
    let config =
        ActorConfig { sleep_grace_period: Duration::from_millis(100), ..ActorConfig::default() };
    let fixture = Fixture::with(config).await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    let mut answer = call(&actor, "slow");
    let slow = fixture.script.begin(&actor);
    let in_place = actor.try_admit().unwrap();
    fixture.script.hold("serialize_state_save");
    actor.stop(StopReason::Sleep);
    fixture.advance_ms(100).await;

    // The function ends in the same turn in which the snapshot was handed over.
    take_snapshot(&fixture).send(Ok(delta(b"last")));
    actor.mark_dirty();
    actor.finish_call(slow, Ok(Bytes::new()));
    let end = actor.finish_in_place(in_place);
    fixture.settle().await;

    assert_eq!(error_code(&mut answer), "actor/stopping");
    assert!(!matches!(end, InPlace::Leave), "{end:?}");
    assert_eq!(fixture.stored().await.state.as_deref(), Some(&b"last"[..]));
    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept]);
}

#[tokio::test]
async fn an_answer_whose_change_is_in_the_last_snapshot_arrives() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    fixture.script.hold("serialize_state_save");
    let mut answer = call(&actor, "change");
    let id = fixture.script.begin(&actor);
    actor.mark_dirty();
    actor.finish_call(id, Ok(Bytes::new()));
    actor.stop(StopReason::Sleep);
    fixture.settle().await;

    take_snapshot(&fixture).send(Ok(delta(b"last")));
    fixture.settle().await;

    assert!(answer.try_recv().unwrap().is_ok());
    assert_eq!(fixture.stored().await.state.as_deref(), Some(&b"last"[..]));
}

#[tokio::test]
async fn waiting_for_the_disk_after_the_end_ends_at_once() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    actor.stop(StopReason::Sleep);
    fixture.settle().await;

    actor.flushed().await.unwrap();
    actor.mark_dirty();
    assert_eq!(actor.flushed().await.unwrap_err().code, "stopping");
    assert_eq!(actor.save_state(delta(b"late")).await.unwrap_err().code, "stopping");
}

#[tokio::test]
async fn an_older_snapshot_never_overwrites_a_newer_commit() {
    let config = ActorConfig { durability: Durability::Interval, ..ActorConfig::default() };
    let fixture = Fixture::with(config).await;
    let actor = fixture.started().await;
    fixture.script.hold("serialize_state_save");
    actor.mark_dirty();
    fixture.advance_ms(1_000).await;
    let older = take_snapshot(&fixture);

    actor.save_state(delta(b"newer")).await.unwrap();
    older.send(Ok(delta(b"older")));
    fixture.settle().await;

    assert_eq!(fixture.stored().await.state.as_deref(), Some(&b"newer"[..]));
    assert_eq!(fixture.script.waiting("serialize_state_save"), 1, "it is asked for again");
}

#[tokio::test]
async fn a_snapshot_that_is_late_is_given_up_and_asked_for_again() {
    let config = ActorConfig { durability: Durability::Interval, ..ActorConfig::default() };
    let fixture = Fixture::with(config).await;
    let actor = fixture.started().await;
    fixture.script.hold("serialize_state_save");
    actor.mark_dirty();
    fixture.advance_ms(1_000).await;
    let late = take_snapshot(&fixture);

    fixture.advance_ms(16_000).await;
    assert_eq!(fixture.script.waiting("serialize_state_save"), 1);
    late.send(Ok(delta(b"late")));
    fixture.settle().await;
    assert_eq!(fixture.stored().await.state, None);
    fixture.script.answer_snapshot(b"again");
    fixture.settle().await;

    assert_eq!(fixture.stored().await.state.as_deref(), Some(&b"again"[..]));
}

#[tokio::test]
async fn where_answers_wait_a_snapshot_that_fails_breaks_the_generation() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    *fixture.script.fail.lock() = Some(("serialize_state_save", Error::internal("cannot")));

    let saved = actor.request_save_and_wait(Default::default()).await;

    assert_eq!(saved.unwrap_err().code, "internal_error");
    let outcomes = fixture.host.outcomes.lock().clone();
    assert!(matches!(outcomes[..], [StopOutcome::Broken(_)]), "{outcomes:?}");
}

#[tokio::test]
async fn a_hook_that_waits_for_a_save_is_not_stuck() {
    for durability in [Durability::Reply, Durability::Interval] {
        for (hook, reason) in [("on_wake", None), ("on_destroy", Some(StopReason::Destroy))] {
            let fixture = Fixture::with(ActorConfig { durability, ..ActorConfig::default() }).await;
            fixture.script.hold(hook);
            let actor = fixture.generation();
            let starting = actor.clone();
            let start = tokio::spawn(async move { starting.start().await });
            fixture.settle().await;
            if let Some(reason) = reason {
                actor.stop(reason);
            }
            fixture.settle().await;

            *fixture.script.state.lock() = Some(Bytes::from_static(b"hooked"));
            let immediate =
                greenroom::core::actor::save_queue::SaveRequest { immediate: true, max_wait: None };
            actor.request_save_and_wait(immediate).await.unwrap();
            fixture.script.answer_hook(hook);

            start.await.unwrap().unwrap();
            let stored = fixture.stored().await.state;
            assert_eq!(stored.as_deref(), Some(&b"hooked"[..]), "{hook} {durability:?}");
        }
    }
}

#[tokio::test]
async fn the_first_hooks_of_a_new_actor_cannot_wait_for_a_save() {
    let fixture = Fixture::new().await;
    fixture.script.hold("on_create");
    let actor = fixture.generation();
    let starting = actor.clone();
    let start = tokio::spawn(async move { starting.start().await });
    fixture.settle().await;

    assert_eq!(actor.flushed().await.unwrap_err().code, "starting");
    let save = actor.request_save_and_wait(Default::default()).await;
    assert_eq!(save.unwrap_err().code, "starting");
    fixture.script.answer_hook("on_create");

    start.await.unwrap().unwrap();
}

#[tokio::test]
async fn however_many_calls_there_are_few_deadlines_are_armed() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;

    for _ in 0..600 {
        let first = actor.try_admit().unwrap();
        fixture.advance_ms(50).await;
        actor.finish_in_place(first);
        fixture.advance_ms(50).await;
    }

    let armed = fixture.runtime.timers().armed();
    assert!(armed <= 4, "{armed} deadlines are armed");
}

#[tokio::test]
async fn a_panic_at_the_end_breaks_the_generation_and_the_host_hears_of_it() {
    for at in ["on_sleep", "serialize_state_save", "stopped"] {
        let fixture = Fixture::new().await;
        let actor = fixture.started().await;
        *fixture.script.panic_at.lock() = Some(at);

        actor.stop(StopReason::Sleep);
        fixture.settle().await;

        let outcomes = fixture.host.outcomes.lock().clone();
        let expected = if at == "stopped" {
            matches!(outcomes[..], [StopOutcome::Slept])
        } else {
            matches!(&outcomes[..], [StopOutcome::Broken(error)] if error.code == "internal_error")
        };
        assert!(expected, "{at}: {outcomes:?}");
        *fixture.script.panic_at.lock() = None;
        let again = fixture.started().await;
        assert!(call(&again, "echo").try_recv().unwrap().is_ok(), "{at}");
    }
}

#[tokio::test]
async fn an_actor_that_asks_to_stop_from_its_run_lives_until_the_host_answers() {
    let mut fixture = Fixture::new().await;
    fixture.hooks.run = true;
    fixture.script.hold("run");
    let actor = fixture.started().await;

    actor.sleep().unwrap();
    fixture.advance_ms(60_000).await;

    assert!(call(&actor, "echo").try_recv().unwrap().is_ok());
    assert!(fixture.host.outcomes.lock().is_empty());
}

#[cfg(feature = "faults")]
#[tokio::test]
async fn a_call_taken_while_a_commit_delays_the_end_is_stored_like_any_other() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let held = fixture.store.hold_writer();
    actor.commit_state(delta(b"s1")).unwrap();
    actor.stop(StopReason::Sleep);
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }

    // Whether it is taken or not is the actor's matter; what it takes, it stores.
    let taken = actor.try_admit();
    if let Some(call) = taken {
        actor.mark_dirty();
        let end = actor.finish_in_place(call);
        assert!(matches!(end, InPlace::Hold(_)), "{end:?}");
        *fixture.script.state.lock() = Some(Bytes::from_static(b"s2"));
    }
    drop(held);
    fixture.settle().await;

    let expected: &[u8] = if taken.is_some() { b"s2" } else { b"s1" };
    assert_eq!(fixture.stored().await.state.as_deref(), Some(expected));
    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept]);
}
