use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const INTERVAL: Duration = Duration::from_secs(1);
const DEFAULT: SaveRequest = SaveRequest { immediate: false, max_wait: None };
const IMMEDIATE: SaveRequest = SaveRequest { immediate: true, max_wait: None };

fn at(ms: u64) -> Instant {
    Instant::START + Duration::from_millis(ms)
}

fn within(ms: u64) -> SaveRequest {
    SaveRequest { immediate: false, max_wait: Some(Duration::from_millis(ms)) }
}

/// A queue whose last save was written at the start of the clock.
fn saved() -> SaveQueue<&'static str> {
    let mut saves = SaveQueue::new(INTERVAL);
    let revision = saves.begin(at(0));
    assert_eq!(saves.written(revision, at(0)), [""; 0]);
    saves
}

#[test]
fn a_request_waits_for_the_rest_of_the_interval() {
    let mut saves = saved();

    saves.request(DEFAULT, at(250));

    assert_eq!(saves.due(), Some(at(1_000)));
}

#[test]
fn the_first_save_of_all_waits_the_whole_interval() {
    let mut saves = SaveQueue::<()>::new(INTERVAL);

    saves.request(DEFAULT, at(5_000));
    saves.request(DEFAULT, at(5_400));

    assert_eq!(saves.due(), Some(at(6_000)));
}

#[test]
fn a_request_after_the_interval_is_due_at_once() {
    let mut saves = saved();

    saves.request(DEFAULT, at(3_000));

    assert_eq!(saves.due(), Some(at(3_000)));
}

#[test]
fn requests_share_one_save_and_an_immediate_one_hurries_all() {
    let mut saves = saved();
    let revisions = [DEFAULT, DEFAULT].map(|request| saves.request(request, at(100)));
    assert_eq!(revisions, [1, 2]);
    assert_eq!((saves.requested(), saves.requested_immediate()), (true, false));
    assert_eq!(saves.due(), Some(at(1_000)));

    saves.request(IMMEDIATE, at(200));
    saves.request(IMMEDIATE, at(300));

    assert_eq!((saves.requested(), saves.requested_immediate()), (true, true));
    assert_eq!(saves.due(), Some(at(200)));
    assert_eq!(saves.begin(at(200)), 4);
    assert_eq!(saves.due(), None);
}

#[test]
fn max_wait_brings_the_deadline_forward_and_never_puts_it_off() {
    let mut saves = SaveQueue::<()>::new(5 * INTERVAL);
    saves.request(within(25), at(0));
    assert_eq!(saves.due(), Some(at(25)));

    saves.request(within(60_000), at(10));
    saves.request(DEFAULT, at(10));

    assert_eq!(saves.due(), Some(at(25)));
}

#[test]
fn a_direct_save_satisfies_a_pending_immediate_request() {
    let mut saves = saved();
    let revision = saves.request(IMMEDIATE, at(100));
    assert_eq!(saves.wait(revision, "waiter"), Wait::Waits);

    assert_eq!(saves.written_directly(saves.request_revision(), at(150)), ["waiter"]);

    assert_eq!((saves.requested(), saves.requested_immediate()), (false, false));
    assert_eq!((saves.due(), saves.completed_revision()), (None, revision));
}

#[test]
fn a_direct_save_leaves_the_save_that_runs_beside_it_running() {
    let mut saves = saved();
    saves.request(DEFAULT, at(100));
    let pulled = saves.begin(at(1_000));
    saves.request(IMMEDIATE, at(1_010));

    assert_eq!(saves.written_directly(saves.request_revision(), at(1_020)), [""; 0]);

    assert!(saves.is_saving());
    assert_eq!(saves.due(), None);
    assert_eq!(saves.written(pulled, at(1_030)), [""; 0]);
    assert_eq!((saves.is_saving(), saves.requested(), saves.due()), (false, false, None));
    assert_eq!(saves.completed_revision(), 2);
}

#[test]
fn a_request_during_a_save_is_not_cleared_by_its_end() {
    let mut saves = saved();
    let old = saves.request(IMMEDIATE, at(100));
    assert_eq!(saves.begin(at(100)), old);
    let new = saves.request(DEFAULT, at(110));
    assert_eq!(saves.wait(old, "old"), Wait::Waits);
    assert_eq!(saves.wait(new, "new"), Wait::Waits);
    assert_eq!(saves.due(), None);

    assert_eq!(saves.written(old, at(150)), ["old"]);

    assert_eq!((saves.requested(), saves.requested_immediate()), (true, false));
    assert_eq!(saves.due(), Some(at(1_150)));
    assert_eq!(saves.begin(at(1_150)), new);
    assert_eq!(saves.written(new, at(1_160)), ["new"]);
    assert!(!saves.requested());
}

