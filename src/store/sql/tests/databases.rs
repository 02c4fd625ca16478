//! The asynchronous way on a real connection.

use tokio_test::assert_pending;

use super::place::{Stage, asked, ready};
use super::*;
use crate::error::Coded;
use crate::store::StoreError;
use crate::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const NONE: Bindings = Bindings::None;

fn table() -> Stage {
    let stage = Stage::new();
    stage.execute("CREATE TABLE t (x UNIQUE)").unwrap();
    stage
}

fn code<T: std::fmt::Debug>(result: Result<T, SqlError>) -> &'static str {
    result.expect_err("a failure").code().code
}

fn values(list: &[i64]) -> Vec<SqlValue> {
    list.iter().copied().map(SqlValue::from).collect()
}

#[test]
fn a_statement_answers_and_so_does_a_text_of_several() {
    let stage = table();

    let inserted = stage.execute("INSERT INTO t VALUES (1) RETURNING x + 1 AS y").unwrap();
    assert_eq!((inserted.changes, inserted.rows.columns()), (1, &["y".to_owned()][..]));
    let last = stage.get(stage.database.exec("SELECT 1; SELECT x FROM t; DELETE FROM t")).unwrap();
    assert_eq!(last.rows.into_parts().1, values(&[1]));
    let refused = stage.execute("SELECT 1; SELECT 2");
    assert_eq!(fault(refused), (-1, 0, SqlError::several_statements().to_string()));
}

#[test]
fn ordinary_statements_wait_for_the_end_of_a_transaction() {
    let stage = table();
    let transaction = stage.begin(SECOND);
    let mut outside = asked(stage.database.execute("INSERT INTO t VALUES (3)", NONE));
    let mut count = asked(stage.database.execute("SELECT count(*) FROM t", NONE));

    stage.get(transaction.execute("INSERT INTO t VALUES (1)", NONE)).unwrap();
    stage.get(transaction.exec("SAVEPOINT a; INSERT INTO t VALUES (2); RELEASE a")).unwrap();
    assert_pending!(outside.poll());
    assert!(stage.database.is_transaction_open());
    stage.get(transaction.commit()).unwrap();

    assert!(ready(&mut outside).is_ok() && !stage.database.is_transaction_open());
    assert_eq!(ready(&mut count).unwrap().rows.into_parts().1, values(&[3]));
    assert_eq!(stage.column("SELECT x FROM t ORDER BY rowid"), values(&[1, 2, 3]));
    let late = stage.get(transaction.commit()).unwrap_err();
    assert!(late.to_string().contains("already committed"), "{late}");
    assert_eq!(late.metadata().unwrap()["state"], "committed");
}

#[test]
fn a_transaction_that_waits_for_itself_ends_at_its_deadline_with_nothing_written() {
    let stage = table();
    let transaction = stage.begin(Duration::from_millis(50));
    stage.get(transaction.execute("INSERT INTO t VALUES (1)", NONE)).unwrap();
    let mut outside = asked(stage.database.execute("INSERT INTO t VALUES (2)", NONE));
    let mut nested = asked(stage.database.begin(BeginOptions::default()));
    stage.work();

    stage.pass(Duration::from_millis(49));
    stage.work();
    assert_pending!(outside.poll());
    stage.pass(Duration::from_millis(1));
    stage.work();

    let error = ready(&mut outside).unwrap_err();
    assert!(error.to_string().contains("expired after 50 ms"), "{error}");
    assert_eq!(error.metadata().unwrap()["timeout_ms"], 50);
    assert_eq!(code(ready(&mut nested)), "transaction_expired");
    assert_eq!(code(stage.get(transaction.commit())), "transaction_expired");
    assert_eq!(stage.column("SELECT x FROM t"), []);
    assert!(stage.execute("INSERT INTO t VALUES (3)").is_ok());
}

