//! What an output has to wait for of the author's asynchronous statements.

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use greenroom::core::actor::InPlace;
use greenroom::core::behavior::{CallId, StateDelta};
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::core::context::ActorContext;
use greenroom::core::sql::ActorTransaction;
use greenroom::error::Result;
use greenroom::store::{BeginOptions, Bindings, SqlOutcome};

#[cfg(feature = "faults")]
use crate::fixture::error_code;
use crate::fixture::{Answer, Fixture, call, is_open};

type Asked = BoxFuture<'static, Result<SqlOutcome>>;

fn ask(actor: &ActorContext, sql: &str) -> Asked {
    actor.sql().execute(sql.to_owned(), Bindings::None)
}

/// An actor with a table `t`, and a transaction that keeps everything else waiting.
async fn behind_a_transaction(world: &Fixture) -> (ActorContext, ActorTransaction) {
    let actor = world.started().await;
    ask(&actor, "CREATE TABLE t (a INTEGER PRIMARY KEY)").await.unwrap();
    let transaction = actor.sql().begin(BeginOptions::default()).await.unwrap();
    (actor, transaction)
}

/// The file answers on threads of its own.
async fn answered(world: &Fixture, answer: &mut Answer) -> Result<Bytes> {
    for _ in 0..5_000 {
        world.settle().await;
        if let Ok(result) = answer.try_recv() {
            return result;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    panic!("it was not answered");
}

#[tokio::test]
async fn an_answer_waits_for_a_write_that_nobody_awaits_and_nothing_waits_for_a_reading() {
    let world = Fixture::new().await;
    let (actor, transaction) = behind_a_transaction(&world).await;

    let _reading = ask(&actor, "SELECT a FROM t");
    assert_eq!(answered(&world, &mut call(&actor, "read")).await.unwrap(), "args");
    let _writing = ask(&actor, "INSERT INTO t VALUES (1)");
    let mut answer = call(&actor, "write");
    world.settle().await;
    assert!(is_open(&mut answer));
    transaction.commit().await.unwrap();

    assert_eq!(answered(&world, &mut answer).await.unwrap(), "args");
}

#[tokio::test]
async fn an_answer_does_not_wait_for_a_transaction_but_for_its_commit() {
    let world = Fixture::new().await;
    let (actor, transaction) = behind_a_transaction(&world).await;
    transaction.execute("INSERT INTO t VALUES (1)".into(), Bindings::None).await.unwrap();

    assert_eq!(answered(&world, &mut call(&actor, "meanwhile")).await.unwrap(), "args");
    let committed = transaction.commit();
    let mut answer = call(&actor, "after");
    let last = answered(&world, &mut answer).await;

    assert_eq!(last.unwrap(), "args");
    assert!(committed.now_or_never().is_some(), "the commit was answered before");
}

#[tokio::test]
async fn a_write_that_is_refused_or_fails_lets_answers_leave() {
    let world = Fixture::new().await;
    let (actor, transaction) = behind_a_transaction(&world).await;
    transaction.execute("INSERT INTO t VALUES (1)".into(), Bindings::None).await.unwrap();

    let twice = ask(&actor, "INSERT INTO t VALUES (1)");
    let nonsense = ask(&actor, "INSERT INTO nowhere VALUES (1)");
    drop(ask(&actor, "INSERT INTO t VALUES (2)"));
    let mut answer = call(&actor, "write");
    world.settle().await;
    assert!(is_open(&mut answer));
    transaction.commit().await.unwrap();

    assert_eq!(answered(&world, &mut answer).await.unwrap(), "args");
    assert!(twice.await.is_err() && nonsense.await.is_err());
    assert_eq!(answered(&world, &mut call(&actor, "later")).await.unwrap(), "args");
}

#[tokio::test]
async fn an_answer_in_place_asks_and_leaves_behind_those_before_it() {
    let world = Fixture::new().await;
    let (actor, transaction) = behind_a_transaction(&world).await;
    let begin = || -> CallId { actor.try_admit().expect("it is started") };
    let (first, second) = (begin(), begin());

    let _writing = ask(&actor, "INSERT INTO t VALUES (1)");
    actor.mark_dirty();
    assert_eq!(actor.finish_in_place(first), InPlace::Ask);
    let (reply, left) = greenroom::core::behavior::Reply::channel();
    let mut left = std::pin::pin!(left);
    actor.output_may_leave(reply);
    actor.commit_state(vec![StateDelta::ActorState(Bytes::from_static(b"new"))]).unwrap();
    world.settle().await;
    assert!(left.as_mut().now_or_never().is_none());
    transaction.commit().await.unwrap();
    left.await.unwrap();

    assert_eq!(actor.finish_in_place(second), InPlace::Leave);
    assert_eq!(world.stored().await.state.as_deref(), Some(&b"new"[..]));
}

#[tokio::test]
async fn with_an_interval_only_a_flush_waits_for_a_write() {
    let config =
        ActorConfig { has_state: true, durability: Durability::Interval, ..ActorConfig::default() };
    let world = Fixture::with(config).await;
    let (actor, transaction) = behind_a_transaction(&world).await;

    let _writing = ask(&actor, "INSERT INTO t VALUES (1)");
    assert_eq!(answered(&world, &mut call(&actor, "write")).await.unwrap(), "args");
    let flushing = actor.clone();
    let mut flushed = tokio::spawn(async move { flushing.flushed().await });
    world.settle().await;
    assert!((&mut flushed).now_or_never().is_none());
    transaction.commit().await.unwrap();

    flushed.await.unwrap().unwrap();
}

#[cfg(feature = "faults")]
#[tokio::test]
async fn a_write_for_which_there_is_no_room_fails_what_waited_and_breaks_the_generation() {
    let world = Fixture::new().await;
    let (actor, transaction) = behind_a_transaction(&world).await;
    transaction.commit().await.unwrap();
    let file = world.store.actor(world.row.number).file().unwrap();
    let limit = file.execute(actor.generation(), "PRAGMA max_page_count = 1");
    limit.await.unwrap().unwrap();

    let writing = ask(&actor, "CREATE TABLE big AS SELECT zeroblob(1000000)");
    let mut answer = call(&actor, "write");
    let failed = answered(&world, &mut answer).await.expect_err("it reveals what was lost");

    assert_eq!((&*failed.group, &*failed.code), ("storage", "full"));
    assert!(writing.await.is_err());
    assert_eq!(error_code(&mut call(&actor, "later")), "storage/full");
}
