//! State transactions: all or nothing, one at a time, and what waits for their end.

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::behavior::{StateDelta, StopOutcome};
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::core::context::ActorContext;
use greenroom::core::schedule::OneShot;
use greenroom::core::transaction::{MAX_STATEMENTS, TransactionOwner};
use greenroom::error::{Error, Result};
use greenroom::store::{BeginOptions, Bindings, KeyRange, KvQuery, SqlValue};
use greenroom::time::Duration;

use crate::fixture::Fixture;
use crate::messages::*;

const TIMEOUT: Duration = Duration::from_secs(5);

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn entry(key: &'static str, value: &'static str) -> Vec<(Bytes, Bytes)> {
    vec![(bytes(key), bytes(value))]
}

async fn open(actor: &ActorContext) -> TransactionOwner {
    let (owner, opened) = actor.begin_state_transaction(TIMEOUT);
    opened.await.unwrap();
    owner
}

fn shot(action: &str) -> OneShot {
    let (action, args) = (action.to_owned(), Bytes::new());
    OneShot { trigger_at: i64::MAX / 4, action, args, retry: None, key: None }
}

fn code<T>(result: Result<T>) -> String {
    let error = result.err().expect("an error");
    format!("{}/{}", error.group, error.code)
}

async fn value(actor: &ActorContext, key: &'static str) -> Option<Bytes> {
    actor.kv().get(vec![bytes(key)]).await.unwrap().remove(0)
}

/// One that changes something of each kind; its statements make a table.
async fn planned(actor: &ActorContext, with_sql: bool) -> TransactionOwner {
    let owner = open(actor).await;
    let tx = owner.transaction();
    tx.kv().put(entry("k", "tx")).await.unwrap();
    tx.queue().send(message("job")).await.unwrap();
    tx.schedule().at(shot("later")).await.unwrap();
    if with_sql {
        tx.execute("CREATE TABLE t (a)".into(), Bindings::None).await.unwrap();
        tx.execute_now("INSERT INTO t VALUES (7)", &Bindings::None).unwrap();
    }
    owner
}

