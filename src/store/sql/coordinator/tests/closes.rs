//! The close, and what breaks.

use super::*;

#[test]
fn a_close_rolls_the_open_transaction_back_and_refuses_the_rest() {
    let mut desk = Desk::in_transaction();
    let running = desk.inside("a").unwrap();
    let queued = desk.inside("a").unwrap();
    let outside = desk.statement();
    let begin = desk.begin("b", SECOND).unwrap();

    let close = desk.submit(Request::Close).unwrap();
    for ticket in [queued, outside, begin] {
        assert_eq!(desk.code(ticket), "transaction_closed");
    }
    desk.finish();
    assert_eq!(desk.running.map(|(_, step)| step), Some(Step::RollBack));
    assert!(!desk.answers.contains_key(&close));
    desk.finish();

    assert_eq!((desk.answer(running), desk.answer(close)), (&Ok(()), &Ok(())));
    for late in [desk.inside("a"), desk.commit("a"), desk.begin("c", SECOND)] {
        assert_eq!(code(&late), "transaction_closed");
    }
    assert_eq!(desk.coordinator.admitted, 0);
}

#[test]
fn a_close_waits_for_a_commit_that_has_begun() {
    let mut desk = Desk::in_transaction();
    let commit = desk.commit("a").unwrap();

    let close = desk.submit(Request::Close).unwrap();
    desk.finish();

    assert_eq!((desk.answer(commit), desk.answer(close)), (&Ok(()), &Ok(())));
}

#[test]
fn a_transaction_that_begins_during_the_close_is_rolled_back() {
    let mut desk = Desk::new();
    let begin = desk.begin("a", SECOND).unwrap();
    let close = desk.submit(Request::Close).unwrap();

    desk.finish();
    assert_eq!(desk.code(begin), "transaction_closed");
    desk.finish();

    assert_eq!((desk.answer(close), desk.autocommit), (&Ok(()), true));
}

#[test]
fn a_transaction_left_open_by_hand_is_rolled_back_at_the_close() {
    let mut desk = Desk::new();
    desk.by_hand();
    desk.autocommit = false;
    desk.finish();
    let batch = desk.submit(Request::Batch).unwrap();

    let close = desk.submit(Request::Close).unwrap();
    assert_eq!(desk.running.map(|(_, step)| step), Some(Step::RollBack));
    desk.finish();

    assert_eq!((desk.answer(close), desk.code(batch)), (&Ok(()), "transaction_closed"));
    assert!(desk.warnings.contains(&Warning::RolledBackAtClose));
}

#[test]
fn a_second_close_changes_nothing() {
    let mut desk = Desk::new();
    desk.statement();
    let closes = [desk.submit(Request::Close).unwrap(), desk.submit(Request::Close).unwrap()];
    desk.finish();
    let third = desk.submit(Request::Close).unwrap();

    for ticket in [closes[0], closes[1], third] {
        assert_eq!(desk.answer(ticket), &Ok(()));
    }
}

#[test]
fn a_rollback_that_fails_breaks_the_database_for_good() {
    let mut desk = Desk::in_transaction();
    let roll_back = desk.roll_back("a").unwrap();
    let parked = desk.statement();

    desk.report(Err(failure()));

    assert_eq!(desk.answer(roll_back), &Err(failure()));
    assert_eq!(desk.code(parked), "transaction_closed");
    assert_eq!(code(&desk.inside("a")), "transaction_closed");
    assert_eq!(code(&desk.submit(Request::Batch)), "transaction_closed");
    let close = desk.submit(Request::Close).unwrap();
    assert_eq!(desk.answer(close), &Ok(()));
    assert_eq!(desk.failures, [failure()]);
}

#[test]
fn a_rollback_that_fails_after_a_failed_commit_or_at_the_deadline_breaks_it_too() {
    let mut desk = Desk::in_transaction();
    let commit = desk.commit("a").unwrap();
    desk.report(Err(SqlError::refused(0, "first")));
    desk.report(Err(failure()));
    assert_eq!(desk.answer(commit), &Err(SqlError::refused(0, "first")));
    assert_eq!(desk.failures, [failure()]);

    let mut desk = Desk::in_transaction();
    let expire = desk.submit(Request::Expire { key: "a".into() }).unwrap();
    desk.report(Err(failure()));
    assert_eq!((desk.code(expire), desk.failures.len()), ("transaction_closed", 1));
}

#[test]
fn a_rollback_that_finds_no_transaction_has_succeeded() {
    let mut desk = Desk::in_transaction();
    let roll_back = desk.roll_back("a").unwrap();
    desk.autocommit = true;

    desk.report(Err(failure()));

    assert_eq!((desk.answer(roll_back), desk.failures.len()), (&Ok(()), 0));
}

#[test]
fn a_step_of_unknown_outcome_breaks_the_database_and_is_reported_once() {
    let mut desk = Desk::new();
    let running = desk.statement();
    let waiting = [desk.statement(), desk.begin("a", SECOND).unwrap()];
    let close = desk.submit(Request::Close).unwrap();

    desk.report_as(Ran::Broken(failure()));

    assert_eq!(desk.answer(running), &Err(failure()));
    for ticket in waiting {
        assert_eq!(desk.code(ticket), "transaction_closed");
    }
    assert_eq!((desk.answer(close), &desk.failures), (&Ok(()), &vec![failure()]));
    assert_eq!((desk.running, desk.coordinator.admitted), (None, 0));
}
