use proptest::prelude::*;

use super::*;

fn started() -> Lifecycle {
    let mut life = Lifecycle::new();
    life.become_started().expect("it was loading");
    life
}

fn sleeping(error: Option<&str>) -> Intent {
    Intent::Sleep { error: error.map(str::to_owned) }
}

fn take_all(life: &mut Lifecycle) -> Vec<Intent> {
    std::iter::from_fn(|| life.take_intent()).collect()
}

fn refusal(life: &Lifecycle) -> (LifecycleError, WarningKind) {
    let refusal = life.admit().unwrap_err();
    (refusal.error, refusal.warning.expect("it was not closed"))
}

#[test]
fn nothing_can_be_requested_before_the_start() {
    let mut life = Lifecycle::new();

    assert_eq!(life.request_sleep(), Err(LifecycleError::Starting));
    assert_eq!(life.request_destroy(), Err(LifecycleError::Starting));
    assert_eq!(life.request_stop_with_error("x"), Err(LifecycleError::Starting));
    assert_eq!(take_all(&mut life), []);
}

#[test]
fn requests_during_the_start_are_stopping_once_the_host_destroys_the_actor() {
    let mut life = Lifecycle::new();
    assert_eq!(life.mark_destroy_requested(), First(true));

    assert_eq!(life.request_sleep(), Err(LifecycleError::Stopping));
    assert_eq!(life.request_destroy(), Err(LifecycleError::Stopping));
    assert_eq!(life.request_stop_with_error("x"), Err(LifecycleError::Stopping));
}

#[test]
fn a_repeated_sleep_is_accepted_and_asks_only_once() {
    let mut life = started();

    assert_eq!(life.request_sleep(), Ok(First(true)));
    assert_eq!(life.request_sleep(), Ok(First(false)));

    assert!(life.sleep_requested() && !life.destroy_requested());
    assert_eq!(take_all(&mut life), [sleeping(None)]);
}

#[test]
fn a_sleep_of_a_generation_that_no_longer_runs_is_stopping_and_not_starting() {
    let mut life = started();
    life.request_sleep().unwrap().0.then_some(()).expect("the first");
    assert_eq!(life.enter_grace(StopReason::Sleep), Grace::Entered);
    life.finalize().expect("it was in its grace period");

    assert_eq!(life.request_sleep(), Err(LifecycleError::Stopping));
}

#[test]
fn a_sleep_that_the_host_has_begun_is_not_asked_for_again() {
    let mut life = started();
    assert_eq!(life.enter_grace(StopReason::Sleep), Grace::Entered);

    assert_eq!(life.request_sleep(), Ok(First(true)));

    assert_eq!(take_all(&mut life), []);
}

#[test]
fn an_errored_stop_is_told_as_a_sleep_with_its_message() {
    let mut life = started();

    assert_eq!(life.request_stop_with_error("x"), Ok(First(true)));

    assert!(life.sleep_requested() && !life.destroy_requested());
    assert_eq!(take_all(&mut life), [sleeping(Some("x"))]);
}

#[test]
fn the_newest_of_the_untold_messages_is_told_once() {
    let mut life = started();

    assert_eq!(life.request_stop_with_error("old"), Ok(First(true)));
    assert_eq!(life.request_stop_with_error("new"), Ok(First(false)));

    assert_eq!(take_all(&mut life), [sleeping(Some("new"))]);
}

#[test]
fn a_destroy_takes_the_place_of_an_untold_errored_stop() {
    let mut life = started();

    assert_eq!(life.request_stop_with_error("x"), Ok(First(true)));
    assert_eq!(life.request_destroy(), Ok(First(true)));

    assert_eq!(take_all(&mut life), [Intent::Destroy]);
}

