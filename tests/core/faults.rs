//! What a failed commit does to an actor: memory never runs ahead of the store
//! for good.

use bytes::Bytes;
use greenroom::core::behavior::{StateDelta, StopOutcome};
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::core::context::ActorContext;
use greenroom::core::messages::{Receive, Until};
use greenroom::core::queue::{Names, NewMessage};
use greenroom::core::schedule::OneShot;
use greenroom::store::faults::CommitFault;
use greenroom::time::Duration;

use crate::fixture::{Answer, Fixture, call, error_code, is_open};

/// A group of one batch is not replayed, so one failure is its failure.
const ONE_BATCH: usize = 1;

fn delta(state: &'static [u8]) -> Vec<StateDelta> {
    vec![StateDelta::ActorState(Bytes::from_static(state))]
}

fn ring() -> OneShot {
    OneShot { trigger_at: 0, action: "ring".to_owned(), args: Bytes::new(), retry: None, key: None }
}

/// Calls an action that changes the state and ends, and one that only reads it.
fn change_and_read(fixture: &Fixture, actor: &ActorContext) -> [Answer; 2] {
    fixture.script.hold("action");
    let answers = [call(actor, "change"), call(actor, "read")];
    let (change, read) = (fixture.script.begin(actor), fixture.script.begin(actor));
    actor.mark_dirty();
    actor.finish_call(change, Ok(Bytes::new()));
    actor.finish_call(read, Ok(Bytes::new()));
    fixture.script.release("action");
    answers
}

#[tokio::test]
async fn a_full_disk_fails_every_output_that_waited_and_the_next_start_finds_the_last_state() {
    let fixture = Fixture::new().await;
    *fixture.script.state.lock() = Some(Bytes::from_static(b"s0"));
    let actor = fixture.started().await;
    let mut answers = change_and_read(&fixture, &actor);
    assert!(answers.iter_mut().all(is_open));
    fixture.faults.fail_commits(ONE_BATCH, CommitFault::Full);

    actor.commit_state(delta(b"s1")).unwrap();
    fixture.settle().await;

    for answer in &mut answers {
        assert_eq!(error_code(answer), "storage/full");
    }
    let outcomes = fixture.host.outcomes.lock().clone();
    assert!(matches!(outcomes[..], [StopOutcome::Broken(_)]), "{outcomes:?}");
    let again = fixture.started().await;
    assert_eq!(again.state(), "s0");
    again.save_state(delta(b"s2")).await.unwrap();
    assert_eq!(fixture.stored().await.state.as_deref(), Some(&b"s2"[..]));
}

#[tokio::test]
async fn with_durability_interval_a_full_disk_is_told_and_the_save_is_tried_again() {
    let config = ActorConfig { durability: Durability::Interval, ..ActorConfig::default() };
    let fixture = Fixture::with(config).await;
    let actor = fixture.started().await;
    fixture.faults.fail_commits(ONE_BATCH, CommitFault::Full);

    let failed = actor.save_state(delta(b"s1")).await;
    assert_eq!(failed.unwrap_err().code, "full");
    assert!(fixture.host.outcomes.lock().is_empty(), "it lives on");
    *fixture.script.state.lock() = Some(Bytes::from_static(b"s2"));
    fixture.advance_ms(1_000).await;

    assert_eq!(fixture.stored().await.state.as_deref(), Some(&b"s2"[..]));
}

#[tokio::test]
async fn an_unknown_outcome_breaks_the_generation_in_either_mode() {
    for durability in [Durability::Reply, Durability::Interval] {
        let config = ActorConfig { durability, ..ActorConfig::default() };
        let fixture = Fixture::with(config).await;
        let actor = fixture.started().await;
        fixture.faults.fail_commits(1, CommitFault::SyncFailed { kept: false });

        let saved = actor.save_state(delta(b"s1")).await;

        assert_eq!(saved.unwrap_err().code, "outcome_unknown", "{durability:?}");
        fixture.settle().await;
        let outcomes = fixture.host.outcomes.lock().clone();
        assert!(matches!(outcomes[..], [StopOutcome::Broken(_)]), "{outcomes:?}");
    }
}

#[tokio::test]
async fn a_start_whose_first_save_fails_leaves_the_actor_new() {
    let fixture = Fixture::new().await;
    *fixture.script.state.lock() = Some(Bytes::from_static(b"s0"));
    fixture.faults.fail_commits(ONE_BATCH, CommitFault::Full);

    let error = fixture.generation().start().await.unwrap_err();

    assert_eq!(error.code, "full");
    assert!(!fixture.stored().await.has_initialized);
    fixture.started().await;
    assert_eq!(fixture.script.count("on_create"), 2);
}

