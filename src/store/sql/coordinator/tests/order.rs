//! Who goes first, who is refused, and how transactions end.

use super::*;

#[test]
fn a_statement_issued_during_a_transaction_runs_after_it() {
    let mut desk = Desk::in_transaction();
    let outside = desk.statement();

    let inside = desk.inside("a").unwrap();
    desk.finish();
    let commit = desk.commit("a").unwrap();
    assert!(!desk.has_started(outside));
    desk.finish();

    let steps: Vec<_> = desk.started[1..].to_vec();
    assert_eq!(steps, [(inside, Step::Own), (commit, Step::Commit), (outside, Step::Own)]);
}

#[test]
fn transactions_follow_each_other_in_the_order_of_their_admission() {
    let mut desk = Desk::new();
    let a = desk.begin("a", SECOND).unwrap();
    let b = desk.begin("b", SECOND).unwrap();
    let between = desk.statement();
    let c = desk.begin("c", SECOND).unwrap();

    desk.finish();
    for key in ["a", "b"] {
        desk.inside(key).unwrap();
        desk.inside(key).unwrap();
        desk.commit(key).unwrap();
        (0..4).for_each(|_| desk.finish());
    }
    desk.finish();

    let outside: Vec<_> = desk.started.iter().map(|(ticket, _)| *ticket).collect();
    let places = [a, b, between, c].map(|ticket| outside.iter().position(|&t| t == ticket));
    assert_eq!(places, [Some(0), Some(4), Some(8), Some(9)]);
}

#[test]
fn a_beginning_that_waits_holds_back_what_comes_later() {
    let mut desk = Desk::new();
    let first = desk.statement();
    let begin = desk.begin("a", SECOND).unwrap();
    let later = desk.statement();

    desk.finish();
    desk.finish();

    assert!(desk.has_started(first) && desk.has_started(begin) && !desk.has_started(later));
}

#[test]
fn the_129th_operation_is_refused_until_one_has_finished() {
    let mut desk = Desk::new();
    for _ in 0..ADMITTED {
        desk.statement();
    }

    let refused = desk.submit(Request::Statement { by_hand: false });
    assert_eq!(refused, Err(SqlError::TransactionQueueFull { limit: 128 }));
    assert_eq!(code(&desk.begin("a", SECOND)), "transaction_queue_full");
    assert_eq!(code(&desk.submit(Request::Batch)), "transaction_queue_full");

    desk.finish();
    desk.begin("a", SECOND).unwrap();
}

#[test]
fn a_beginning_needs_its_permit_no_more_once_it_is_active_and_its_statements_need_none() {
    let mut desk = Desk::in_transaction();

    for _ in 0..ADMITTED {
        desk.statement();
        desk.inside("a").unwrap();
    }

    assert_eq!(code(&desk.submit(Request::Batch)), "transaction_queue_full");
    desk.commit("a").unwrap();
    desk.finish_all();
    assert!(desk.answers.values().all(Result::is_ok));
    assert_eq!(desk.coordinator.admitted, 0);
}

#[test]
fn zero_timeouts_and_empty_keys_are_refused() {
    let mut desk = Desk::new();

    assert_eq!(code(&desk.begin("a", Duration::ZERO)), "transaction_invalid_argument");
    assert_eq!(code(&desk.begin("", SECOND)), "transaction_invalid_argument");
    assert_eq!(desk.started, []);
}

#[test]
fn a_handle_that_has_ended_hears_how() {
    let mut desk = Desk::in_transaction();
    desk.commit("a").unwrap();
    desk.finish();
    desk.begin("b", SECOND).unwrap();
    desk.finish();
    desk.roll_back("b").unwrap();
    desk.finish();

    let committed = desk.inside("a").unwrap_err();
    let rolled_back = desk.commit("b").unwrap_err();

    assert!(committed.to_string().contains("already committed"), "{committed}");
    assert!(rolled_back.to_string().contains("already rolled back"), "{rolled_back}");
    assert_eq!(code(&desk.begin("a", SECOND)), "transaction_terminal");
    assert_eq!(code(&desk.roll_back("never")), "transaction_unknown");
}

#[test]
fn what_a_handle_asked_for_behind_its_end_hears_how_it_ended() {
    let mut desk = Desk::in_transaction();
    desk.commit("a").unwrap();
    let late = [desk.inside("a").unwrap(), desk.roll_back("a").unwrap()];

    desk.finish();

    for ticket in late {
        assert_eq!(desk.code(ticket), "transaction_terminal");
        assert!(!desk.has_started(ticket));
    }
}