#[test]
fn a_destroy_decided_by_the_host_leaves_an_untold_crash_to_be_told() {
    let mut life = started();
    assert_eq!(life.request_stop_with_error("x"), Ok(First(true)));

    assert_eq!(life.mark_destroy_requested(), First(true));
    assert_eq!(life.mark_destroy_requested(), First(false));

    assert_eq!(take_all(&mut life), [sleeping(Some("x"))]);
}

/// A request of the escalation matrix.
#[derive(Clone, Copy, Debug)]
enum Request {
    Sleep,
    Error(&'static str),
    Destroy,
}

impl Request {
    fn make(self, life: &mut Lifecycle) -> Result<First, LifecycleError> {
        match self {
            Self::Sleep => life.request_sleep(),
            Self::Error(message) => life.request_stop_with_error(message),
            Self::Destroy => life.request_destroy(),
        }
    }
}

#[test]
fn each_escalation_has_the_result_and_the_intents_of_the_matrix() {
    use Request::{Destroy, Error, Sleep};
    let stopping = Err(LifecycleError::Stopping);
    let again = Ok(First(false));
    let first = Ok(First(true));
    // First request; whether it is told before the second; the second; its result;
    // what is told from then on.
    let rows = [
        (Sleep, false, Sleep, again, vec![sleeping(None)]),
        (Sleep, true, Sleep, again, vec![]),
        (Sleep, false, Error("2"), again, vec![sleeping(None), sleeping(Some("2"))]),
        (Sleep, true, Error("2"), again, vec![sleeping(Some("2"))]),
        (Sleep, false, Destroy, first, vec![sleeping(None), Intent::Destroy]),
        (Sleep, true, Destroy, first, vec![Intent::Destroy]),
        (Error("1"), false, Sleep, again, vec![sleeping(Some("1"))]),
        (Error("1"), true, Sleep, again, vec![]),
        (Error("1"), false, Error("2"), again, vec![sleeping(Some("2"))]),
        (Error("1"), true, Error("2"), again, vec![sleeping(Some("2"))]),
        (Error("1"), false, Destroy, first, vec![Intent::Destroy]),
        (Error("1"), true, Destroy, first, vec![Intent::Destroy]),
        (Destroy, false, Sleep, again, vec![Intent::Destroy]),
        (Destroy, true, Sleep, again, vec![]),
        (Destroy, false, Error("2"), stopping, vec![Intent::Destroy]),
        (Destroy, true, Error("2"), stopping, vec![]),
        (Destroy, false, Destroy, stopping, vec![Intent::Destroy]),
        (Destroy, true, Destroy, stopping, vec![]),
    ];

    for (one, told, two, result, intents) in rows {
        let mut life = started();
        assert_eq!(one.make(&mut life), first, "{one:?}");
        if told {
            assert_eq!(take_all(&mut life).len(), 1, "{one:?}");
        }

        assert_eq!(two.make(&mut life), result, "{one:?}, told: {told}, then {two:?}");
        assert_eq!(take_all(&mut life), intents, "{one:?}, told: {told}, then {two:?}");
    }
}

#[test]
fn a_sleep_under_way_can_still_become_a_crash_or_a_destroy() {
    let mut life = started();
    assert_eq!(life.enter_grace(StopReason::Sleep), Grace::Entered);
    life.finalize().expect("it was in its grace period");

    assert_eq!(life.request_stop_with_error("x"), Ok(First(true)));
    assert_eq!(take_all(&mut life), [sleeping(Some("x"))]);
    assert_eq!(life.request_destroy(), Ok(First(true)));
    assert_eq!(take_all(&mut life), [Intent::Destroy]);
}

#[test]
fn a_generation_that_is_over_accepts_nothing() {
    let mut life = started();
    life.terminate().expect("it was not over");

    assert_eq!(life.request_sleep(), Err(LifecycleError::Stopping));
    assert_eq!(life.request_destroy(), Err(LifecycleError::Stopping));
    assert_eq!(life.request_stop_with_error("x"), Err(LifecycleError::Stopping));
    assert_eq!(life.terminate(), None);
}

#[test]
fn one_that_makes_room_takes_nothing_more_and_nobody_is_warned_for_coming() {
    let refused = Err(Refusal { error: LifecycleError::Stopping, warning: None });
    let mut life = started();

    life.close();

    assert_eq!(life.admit(), refused);
    assert_eq!(life.enter_grace(StopReason::Sleep), Grace::Entered);
    assert_eq!(life.admit(), refused);
    life.finalize().expect("it was in its grace period");
    assert_eq!(life.admit(), refused);
}

#[test]
fn work_is_admitted_by_phase() {
    let mut life = Lifecycle::new();
    assert_eq!(refusal(&life), (LifecycleError::NotReady, WarningKind::SelfCallRisk));

    life.become_started();
    assert_eq!(life.admit(), Ok(()));
    assert_eq!(life.enter_grace(StopReason::Sleep), Grace::Entered);
    assert_eq!(life.admit(), Ok(()));

    let stopping_instance = WarningKind::WorkSentToStoppingInstance;
    life.finalize();
    assert_eq!(refusal(&life), (LifecycleError::Stopping, stopping_instance));
    life.terminate();
    assert_eq!(refusal(&life), (LifecycleError::Destroying, stopping_instance));
}

#[test]
fn work_for_an_actor_that_is_being_destroyed_is_refused_in_every_phase() {
    let stopping_instance = WarningKind::WorkSentToStoppingInstance;
    let mut life = started();
    assert_eq!(life.enter_grace(StopReason::Destroy), Grace::Entered);
    assert_eq!(refusal(&life), (LifecycleError::Stopping, stopping_instance));
    life.finalize();
    assert_eq!(refusal(&life), (LifecycleError::Destroying, stopping_instance));

    let mut requested = started();
    assert_eq!(requested.request_destroy(), Ok(First(true)));
    assert_eq!(refusal(&requested), (LifecycleError::Destroying, stopping_instance));
}

#[test]
fn a_second_stop_changes_nothing_and_says_whether_it_conflicts() {
    let mut life = started();
    assert_eq!(life.enter_grace(StopReason::Sleep), Grace::Entered);

    assert_eq!(life.enter_grace(StopReason::Sleep), Grace::Already { conflicting: false });
    assert_eq!(life.enter_grace(StopReason::Destroy), Grace::Already { conflicting: true });
    assert_eq!(life.phase(), Phase::SleepGrace);
    let ended = Transition { old: Phase::SleepGrace, new: Phase::SleepFinalize };
    assert_eq!(life.finalize(), Some(ended));
    assert_eq!(life.enter_grace(StopReason::Destroy), Grace::Already { conflicting: true });
    life.terminate();
    assert_eq!(life.enter_grace(StopReason::Destroy), Grace::Already { conflicting: false });
}

#[test]
fn a_stop_during_the_start_is_for_later() {
    let mut life = Lifecycle::new();

    assert_eq!(life.enter_grace(StopReason::Sleep), Grace::NotStarted);
    assert_eq!(life.phase(), Phase::Loading);
}

#[test]
fn a_start_that_was_ended_meanwhile_does_not_start() {
    let mut life = Lifecycle::new();
    let ended = Transition { old: Phase::Loading, new: Phase::Terminated };
    assert_eq!(life.terminate(), Some(ended));

    assert_eq!(life.become_started(), None);
    assert_eq!(life.phase(), Phase::Terminated);
}

#[test]
fn a_completed_destroy_stays_completed() {
    let mut life = started();
    assert_eq!(life.mark_destroy_requested(), First(true));
    assert_eq!(life.destruction(), Destruction::Open);
    life.mark_destruction(true);

    assert_eq!(life.mark_destroy_requested(), First(false));

    assert_eq!(life.destruction(), Destruction::Completed);
}

#[test]
fn a_message_up_to_the_limit_is_kept_whole() {
    let message = "x".repeat(MAX_STOP_ERROR_LEN);

    assert_eq!(truncate_stop_error(&message), message);
}

#[test]
fn a_longer_message_is_cut_at_a_character_and_says_so() {
    let ascii = "x".repeat(1024 * 1024);
    // The limit falls into the middle of a character of three bytes.
    let wide = format!("x{}", "\u{20ac}".repeat(MAX_STOP_ERROR_LEN));

    let (ascii, wide) = (truncate_stop_error(&ascii), truncate_stop_error(&wide));

    assert_eq!(ascii.len(), MAX_STOP_ERROR_LEN + TRUNCATED_SUFFIX.len());
    let kept = wide.strip_suffix(TRUNCATED_SUFFIX).expect("it was cut");
    assert_eq!(kept.len(), MAX_STOP_ERROR_LEN - 1);
    assert!(kept.ends_with('\u{20ac}'));
}

#[test]
fn errors_have_the_codes_that_callers_know() {
    let codes = [
        (LifecycleError::Starting, "starting"),
        (LifecycleError::NotReady, "not_ready"),
        (LifecycleError::Stopping, "stopping"),
        (LifecycleError::Destroying, "destroying"),
    ];

    for (error, code) in codes {
        assert_eq!(error.code(), ErrorCode::new("actor", code));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Sleep,
    Error(u8),
    Destroy,
    MarkDestroy,
    Take,
    Start,
    Grace(StopReason),
    Finalize,
    Terminate,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Sleep),
        3 => any::<u8>().prop_map(Step::Error),
        2 => Just(Step::Destroy),
        1 => Just(Step::MarkDestroy),
        3 => Just(Step::Take),
        3 => Just(Step::Start),
        1 => prop_oneof![Just(StopReason::Sleep), Just(StopReason::Destroy)].prop_map(Step::Grace),
        1 => Just(Step::Finalize),
        1 => Just(Step::Terminate),
    ]
}