/// Waits until the host has heard of the end.
async fn ended_generation(fixture: &Fixture) {
    for _ in 0..1_000 {
        if !fixture.host.outcomes.lock().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

async fn commit(owner: &TransactionOwner, state: &'static str) -> Result<()> {
    let (_, durable) = owner.commit(Some(bytes(state)), true)?;
    durable.await
}

#[tokio::test]
async fn everything_of_it_is_stored_in_one_commit() {
    for with_sql in [false, true] {
        let fixture = Fixture::new().await;
        let actor = fixture.started().await;
        let owner = planned(&actor, with_sql).await;
        assert_eq!(value(&actor, "k").await, None, "seen before it commits");
        assert!(actor.queue().is_empty() && actor.schedule().list().unwrap().is_empty());
        fixture.settle().await;
        let before = fixture.store.stats().commits;

        commit(&owner, "s").await.unwrap();

        if !with_sql {
            assert_eq!(fixture.store.stats().commits, before + 1);
        }
        let stored = fixture.stored().await;
        assert_eq!(stored.state, Some(bytes("s")));
        assert_eq!(actor.state(), "s");
        assert_eq!((stored.queue.messages.len(), stored.schedules.pending.len()), (1, 1));
        assert_eq!(value(&actor, "k").await, Some(bytes("tx")));
        assert_eq!((actor.queue().len(), actor.schedule().list().unwrap().len()), (1, 1));
        if with_sql {
            let found = actor.sql().execute("SELECT a FROM t".into(), Bindings::None).await;
            let rows = found.unwrap().rows;
            assert_eq!(rows.iter().next().unwrap(), [SqlValue::Integer(7)]);
        }
    }
}

#[tokio::test]
async fn nothing_is_left_of_one_that_is_rolled_back_dropped_or_expired() {
    for with_sql in [false, true] {
        for end in ["rollback", "drop", "expiry"] {
            let fixture = Fixture::new().await;
            let actor = fixture.started().await;
            let owner = planned(&actor, with_sql).await;
            let ended = owner.transaction().ended();
            match end {
                "rollback" => owner.roll_back().await,
                "drop" => drop(owner),
                _ => {
                    fixture.clock.advance(TIMEOUT);
                    assert_eq!(code(ended.await), "sqlite/transaction_expired");
                    let late = owner.transaction().kv().put(entry("k", "late")).await;
                    assert_eq!(code(late), "sqlite/transaction_expired");
                    let message = commit(&owner, "s").await.unwrap_err().message.clone();
                    assert!(message.contains("expired after 5000 ms"), "{message}");
                }
            }

            // What comes after it finds the actor as it was before.
            assert_eq!(value(&actor, "k").await, None, "{end}");
            let stored = fixture.stored().await;
            assert_eq!(stored.state, None, "{end}");
            assert!(actor.queue().is_empty() && actor.schedule().list().unwrap().is_empty());
            let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 't'";
            let found = actor.sql().execute(tables.into(), Bindings::None).await.unwrap();
            assert_eq!(found.rows.iter().next().unwrap(), [SqlValue::Integer(0)], "{end}");
            commit(&open(&actor).await, "next").await.unwrap();
            assert_eq!(fixture.stored().await.state, Some(bytes("next")));
        }
    }
}

#[tokio::test]
async fn one_that_has_ended_takes_nothing() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let owner = open(&actor).await;
    commit(&owner, "s").await.unwrap();

    let finished = "actor/state_transaction_finished";
    assert_eq!(code(commit(&owner, "t").await), finished);
    let tx = owner.transaction();
    assert_eq!(code(tx.kv().put(entry("k", "v")).await), finished);
    assert_eq!(code(tx.queue().send(message("job")).await), finished);
    assert_eq!(code(tx.schedule().list()), finished);
    assert_eq!(code(tx.execute("SELECT 1".into(), Bindings::None).await), finished);
    owner.roll_back().await;
    assert_eq!(actor.state(), "s");
}

#[tokio::test]
async fn it_sees_its_own_changes_and_those_of_nobody_else() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let all = || KvQuery { range: KeyRange::prefix(Bytes::new()), reverse: false, limit: Some(2) };
    let put = actor.kv().put([entry("a", "1"), entry("b", "2"), entry("c", "3")].concat());
    actor.commit_rows();
    put.await.unwrap();
    let owner = open(&actor).await;
    let kv = owner.transaction().kv();

    kv.delete_range(KeyRange::between(bytes("a"), bytes("b"))).await.unwrap();
    kv.put(entry("b", "two")).await.unwrap();
    drop(actor.kv().put(entry("c", "outside")));

    let found = kv.list(all()).await.unwrap();
    assert_eq!(found, [(bytes("b"), bytes("two")), (bytes("c"), bytes("3"))]);
    let got = kv.get(vec![bytes("a"), bytes("b"), bytes("c")]).await.unwrap();
    assert_eq!(got, [None, Some(bytes("two")), Some(bytes("3"))]);
    let schedule = owner.transaction().schedule();
    let id = schedule.at(shot("later")).await.unwrap();
    assert_eq!(schedule.get(&id).unwrap().unwrap().action, "later");
    assert!(schedule.cancel(&id).await.unwrap() && schedule.list().unwrap().is_empty());
    commit(&owner, "s").await.unwrap();
    assert_eq!(value(&actor, "c").await, Some(bytes("outside")));
}

#[tokio::test]
async fn the_next_commit_behind_it_has_the_state_that_answers_wait_for() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let state = |text| vec![StateDelta::ActorState(bytes(text))];
    let before = actor.commit_state(state("before")).unwrap();
    let owner = open(&actor).await;
    actor.mark_dirty();
    let put = actor.kv().put(entry("k", "turn"));

    owner.roll_back().await;
    let behind = actor.commit_state(state("turn")).unwrap();

    assert_eq!(behind, before.next(), "a commit without the state came between");
    put.await.unwrap();
    assert_eq!(fixture.stored().await.state, Some(bytes("turn")));
}

#[tokio::test]
async fn what_others_save_meanwhile_is_saved_when_it_has_ended() {
    for commits in [true, false] {
        let fixture = Fixture::new().await;
        let actor = fixture.started().await;
        let owner = open(&actor).await;
        owner.transaction().kv().put(entry("k", "tx")).await.unwrap();

        let outside = actor.kv().put(entry("k", "outside"));
        let mut saved = tokio::spawn({
            let actor = actor.clone();
            async move { actor.save_state(vec![StateDelta::ActorState(bytes("saved"))]).await }
        });
        fixture.settle().await;
        assert_eq!(actor.commit_state(Vec::new()), None);
        assert_eq!(actor.commit_rows(), None);
        fixture.settle().await;
        assert!((&mut saved).now_or_never().is_none(), "a save came between");
        assert_eq!(fixture.stored().await.state, None);
        if commits {
            commit(&owner, "tx").await.unwrap();
        } else {
            owner.roll_back().await;
        }

        outside.await.unwrap();
        saved.await.unwrap().unwrap();
        assert_eq!(fixture.stored().await.state, Some(bytes("saved")));
        assert_eq!(value(&actor, "k").await, Some(bytes("outside")));
    }
}

