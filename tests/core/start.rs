//! Starting: the order of the hooks, what is durable when, and what fails how.

use bytes::Bytes;
use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::behavior::{ActorEvent, StopOutcome};
use greenroom::error::Error;
use greenroom::store::{RowOp, WriteBatch, commit};

use crate::fixture::{Fixture, call, error_code};

#[tokio::test]
async fn a_new_actor_runs_its_hooks_in_order_and_is_stored_before_it_takes_work() {
    let fixture = Fixture::new().await;
    *fixture.script.state.lock() = Some(Bytes::from_static(b"s0"));

    let actor = fixture.started().await;

    assert_eq!(
        fixture.script.story(),
        [
            "on_migrate",
            "create_state",
            "on_create",
            "serialize_state_save",
            "create_vars",
            "on_wake",
            "on_before_actor_start"
        ]
    );
    let stored = fixture.stored().await;
    assert!(stored.has_initialized);
    assert_eq!(stored.state.as_deref(), Some(&b"s0"[..]));
    assert_eq!(actor.state(), "s0");
}

#[tokio::test]
async fn an_actor_that_wakes_keeps_its_state_and_creates_none() {
    let fixture = Fixture::new().await;
    *fixture.script.state.lock() = Some(Bytes::from_static(b"s0"));
    fixture.started().await.stop(StopReason::Sleep);
    fixture.settle().await;
    fixture.script.log.lock().clear();

    let actor = fixture.started().await;

    assert_eq!(
        fixture.script.story(),
        ["on_migrate", "create_vars", "on_wake", "on_before_actor_start"]
    );
    assert_eq!(actor.state(), "s0");
}

#[tokio::test]
async fn requests_before_the_start_are_refused_as_starting() {
    let fixture = Fixture::new().await;
    let actor = fixture.generation();

    for refused in [actor.sleep(), actor.destroy(), actor.stop_with_error("x")] {
        assert_eq!(Error::from(refused.unwrap_err()).code, "starting");
    }
    let mut answer = call(&actor, "ping");
    assert_eq!(error_code(&mut answer), "actor/not_ready");
    assert!(fixture.host.intents.lock().is_empty());
}

#[tokio::test]
async fn a_start_that_fails_reports_its_cause_and_leaves_the_actor_new() {
    let fixture = Fixture::new().await;
    *fixture.script.state.lock() = Some(Bytes::from_static(b"s0"));
    *fixture.script.fail.lock() = Some(("on_create", Error::internal("no luck")));

    let error = fixture.generation().start().await.unwrap_err();

    let actor = error.actor.clone().unwrap();
    assert_eq!(actor.phase.as_deref(), Some("on_create"));
    assert_eq!(actor.key.as_deref(), Some("a"));
    assert_eq!(error.metadata.as_ref().unwrap()["error"], "no luck");
    assert!(!fixture.stored().await.has_initialized);
    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::StartFailed(error)]);

    *fixture.script.fail.lock() = None;
    fixture.script.inputs.lock().clear();
    fixture.started().await;
    let input = Some(Bytes::from_static(b"in"));
    assert_eq!(*fixture.script.inputs.lock(), [input.clone(), input]);
}

#[tokio::test]
async fn state_that_was_stored_before_initialisation_is_not_a_snapshot() {
    let fixture = Fixture::new().await;
    let ops = vec![RowOp::PutState(Bytes::from_static(b"half"))];
    let generation = fixture.store.open_generation(fixture.row.number);
    let store = fixture.store.actor(fixture.row.number);
    commit(&*store, WriteBatch { generation, ops, alarm: None, fails_generation: false })
        .await
        .unwrap();

    let actor = fixture.started().await;

    assert_eq!(fixture.script.count("create_state"), 1);
    assert!(fixture.stored().await.has_initialized);
    assert_ne!(actor.state(), "half");
}

#[tokio::test]
async fn an_initialised_actor_without_state_creates_it_again_but_is_not_new() {
    let fixture = Fixture::new().await;
    let ops = vec![RowOp::PutInitialized(true)];
    let generation = fixture.store.open_generation(fixture.row.number);
    let store = fixture.store.actor(fixture.row.number);
    commit(&*store, WriteBatch { generation, ops, alarm: None, fails_generation: false })
        .await
        .unwrap();
    *fixture.script.state.lock() = Some(Bytes::from_static(b"s1"));

    let actor = fixture.started().await;

    assert_eq!(fixture.script.count("create_state"), 1);
    assert_eq!(fixture.script.count("on_create"), 0);
    assert_eq!(actor.state(), "s1");
}

