//! An author's SQL from the handle of a generation.

use bytes::Bytes;
use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::behavior::{StateDelta, StopOutcome};
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::core::context::ActorContext;
use greenroom::store::{BeginOptions, Bindings, SqlValue};
use greenroom::time::Duration;

use crate::fixture::{Fixture, call, is_open};

async fn run(actor: &ActorContext, sql: &str) -> Result<i64, String> {
    let outcome = actor.sql().execute(sql.to_owned(), Bindings::None).await;
    let outcome = outcome.map_err(|error| format!("{}/{}", error.group, error.code))?;
    Ok(match outcome.rows.iter().next().and_then(|row| row.first()) {
        Some(SqlValue::Integer(number)) => *number,
        _ => -1,
    })
}

async fn slept(world: &Fixture, actor: &ActorContext) {
    actor.stop(StopReason::Sleep);
    for _ in 0..1_000 {
        if !world.host.outcomes.lock().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    assert_eq!(*world.host.outcomes.lock(), [StopOutcome::Slept]);
}

#[tokio::test]
async fn the_first_real_statement_gives_the_actor_a_file() {
    let world = Fixture::new().await;
    let actor = world.started().await;
    let store = world.store.actor(world.row.number);

    run(&actor, " -- nothing\n").await.unwrap();
    assert!(store.file().is_none());
    run(&actor, "CREATE TABLE t (a)").await.unwrap();

    assert!(store.file().is_some());
    run(&actor, "INSERT INTO t VALUES (7)").await.unwrap();
    assert_eq!(run(&actor, "SELECT a FROM t").await, Ok(7));
}

#[tokio::test]
async fn a_type_that_declares_a_database_has_its_file_before_its_first_hook() {
    let config = ActorConfig { has_state: true, opens_database: true, ..ActorConfig::default() };
    let world = Fixture::with(config).await;
    world.script.hold("on_migrate");

    let actor = world.generation();
    let starting = {
        let actor = actor.clone();
        tokio::spawn(async move { actor.start().await })
    };
    for _ in 0..1_000 {
        if !world.script.events.lock().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }

    assert!(!world.script.events.lock().is_empty(), "the hook was asked");
    assert!(world.store.actor(world.row.number).file().is_some());
    starting.abort();
}

#[tokio::test]
async fn statements_asked_for_while_the_actor_moves_keep_their_order() {
    let world = Fixture::new().await;
    let actor = world.started().await;

    let sql = actor.sql();
    let none = || Bindings::None;
    let all = [
        sql.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)".into(), none()),
        sql.execute("INSERT INTO t (b) VALUES ('x')".into(), none()),
        sql.execute("INSERT INTO t (b) VALUES ('y')".into(), none()),
    ];
    let ids: Vec<_> = futures::future::join_all(all).await;

    let ids: Vec<_> = ids.into_iter().map(|done| done.unwrap().last_insert_row_id).collect();
    assert_eq!(ids, [None, Some(1), Some(2)]);
}

#[tokio::test]
async fn what_was_written_is_there_in_the_next_generation() {
    let world = Fixture::new().await;
    let actor = world.started().await;
    run(&actor, "CREATE TABLE t (a)").await.unwrap();
    run(&actor, "INSERT INTO t VALUES (3)").await.unwrap();
    slept(&world, &actor).await;

    let again = world.generation();
    again.start().await.unwrap();

    assert_eq!(run(&again, "SELECT a FROM t").await, Ok(3));
}

#[tokio::test]
async fn after_the_end_of_its_generation_a_statement_is_refused() {
    let world = Fixture::new().await;
    let actor = world.started().await;
    run(&actor, "CREATE TABLE t (a)").await.unwrap();
    slept(&world, &actor).await;

    assert_eq!(run(&actor, "SELECT 1").await, Err("sqlite/transaction_closed".to_owned()));
}

#[tokio::test]
async fn a_generation_that_never_used_sql_gets_no_file_after_its_end() {
    let world = Fixture::new().await;
    let actor = world.started().await;
    slept(&world, &actor).await;

    assert_eq!(
        run(&actor, "CREATE TABLE t (a)").await,
        Err("sqlite/transaction_closed".to_owned())
    );
    assert!(world.store.actor(world.row.number).file().is_none());
}

#[tokio::test]
async fn a_transaction_that_is_open_at_the_end_is_rolled_back() {
    let world = Fixture::new().await;
    let actor = world.started().await;
    run(&actor, "CREATE TABLE t (a)").await.unwrap();
    let transaction = actor.sql().begin(BeginOptions::default()).await.unwrap();
    transaction.execute("INSERT INTO t VALUES (1)".into(), Bindings::None).await.unwrap();
    slept(&world, &actor).await;

    let again = world.generation();
    again.start().await.unwrap();

    assert_eq!(run(&again, "SELECT count(*) FROM t").await, Ok(0));
}

