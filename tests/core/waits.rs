//! Waits of the author's side on the clock.

use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::actor::waits::WaitId;
use greenroom::core::behavior::{Reply, StopOutcome};
use greenroom::core::config::ActorConfig;
use greenroom::core::context::ActorContext;
use greenroom::error::{Error, Result};
use greenroom::time::Duration;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::fixture::Fixture;

/// What ended, in order, each with the code of its error.
type Ended = Arc<Mutex<Vec<(&'static str, Option<String>)>>>;

fn wait(actor: &ActorContext, ms: u64, what: &'static str, ended: &Ended) -> Option<WaitId> {
    let ended = Arc::clone(ended);
    let reply = Reply::new(move |result: Result<()>| {
        let code = result.err().map(|error| format!("{}/{}", error.group, error.code));
        ended.lock().push((what, code));
    });
    actor.begin_wait(Duration::from_millis(ms), reply)
}

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

fn aborted(what: &'static str) -> (&'static str, Option<String>) {
    (what, Some("actor/aborted".to_owned()))
}

#[tokio::test]
async fn a_wait_ends_at_its_moment_and_not_before() {
    let fixture = Fixture::with(ActorConfig { no_sleep: true, ..ActorConfig::default() }).await;
    let actor = fixture.started().await;
    let ended = Ended::default();
    let before = actor.unix_ms();
    wait(&actor, 60 * DAY_MS, "long", &ended).unwrap();

    fixture.advance_ms(60 * DAY_MS - 1).await;
    assert!(ended.lock().is_empty());
    fixture.advance_ms(1).await;

    assert_eq!(*ended.lock(), [("long", None)]);
    assert_eq!(actor.unix_ms(), before + i64::try_from(60 * DAY_MS).unwrap());
}

#[tokio::test]
async fn waits_end_in_order_and_one_of_no_length_at_once() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let ended = Ended::default();
    for (what, ms) in [("c", 20), ("a", 10), ("b", 10)] {
        wait(&actor, ms, what, &ended).unwrap();
    }

    wait(&actor, 0, "now", &ended).unwrap();
    assert_eq!(*ended.lock(), [("now", None)]);
    fixture.advance_ms(20).await;

    let order: Vec<_> = ended.lock().iter().map(|(what, _)| *what).collect();
    assert_eq!(order, ["now", "a", "b", "c"]);
}

#[tokio::test]
async fn a_thousand_waits_arm_few_ticks() {
    let fixture = Fixture::with(ActorConfig { no_sleep: true, ..ActorConfig::default() }).await;
    let actor = fixture.started().await;
    let ended = Ended::default();

    for ms in 0..1_000 {
        wait(&actor, 10 + ms, "w", &ended).unwrap();
    }

    assert!(fixture.runtime.timers().armed() < 5, "{} armed", fixture.runtime.timers().armed());
    fixture.advance_ms(2_000).await;
    assert_eq!(ended.lock().len(), 1_000);
}

#[tokio::test]
async fn a_wait_that_is_given_up_is_answered_and_never_due() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let ended = Ended::default();
    let begun = wait(&actor, 10, "w", &ended).unwrap();

    assert!(actor.give_up_wait(begun));
    assert!(!actor.give_up_wait(begun));
    fixture.advance_ms(20).await;

    assert_eq!(*ended.lock(), [("w", Some("actor/dropped_reply".to_owned()))]);
}

#[tokio::test]
async fn a_wait_does_not_keep_the_actor_awake() {
    let sleepy = ActorConfig { sleep_timeout: Duration::from_secs(5), ..ActorConfig::default() };
    let fixture = Fixture::with(sleepy).await;
    let actor = fixture.started().await;
    let ended = Ended::default();
    wait(&actor, DAY_MS, "w", &ended).unwrap();

    fixture.advance_ms(5_000).await;

    assert_eq!(fixture.host.intents.lock().len(), 1);
}

#[tokio::test]
async fn a_wait_ends_with_the_generation_which_does_not_wait_for_it() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let ended = Ended::default();
    wait(&actor, DAY_MS, "w", &ended).unwrap();

    actor.stop(StopReason::Sleep);
    fixture.settle().await;

    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept]);
    assert_eq!(*ended.lock(), [aborted("w")]);
    assert_eq!(wait(&actor, 1, "late", &ended), None);
    assert_eq!(ended.lock().last(), Some(&aborted("late")));
}

#[tokio::test]
async fn a_wait_ends_with_a_generation_that_breaks() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let ended = Ended::default();
    wait(&actor, DAY_MS, "w", &ended).unwrap();

    actor.break_generation(Error::internal("boom"));

    assert_eq!(*ended.lock(), [aborted("w")]);
}

#[tokio::test]
async fn a_wait_of_a_stopping_actor_goes_on_within_its_grace() {
    let fixture = Fixture::new().await;
    fixture.script.hold("on_sleep");
    let actor = fixture.started().await;
    let ended = Ended::default();

    actor.stop(StopReason::Sleep);
    fixture.settle().await;
    wait(&actor, 100, "w", &ended).unwrap();
    fixture.advance_ms(100).await;
    assert_eq!(*ended.lock(), [("w", None)]);
    fixture.script.answer_hook("on_sleep");
    fixture.settle().await;

    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept]);
}
