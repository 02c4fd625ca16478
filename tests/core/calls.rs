//! Calls: order, timeouts, cancellation, and the gate that results leave through.

use bytes::Bytes;
use greenroom::core::actor::InPlace;
use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::behavior::{ActorEvent, StateDelta};
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::core::context::Admission;
use greenroom::error::Error;

use crate::fixture::{Fixture, call, error_code, is_open};

fn delta(state: &'static [u8]) -> Vec<StateDelta> {
    vec![StateDelta::ActorState(Bytes::from_static(state))]
}

#[tokio::test]
async fn a_call_is_answered_with_what_its_function_returns() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;

    let mut answer = call(&actor, "echo");

    assert_eq!(answer.try_recv().unwrap().unwrap(), "args");
    assert_eq!(actor.internal_keep_awake_count(), 0);
}

#[tokio::test]
async fn an_error_of_an_action_names_its_actor_and_keeps_its_code() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    *fixture.script.fail.lock() = Some(("action", Error::internal("boom")));

    let error = call(&actor, "echo").try_recv().unwrap().unwrap_err();

    assert_eq!(error.code, "internal_error");
    assert_eq!(error.actor.clone().unwrap(), actor.specifier());
}

#[tokio::test]
async fn an_open_call_keeps_the_actor_awake_until_its_function_ends() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    let mut answer = call(&actor, "slow");
    assert_eq!(actor.internal_keep_awake_count(), 1);
    assert_eq!(actor.holds()[0].what, "action");

    let id = fixture.script.begin(&actor);
    assert!(is_open(&mut answer));
    assert!(actor.finish_call(id, Ok(Bytes::new())));

    assert_eq!(actor.internal_keep_awake_count(), 0);
    assert!(!is_open(&mut answer));
    assert!(!actor.finish_call(id, Ok(Bytes::new())), "a call ends once");
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_answered_and_its_late_result_goes_nowhere() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    let mut answer = call(&actor, "slow");
    let id = fixture.script.begin(&actor);

    fixture.advance_ms(59_999).await;
    assert!(is_open(&mut answer));
    fixture.advance_ms(1).await;

    assert_eq!(error_code(&mut answer), "actor/action_timed_out");
    assert_eq!(fixture.script.count("cancel_call"), 1);
    assert_eq!(actor.internal_keep_awake_count(), 1, "the function still runs");
    assert!(!actor.finish_call(id, Ok(Bytes::new())));
    assert_eq!(actor.internal_keep_awake_count(), 0);
}

#[tokio::test]
async fn a_result_in_place_after_the_deadline_is_a_timeout() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let late = actor.try_admit().unwrap();
    let in_time = actor.try_admit().unwrap();

    assert_eq!(actor.finish_in_place(in_time), InPlace::Leave);
    // The clock moves without the timer having run: the comparison decides.
    fixture.clock.advance(actor.config().action_timeout);

    assert_eq!(actor.finish_in_place(late), InPlace::TimedOut);
}

#[tokio::test]
async fn a_cancelled_call_is_answered_at_once_and_its_function_is_told() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    let mut answer = call(&actor, "slow");
    let id = fixture.script.begin(&actor);

    actor.cancel_call(id);
    actor.cancel_call(id);

    assert_eq!(error_code(&mut answer), "actor/aborted");
    assert_eq!(fixture.script.count("cancel_call"), 1);
}

#[tokio::test]
async fn nothing_is_admitted_in_place_before_an_older_call_has_begun() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    let answer = call(&actor, "older");

    assert_eq!(actor.try_admit(), None);
    fixture.script.begin(&actor);

    assert!(actor.try_admit().is_some());
    drop(answer);
}

#[tokio::test]
async fn a_result_waits_for_the_changes_made_before_it() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    let mut changing = call(&actor, "change");
    let change = fixture.script.begin(&actor);
    let mut reading = call(&actor, "read");
    let read = fixture.script.begin(&actor);

    actor.mark_dirty();
    actor.finish_call(change, Ok(Bytes::new()));
    actor.finish_call(read, Ok(Bytes::new()));
    fixture.settle().await;
    assert!(is_open(&mut changing) && is_open(&mut reading), "nothing is committed yet");
    actor.commit_state(delta(b"s1")).unwrap();
    fixture.settle().await;

    assert!(!is_open(&mut changing) && !is_open(&mut reading));
    assert_eq!(fixture.stored().await.state.as_deref(), Some(&b"s1"[..]));
}

#[tokio::test]
async fn a_call_whose_caller_holds_the_answer_is_handed_over_after_older_work() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    let _older = call(&actor, "older");
    fixture.script.hold("begin_held");

    let held = actor.try_queue().unwrap();

    assert_eq!(actor.internal_keep_awake_count(), 2);
    let story = fixture.script.story();
    assert_eq!(&story[story.len() - 2..], ["action", "begin_held"]);
    let id = fixture.script.begin(&actor);
    assert_eq!(actor.try_admit(), None, "the held one has not begun");
    actor.begin_call(held);
    assert!(actor.try_admit().is_some());
    assert_eq!(actor.finish_in_place(held), InPlace::Leave);
    assert_eq!(actor.finish_in_place(held), InPlace::Over, "a call ends once");
    assert!(actor.finish_call(id, Ok(Bytes::new())));
}

