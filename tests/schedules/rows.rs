//! What is written is what is read.

use bytes::Bytes;
use greenroom::core::schedule::{
    CronSpec, EverySpec, FireResult, OneShot, Retry, Schedules, history_of,
};
use greenroom::error::{Error, ErrorCode};
use greenroom::store::{ActorRecord, StoreError};
use serde_json::json;

use crate::desk::{Desk, T};

fn retry() -> Option<Retry> {
    Some(Retry { max_attempts: 3, initial_ms: Some(100), max_ms: Some(900) })
}

fn every(name: &str, max_history: i64) -> EverySpec {
    EverySpec {
        name: name.to_owned(),
        interval_ms: 5_000,
        action: "tick".to_owned(),
        args: Bytes::new(),
        max_history: Some(max_history),
        retry: None,
    }
}

#[tokio::test]
async fn every_column_reads_back_as_it_was_written() {
    let mut desk = Desk::new().await;
    let cron = CronSpec {
        name: "näme".to_owned(),
        expression: "*/5 9 * * MON".to_owned(),
        timezone: Some("Europe/Berlin".to_owned()),
        action: "a\0b".to_owned(),
        args: Bytes::from_static(b"\x00\xff"),
        max_history: Some(7),
        retry: retry(),
    };
    let set = desk.schedules.cron_set(cron, T).unwrap();
    desk.write(set).await;
    let set = desk.schedules.cron_every(every("beat", 3), T).unwrap();
    desk.write(set).await;
    let keyed = OneShot {
        trigger_at: T + 5,
        action: "ring".to_owned(),
        args: Bytes::new(),
        retry: retry(),
        key: Some("k".to_owned()),
    };
    let made = desk.schedules.at(keyed.clone(), &desk.ids).unwrap();
    let id = desk.write(made).await;
    let set = desk.schedules.set_run_wake(Some(T + 9));
    desk.write(set).await;
    let (jobs, shots) = (desk.schedules.cron_list().unwrap(), desk.schedules.list().unwrap());

    desk.crash().await;

    assert_eq!(desk.schedules.cron_list().unwrap(), jobs);
    assert_eq!(desk.schedules.list().unwrap(), shots);
    assert_eq!(desk.schedules.at(keyed, &desk.ids).unwrap(), (id, Vec::new()));
    let stored = desk.actor.load().await.unwrap().schedules;
    assert_eq!(stored.run_wake_at, Some(T + 9));
    assert_eq!(stored.pending.iter().filter(|row| row.retry.is_some()).count(), 2);
}

#[tokio::test]
async fn the_history_keeps_what_a_client_may_know_of_an_error() {
    let mut desk = Desk::new().await;
    let set = desk.schedules.cron_every(every("beat", 2), T).unwrap();
    desk.write(set).await;
    let public = Error::new(ErrorCode::new("user", "mine"), "told")
        .with_metadata(json!({ "attempt": 2, "retryable": false }));
    for (n, error) in [(1, None), (2, Some(Error::internal("secret"))), (3, Some(public))] {
        desk.now = T + n * 5_000;
        let taken = desk.take().await;
        let result = error.as_ref().map_or(Ok(()), Err);
        let finished = desk.schedules.finish(taken[0].run, result, desk.now + 1);
        desk.write_ops(finished.ops).await;
    }

    let (id, limit) = desk.schedules.cron_history("beat", None).unwrap();
    let history = history_of(desk.actor.schedule_history(id, limit).await.unwrap());

    assert_eq!(history.len(), 2);
    let FireResult::Error(mine) = &history[0].result else { panic!("{history:?}") };
    assert_eq!((mine.code.as_str(), mine.message.as_str()), ("mine", "told"));
    assert_eq!(mine.metadata, Some(json!({ "attempt": 2, "retryable": false })));
    assert_eq!((history[0].fired_at, history[0].finished_at), (T + 15_000, Some(T + 15_001)));
    let FireResult::Error(secret) = &history[1].result else { panic!("{history:?}") };
    assert_eq!((secret.code.as_str(), secret.metadata.as_ref()), ("internal_error", None));
    assert!(!secret.message.contains("secret"));
}

#[tokio::test]
async fn a_history_that_keeps_nothing_any_more_is_emptied() {
    let mut desk = Desk::new().await;
    let set = desk.schedules.cron_every(every("beat", 5), T).unwrap();
    desk.write(set).await;
    desk.now = T + 5_000;
    desk.take().await;

    let set = desk.schedules.cron_every(every("beat", 0), T).unwrap();
    desk.write(set).await;

    let history = desk.actor.schedule_history("cron:beat".to_owned(), 10).await.unwrap();
    assert_eq!(history, []);
}

#[tokio::test]
async fn a_save_of_the_actor_does_not_touch_its_schedules_and_a_destroy_sweeps_them() {
    let mut desk = Desk::new().await;
    desk.at(T + 1, None).await;
    let set = desk.schedules.cron_every(every("beat", 5), T).unwrap();
    desk.write(set).await;
    let before = desk.actor.load().await.unwrap();

    let state = Bytes::from_static(b"state");
    desk.write_ops(vec![greenroom::store::RowOp::PutState(state.clone())]).await;

    let expected = ActorRecord { state: Some(state), ..before };
    assert_eq!(desk.actor.load().await.unwrap(), expected);
    assert!(desk.store.destroy(desk.number).await.unwrap());
    assert_eq!(desk.actor.load().await, Err(StoreError::NotFound));
}

#[tokio::test]
async fn an_actor_without_schedules_loads_none_and_writes_nothing() {
    let desk = Desk::new().await;

    let stored = desk.actor.load().await.unwrap().schedules;

    let (schedules, ops) = Schedules::load(stored, 10, T);
    assert_eq!((schedules.next_alarm(), ops), (None, Vec::new()));
}
