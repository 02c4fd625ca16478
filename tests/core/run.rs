//! The author's `run`.

use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::behavior::{ActorEvent, StopOutcome};
use greenroom::core::config::ActorConfig;
use greenroom::error::{Error, ErrorCode, Result};
use greenroom::time::Duration;

use crate::fixture::Fixture;

async fn fixture(config: ActorConfig) -> Fixture {
    let mut fixture = Fixture::with(config).await;
    fixture.hooks.run = true;
    fixture.script.hold("run");
    fixture
}

fn end_run(fixture: &Fixture, result: Result<()>) {
    let ActorEvent::Run { reply } = fixture.script.take("run") else { unreachable!() };
    reply.send(result.map(|()| true));
}

fn sleepy() -> ActorConfig {
    ActorConfig { sleep_timeout: Duration::from_secs(5), ..ActorConfig::default() }
}

#[tokio::test]
async fn run_begins_when_the_actor_is_ready_and_keeps_it_awake() {
    let fixture = fixture(sleepy()).await;
    let actor = fixture.started().await;
    assert_eq!(fixture.script.story().last().unwrap(), "run");
    assert!(actor.run_handler_active());

    fixture.advance_ms(60_000).await;
    assert!(fixture.host.intents.lock().is_empty());
    end_run(&fixture, Ok(()));
    fixture.advance_ms(5_000).await;

    assert!(!actor.run_handler_active());
    assert_eq!(fixture.host.intents.lock().len(), 1, "its end does not stop the actor");
    assert_eq!(fixture.script.count("run"), 1);
}

#[tokio::test]
async fn a_run_that_fails_begins_again_after_a_growing_wait() {
    let fixture = fixture(sleepy()).await;
    let actor = fixture.started().await;

    for (nth, wait) in [1_000, 2_000, 4_000].into_iter().enumerate() {
        end_run(&fixture, Err(Error::internal("boom")));
        assert_eq!(actor.holds()[0].what, "run (restarting)");
        fixture.advance_ms(wait - 1).await;
        assert_eq!(fixture.script.count("run"), nth + 1);
        fixture.advance_ms(1).await;
        assert_eq!(fixture.script.count("run"), nth + 2);
    }
    assert!(fixture.host.intents.lock().is_empty(), "it stays awake meanwhile");
}

#[tokio::test]
async fn a_stop_while_run_waits_to_begin_again_ends_at_once_and_begins_nothing() {
    let fixture = fixture(sleepy()).await;
    let actor = fixture.started().await;
    end_run(&fixture, Err(Error::internal("boom")));

    actor.stop(StopReason::Sleep);
    fixture.settle().await;
    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept]);
    fixture.advance_ms(60_000).await;

    assert_eq!(fixture.script.count("run"), 1);
    assert!(actor.holds().is_empty());
}

#[tokio::test]
async fn without_restarts_a_failed_run_is_over_and_the_actor_lives_on() {
    let fixture = fixture(ActorConfig { restarts_run: false, ..sleepy() }).await;
    let _actor = fixture.started().await;

    end_run(&fixture, Err(Error::internal("boom")));
    fixture.advance_ms(5_000).await;

    assert_eq!(fixture.script.count("run"), 1);
    assert_eq!(fixture.host.intents.lock().len(), 1);
}

#[tokio::test]
async fn a_run_that_ends_because_the_actor_stops_has_not_failed() {
    let fixture = fixture(sleepy()).await;
    let actor = fixture.started().await;

    actor.stop(StopReason::Sleep);
    fixture.settle().await;
    assert!(fixture.host.outcomes.lock().is_empty(), "a sleep waits for run");
    let aborted = Error::new(ErrorCode::new("actor", "aborted"), "the actor stops");
    end_run(&fixture, Err(aborted));
    fixture.advance_ms(60_000).await;

    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept]);
    assert_eq!(fixture.script.count("run"), 1);
}

#[tokio::test]
async fn a_restart_on_demand_makes_the_end_of_the_old_run_stale() {
    let fixture = fixture(sleepy()).await;
    let actor = fixture.started().await;

    actor.restart_run_handler().unwrap();
    assert_eq!(fixture.script.count("run"), 2);
    end_run(&fixture, Err(Error::internal("the old one")));
    fixture.advance_ms(60_000).await;

    assert!(actor.run_handler_active());
    assert_eq!(fixture.script.count("run"), 2);
}

#[tokio::test]
async fn a_restart_is_refused_without_a_run_handler_and_after_a_stop() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    assert_eq!(actor.restart_run_handler().unwrap_err().code, "invalid_operation");

    let fixture = self::fixture(sleepy()).await;
    let actor = fixture.started().await;
    actor.stop(StopReason::Sleep);

    assert_eq!(actor.restart_run_handler().unwrap_err().code, "stopping");
}
