//! Keys and values: limits, what a turn commits together, and what reads see.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::FutureExt;
use greenroom::core::behavior::{ActorEvent, StateDelta, StopOutcome};
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::core::context::ActorContext;
use greenroom::core::kv::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use greenroom::store::{KeyRange, KvQuery};

use crate::fixture::{Fixture, call};

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn entry(key: &'static str, value: &'static str) -> Vec<(Bytes, Bytes)> {
    vec![(bytes(key), bytes(value))]
}

fn everything() -> KvQuery {
    KvQuery { range: KeyRange::prefix(Bytes::new()), reverse: false, limit: None }
}

async fn keys(actor: &ActorContext) -> Vec<String> {
    let found = actor.kv().list(everything()).await.unwrap();
    found.into_iter().map(|(key, _)| String::from_utf8_lossy(&key).into_owned()).collect()
}

fn state(text: &'static str) -> Vec<StateDelta> {
    vec![StateDelta::ActorState(bytes(text))]
}

#[tokio::test]
async fn a_turn_commits_its_keys_and_its_state_together() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let before = fixture.store.stats();

    let mut first = actor.kv().put(entry("a", "1"));
    let mut second = actor.kv().delete(vec![bytes("b")]);
    actor.mark_dirty();
    fixture.settle().await;
    assert!((&mut first).now_or_never().is_none(), "its turn has not ended");
    actor.commit_state(state("s")).unwrap();
    fixture.settle().await;

    (&mut first).now_or_never().expect("durable").unwrap();
    (&mut second).now_or_never().expect("durable").unwrap();
    assert_eq!(fixture.store.stats().batches, before.batches + 1);
    assert_eq!(fixture.stored().await.state, Some(bytes("s")));
    assert_eq!(keys(&actor).await, ["a"]);
}

#[tokio::test]
async fn an_answer_waits_for_the_keys_that_its_turn_wrote() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    let mut answer = call(&actor, "put");
    let begun = fixture.script.begin(&actor);

    let written = actor.kv().put(entry("a", "1"));
    actor.finish_call(begun, Ok(bytes("done")));
    fixture.settle().await;
    assert!(crate::fixture::is_open(&mut answer));
    actor.commit_rows().unwrap();
    fixture.settle().await;

    assert_eq!(answer.try_recv().unwrap().unwrap(), "done");
    written.await.unwrap();
}

#[tokio::test]
async fn rows_that_are_committed_without_the_state_let_nothing_out_that_it_holds_back() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    let mut answer = call(&actor, "change");
    let begun = fixture.script.begin(&actor);
    actor.mark_dirty();
    actor.finish_call(begun, Ok(bytes("done")));

    let mut written = actor.kv().put(entry("a", "1"));
    actor.commit_rows().unwrap();
    fixture.settle().await;
    assert!(crate::fixture::is_open(&mut answer), "the state is not durable");
    assert!((&mut written).now_or_never().is_none(), "it stands behind the answer");
    actor.commit_state(state("s")).unwrap();
    fixture.settle().await;

    assert!(answer.try_recv().unwrap().is_ok());
    written.await.unwrap();
}

#[tokio::test]
async fn a_read_waits_for_the_end_of_a_turn_that_wrote() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;

    let written = actor.kv().put(entry("a", "1"));
    let reader = actor.clone();
    let read = tokio::spawn(async move { reader.kv().get(vec![bytes("a"), bytes("b")]).await });
    fixture.settle().await;
    assert!(!read.is_finished());
    actor.commit_rows().unwrap();

    assert_eq!(read.await.unwrap().unwrap(), [Some(bytes("1")), None]);
    written.await.unwrap();
}

#[tokio::test]
async fn what_on_create_writes_is_read_there_and_stored_with_the_first_state() {
    let fixture = Fixture::new().await;
    fixture.script.hold("on_create");
    let actor = fixture.generation();
    let starting = tokio::spawn({
        let actor = actor.clone();
        async move { actor.start().await }
    });
    fixture.settle().await;

    let kv = actor.kv();
    kv.put([entry("a", "1"), entry("b", "2"), entry("a", "3")].concat()).await.unwrap();
    kv.delete_range(KeyRange::prefix(bytes("b"))).await.unwrap();
    assert_eq!(kv.get(vec![bytes("a"), bytes("b")]).await.unwrap(), [Some(bytes("3")), None]);
    assert_eq!(keys(&actor).await, ["a"]);
    let mut stored = fixture.store.actor(fixture.row.number).kv_list(everything());
    fixture.settle().await;
    assert_eq!((&mut stored).now_or_never().unwrap().unwrap(), []);
    fixture.script.answer_hook("on_create");
    starting.await.unwrap().unwrap();

    assert_eq!(keys(&actor).await, ["a"]);
    let stored = fixture.store.actor(fixture.row.number).kv_list(everything()).await.unwrap();
    assert_eq!(stored, entry("a", "3"));
}