#[tokio::test]
async fn a_queued_call_that_takes_too_long_is_a_timeout_whether_it_began_or_not() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let begun = actor.try_queue().unwrap();
    actor.begin_call(begun);
    let held = actor.try_queue().unwrap();

    fixture.advance_ms(60_000).await;

    assert_eq!(fixture.script.count("cancel_call"), 2);
    for call in [begun, held] {
        assert_eq!(actor.finish_in_place(call), InPlace::Over, "its caller was answered");
    }
    assert_eq!(actor.internal_keep_awake_count(), 0);
    assert!(actor.try_admit().is_some(), "nothing waits any more");
}

#[tokio::test]
async fn no_call_is_queued_for_an_actor_that_is_being_destroyed() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("on_destroy");

    actor.stop(StopReason::Destroy);

    assert_eq!(actor.try_queue(), None);
    fixture.script.events.lock().clear();
    fixture.settle().await;
}

#[tokio::test]
async fn a_result_with_nothing_before_it_leaves_at_once() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let in_place = actor.try_admit().unwrap();

    assert_eq!(actor.finish_in_place(in_place), InPlace::Leave);
}

#[tokio::test]
async fn a_result_in_place_is_held_until_the_commit_that_its_number_names() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let before = fixture.script.count("committed");
    let first = actor.try_admit().unwrap();
    let second = actor.try_admit().unwrap();

    actor.mark_dirty();
    let InPlace::Hold(wanted) = actor.finish_in_place(first) else { panic!("it is held") };
    // The store answers on its own thread, so the commit may be durable before the
    // second call ends; what it may not be is held for a later number.
    let begun = actor.commit_state(delta(b"s1")).unwrap();
    assert_eq!(wanted, begun);
    let end = actor.finish_in_place(second);
    assert!(matches!(end, InPlace::Leave) || end == InPlace::Hold(begun), "{end:?}");
    fixture.settle().await;

    assert_eq!(fixture.script.count("committed"), before + 1);
    let third = actor.try_admit().unwrap();
    assert_eq!(actor.finish_in_place(third), InPlace::Leave);
}

#[tokio::test]
async fn a_turn_that_changed_nothing_lets_what_waited_leave() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    let mut answer = call(&actor, "touch");
    let id = fixture.script.begin(&actor);
    actor.mark_dirty();
    actor.finish_call(id, Ok(Bytes::new()));
    assert!(is_open(&mut answer));

    let number = actor.commit_state(Vec::new()).unwrap();

    assert!(!is_open(&mut answer));
    assert_eq!(number.get(), 1, "only the initial commit was begun");
}

#[tokio::test]
async fn with_durability_interval_a_result_waits_for_nothing() {
    let config = ActorConfig { durability: Durability::Interval, ..ActorConfig::default() };
    let fixture = Fixture::with(config).await;
    let actor = fixture.started().await;
    let id = actor.try_admit().unwrap();

    actor.mark_dirty();

    assert_eq!(actor.finish_in_place(id), InPlace::Leave);
}

#[tokio::test]
async fn a_broken_generation_answers_everything_with_what_broke_it() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    let mut open = call(&actor, "slow");
    let slow = fixture.script.begin(&actor);
    let mut held = call(&actor, "change");
    let change = fixture.script.begin(&actor);
    actor.mark_dirty();
    actor.finish_call(change, Ok(Bytes::new()));
    let in_place = actor.try_admit().unwrap();

    actor.break_generation(Error::internal("pulled the plug"));

    assert_eq!(error_code(&mut open), "core/internal_error");
    assert_eq!(error_code(&mut held), "core/internal_error");
    assert_eq!(actor.finish_in_place(in_place), InPlace::Over);
    assert!(!actor.finish_call(slow, Ok(Bytes::new())));
    assert_eq!(actor.try_admit(), None);
    assert_eq!(actor.admission(), Admission::Wait);
    let mut late = call(&actor, "late");
    assert_eq!(error_code(&mut late), "core/internal_error");
    assert!(actor.commit_state(delta(b"never")).is_none());
    assert_eq!(fixture.script.story().last().unwrap(), "stopped");
}

#[tokio::test]
async fn calls_are_taken_while_the_actor_goes_to_sleep_and_not_while_it_is_destroyed() {
    let fixture = Fixture::new().await;
    for (reason, admission) in
        [(StopReason::Sleep, Admission::Open), (StopReason::Destroy, Admission::Gone)]
    {
        let actor = fixture.started().await;
        fixture.script.hold("on_sleep");
        fixture.script.hold("on_destroy");
        actor.stop(reason);
        fixture.settle().await;

        assert_eq!(actor.admission(), admission);
        let answer = call(&actor, "echo").try_recv().unwrap();
        assert_eq!(answer.is_ok(), admission == Admission::Open);
        fixture.script.events.lock().clear();
        fixture.settle().await;
    }
}

#[tokio::test]
async fn a_panic_of_the_authors_side_breaks_that_generation_only() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");
    let mut answer = call(&actor, "x");
    let ActorEvent::Action { .. } = fixture.script.take("action") else { unreachable!() };

    // A reply that panics stands for any callback that does.
    let request = greenroom::core::context::CallRequest {
        name: "panics".into(),
        args: Bytes::new(),
        caller: greenroom::core::behavior::Caller::Local,
        origin: 0,
        taken_by: None,
        reply: greenroom::core::behavior::Reply::new(|_| panic!("boom")),
    };
    let id = actor.accept(request).unwrap();
    actor.begin_call(id);
    actor.finish_call(id, Ok(Bytes::new()));

    assert_eq!(error_code(&mut answer), "core/internal_error");
    let again = fixture.started().await;
    fixture.script.release("action");
    assert!(call(&again, "echo").try_recv().unwrap().is_ok());
}
