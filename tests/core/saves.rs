//! Saving: when a snapshot is asked for, what is published, and who is told.

use bytes::Bytes;
use greenroom::core::actor::save_queue::SaveRequest;
use greenroom::core::behavior::{ActorEvent, StateDelta, StopOutcome};
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::error::Error;
use greenroom::time::Duration;

use crate::fixture::Fixture;

const IMMEDIATE: SaveRequest = SaveRequest { immediate: true, max_wait: None };

async fn interval() -> Fixture {
    let config = ActorConfig { durability: Durability::Interval, ..ActorConfig::default() };
    Fixture::with(config).await
}

#[tokio::test]
async fn changes_within_the_interval_share_one_save() {
    let fixture = interval().await;
    let actor = fixture.started().await;
    fixture.script.hold("serialize_state_save");

    actor.mark_dirty();
    fixture.advance_ms(500).await;
    actor.mark_dirty();
    fixture.advance_ms(499).await;
    assert_eq!(fixture.script.waiting("serialize_state_save"), 0);
    fixture.advance_ms(1).await;
    assert_eq!(fixture.script.waiting("serialize_state_save"), 1);
    fixture.script.answer_snapshot(b"s1");
    fixture.advance_ms(10_000).await;

    assert_eq!(actor.state(), "s1");
    assert_eq!(fixture.stored().await.state.as_deref(), Some(&b"s1"[..]));
    assert_eq!(fixture.script.waiting("serialize_state_save"), 0);
}

#[tokio::test]
async fn a_longest_wait_brings_the_save_forward() {
    let fixture = interval().await;
    let actor = fixture.started().await;
    fixture.script.hold("serialize_state_save");

    let max_wait = Some(Duration::from_millis(25));
    actor.request_save(SaveRequest { immediate: false, max_wait });
    fixture.advance_ms(24).await;
    assert_eq!(fixture.script.waiting("serialize_state_save"), 0);
    fixture.advance_ms(1).await;

    assert_eq!(fixture.script.waiting("serialize_state_save"), 1);
}

#[tokio::test]
async fn a_request_made_while_a_snapshot_is_taken_is_for_the_next_save() {
    let fixture = interval().await;
    let actor = fixture.started().await;
    fixture.script.hold("serialize_state_save");
    actor.request_save(IMMEDIATE);
    assert_eq!(fixture.script.waiting("serialize_state_save"), 1);

    let waiting = actor.clone();
    let second = tokio::spawn(async move { waiting.request_save_and_wait(IMMEDIATE).await });
    fixture.settle().await;
    fixture.script.answer_snapshot(b"s1");
    fixture.settle().await;
    assert!(!second.is_finished());
    fixture.script.answer_snapshot(b"s2");

    second.await.unwrap().unwrap();
    assert_eq!(actor.state(), "s2");
    fixture.advance_ms(10_000).await;
    assert_eq!(fixture.script.waiting("serialize_state_save"), 0);
}

#[tokio::test]
async fn a_serialisation_that_fails_is_told_and_tried_again_once_an_interval() {
    let fixture = interval().await;
    let actor = fixture.started().await;
    fixture.script.hold("serialize_state_save");
    let waiting = actor.clone();
    let save = tokio::spawn(async move { waiting.request_save_and_wait(IMMEDIATE).await });
    fixture.settle().await;

    let ActorEvent::SerializeState { reply, .. } = fixture.script.take("serialize_state_save")
    else {
        unreachable!()
    };
    reply.send(Err(Error::internal("cannot")));

    assert_eq!(save.await.unwrap().unwrap_err().code, "internal_error");
    fixture.advance_ms(999).await;
    assert_eq!(fixture.script.waiting("serialize_state_save"), 0);
    fixture.advance_ms(1).await;
    assert_eq!(fixture.script.waiting("serialize_state_save"), 1);
}

#[tokio::test]
async fn with_durability_reply_a_request_is_saved_at_once() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    *fixture.script.state.lock() = Some(Bytes::from_static(b"s1"));

    actor.request_save(SaveRequest::default());
    fixture.settle().await;

    assert_eq!(fixture.stored().await.state.as_deref(), Some(&b"s1"[..]));
}

#[tokio::test]
async fn a_pushed_commit_satisfies_the_requests_made_before_it() {
    let fixture = interval().await;
    let actor = fixture.started().await;
    fixture.script.hold("serialize_state_save");
    let waiting = actor.clone();
    let save =
        tokio::spawn(async move { waiting.request_save_and_wait(SaveRequest::default()).await });
    fixture.settle().await;

    let delta = StateDelta::ActorState(Bytes::from_static(b"pushed"));
    actor.save_state(vec![delta]).await.unwrap();

    save.await.unwrap().unwrap();
    fixture.advance_ms(10_000).await;
    assert_eq!(fixture.script.waiting("serialize_state_save"), 0);
}

#[tokio::test]
async fn a_push_of_no_changes_satisfies_the_requests_made_before_it() {
    let fixture = interval().await;
    let actor = fixture.started().await;
    let waiting = actor.clone();
    let save =
        tokio::spawn(async move { waiting.request_save_and_wait(SaveRequest::default()).await });
    fixture.settle().await;

    actor.save_state(Vec::new()).await.unwrap();

    save.await.unwrap().unwrap();
}

#[tokio::test]
async fn flushed_means_durable_up_to_here() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    actor.flushed().await.unwrap();

    let delta = StateDelta::ActorState(Bytes::from_static(b"s1"));
    actor.commit_state(vec![delta]).unwrap();
    actor.flushed().await.unwrap();

    assert_eq!(fixture.stored().await.state.as_deref(), Some(&b"s1"[..]));
}

#[tokio::test]
async fn a_write_of_a_generation_whose_time_is_over_breaks_it_and_is_not_stored() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.store.open_generation(fixture.row.number);

    let delta = StateDelta::ActorState(Bytes::from_static(b"stale"));
    let saved = actor.save_state(vec![delta]).await;

    assert_eq!(saved.unwrap_err().code, "stale_generation");
    assert_eq!(fixture.stored().await.state, None);
    let outcomes = fixture.host.outcomes.lock().clone();
    assert!(matches!(outcomes[..], [StopOutcome::Broken(_)]), "{outcomes:?}");
}

#[cfg(feature = "faults")]
#[tokio::test]
async fn a_save_is_done_when_it_is_committed_and_not_before() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let held = fixture.store.hold_writer();
    let delta = |state| vec![StateDelta::ActorState(Bytes::from_static(state))];
    let (saving, waiting) = (actor.clone(), actor.clone());
    let first = tokio::spawn(async move { saving.save_state(delta(b"s1")).await });
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    let second = actor.commit_state(vec![StateDelta::ActorState(Bytes::from_static(b"s2"))]);
    let flushed = tokio::spawn(async move { waiting.flushed().await });
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(!first.is_finished() && !flushed.is_finished());
    assert!(second.is_some());
    assert_eq!(actor.state(), "", "nothing is published before it is stored");

    drop(held);

    first.await.unwrap().unwrap();
    flushed.await.unwrap().unwrap();
    assert_eq!(actor.state(), "s2");
    assert_eq!(fixture.stored().await.state.as_deref(), Some(&b"s2"[..]));
}
