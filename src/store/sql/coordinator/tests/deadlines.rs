//! Transactions that take too long, and those that were begun by hand.

use super::*;

#[test]
fn what_waits_for_a_transaction_that_waits_for_it_fails_and_is_never_run() {
    for nested in [Request::Statement { by_hand: false }, Request::Batch] {
        let mut desk = Desk::new();
        desk.begin("a", Duration::from_millis(50)).unwrap();
        desk.finish();
        let outer = desk.submit(nested).unwrap();
        let begin = desk.begin("b", SECOND).unwrap();

        desk.pass(Duration::from_millis(50));
        assert_eq!(desk.running.map(|(_, step)| step), Some(Step::RollBack));
        desk.finish();

        let error = desk.answer(outer).clone().unwrap_err();
        assert_eq!(error, SqlError::TransactionExpired { timeout_ms: 50 });
        for part in [
            "expired after 50 ms",
            "safety backstop",
            "timeout",
            "nested transaction",
            "outer `db`",
        ] {
            assert!(error.to_string().contains(part), "{error}");
        }
        assert_eq!(desk.code(begin), "transaction_expired");
        assert!(!desk.has_started(outer) && !desk.has_started(begin));
        let next = desk.statement();
        assert!(desk.has_started(next));
    }
}

#[test]
fn at_the_deadline_the_running_statement_finishes_before_the_rollback() {
    let mut desk = Desk::in_transaction();
    let running = desk.inside("a").unwrap();
    let queued = desk.inside("a").unwrap();
    let queued_commit = desk.commit("a").unwrap();

    desk.pass(SECOND);
    assert_eq!(desk.code(queued), "transaction_expired");
    assert_eq!(desk.code(queued_commit), "transaction_expired");
    assert_eq!(code(&desk.inside("a")), "transaction_expired");
    let during_statement = desk.statement();
    desk.report(Ok(()));
    let during_rollback = desk.statement();
    desk.finish();
    let after = desk.statement();

    assert_eq!(desk.answer(running), &Ok(()));
    assert_eq!(desk.code(during_statement), "transaction_expired");
    assert_eq!(desk.code(during_rollback), "transaction_expired");
    assert_eq!(code(&desk.commit("a")), "transaction_expired");
    assert_eq!(code(&desk.begin("a", SECOND)), "transaction_expired");
    assert!(desk.has_started(after));
}

#[test]
fn a_commit_that_has_begun_beats_the_deadline() {
    let mut desk = Desk::in_transaction();
    let commit = desk.commit("a").unwrap();
    let parked = desk.statement();

    assert_eq!(desk.coordinator.next_deadline(), None);
    desk.pass(2 * SECOND);
    desk.finish();

    assert_eq!(desk.answer(commit), &Ok(()));
    assert!(desk.has_started(parked));
}

#[test]
fn the_time_of_a_transaction_begins_with_it_and_not_with_its_request() {
    let mut desk = Desk::in_transaction();
    desk.begin("b", SECOND).unwrap();
    desk.pass(SECOND / 2);
    desk.commit("a").unwrap();
    desk.finish();
    desk.pass(SECOND / 2);
    desk.finish();

    assert_eq!(desk.coordinator.next_deadline(), Some(desk.now + SECOND));
    desk.pass(SECOND - Duration::from_millis(1));
    assert_eq!(desk.running, None);
    desk.pass(Duration::from_millis(1));
    assert!(desk.running.is_some());
}

#[test]
fn a_transaction_can_be_ended_by_expiring_it() {
    let mut desk = Desk::in_transaction();

    let expire = desk.submit(Request::Expire { key: "a".into() }).unwrap();
    desk.finish();

    assert_eq!(desk.answer(expire), &Ok(()));
    assert_eq!(code(&desk.submit(Request::Expire { key: "a".into() })), "transaction_expired");
}

#[test]
fn statements_join_a_transaction_that_was_begun_by_hand() {
    let mut desk = Desk::new();
    desk.by_hand();
    desk.autocommit = false;
    desk.finish();
    assert!(desk.coordinator.is_transaction_open());

    let joins = desk.statement();
    desk.finish();
    desk.by_hand();
    desk.autocommit = true;
    desk.finish();

    assert_eq!(desk.answer(joins), &Ok(()));
    assert!(!desk.coordinator.is_transaction_open());
    assert_eq!(desk.warnings, [Warning::Manual]);
}

#[test]
fn no_warning_of_transactions_begun_by_hand_where_it_is_not_wanted() {
    let mut desk = Desk::new();
    desk.coordinator = Coordinator::new(false);

    desk.by_hand();

    assert_eq!(desk.warnings, []);
}

#[test]
fn a_beginning_lets_others_pass_until_a_transaction_begun_by_hand_has_ended() {
    let mut desk = Desk::new();
    desk.by_hand();
    desk.autocommit = false;
    desk.finish();

    let own = desk.submit(Request::Batch).unwrap();
    let begin = desk.begin("a", SECOND).unwrap();
    let passes = desk.statement();
    let ends = desk.by_hand();
    let behind = desk.statement();
    desk.finish();
    desk.autocommit = true;
    desk.finish();
    desk.finish_all();

    let order: Vec<_> = desk.started[1..].iter().map(|(ticket, _)| *ticket).collect();
    assert_eq!(order, [passes, ends, own, begin]);
    assert!(!desk.has_started(behind));
    assert_eq!(desk.warnings, [Warning::Manual, Warning::WaitsForManual]);
}

#[test]
fn a_beginning_gives_up_when_a_transaction_begun_by_hand_stays_open() {
    let mut desk = Desk::new();
    desk.by_hand();
    desk.autocommit = false;
    desk.finish();
    let begin = desk.begin("a", SECOND).unwrap();
    let batch = desk.submit(Request::Batch).unwrap();

    assert_eq!(desk.coordinator.next_deadline(), Some(desk.now + SECOND));
    desk.pass(SECOND);

    assert_eq!(desk.answer(begin), &Err(SqlError::ManualTransactionOpen { timeout_ms: 1000 }));
    assert!(!desk.answers.contains_key(&batch));
    desk.pass(DEFAULT_TIMEOUT - SECOND);
    assert_eq!(desk.answer(batch), &Err(SqlError::ManualTransactionOpen { timeout_ms: 60_000 }));
    assert_eq!(desk.coordinator.next_deadline(), None);
}