#[tokio::test]
async fn a_transaction_that_takes_too_long_expires_on_the_clock() {
    let world = Fixture::new().await;
    let actor = world.started().await;
    run(&actor, "CREATE TABLE t (a)").await.unwrap();
    let timeout = Some(Duration::from_millis(100));
    let options = BeginOptions { timeout, ..BeginOptions::default() };
    let transaction = actor.sql().begin(options).await.unwrap();
    transaction.execute("INSERT INTO t VALUES (1)".into(), Bindings::None).await.unwrap();

    world.advance_ms(100).await;

    let late = transaction.commit().await.expect_err("it has expired");
    assert_eq!((&*late.group, &*late.code), ("sqlite", "transaction_expired"));
    // What is asked for while the rollback runs fails with the transaction.
    let meanwhile = run(&actor, "SELECT count(*) FROM t").await;
    assert!(
        meanwhile == Ok(0) || meanwhile == Err("sqlite/transaction_expired".to_owned()),
        "{meanwhile:?}"
    );
    assert_eq!(run(&actor, "SELECT count(*) FROM t").await, Ok(0));
}

#[tokio::test]
async fn the_death_of_a_generation_leaves_nothing_of_its_open_transaction() {
    let world = Fixture::new().await;
    let actor = world.started().await;
    run(&actor, "CREATE TABLE t (a)").await.unwrap();
    let transaction = actor.sql().begin(BeginOptions::default()).await.unwrap();
    transaction.execute("INSERT INTO t VALUES (1)".into(), Bindings::None).await.unwrap();

    actor.break_generation(greenroom::error::Error::internal("a fault"));
    let again = world.generation();
    again.start().await.unwrap();

    assert_eq!(run(&again, "SELECT count(*) FROM t").await, Ok(0));
    assert_eq!(run(&actor, "SELECT 1").await, Err("sqlite/transaction_closed".to_owned()));
}

#[tokio::test]
async fn what_a_turn_writes_is_committed_with_the_state() {
    let world = Fixture::new().await;
    let actor = world.started().await;
    run(&actor, "CREATE TABLE t (a)").await.unwrap();

    let ran = actor.sql().run_in_turn("INSERT INTO t VALUES (1)", &Bindings::None).unwrap();
    assert!(ran.wrote);
    actor.commit_state(vec![StateDelta::ActorState(Bytes::from_static(b"new"))]).unwrap();
    actor.sql().end_turn();
    actor.flushed().await.unwrap();

    assert_eq!(run(&actor, "SELECT a FROM t").await, Ok(1));
    assert_eq!(world.stored().await.state.as_deref(), Some(&b"new"[..]));
}

#[tokio::test]
async fn a_turn_that_ends_behind_the_grace_period_is_stored_with_the_last_state_or_not_at_all() {
    for is_saved in [true, false] {
        let world = Fixture::new().await;
        let actor = world.started().await;
        run(&actor, "CREATE TABLE t (a)").await.unwrap();
        world.settle().await;
        actor.sql().run_in_turn("INSERT INTO t VALUES (1)", &Bindings::None).unwrap();
        world.script.hold("serialize_state_save");
        actor.stop(StopReason::Sleep);
        world.settle().await;
        assert_eq!(world.script.waiting("serialize_state_save"), 1, "the grace period is over");

        actor.sql().end_turn();
        world.settle().await;
        if is_saved {
            world.script.answer_snapshot(b"last");
        } else {
            actor.break_generation(greenroom::error::Error::internal("killed"));
        }
        world.settle().await;
        world.script.release("serialize_state_save");

        let again = world.generation();
        again.start().await.unwrap();
        let state = world.stored().await.state;
        assert_eq!(run(&again, "SELECT count(*) FROM t").await, Ok(i64::from(is_saved)));
        assert_eq!(state.as_deref() == Some(&b"last"[..]), is_saved);
    }
}

#[tokio::test]
async fn a_turn_that_only_reads_gives_the_connection_back_at_its_end() {
    let world = Fixture::new().await;
    let actor = world.started().await;
    run(&actor, "CREATE TABLE t (a)").await.unwrap();

    let ran = actor.sql().run_in_turn("SELECT count(*) FROM t", &Bindings::None).unwrap();
    assert!(!ran.wrote);
    actor.sql().end_turn();

    assert_eq!(run(&actor, "INSERT INTO t VALUES (2) RETURNING a").await, Ok(2));
}