#[test]
fn an_immediate_request_during_a_save_is_due_when_the_save_ends() {
    let mut saves = saved();
    saves.request(DEFAULT, at(100));
    let revision = saves.begin(at(1_000));
    saves.request(IMMEDIATE, at(1_010));

    assert_eq!(saves.written(revision, at(1_050)), [""; 0]);

    assert_eq!(saves.due(), Some(at(1_050)));
}

#[test]
fn a_deadline_during_a_save_holds_after_it() {
    let mut saves = saved();
    saves.request(DEFAULT, at(100));
    let revision = saves.begin(at(1_000));
    saves.request(within(300), at(1_010));

    assert_eq!(saves.written(revision, at(1_050)), [""; 0]);

    assert_eq!(saves.due(), Some(at(1_310)));
}

#[test]
fn a_save_that_was_thrown_away_is_requested_again_at_once() {
    let mut saves = saved();
    let revision = saves.request(DEFAULT, at(100));
    assert_eq!(saves.wait(revision, "waiter"), Wait::Waits);
    assert_eq!(saves.begin(at(1_000)), 1);

    saves.outdated(at(1_020));

    assert!(!saves.is_saving() && saves.requested_immediate());
    assert_eq!(saves.due(), Some(at(1_020)));
    assert_eq!(saves.begin(at(1_020)), 2);
    assert_eq!(saves.written(2, at(1_030)), ["waiter"]);
    assert!(!saves.requested());
}

#[test]
fn a_save_that_keeps_failing_is_tried_once_per_interval_and_tells_its_waiters() {
    let mut saves = saved();
    let revision = saves.request(IMMEDIATE, at(100));
    assert_eq!(saves.wait(revision, "waiter"), Wait::Waits);
    let revision = saves.begin(at(100));
    assert_eq!(saves.failed(revision, at(110)), ["waiter"]);

    for tries in 1..5 {
        let now = at(110 + 1_000 * tries);
        assert_eq!((saves.requested(), saves.requested_immediate()), (true, false));
        assert_eq!(saves.due(), Some(now));
        let retry = saves.begin(now);
        assert_eq!(retry, revision + tries);
        assert_eq!(saves.failed(retry, now), [""; 0]);
    }
}

#[test]
fn a_request_that_came_during_a_failing_save_keeps_its_hurry_and_its_waiter() {
    let mut saves = saved();
    saves.request(DEFAULT, at(100));
    let revision = saves.begin(at(1_000));
    let newer = saves.request(IMMEDIATE, at(1_010));
    assert_eq!(saves.wait(newer, "newer"), Wait::Waits);

    assert_eq!(saves.failed(revision, at(1_050)), [""; 0]);

    assert_eq!(saves.due(), Some(at(1_050)));
    let retry = saves.begin(at(1_050));
    assert_eq!(saves.written(retry, at(1_060)), ["newer"]);
}

#[test]
fn the_failure_of_a_direct_save_keeps_the_requests_that_it_would_have_satisfied() {
    let mut saves = saved();
    let revision = saves.request(IMMEDIATE, at(100));
    assert_eq!(saves.wait(revision, "waiter"), Wait::Waits);

    assert_eq!(saves.failed(revision, at(150)), ["waiter"]);

    assert_eq!(saves.due(), Some(at(1_150)));
}

#[test]
fn who_comes_too_late_to_wait_is_given_back() {
    let mut saves = saved();
    let written = saves.request(DEFAULT, at(100));
    let revision = saves.begin(at(1_000));
    assert_eq!(saves.written(revision, at(1_010)), [""; 0]);
    let lost = saves.request(DEFAULT, at(1_020));
    let revision = saves.begin(at(2_010));
    assert_eq!(saves.failed(revision, at(2_020)), [""; 0]);

    assert_eq!(saves.wait(written, "a"), Wait::Written("a"));
    assert_eq!(saves.wait(lost, "b"), Wait::Failed("b"));
    let retry = saves.begin(at(3_020));
    assert_eq!(saves.written(retry, at(3_030)), [""; 0]);
    assert_eq!(saves.wait(lost, "c"), Wait::Written("c"));
}

#[test]
fn a_closed_queue_fails_every_wait_and_is_never_due() {
    let mut saves = saved();
    let written = saves.request(DEFAULT, at(100));
    let revision = saves.begin(at(1_000));
    assert_eq!(saves.written(revision, at(1_010)), [""; 0]);
    let pending = saves.request(DEFAULT, at(1_020));
    assert_eq!(saves.wait(pending, "pending"), Wait::Waits);

    assert_eq!(saves.close(), ["pending"]);

    let late = saves.request(IMMEDIATE, at(1_030));
    assert_eq!(saves.wait(late, "late"), Wait::Failed("late"));
    assert_eq!(saves.wait(written, "written"), Wait::Written("written"));
    assert_eq!((saves.due(), saves.requested()), (None, false));
}