#[tokio::test]
async fn a_start_that_fails_leaves_none_of_its_keys() {
    let fixture = Fixture::new().await;
    fixture.script.hold("on_create");
    let actor = fixture.generation();
    let starting = tokio::spawn({
        let actor = actor.clone();
        async move { actor.start().await }
    });
    fixture.settle().await;
    actor.kv().put(entry("a", "1")).await.unwrap();
    let ActorEvent::Hook { reply, .. } = fixture.script.take("on_create") else { unreachable!() };
    reply.send(Err(greenroom::error::Error::internal("no")));

    starting.await.unwrap().unwrap_err();
    let stored = fixture.store.actor(fixture.row.number).kv_list(everything()).await.unwrap();
    assert_eq!(stored, []);
}

#[tokio::test]
async fn what_was_written_and_not_committed_is_stored_with_the_last_state() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;

    let written = actor.kv().put(entry("a", "1"));
    actor.stop(greenroom::core::actor::lifecycle::StopReason::Sleep);
    fixture.advance_ms(1).await;

    written.await.unwrap();
    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept]);
    let stored = fixture.store.actor(fixture.row.number).kv_list(everything()).await.unwrap();
    assert_eq!(stored, entry("a", "1"));
}

#[tokio::test]
async fn after_the_end_every_call_is_refused() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    actor.stop(greenroom::core::actor::lifecycle::StopReason::Sleep);
    fixture.advance_ms(1).await;

    let kv = actor.kv();
    let mut refused = VecDeque::new();
    refused.push_back(kv.put(entry("a", "1")).await.unwrap_err());
    refused.push_back(kv.delete(vec![bytes("a")]).await.unwrap_err());
    refused.push_back(kv.get(vec![bytes("a")]).await.unwrap_err());
    refused.push_back(kv.list(everything()).await.unwrap_err());

    assert!(refused.iter().all(|error| error.is("actor", "stopping")), "{refused:?}");
}

#[tokio::test]
async fn with_an_interval_a_key_is_durable_when_its_write_resolves() {
    let config = ActorConfig { durability: Durability::Interval, ..ActorConfig::default() };
    let fixture = Fixture::with(config).await;
    let actor = fixture.started().await;

    let written = actor.kv().put(entry("a", "1"));
    actor.commit_rows().unwrap();

    written.await.unwrap();
    let stored = fixture.store.actor(fixture.row.number).kv_list(everything()).await.unwrap();
    assert_eq!(stored, entry("a", "1"));
}

#[tokio::test]
async fn with_an_interval_a_key_does_not_wait_for_a_state_that_has_changed() {
    let config =
        ActorConfig { durability: Durability::Interval, has_state: true, ..ActorConfig::default() };
    let fixture = Fixture::with(config).await;
    let actor = fixture.started().await;
    fixture.script.hold("serialize_state_save");
    actor.mark_dirty();

    let mut written = actor.kv().put(entry("a", "1"));
    fixture.settle().await;
    assert!((&mut written).now_or_never().is_none(), "the turn has not ended");
    actor.commit_rows().unwrap();

    written.await.unwrap();
    let stored = fixture.store.actor(fixture.row.number).kv_list(everything()).await.unwrap();
    assert_eq!(stored, entry("a", "1"));
}

#[tokio::test]
async fn nothing_is_written_when_one_entry_is_too_large() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let long = |length: usize| Bytes::from(vec![b'k'; length]);

    let key =
        actor.kv().put([entry("a", "1"), vec![(long(MAX_KEY_BYTES + 1), bytes("v"))]].concat());
    let value = actor.kv().put(vec![(bytes("b"), long(MAX_VALUE_BYTES + 1))]);
    let (key, value) = (key.await.unwrap_err(), value.await.unwrap_err());
    let fits = actor.kv().put(vec![(long(MAX_KEY_BYTES), long(MAX_VALUE_BYTES))]);
    actor.commit_rows().unwrap();
    fits.await.unwrap();

    assert!(key.is("kv", "key_too_large") && value.is("kv", "value_too_large"));
    assert_eq!((key.public, key.status_code), (Some(true), Some(400)));
    assert_eq!(key.metadata, Some(serde_json::json!({ "size": 2049, "limit": 2048 })));
    assert_eq!(value.metadata, Some(serde_json::json!({ "size": 131_073, "limit": 131_072 })));
    assert_eq!(keys(&actor).await.len(), 1);
    // Reads have no limits, and nothing to write is written at once.
    assert_eq!(actor.kv().get(vec![long(MAX_KEY_BYTES + 1)]).await.unwrap(), [None]);
    actor.kv().put(Vec::new()).await.unwrap();
    actor.kv().delete(Vec::new()).await.unwrap();
}