#[test]
fn a_statement_that_rolled_back_lets_the_handle_roll_back_and_the_next_one_pass() {
    let stage = table();
    stage.execute("INSERT INTO t VALUES (2)").unwrap();
    let transaction = stage.begin(SECOND);
    stage.get(transaction.execute("INSERT INTO t VALUES (1)", NONE)).unwrap();

    let failed = stage.get(transaction.execute("INSERT OR ROLLBACK INTO t VALUES (2)", NONE));
    assert_eq!(fault(failed).0, rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE);
    let behind = stage.get(transaction.execute("INSERT INTO t VALUES (5)", NONE));
    assert_eq!(code(behind), "transaction_terminal");
    stage.get(transaction.roll_back()).unwrap();

    stage.execute("INSERT INTO t VALUES (3)").unwrap();
    assert_eq!(stage.column("SELECT x FROM t ORDER BY x"), values(&[2, 3]));
}

#[test]
fn a_commit_that_a_constraint_refuses_is_rolled_back() {
    let stage = table();
    stage.execute("PRAGMA foreign_keys = ON").unwrap();
    let sql = "CREATE TABLE u (x REFERENCES t (x) DEFERRABLE INITIALLY DEFERRED)";
    stage.execute(sql).unwrap();
    let transaction = stage.begin(SECOND);
    stage.get(transaction.execute("INSERT INTO u VALUES (9)", NONE)).unwrap();

    let failed = stage.get(transaction.commit());

    assert_eq!(fault(failed).0, rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY);
    let late = stage.get(transaction.commit()).unwrap_err();
    assert!(late.to_string().contains("already rolled back"), "{late}");
    assert!(stage.fixture.sqlite.is_autocommit());
}

#[test]
fn what_the_runtime_keeps_with_a_transaction_shares_its_fate() {
    let stage = table();
    let put = |key: &'static str, fails: bool| -> AlsoCommitted {
        Box::new(move |sqlite| {
            sqlite.execute("INSERT INTO _gr_kv VALUES (2, ?1, 'x')", [key]).unwrap();
            if fails { Err(SqlError::Store(StoreError::Stale)) } else { Ok(()) }
        })
    };

    let transaction = stage.begin(SECOND);
    stage.get(transaction.execute("INSERT INTO t VALUES (1)", NONE)).unwrap();
    let failed = stage.get(transaction.commit_with(put("a", true)));
    assert_eq!(failed, Err(SqlError::Store(StoreError::Stale)));
    let transaction = stage.begin(SECOND);
    stage.get(transaction.execute("INSERT INTO t VALUES (2)", NONE)).unwrap();
    stage.get(transaction.commit_with(put("b", false))).unwrap();

    assert_eq!(stage.column("SELECT x FROM t"), values(&[2]));
    assert_eq!(stage.column("SELECT key FROM _gr_kv WHERE num = 2"), ["b".into()] as [SqlValue; 1]);
}

#[test]
fn a_panic_within_a_step_breaks_the_database_and_no_thread() {
    let stage = table();
    let transaction = stage.begin(SECOND);

    let broken = stage.get(transaction.commit_with(Box::new(|_| panic!("on purpose"))));

    assert_eq!(code(broken), "outcome_unknown");
    assert_eq!(code(stage.execute("SELECT 1")), "transaction_closed");
    assert_eq!(stage.place.failures.lock().len(), 1);
}

#[test]
fn a_batch_is_all_or_nothing() {
    let stage = table();
    let statement = |sql: &str| (sql.to_owned(), NONE);

    let both = vec![statement("INSERT INTO t VALUES (1)"), statement("SELECT x FROM t")];
    let outcomes = stage.get(stage.database.execute_batch(both)).unwrap();
    assert_eq!((outcomes[0].changes, outcomes[1].changes), (1, 0));

    for bad in ["INSERT INTO t VALUES (1)", "INSERT OR ROLLBACK INTO t VALUES (1)", "nonsense"] {
        let list =
            vec![statement("INSERT INTO t VALUES (2)"), statement(bad), statement("SELECT 1")];
        assert_eq!(fault(stage.get(stage.database.execute_batch(list))).1, 1, "{bad}");
        assert_eq!(stage.column("SELECT x FROM t"), values(&[1]), "{bad}");
    }
    let ends = vec![statement("COMMIT"), statement("INSERT INTO t VALUES (3)")];
    assert_eq!(fault(stage.get(stage.database.execute_batch(ends))).1, 0);
    assert_eq!(stage.column("SELECT x FROM t"), values(&[1]));
    assert!(stage.get(stage.database.execute_batch(Vec::new())).unwrap().is_empty());
}