#[test]
fn a_save_that_runs_when_the_queue_closes_still_counts_for_late_waiters() {
    let mut saves = saved();
    saves.request(DEFAULT, at(100));
    let revision = saves.begin(at(1_000));
    assert_eq!(saves.close(), [""; 0]);

    assert_eq!(saves.written(revision, at(1_010)), [""; 0]);

    assert_eq!(saves.wait(revision, "late"), Wait::Written("late"));
    assert_eq!(saves.due(), None);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Request(SaveRequest),
    /// Waits for a revision, counted back from the last.
    Wait(u64),
    /// Lets time pass and begins what is due.
    Pass(u64),
    Written,
    Failed,
    Outdated,
    Direct,
}

fn step() -> impl Strategy<Value = Step> {
    let request = (any::<bool>(), prop::option::of(0..3_000u64)).prop_map(|(immediate, wait)| {
        Step::Request(SaveRequest { immediate, max_wait: wait.map(Duration::from_millis) })
    });
    prop_oneof![
        4 => request,
        2 => Just(Step::Request(DEFAULT)),
        3 => (0..4u64).prop_map(Step::Wait),
        5 => (0..1_500u64).prop_map(Step::Pass),
        3 => Just(Step::Written),
        1 => Just(Step::Failed),
        1 => Just(Step::Outdated),
        1 => Just(Step::Direct),
    ]
}

proptest! {
    #[test]
    fn every_request_is_saved_in_time_and_every_waiter_is_told_once(
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut saves = SaveQueue::new(INTERVAL);
        let mut now = at(0);
        // Every waiter by its number, with its revision; and how each was told.
        let mut waiting: BTreeMap<usize, u64> = BTreeMap::new();
        let mut next = 0;
        let mut running = None;
        let mut written_to = 0;
        let mut failed_to = 0;
        for step in steps {
            let mut told = Vec::new();
            match step {
                Step::Request(request) => {
                    let before = saves.due();
                    let revision = saves.request(request, now);
                    prop_assert_eq!(revision, saves.request_revision());
                    if running.is_none() {
                        let due = saves.due().expect("something is requested");
                        prop_assert!(before.is_none_or(|before| due <= before));
                        let limit = request.max_wait.unwrap_or(INTERVAL).min(INTERVAL);
                        let limit = if request.immediate { Duration::ZERO } else { limit };
                        prop_assert!(due <= now + limit);
                    }
                }
                Step::Wait(back) => {
                    let revision = saves.request_revision().saturating_sub(back);
                    next += 1;
                    match saves.wait(revision, next) {
                        Wait::Waits => {
                            prop_assert!(revision > written_to && revision > failed_to);
                            waiting.insert(next, revision);
                        }
                        Wait::Written(_) => prop_assert!(revision <= written_to),
                        Wait::Failed(_) => {
                            prop_assert!(revision > written_to && revision <= failed_to);
                        }
                    }
                }
                Step::Pass(ms) => {
                    now = now + Duration::from_millis(ms);
                    if saves.due().is_some_and(|due| due <= now) {
                        prop_assert_eq!(running, None);
                        running = Some(saves.begin(now));
                        prop_assert_eq!(running, Some(saves.request_revision()));
                    }
                }
                Step::Written => {
                    if let Some(revision) = running.take() {
                        told = saves.written(revision, now);
                        written_to = written_to.max(revision);
                        prop_assert_eq!(saves.requested(), written_to < saves.request_revision());
                    }
                }
                Step::Failed => {
                    if let Some(revision) = running.take() {
                        told = saves.failed(revision, now);
                        failed_to = failed_to.max(revision);
                        prop_assert!(saves.requested());
                    }
                }
                Step::Outdated => {
                    if running.take().is_some() {
                        saves.outdated(now);
                        prop_assert!(saves.due().is_some_and(|due| due <= now));
                    }
                }
                Step::Direct => {
                    let revision = saves.request_revision();
                    told = saves.written_directly(revision, now);
                    written_to = revision;
                }
            }
            prop_assert_eq!(saves.is_saving(), running.is_some());
            prop_assert_eq!(saves.completed_revision(), written_to);
            for waiter in told {
                let revision = waiting.remove(&waiter);
                prop_assert!(revision.is_some_and(|r| r <= written_to.max(failed_to)));
            }
            // Nobody waits for what has been written or has failed.
            prop_assert!(waiting.values().all(|r| *r > written_to && *r > failed_to));
            // A waiter never waits for a save that will not come.
            let comes = saves.due().is_some() || saves.is_saving();
            prop_assert!(waiting.is_empty() || comes);
        }
        prop_assert_eq!(saves.close().len(), waiting.len());
    }
}