proptest! {
    #[test]
    fn any_sequence_of_requests_and_transitions_keeps_the_invariants(
        steps in prop::collection::vec(step(), 0..40),
    ) {
        let mut life = Lifecycle::new();
        let mut told = Vec::new();
        let mut destroys = 0;
        let mut newest_error = None;
        for step in steps {
            let before = life.phase();
            let destroy_before = life.destroy_requested();
            match step {
                Step::Sleep => {
                    let accepted = life.request_sleep().is_ok();
                    prop_assert_eq!(accepted, life.started());
                }
                Step::Error(n) => {
                    if life.request_stop_with_error(&n.to_string()).is_ok() {
                        newest_error = Some(n.to_string());
                    }
                }
                Step::Destroy => destroys += u32::from(life.request_destroy().is_ok()),
                Step::MarkDestroy => {
                    let first = life.mark_destroy_requested();
                    prop_assert_eq!(first, First(!destroy_before));
                }
                Step::Take => told.extend(life.take_intent()),
                Step::Start => drop(life.become_started()),
                Step::Grace(reason) => drop(life.enter_grace(reason)),
                Step::Finalize => drop(life.finalize()),
                Step::Terminate => drop(life.terminate()),
            }
            prop_assert!(life.phase() >= before);
            prop_assert!(!destroy_before || life.destroy_requested());
            prop_assert!(destroys <= 1);
        }
        told.extend(std::iter::from_fn(|| life.take_intent()));

        let destroy_at: Vec<_> = (0..told.len()).filter(|&i| told[i] == Intent::Destroy).collect();
        if destroys == 1 {
            prop_assert_eq!(destroy_at, [told.len() - 1]);
        } else {
            prop_assert_eq!(destroy_at, [] as [usize; 0]);
            let last = told.iter().rev().find_map(|intent| match intent {
                Intent::Sleep { error } => error.clone(),
                Intent::Destroy => None,
            });
            prop_assert_eq!(last, newest_error);
        }
    }
}