#[tokio::test]
async fn a_last_save_that_fails_is_told_to_the_host_as_a_broken_generation() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    *fixture.script.state.lock() = Some(Bytes::from_static(b"s1"));
    fixture.faults.fail_commits(ONE_BATCH, CommitFault::Full);

    actor.stop(greenroom::core::actor::lifecycle::StopReason::Sleep);
    fixture.settle().await;

    let outcomes = fixture.host.outcomes.lock().clone();
    assert!(
        matches!(&outcomes[..], [StopOutcome::Broken(error)] if error.code == "full"),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn with_an_interval_a_key_that_could_not_be_stored_is_told_and_the_actor_lives() {
    let config = ActorConfig { durability: Durability::Interval, ..ActorConfig::default() };
    let fixture = Fixture::with(config).await;
    let actor = fixture.started().await;
    fixture.faults.fail_commits(1, CommitFault::Full);

    let key = |text: &'static str| vec![(Bytes::from_static(text.as_bytes()), Bytes::new())];
    let lost = actor.kv().put(key("a"));
    actor.commit_rows().unwrap();
    assert!(lost.await.unwrap_err().is("storage", "full"));
    let kept = actor.kv().put(key("b"));
    actor.commit_rows().unwrap();
    kept.await.unwrap();

    let wanted = vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")];
    assert_eq!(actor.kv().get(wanted).await.unwrap(), [None, Some(Bytes::new())]);
}

#[tokio::test]
async fn what_could_not_be_taken_durably_does_not_run_and_stays_pending() {
    for durability in [Durability::Reply, Durability::Interval] {
        let config = ActorConfig { durability, ..ActorConfig::default() };
        let fixture = Fixture::with(config).await;
        let actor = fixture.started().await;
        let made = actor.schedule().after(5_000.0, ring());
        actor.commit_rows();
        let id = made.await.unwrap();
        fixture.faults.fail_commits(ONE_BATCH, CommitFault::Full);

        fixture.advance_ms(5_000).await;

        assert_eq!(fixture.script.count("action"), 0);
        let outcomes = fixture.host.outcomes.lock().clone();
        assert!(matches!(outcomes[..], [StopOutcome::Broken(_)]), "{outcomes:?}");
        let stored = fixture.stored().await;
        assert_eq!((stored.alarm, stored.schedules.fires.len()), (Some(1_005_000), 0));
        let again = fixture.started().await;
        assert_eq!(again.schedule().get(&id).unwrap(), None, "taken by the next start");
        fixture.advance_ms(1).await;
        assert_eq!(fixture.script.count("action"), 1);
    }
}

#[tokio::test]
async fn a_schedule_that_could_not_be_stored_ends_the_generation_that_has_it_in_memory() {
    let config = ActorConfig { durability: Durability::Interval, ..ActorConfig::default() };
    let fixture = Fixture::with(config).await;
    let actor = fixture.started().await;
    fixture.faults.fail_commits(ONE_BATCH, CommitFault::Full);

    let made = actor.schedule().after(5_000.0, ring());
    actor.commit_rows();

    assert!(made.await.unwrap_err().is("storage", "full"));
    fixture.settle().await;
    let outcomes = fixture.host.outcomes.lock().clone();
    assert!(matches!(outcomes[..], [StopOutcome::Broken(_)]), "{outcomes:?}");
    let again = fixture.started().await;
    assert!(again.schedule().list().unwrap().is_empty());
}

fn job() -> NewMessage {
    NewMessage {
        name: "job".into(),
        body: Bytes::from_static(b"body"),
        delay: Duration::ZERO,
        dedupe_key: None,
    }
}

fn one_job() -> Receive {
    Receive { names: Names::Any, count: 1, completable: false, until: Until::default() }
}

#[tokio::test]
async fn a_queue_whose_rows_could_not_be_stored_begins_again_from_what_is() {
    for durability in [Durability::Reply, Durability::Interval] {
        let fixture = Fixture::with(ActorConfig { durability, ..ActorConfig::default() }).await;
        let actor = fixture.started().await;
        let kept = actor.queue().send(job());
        actor.commit_rows().unwrap();
        kept.await.unwrap();
        fixture.faults.fail_commits(1, CommitFault::Full);

        let handed_out = actor.queue().receive(one_job());
        let sent = actor.queue().send(job());
        fixture.settle().await;

        assert!(handed_out.await.unwrap_err().is("storage", "full"), "{durability:?}");
        sent.await.unwrap_err();
        let outcomes = fixture.host.outcomes.lock().clone();
        assert!(matches!(outcomes[..], [StopOutcome::Broken(_)]), "{outcomes:?}");
        let again = fixture.started().await;
        let received = again.queue().receive(one_job()).await.unwrap();
        assert_eq!(received[0].delivery().id.0, 1);
        assert!(again.queue().is_empty());
    }
}