#[tokio::test]
async fn a_snapshot_from_the_other_side_of_its_beginning_or_end_is_thrown_away() {
    let config = ActorConfig { durability: Durability::Interval, ..ActorConfig::default() };
    let fixture = Fixture::with(config).await;
    let actor = fixture.started().await;
    fixture.script.hold("serialize_state_save");
    actor.mark_dirty();
    fixture.advance_ms(1_000).await;
    assert_eq!(fixture.script.waiting("serialize_state_save"), 1);

    let owner = open(&actor).await;
    fixture.script.answer_snapshot(b"before");
    fixture.advance_ms(2_000).await;
    assert_eq!(fixture.script.waiting("serialize_state_save"), 0, "it waits for the end");
    owner.roll_back().await;
    fixture.settle().await;

    assert_eq!(actor.state(), "");
    fixture.script.answer_snapshot(b"after");
    fixture.settle().await;
    assert_eq!(actor.state(), "after");
}

#[tokio::test]
async fn others_wait_their_turn_in_the_order_of_asking() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let first = open(&actor).await;
    let (second, mut second_open) = actor.begin_state_transaction(TIMEOUT);
    let (given_up, mut never) = actor.begin_state_transaction(TIMEOUT);
    let (third, mut third_open) = actor.begin_state_transaction(TIMEOUT);
    let is_open = |opened: &mut BoxFuture<'static, Result<()>>| opened.now_or_never().is_some();

    fixture.settle().await;
    assert!(!is_open(&mut second_open) && !is_open(&mut third_open));
    drop(given_up);
    assert!((&mut never).now_or_never().expect("it is told").is_err());
    first.roll_back().await;
    assert!(is_open(&mut second_open) && !is_open(&mut third_open));
    commit(&second, "2").await.unwrap();
    assert!(is_open(&mut third_open));
    commit(&third, "3").await.unwrap();

    assert_eq!(actor.state(), "3");
}

#[tokio::test]
async fn a_message_that_somebody_else_completed_undoes_it() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    send(&actor, message("job")).await;
    let mut received = actor.queue().receive(completable());
    let received = ended(&fixture, &mut received).await.unwrap().remove(0);
    let owner = open(&actor).await;
    let tx = owner.transaction();
    tx.kv().put(entry("k", "tx")).await.unwrap();
    tx.queue().received(received.delivery().clone()).complete(None).await.unwrap();

    let outside = received.complete(None);
    fixture.settle().await;
    let lost = commit(&owner, "s").await;

    assert_eq!(code(lost), "queue/already_completed");
    outside.await.unwrap();
    assert_eq!((value(&actor, "k").await, actor.state()), (None, Bytes::new()));
    assert!(actor.queue().is_empty());
}

#[tokio::test]
async fn its_statements_cannot_end_it_and_one_that_does_undoes_it() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let owner = planned(&actor, true).await;
    let tx = owner.transaction();
    let run = |sql: &str| tx.execute(sql.to_owned(), Bindings::None);

    for refused in ["COMMIT", "/* c */ END", "ROLLBACK", "-- x\nrollback transaction", "COMMIT;"] {
        assert_eq!(code(run(refused).await), "actor/invalid_argument", "{refused}");
    }
    assert_eq!(code(tx.exec("SELECT 1; COMMIT".into()).await), "actor/invalid_argument");
    for allowed in ["SAVEPOINT s", "ROLLBACK TO s", "ROLLBACK TRANSACTION TO s", "RELEASE s"] {
        run(allowed).await.unwrap();
    }
    run("CREATE UNIQUE INDEX u ON t (a)").await.unwrap();
    run("INSERT OR ROLLBACK INTO t VALUES (7)").await.unwrap_err();

    assert_eq!(code(commit(&owner, "s").await), "sqlite/transaction_terminal");
    assert_eq!((value(&actor, "k").await, actor.state()), (None, Bytes::new()));
    commit(&open(&actor).await, "next").await.unwrap();
}

#[tokio::test]
async fn a_synchronous_statement_from_outside_is_refused_while_it_is_open() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let owner = open(&actor).await;

    let refused = actor.sql().run_in_turn("SELECT 1", &Bindings::None).map(drop);
    assert_eq!(code(refused), "sqlite/transaction_open");
    owner.transaction().execute_now("CREATE TABLE t (a)", &Bindings::None).unwrap();
    let (_, durable) = owner.commit(None, true).unwrap();
    // It waits for the commit, which needs nobody here.
    actor.sql().run_in_turn("SELECT * FROM t", &Bindings::None).unwrap();
    actor.sql().end_turn();

    durable.await.unwrap();
}