#[test]
fn transactions_begun_by_hand_work_and_others_wait_for_them() {
    let stage = table();
    stage.execute("BEGIN").unwrap();
    stage.execute("INSERT INTO t VALUES (1)").unwrap();
    assert!(stage.database.is_transaction_open());
    let mut waits = asked(stage.database.begin(BeginOptions::default()));
    stage.work();
    assert_pending!(waits.poll());

    stage.execute("COMMIT").unwrap();

    let transaction = ready(&mut waits).unwrap();
    stage.get(transaction.commit()).unwrap();
    stage.execute("BEGIN").unwrap();
    let mut late = asked(stage.database.begin(BeginOptions::default()));
    stage.work();
    stage.pass(60 * SECOND);
    let error = ready(&mut late).unwrap_err();
    assert_eq!(error, SqlError::ManualTransactionOpen { timeout_ms: 60_000 });
    stage.execute("ROLLBACK").unwrap();
    assert_eq!(stage.column("SELECT x FROM t"), values(&[1]));
}

#[test]
fn names_keys_and_timeouts_are_checked() {
    let stage = table();
    let try_begin = |options| code(stage.get(stage.database.begin(options)));
    let name = |name: String| BeginOptions { name: Some(name), ..BeginOptions::default() };
    let key = |key: &str| BeginOptions { key: Some(key.to_owned()), ..BeginOptions::default() };

    for options in [
        name(String::new()),
        name("n".repeat(129)),
        key(""),
        BeginOptions { timeout: Some(Duration::ZERO), ..BeginOptions::default() },
    ] {
        assert_eq!(try_begin(options), "transaction_invalid_argument");
    }

    let keys = [(); 2].map(|()| {
        let transaction = stage.get(stage.database.begin(BeginOptions::default())).unwrap();
        stage.get(transaction.commit()).unwrap();
        transaction.key().to_owned()
    });
    assert!(keys[0].len() == 36 && keys[0] != keys[1]);
    let named = stage.get(stage.database.begin(name("n".repeat(128)))).unwrap();
    stage.get(named.commit()).unwrap();
    let keyed = stage.get(stage.database.begin(key("k"))).unwrap();
    stage.get(stage.database.transaction("k").roll_back()).unwrap();
    assert_eq!(keyed.key(), "k");
    assert_eq!(try_begin(key("k")), "transaction_terminal");
}

#[test]
fn what_was_committed_is_answered_once_it_is_on_the_disk() {
    let mut stage = table();
    stage.holds_syncs = true;
    let mut write = asked(stage.database.execute("INSERT INTO t VALUES (1)", NONE));
    let mut define = asked(stage.database.execute("CREATE TABLE u (x)", NONE));
    stage.work();

    assert_pending!(write.poll());
    assert_pending!(define.poll());
    // Reading waits for nothing, and neither does what is not committed yet.
    assert_eq!(stage.column("SELECT x FROM t"), values(&[1]));
    let transaction = stage.begin(SECOND);
    stage.get(transaction.execute("INSERT INTO t VALUES (2)", NONE)).unwrap();
    let mut commit = asked(transaction.commit());
    stage.work();
    assert_pending!(commit.poll());

    let waiting: Vec<_> = stage.place.unsynced.lock().drain(..).collect();
    assert_eq!(waiting.len(), 3);
    let lost = StoreError::OutcomeUnknown { path: "a".into(), reason: "no sync".into() };
    for (at, done) in waiting.into_iter().enumerate() {
        done(if at < 2 { Ok(()) } else { Err(lost.clone()) });
    }
    assert!(ready(&mut write).is_ok() && ready(&mut define).is_ok());
    assert_eq!(ready(&mut commit), Err(SqlError::Store(lost)));
}

#[test]
fn dropping_the_answer_gives_up_a_statement_and_nothing_that_has_begun() {
    let stage = table();
    let first = stage.database.execute("INSERT INTO t VALUES (1)", NONE);
    let second = stage.database.execute("INSERT INTO t VALUES (2)", NONE);
    drop((first, second));
    stage.work();
    assert_eq!(stage.column("SELECT x FROM t"), values(&[1]));

    drop(stage.database.begin(BeginOptions { key: Some("k".into()), ..Default::default() }));
    stage.work();
    assert!(stage.database.is_transaction_open());
    drop(stage.database.transaction("k").execute("INSERT INTO t VALUES (3)", NONE));
    drop(stage.database.transaction("k").commit());
    stage.work();
    assert_eq!(stage.column("SELECT x FROM t ORDER BY x"), values(&[1, 3]));

    drop(stage.database.close());
    assert_eq!(code(stage.execute("SELECT 1")), "transaction_closed");
}

