//! Rows of a workflow, stored with the state.

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::behavior::StateDelta;
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::core::context::ActorContext;
use greenroom::core::workflow::{MAX_BYTES, MAX_VALUE_BYTES};
use greenroom::error::Result;
use greenroom::store::{Bindings, SqlValue};

use crate::fixture::{Fixture, call};

type Flushed = BoxFuture<'static, Result<()>>;

/// The author's side is asked for its state, as the contract's is.
async fn world() -> Fixture {
    let config =
        ActorConfig { has_state: true, durability: Durability::Interval, ..ActorConfig::default() };
    Fixture::with(config).await
}

fn rows(count: usize, value: &'static str) -> Vec<(Bytes, Bytes)> {
    let row = |n| (Bytes::from(format!("k{n}")), Bytes::from(value));
    (0..count).map(row).collect()
}

fn flush(actor: &ActorContext, writes: Vec<(Bytes, Bytes)>) -> Flushed {
    actor.save_state_and_workflow_batch(writes)
}

async fn ended<T>(world: &Fixture, mut waits: BoxFuture<'static, T>) -> T {
    for _ in 0..5_000 {
        world.settle().await;
        if let Some(outcome) = (&mut waits).now_or_never() {
            return outcome;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    panic!("it did not end");
}

async fn code(world: &Fixture, waits: Flushed) -> String {
    let error = ended(world, waits).await.expect_err("it is refused");
    format!("{}/{}", error.group, error.code)
}

/// The snapshot that a flush asks for, once the actor has moved.
async fn asked(world: &Fixture) {
    for _ in 0..5_000 {
        world.settle().await;
        if world.script.waiting("serialize_state_save") > 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    panic!("no snapshot was asked for");
}

/// What SQL finds: keys in hexadecimal and values as text.
async fn table(actor: &ActorContext) -> Vec<(String, String)> {
    let sql = "SELECT hex(key), CAST(value AS TEXT) FROM _rivet_wf_kv ORDER BY key";
    let found = actor.sql().execute(sql.into(), Bindings::None).await.unwrap();
    let text = |value: &SqlValue| match value {
        SqlValue::Text(text) => text.to_string(),
        other => panic!("{other:?}"),
    };
    found.rows.iter().map(|row| (text(&row[0]), text(&row[1]))).collect()
}

fn next_state(world: &Fixture, state: &'static str) {
    *world.script.state.lock() = Some(Bytes::from(state));
}

#[tokio::test]
async fn state_and_rows_are_stored_together_under_prefixed_keys_in_a_file() {
    let world = world().await;
    let actor = world.started().await;
    next_state(&world, "new");

    let writes = vec![(Bytes::from_static(b"\x15\x01"), Bytes::from("a"))];
    ended(&world, flush(&actor, writes.clone())).await.unwrap();

    assert!(world.store.actor(world.row.number).file().is_some());
    assert_eq!(table(&actor).await, [("06011501".to_owned(), "a".to_owned())]);
    assert_eq!(world.stored().await.state.as_deref(), Some(&b"new"[..]));
    assert_eq!(actor.state(), "new");
    ended(&world, flush(&actor, writes)).await.unwrap();
    assert_eq!(table(&actor).await.len(), 1, "a key that is there is replaced");
    assert_eq!(world.stored().await.state.as_deref(), Some(&b"new"[..]), "nothing of the state");
}

#[tokio::test]
async fn what_is_too_large_is_refused_whole_and_the_state_is_saved_without_it() {
    let world = world().await;
    let actor = world.started().await;
    let long = |len| vec![(Bytes::from("k"), Bytes::from(vec![b'x'; len]))];

    assert_eq!(
        code(&world, flush(&actor, long(MAX_VALUE_BYTES + 1))).await,
        "workflow/value_too_large"
    );
    assert_eq!(code(&world, flush(&actor, rows(129, "a"))).await, "workflow/too_many_rows");
    world.script.hold("serialize_state_save");
    let with_state = flush(&actor, rows(127, "a"));
    asked(&world).await;
    world.script.answer_snapshot(b"new");
    assert_eq!(code(&world, with_state).await, "workflow/too_many_rows");
    assert!(table(&actor).await.is_empty());
    assert_ne!(world.stored().await.state.as_deref(), Some(&b"new"[..]), "nothing is on the disk");
    world.script.answer_snapshot(b"new");
    world.settle().await;
    assert_eq!(world.stored().await.state.as_deref(), Some(&b"new"[..]));

    world.script.release("serialize_state_save");
    ended(&world, flush(&actor, long(MAX_VALUE_BYTES))).await.unwrap();
    ended(&world, flush(&actor, rows(128, "a"))).await.unwrap();
    let halves = vec![
        (Bytes::from("a"), Bytes::from(vec![b'x'; MAX_VALUE_BYTES])),
        (Bytes::from("b"), Bytes::from(vec![b'x'; MAX_BYTES - MAX_VALUE_BYTES])),
    ];
    assert_eq!(code(&world, flush(&actor, halves)).await, "workflow/batch_too_large");
}

#[tokio::test]
async fn flushes_are_stored_one_after_another_in_their_order() {
    let world = world().await;
    let actor = world.started().await;
    world.script.hold("serialize_state_save");

    let mut flushes: Vec<_> =
        ["1", "2", "3"].into_iter().map(|value| flush(&actor, rows(1, value))).collect();
    for round in 1..=3 {
        asked(&world).await;
        assert_eq!(world.script.waiting("serialize_state_save"), 1, "one at a time");
        world.script.answer_snapshot(b"state");
        ended(&world, flushes.remove(0)).await.unwrap();
        assert_eq!(table(&actor).await, [("06016B30".to_owned(), round.to_string())]);
    }
}

#[tokio::test]
async fn a_snapshot_that_is_outdated_is_asked_for_again() {
    let world = world().await;
    let actor = world.started().await;
    world.script.hold("serialize_state_save");

    let flushed = flush(&actor, rows(1, "a"));
    asked(&world).await;
    actor.commit_state(vec![StateDelta::ActorState(Bytes::from("newer"))]).unwrap();
    world.script.answer_snapshot(b"older");
    asked(&world).await;
    assert!(table(&actor).await.is_empty());
    world.script.answer_snapshot(b"newest");

    ended(&world, flushed).await.unwrap();
    assert_eq!(world.stored().await.state.as_deref(), Some(&b"newest"[..]));
    assert_eq!(table(&actor).await.len(), 1);
    world.settle().await;
    assert_eq!(world.script.waiting("serialize_state_save"), 0, "nothing is left to save");
}

#[tokio::test]
async fn a_flush_waits_for_a_snapshot_that_is_on_its_way() {
    let world = world().await;
    let actor = world.started().await;
    world.script.hold("serialize_state_save");
    let immediate =
        greenroom::core::actor::save_queue::SaveRequest { immediate: true, max_wait: None };

    actor.request_save(immediate);
    let flushed = flush(&actor, rows(1, "a"));
    asked(&world).await;
    world.script.answer_snapshot(b"first");
    asked(&world).await;
    assert!(table(&actor).await.is_empty());
    world.script.answer_snapshot(b"second");

    ended(&world, flushed).await.unwrap();
    assert_eq!(world.stored().await.state.as_deref(), Some(&b"second"[..]));
}

#[tokio::test]
async fn a_snapshot_that_fails_is_the_answer_and_the_next_flush_goes_on() {
    let world = world().await;
    let actor = world.started().await;
    let error = greenroom::error::Error::internal("no state today");
    *world.script.fail.lock() = Some(("serialize_state_save", error));

    let failed = ended(&world, flush(&actor, rows(1, "a"))).await.expect_err("no snapshot");
    assert_eq!(&*failed.code, "internal_error");
    *world.script.fail.lock() = None;

    ended(&world, flush(&actor, rows(1, "b"))).await.unwrap();
    assert_eq!(table(&actor).await, [("06016B30".to_owned(), "b".to_owned())]);
}

#[tokio::test]
async fn only_an_actor_that_runs_takes_a_flush() {
    let world = world().await;
    let actor = world.generation();
    assert_eq!(code(&world, flush(&actor, rows(1, "a"))).await, "actor/not_ready");
    actor.start().await.unwrap();
    world.script.hold("on_destroy");

    actor.stop(StopReason::Destroy);
    assert_eq!(code(&world, flush(&actor, rows(1, "a"))).await, "actor/not_ready");
    world.settle().await;
    world.script.answer_hook("on_destroy");
    world.settle().await;

    assert_eq!(code(&world, flush(&actor, rows(1, "a"))).await, "actor/not_ready");
}

#[tokio::test]
async fn a_flush_holds_the_grace_period_and_what_comes_in_it_is_stored() {
    let world = world().await;
    let actor = world.started().await;
    world.script.hold("on_sleep");
    actor.stop(StopReason::Sleep);
    world.settle().await;
    world.script.hold("serialize_state_save");

    let flushed = flush(&actor, rows(1, "a"));
    world.script.answer_hook("on_sleep");
    asked(&world).await;
    world.settle().await;
    assert!(world.host.outcomes.lock().is_empty());
    world.script.release("serialize_state_save");
    world.script.answer_snapshot(b"late");
    ended(&world, flushed).await.unwrap();
    for _ in 0..1_000 {
        world.settle().await;
        if !world.host.outcomes.lock().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }

    let again = world.started().await;
    assert_eq!(table(&again).await.len(), 1);
    assert_eq!(again.state(), "late");
}

#[tokio::test]
async fn a_flush_that_waits_when_the_generation_breaks_hears_why() {
    let world = world().await;
    let actor = world.started().await;
    world.script.hold("serialize_state_save");
    let flushes = [flush(&actor, rows(1, "a")), flush(&actor, rows(1, "b"))];
    asked(&world).await;

    actor.break_generation(greenroom::error::Error::internal("a fault"));

    for waits in flushes {
        assert_eq!(code(&world, waits).await, "core/internal_error");
    }
}

#[tokio::test]
async fn an_answer_waits_for_the_flush_before_it() {
    let config = ActorConfig { has_state: true, ..ActorConfig::default() };
    let world = Fixture::with(config).await;
    let actor = world.started().await;
    world.script.hold("serialize_state_save");

    let flushed = flush(&actor, rows(1, "a"));
    asked(&world).await;
    let answer = call(&actor, "while the state is asked for");
    world.settle().await;
    world.script.answer_snapshot(b"new");

    ended(&world, flushed).await.unwrap();
    ended(&world, answer.boxed()).await.unwrap().unwrap();
}

#[cfg(feature = "faults")]
#[tokio::test]
async fn a_commit_that_fails_leaves_state_and_rows_and_memory_as_they_were() {
    use greenroom::store::faults::CommitFault;
    let world = world().await;
    let actor = world.started().await;
    next_state(&world, "old");
    ended(&world, flush(&actor, rows(1, "old"))).await.unwrap();

    next_state(&world, "new");
    world.file_faults.fail_commit(CommitFault::Full);
    assert_eq!(code(&world, flush(&actor, rows(1, "new"))).await, "storage/full");

    assert_eq!(table(&actor).await, [("06016B30".to_owned(), "old".to_owned())]);
    assert_eq!(world.stored().await.state.as_deref(), Some(&b"old"[..]));
    assert_eq!(actor.state(), "old");
    for _ in 0..2 {
        next_state(&world, "new");
        ended(&world, flush(&actor, rows(1, "new"))).await.unwrap();
    }
    assert_eq!(table(&actor).await, [("06016B30".to_owned(), "new".to_owned())]);
    assert_eq!(actor.state(), "new");
}

#[cfg(feature = "faults")]
#[tokio::test]
async fn a_flush_whose_outcome_is_unknown_ends_the_generation_and_can_be_repeated() {
    use greenroom::store::faults::CommitFault;
    for kept in [false, true] {
        let world = world().await;
        let actor = world.started().await;
        next_state(&world, "old");
        ended(&world, flush(&actor, rows(1, "old"))).await.unwrap();
        next_state(&world, "new");
        world.file_faults.fail_commit(CommitFault::SyncFailed { kept });

        let lost = code(&world, flush(&actor, rows(1, "new"))).await;
        assert_eq!(lost, "storage/outcome_unknown");
        assert_eq!(code(&world, flush(&actor, rows(1, "new"))).await, "storage/outcome_unknown");

        let again = world.started().await;
        let is = if kept { "new" } else { "old" };
        assert_eq!(again.state(), is);
        assert_eq!(table(&again).await, [("06016B30".to_owned(), is.to_owned())]);
        next_state(&world, "new");
        ended(&world, flush(&again, rows(1, "new"))).await.unwrap();
        assert_eq!(table(&again).await, [("06016B30".to_owned(), "new".to_owned())]);
        assert_eq!(again.state(), "new");
    }
}