#[tokio::test]
async fn a_synchronous_statement_of_it_waits_for_no_transaction_that_an_author_has_to_end() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let other = actor.sql().begin(BeginOptions::default());
    let owner = open(&actor).await;
    let tx = owner.transaction();
    let now = || tx.execute_now("CREATE TABLE IF NOT EXISTS t (a)", &Bindings::None).map(drop);

    assert_eq!(code(now()), "sqlite/transaction_open", "the other one is about to begin");
    let later = tx.execute("SELECT 1".into(), Bindings::None);
    assert_eq!(code(now()), "sqlite/transaction_open", "it waits behind the other one");
    let other = other.await.unwrap();
    assert_eq!(code(now()), "sqlite/transaction_open", "the other one is open");
    other.commit().await.unwrap();
    let begun = now();

    later.await.unwrap();
    // Either its own had begun by then, or was the next to begin.
    begun.unwrap();
    commit(&owner, "s").await.unwrap();
}

#[tokio::test]
async fn a_constraint_that_fails_at_the_commit_ends_the_generation() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let run = |sql: &str| actor.sql().execute(sql.to_owned(), Bindings::None);
    run("CREATE TABLE p (id INTEGER PRIMARY KEY)").await.unwrap();
    run("CREATE TABLE c (p REFERENCES p DEFERRABLE INITIALLY DEFERRED)").await.unwrap();
    run("PRAGMA foreign_keys = ON").await.unwrap();
    let owner = open(&actor).await;
    let tx = owner.transaction();
    tx.kv().put(entry("k", "tx")).await.unwrap();
    tx.execute("INSERT INTO c VALUES (5)".into(), Bindings::None).await.unwrap();

    commit(&owner, "s").await.unwrap_err();

    ended_generation(&fixture).await;
    assert!(matches!(fixture.host.outcomes.lock()[..], [StopOutcome::Broken(_)]));
    let next = fixture.started().await;
    assert_eq!((value(&next, "k").await, next.state()), (None, Bytes::new()));
    let found = next.sql().execute("SELECT count(*) FROM c".into(), Bindings::None).await.unwrap();
    assert_eq!(found.rows.iter().next().unwrap(), [SqlValue::Integer(0)]);
}

#[tokio::test]
async fn the_budget_of_the_contract_counts_statements_and_bytes() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let owner = open(&actor).await;
    let tx = owner.transaction();
    for _ in 0..MAX_STATEMENTS {
        tx.execute_budgeted("SELECT 1".into(), Bindings::None).await.unwrap();
    }

    let state = vec![StateDelta::ActorState(bytes("s"))];
    let error = owner.commit_budgeted(state).map(drop).unwrap_err();
    assert!(error.message.contains("transaction budget"), "{error}");
    assert_eq!(actor.state(), "");
    let owner = open(&actor).await;
    let large = Bindings::Positional(vec![SqlValue::Blob(vec![0; 512 * 1024 + 1])]);
    let refused = owner.transaction().execute_budgeted("SELECT ?".into(), large).await;
    assert_eq!(code(refused), "sqlite/transaction_too_large");
}

#[tokio::test]
async fn an_open_one_keeps_the_actor_awake_and_is_rolled_back_at_its_end() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let owner = planned(&actor, true).await;
    fixture.advance_ms(4_999).await;
    assert!(fixture.host.intents.lock().is_empty(), "it fell asleep");
    let ended = owner.transaction().ended();
    let (_waits, opened) = actor.begin_state_transaction(TIMEOUT);

    actor.stop(StopReason::Sleep);
    fixture.settle().await;
    assert!(actor.cut_grace_short(Error::internal("now")));
    ended_generation(&fixture).await;

    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept]);
    assert_eq!(code(ended.await), "actor/stopping");
    assert_eq!(code(opened.await), "actor/stopping");
    let next = fixture.started().await;
    assert_eq!((value(&next, "k").await, next.state()), (None, Bytes::new()));
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 't'";
    let found = next.sql().execute(tables.into(), Bindings::None).await.unwrap();
    assert_eq!(found.rows.iter().next().unwrap(), [SqlValue::Integer(0)]);
}

#[tokio::test]
async fn a_generation_that_breaks_ends_it_and_all_who_wait() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let owner = open(&actor).await;
    let ended = owner.transaction().ended();
    let (_waits, opened) = actor.begin_state_transaction(TIMEOUT);

    actor.break_generation(Error::internal("gone"));

    assert_eq!(code(ended.await), "core/internal_error");
    assert_eq!(code(opened.await), "core/internal_error");
    assert_eq!(code(commit(&owner, "s").await), "core/internal_error");
}