#[test]
fn the_129th_statement_that_waits_is_refused() {
    let stage = table();
    let waiting: Vec<_> =
        (0..128).map(|_| asked(stage.database.execute("SELECT 1", NONE))).collect();

    let error = ready(&mut asked(stage.database.execute("SELECT 1", NONE))).unwrap_err();

    assert_eq!(
        (error.code().code, error.metadata().unwrap()["limit"].clone()),
        ("transaction_queue_full", 128.into())
    );
    stage.work();
    assert!(waiting.into_iter().all(|mut answer| ready(&mut answer).is_ok()));
}

#[test]
fn a_synchronous_statement_of_the_handle_runs_within_the_transaction() {
    let stage = table();
    let transaction = stage.begin(SECOND);
    let session = stage.fixture.session();

    let mut cursor =
        transaction.run_now(session, "INSERT INTO t VALUES (1) RETURNING x", &NONE).unwrap();
    assert_eq!(cursor.next_row(), Some(values(&[1])));
    assert_eq!(
        SqlTurn::default().run(&session, "SELECT 1", &NONE).unwrap_err(),
        SqlError::TransactionOpen
    );
    assert_eq!(fault(transaction.run_now(session, "COMMIT", &NONE)).0, rusqlite::ffi::SQLITE_AUTH);

    fault(transaction.run_now(session, "INSERT OR ROLLBACK INTO t VALUES (1)", &NONE));
    assert_eq!(code(transaction.run_now(session, "SELECT 1", &NONE)), "transaction_terminal");
    stage.get(transaction.roll_back()).unwrap();
    assert_eq!(stage.column("SELECT x FROM t"), []);
}

#[test]
fn a_step_that_is_given_up_breaks_the_database_once() {
    let stage = table();
    let mut lost = asked(stage.database.execute("SELECT 1", NONE));
    let mut behind = asked(stage.database.execute("SELECT 1", NONE));

    drop(stage.next_work());

    let error = ready(&mut lost).unwrap_err();
    assert_eq!((error.code().group, error.code().code), ("storage", "outcome_unknown"));
    assert_eq!(code(ready(&mut behind)), "transaction_closed");
    assert_eq!(code(stage.execute("SELECT 1")), "transaction_closed");
    assert_eq!(*stage.place.failures.lock(), [error]);
    assert!(stage.get(stage.database.close()).is_ok());
}

#[test]
fn without_a_connection_a_step_fails_and_the_next_one_may_succeed() {
    let stage = table();
    let missing = StoreError::Io { path: "a".into(), reason: "no descriptor".into() };
    let mut failed = asked(stage.database.execute("SELECT 1", NONE));
    stage.lose(&missing);
    assert_eq!(ready(&mut failed), Err(SqlError::Store(missing.clone())));

    let transaction = stage.begin(SECOND);
    let mut inside = asked(transaction.execute("SELECT 1", NONE));
    stage.lose(&missing);
    assert_eq!(ready(&mut inside), Err(SqlError::Store(missing)));
    assert_eq!(code(stage.get(transaction.execute("SELECT 1", NONE))), "transaction_terminal");
    stage.get(transaction.roll_back()).unwrap();
    assert!(stage.execute("SELECT 1").is_ok());
}

#[test]
fn the_place_hears_when_the_next_deadline_changes() {
    let stage = table();
    let changes = || stage.place.deadlines.load(std::sync::atomic::Ordering::Relaxed);
    let transaction = stage.begin(SECOND);
    assert_eq!(
        (changes(), stage.database.next_deadline()),
        (1, Some(stage.clock.clock().now() + SECOND))
    );

    stage.get(transaction.execute("SELECT 1", NONE)).unwrap();
    assert_eq!(changes(), 1);
    stage.get(transaction.commit()).unwrap();

    assert_eq!((changes(), stage.database.next_deadline()), (2, None));
}