#[test]
fn the_last_1024_ends_are_remembered_and_expired_keys_apart_from_them() {
    let mut desk = Desk::in_transaction();
    desk.pass(SECOND);
    desk.finish();

    for key in 0..1025 {
        desk.begin(&format!("k{key}"), SECOND).unwrap();
        desk.commit(&format!("k{key}")).unwrap_err();
        desk.finish();
        desk.commit(&format!("k{key}")).unwrap();
        desk.finish();
    }

    assert_eq!(code(&desk.commit("k0")), "transaction_unknown");
    assert_eq!(code(&desk.commit("k1")), "transaction_terminal");
    assert_eq!(code(&desk.commit("k1024")), "transaction_terminal");
    assert_eq!(code(&desk.commit("a")), "transaction_expired");
}

#[test]
fn a_beginning_that_fails_leaves_its_key_free() {
    let mut desk = Desk::new();
    let failed = desk.begin("a", SECOND).unwrap();
    desk.report(Err(failure()));
    assert_eq!(desk.answer(failed), &Err(failure()));

    let again = desk.begin("a", SECOND).unwrap();
    desk.finish();

    assert_eq!(desk.answer(again), &Ok(()));
}

#[test]
fn a_key_that_waits_twice_begins_once() {
    let mut desk = Desk::in_transaction();
    let twin = desk.begin("a", SECOND).unwrap();

    desk.commit("a").unwrap();
    desk.finish();

    assert_eq!(desk.code(twin), "transaction_terminal");
    assert!(!desk.has_started(twin));
}

#[test]
fn a_commit_that_fails_is_rolled_back_and_answers_its_own_error() {
    let mut desk = Desk::in_transaction();
    let commit = desk.commit("a").unwrap();

    desk.report(Err(failure()));
    assert_eq!(desk.running, Some((commit, Step::RollBack)));
    desk.finish();

    assert_eq!(desk.answer(commit), &Err(failure()));
    assert!(desk.inside("a").unwrap_err().to_string().contains("already rolled back"));
}

#[test]
fn a_commit_that_fails_with_the_transaction_gone_needs_no_rollback() {
    let mut desk = Desk::in_transaction();
    let commit = desk.commit("a").unwrap();
    desk.autocommit = true;

    desk.report(Err(failure()));

    assert_eq!((desk.answer(commit), desk.running), (&Err(failure()), None));
    assert!(desk.failures.is_empty());
}

#[test]
fn after_a_statement_that_ended_the_transaction_no_other_of_its_handle_is_run() {
    let mut desk = Desk::in_transaction();
    let ending = desk.inside("a").unwrap();
    let queued = desk.inside("a").unwrap();
    desk.autocommit = true;

    desk.report(Err(failure()));

    assert_eq!(desk.answer(ending), &Err(failure()));
    assert_eq!((desk.code(queued), desk.has_started(queued)), ("transaction_terminal", false));
    // The handle still has the connection, until it says that it is done.
    let outside = desk.statement();
    assert!(!desk.has_started(outside));
    let roll_back = desk.roll_back("a").unwrap();
    desk.finish();
    assert_eq!(desk.answer(roll_back), &Ok(()));
    assert!(desk.has_started(outside));
}

#[test]
fn a_transaction_committed_by_hand_within_its_handle_counts_as_committed() {
    let mut desk = Desk::in_transaction();
    let by_hand = Request::Inside { key: "a".into(), ends_as: Ending::Committed };
    desk.submit(by_hand).unwrap();
    desk.autocommit = true;
    desk.report(Ok(()));

    let next = desk.inside("a").unwrap();

    assert!(desk.answer(next).as_ref().unwrap_err().to_string().contains("already committed"));
}

#[test]
fn a_caller_that_goes_away_cancels_what_has_not_begun() {
    let mut desk = Desk::in_transaction();
    let outside = desk.statement();
    let running = desk.inside("a").unwrap();
    let inside = desk.inside("a").unwrap();

    for ticket in [outside, running, inside] {
        desk.cancel(ticket);
    }
    desk.finish();

    assert_eq!((desk.answer(running), desk.running), (&Ok(()), None));
    assert!(!desk.has_started(outside) && !desk.has_started(inside));
    assert_eq!(desk.coordinator.admitted, 0);
}

#[test]
fn beginnings_and_ends_are_carried_out_whoever_waits() {
    let mut desk = Desk::new();
    desk.statement();
    let begin = desk.begin("a", SECOND).unwrap();
    desk.cancel(begin);
    desk.finish();
    desk.finish();
    desk.inside("a").unwrap();
    let commit = desk.commit("a").unwrap();
    desk.cancel(commit);
    desk.finish_all();

    let next = desk.statement();

    assert!(desk.has_started(begin) && desk.has_started(commit) && desk.has_started(next));
}

#[test]
fn a_cancelled_beginning_gives_way_at_its_deadline() {
    let mut desk = Desk::new();
    let begin = desk.begin("a", SECOND).unwrap();
    desk.cancel(begin);
    desk.finish();

    desk.pass(SECOND);
    desk.finish();

    let next = desk.statement();
    assert!(desk.has_started(next));
}