#[tokio::test]
async fn what_create_state_makes_is_the_state_from_then_on() {
    let fixture = Fixture::new().await;
    fixture.script.hold("create_state");
    fixture.script.hold("on_create");
    let actor = fixture.generation();
    let starting = actor.clone();
    let start = tokio::spawn(async move { starting.start().await });
    fixture.settle().await;

    let ActorEvent::Hook { reply, .. } = fixture.script.take("create_state") else {
        unreachable!()
    };
    reply.send(Ok(Some(Bytes::from_static(b"made"))));
    fixture.settle().await;
    assert_eq!(actor.state(), "made", "on_create reads it");
    fixture.script.answer_hook("on_create");
    start.await.unwrap().unwrap();

    assert_eq!(fixture.stored().await.state.as_deref(), Some(&b"made"[..]));
}

#[tokio::test]
async fn a_hook_that_does_not_end_times_out_by_name() {
    let fixture = Fixture::new().await;
    fixture.script.hold("create_vars");
    let actor = fixture.generation();
    let start = tokio::spawn(async move { actor.start().await });

    fixture.advance_ms(4_999).await;
    assert!(!start.is_finished());
    fixture.advance_ms(1).await;

    let error = start.await.unwrap().unwrap_err();
    assert_eq!((&*error.group, &*error.code), ("actor", "callback_timed_out"));
    let metadata = error.metadata.clone().unwrap();
    assert_eq!(metadata["callback_name"], "createVars");
    assert_eq!(metadata["duration_ms"], 5_000);
}

#[tokio::test]
async fn a_hook_whose_reply_is_dropped_fails_the_start() {
    let fixture = Fixture::new().await;
    fixture.script.hold("on_wake");
    let actor = fixture.generation();
    let start = tokio::spawn(async move { actor.start().await });
    fixture.settle().await;

    drop(fixture.script.take("on_wake"));

    assert_eq!(start.await.unwrap().unwrap_err().code, "dropped_reply");
}

#[tokio::test]
async fn a_stop_during_the_start_takes_effect_when_the_start_is_over() {
    let fixture = Fixture::new().await;
    fixture.script.hold("on_wake");
    let actor = fixture.generation();
    let starting = actor.clone();
    let start = tokio::spawn(async move { starting.start().await });
    fixture.settle().await;

    actor.stop(StopReason::Sleep);
    fixture.settle().await;
    assert!(fixture.host.outcomes.lock().is_empty());
    fixture.script.answer_hook("on_wake");
    fixture.settle().await;

    start.await.unwrap().unwrap();
    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept]);
    assert_eq!(fixture.script.count("on_sleep"), 1);
}

#[tokio::test]
async fn a_generation_that_is_broken_while_it_starts_says_why() {
    let fixture = Fixture::new().await;
    fixture.script.hold("on_wake");
    let actor = fixture.generation();
    let starting = actor.clone();
    let start = tokio::spawn(async move { starting.start().await });
    fixture.settle().await;

    actor.break_generation(Error::internal("pulled the plug"));

    let error = start.await.unwrap().unwrap_err();
    assert_eq!(error.metadata.as_ref().unwrap()["error"], "pulled the plug");
    let outcomes = fixture.host.outcomes.lock().clone();
    assert!(matches!(outcomes[..], [StopOutcome::Broken(_)]), "{outcomes:?}");
}

#[tokio::test]
async fn the_hooks_of_a_start_see_whether_the_actor_is_new() {
    let fixture = Fixture::new().await;
    fixture.script.hold("on_migrate");
    let mut seen = Vec::new();

    for _ in 0..2 {
        let actor = fixture.generation();
        let starting = actor.clone();
        let start = tokio::spawn(async move { starting.start().await });
        fixture.settle().await;
        if let ActorEvent::Hook { hook, reply } = fixture.script.take("on_migrate") {
            seen.push(hook);
            reply.send(Ok(None));
        }
        start.await.unwrap().unwrap();
        actor.stop(StopReason::Sleep);
        fixture.settle().await;
    }

    use greenroom::core::behavior::Hook::Migrate;
    assert_eq!(seen, [Migrate { is_new: true }, Migrate { is_new: false }]);
}