#[tokio::test]
async fn a_turn_that_a_statement_rolled_back_breaks_the_generation_and_leaves_nothing() {
    let world = Fixture::new().await;
    let actor = world.started().await;
    run(&actor, "CREATE TABLE t (a INTEGER PRIMARY KEY)").await.unwrap();
    let sql = actor.sql();
    sql.run_in_turn("INSERT INTO t VALUES (1)", &Bindings::None).unwrap();

    let lost = sql
        .run_in_turn("INSERT OR ROLLBACK INTO t VALUES (1)", &Bindings::None)
        .expect_err("the turn is lost");

    assert_eq!((&*lost.group, &*lost.code), ("sqlite", "turn_lost"));
    assert!(actor.commit_state(Vec::new()).is_none());
    let again = world.generation();
    again.start().await.unwrap();
    assert_eq!(run(&again, "SELECT count(*) FROM t").await, Ok(0));
}

#[tokio::test]
async fn a_generation_that_breaks_in_mid_turn_undoes_the_turn() {
    let world = Fixture::new().await;
    let actor = world.started().await;
    run(&actor, "CREATE TABLE t (a)").await.unwrap();
    actor.sql().run_in_turn("INSERT INTO t VALUES (1)", &Bindings::None).unwrap();

    actor.break_generation(greenroom::error::Error::internal("a fault"));

    let late = actor.sql().run_in_turn("SELECT 1", &Bindings::None);
    assert!(late.is_err());
    let again = world.generation();
    again.start().await.unwrap();
    assert_eq!(run(&again, "SELECT count(*) FROM t").await, Ok(0));
}

#[tokio::test]
async fn a_change_behind_a_transaction_begun_by_hand_fails_after_a_minute_and_undoes_it() {
    let world = Fixture::new().await;
    let actor = world.started().await;
    run(&actor, "CREATE TABLE t (a)").await.unwrap();
    run(&actor, "BEGIN").await.unwrap();
    run(&actor, "INSERT INTO t VALUES (1)").await.unwrap();
    actor.commit_state(vec![StateDelta::ActorState(Bytes::from_static(b"new"))]).unwrap();
    let mut answer = call(&actor, "begin");

    world.advance(Duration::from_millis(59_999)).await;
    assert!(is_open(&mut answer));
    world.advance(Duration::from_millis(1)).await;

    let error = answer.await.unwrap().unwrap_err();
    assert_eq!((&*error.group, &*error.code), ("sqlite", "manual_transaction_open"));
    assert_eq!(error.metadata, Some(serde_json::json!({ "timeout_ms": 60_000 })));
    let again = world.generation();
    again.start().await.unwrap();
    assert_eq!(run(&again, "SELECT count(*) FROM t").await, Ok(0));
    assert_ne!(world.stored().await.state.as_deref(), Some(&b"new"[..]));
}

#[tokio::test]
async fn at_its_end_an_actor_rolls_back_what_was_begun_by_hand_and_saves() {
    let world = Fixture::new().await;
    let actor = world.started().await;
    run(&actor, "CREATE TABLE t (a)").await.unwrap();
    run(&actor, "BEGIN").await.unwrap();
    run(&actor, "INSERT INTO t VALUES (1)").await.unwrap();
    actor.commit_state(vec![StateDelta::ActorState(Bytes::from_static(b"new"))]).unwrap();

    slept(&world, &actor).await;

    assert_eq!(world.stored().await.state.as_deref(), Some(&b"new"[..]));
    let again = world.generation();
    again.start().await.unwrap();
    assert_eq!(run(&again, "SELECT count(*) FROM t").await, Ok(0));
}

#[tokio::test]
async fn with_an_interval_a_save_behind_a_transaction_begun_by_hand_is_tried_again() {
    let config =
        ActorConfig { has_state: true, durability: Durability::Interval, ..ActorConfig::default() };
    let world = Fixture::with(config).await;
    let actor = world.started().await;
    run(&actor, "CREATE TABLE t (a)").await.unwrap();
    run(&actor, "BEGIN").await.unwrap();
    run(&actor, "INSERT INTO t VALUES (1)").await.unwrap();
    let state = || StateDelta::ActorState(Bytes::from_static(b"new"));
    *world.script.state.lock() = Some(Bytes::from_static(b"new"));
    let saving = actor.clone();
    let saved = tokio::spawn(async move { saving.save_state(vec![state()]).await });
    world.advance(Duration::from_secs(60)).await;

    let error = saved.await.unwrap().unwrap_err();
    assert_eq!((&*error.group, &*error.code), ("sqlite", "manual_transaction_open"));
    run(&actor, "COMMIT").await.unwrap();
    world.advance(Duration::from_secs(60)).await;
    actor.flushed().await.unwrap();

    assert_eq!(world.stored().await.state.as_deref(), Some(&b"new"[..]));
    assert_eq!(run(&actor, "SELECT count(*) FROM t").await, Ok(1));
}
