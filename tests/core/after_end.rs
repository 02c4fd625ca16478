//! What a handle of a generation that is over, or whose rows were closed, still does:
//! nothing, and it says why.

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::context::ActorContext;
use greenroom::core::messages::{Receive, Until};
use greenroom::core::queue::Names;
use greenroom::core::schedule::OneShot;
use greenroom::error::{Error, Result};
use greenroom::store::{Bindings, KeyRange, KvQuery, MessageId};

use crate::fixture::Fixture;
use crate::messages::message;

type Call = BoxFuture<'static, Result<()>>;

fn called<T: Send + 'static>(call: BoxFuture<'static, Result<T>>) -> Call {
    call.map(|result| result.map(drop)).boxed()
}

fn answered<T>(result: Result<T>) -> Call {
    futures::future::ready(result.map(drop)).boxed()
}

/// Everything that an author's side can store or read beside its state.
fn calls(actor: &ActorContext) -> Vec<(&'static str, Call)> {
    let (kv, queue, schedule, sql) = (actor.kv(), actor.queue(), actor.schedule(), actor.sql());
    let key = || Bytes::from("k");
    let all = || KvQuery { range: KeyRange::prefix(Bytes::new()), reverse: false, limit: None };
    let receive =
        || Receive { names: Names::Any, count: 1, completable: false, until: Until::default() };
    let shot = || OneShot {
        trigger_at: 1,
        action: "a".into(),
        args: Bytes::new(),
        retry: None,
        key: None,
    };
    let statement = || "CREATE TABLE t (a)".to_owned();
    vec![
        ("kv.get", called(kv.get(vec![key()]))),
        ("kv.list", called(kv.list(all()))),
        ("kv.put", called(kv.put(vec![(key(), key())]))),
        ("kv.delete", called(kv.delete(vec![key()]))),
        ("kv.delete_range", called(kv.delete_range(KeyRange::prefix(key())))),
        ("queue.send", called(queue.send(message("job")))),
        ("queue.receive", called(queue.receive(receive()))),
        ("queue.wait", called(queue.send_and_wait(message("job"), Until::default()))),
        ("queue.dead", called(queue.dead_letters(MessageId(0), 1))),
        ("schedule.at", called(schedule.at(shot()))),
        ("schedule.cancel", called(schedule.cancel("x"))),
        ("schedule.list", answered(schedule.list())),
        ("schedule.cron_list", answered(schedule.cron_list())),
        ("schedule.cron_history", called(schedule.cron_history("x", None))),
        ("schedule.set_run_wake", called(schedule.set_run_wake(Some(1)))),
        ("sql.execute", called(sql.execute(statement(), Bindings::None))),
        ("sql.exec", called(sql.exec(statement()))),
        ("sql.execute_batch", called(sql.execute_batch(vec![(statement(), Bindings::None)]))),
        ("sql.begin", called(sql.begin(Default::default()))),
        ("sql.run_in_turn", answered(sql.run_in_turn(&statement(), &Bindings::None))),
        ("workflow", called(actor.save_state_and_workflow_batch(vec![(key(), key())]))),
    ]
}

/// Expects that each is refused at once, and how.
async fn refused(world: &Fixture, actor: &ActorContext, expected: fn(&str) -> &'static str) {
    for (name, call) in calls(actor) {
        world.settle().await;
        let result = call.now_or_never().unwrap_or_else(|| panic!("{name} is not answered"));
        let error = result.expect_err(name);
        assert_eq!(format!("{}/{}", error.group, error.code), expected(name), "{name}");
    }
}

fn at_the_end(name: &str) -> &'static str {
    match name {
        "workflow" => "actor/not_ready",
        name if name.starts_with("sql") => "sqlite/transaction_closed",
        _ => "actor/stopping",
    }
}

#[tokio::test]
async fn after_its_end_a_generation_takes_and_gives_nothing_and_makes_no_file() {
    for reason in [StopReason::Sleep, StopReason::Destroy] {
        let world = Fixture::new().await;
        let actor = world.started().await;
        actor.stop(reason);
        world.settle().await;
        assert_eq!(world.host.outcomes.lock().len(), 1);
        if reason == StopReason::Destroy {
            assert!(world.store.destroy(world.row.number).await.unwrap());
        }

        refused(&world, &actor, at_the_end).await;

        assert!(world.store.actor(world.row.number).file().is_none());
        assert!(actor.commit_rows().is_none());
    }
}

#[tokio::test]
async fn a_broken_generation_says_what_broke_it() {
    let world = Fixture::new().await;
    let actor = world.started().await;

    actor.break_generation(Error::internal("a fault"));

    let expected = |name: &str| match name {
        name if name.starts_with("sql") => "sqlite/transaction_closed",
        _ => "core/internal_error",
    };
    refused(&world, &actor, expected).await;
    assert!(world.store.actor(world.row.number).file().is_none());
}

#[tokio::test]
async fn rows_that_were_closed_stay_closed_until_the_next_generation() {
    let world = Fixture::new().await;
    let actor = world.started().await;
    let sent = actor.queue().send(message("before"));
    actor.sql().close_rows_too().await.unwrap();

    refused(&world, &actor, |_| "sqlite/transaction_closed").await;

    assert!(world.store.actor(world.row.number).file().is_none());
    assert!(actor.commit_rows().is_some(), "what was sent before is stored");
    world.settle().await;
    assert!(sent.now_or_never().is_some_and(|sent| sent.is_ok()));
    actor.stop(StopReason::Sleep);
    world.settle().await;
    let again = world.started().await;
    assert_eq!(again.queue().len(), 1);
    again.sql().execute("CREATE TABLE t (a)".into(), Bindings::None).await.unwrap();
}
