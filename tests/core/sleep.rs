//! Falling asleep: when, and what keeps an actor from it.

use bytes::Bytes;
use greenroom::core::actor::activity::WorkKind;
use greenroom::core::actor::lifecycle::Intent;
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::time::Duration;

use crate::fixture::{Fixture, call};

const SLEEP: Intent = Intent::Sleep { error: None };

fn sleepy() -> ActorConfig {
    ActorConfig { sleep_timeout: Duration::from_secs(5), ..ActorConfig::default() }
}

#[tokio::test]
async fn an_idle_actor_asks_to_sleep_after_its_timeout_once() {
    let fixture = Fixture::with(sleepy()).await;
    let _actor = fixture.started().await;

    fixture.advance_ms(4_999).await;
    assert!(fixture.host.intents.lock().is_empty());
    fixture.advance_ms(1).await;
    assert_eq!(*fixture.host.intents.lock(), [SLEEP]);

    fixture.advance_ms(60_000).await;
    assert_eq!(fixture.host.intents.lock().len(), 1);
}

#[tokio::test]
async fn a_call_starts_the_idle_time_anew() {
    let fixture = Fixture::with(sleepy()).await;
    let actor = fixture.started().await;

    fixture.advance_ms(4_000).await;
    call(&actor, "echo").try_recv().unwrap().unwrap();
    fixture.advance_ms(4_999).await;
    assert!(fixture.host.intents.lock().is_empty());
    fixture.advance_ms(1).await;

    assert_eq!(fixture.host.intents.lock().len(), 1);
}

#[tokio::test]
async fn each_kind_of_work_that_blocks_sleep_does_so_until_it_ends() {
    for kind in WorkKind::ALL {
        let fixture = Fixture::with(sleepy()).await;
        let actor = fixture.started().await;
        let region = actor.begin_region(kind);

        fixture.advance_ms(10_000).await;
        let slept = fixture.host.intents.lock().len();
        assert_eq!(slept == 0, kind.policy().blocks_idle_sleep, "{kind:?}");
        drop(region);
        fixture.advance_ms(5_000).await;

        assert_eq!(fixture.host.intents.lock().len(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn an_actor_that_never_sleeps_does_not() {
    let fixture = Fixture::with(ActorConfig { no_sleep: true, ..sleepy() }).await;
    let _actor = fixture.started().await;

    fixture.advance_ms(600_000).await;

    assert!(fixture.host.intents.lock().is_empty());
}

#[tokio::test]
async fn a_running_state_change_callback_blocks_sleep() {
    let fixture = Fixture::with(sleepy()).await;
    let actor = fixture.started().await;
    actor.begin_on_state_change();
    fixture.advance_ms(10_000).await;
    assert!(fixture.host.intents.lock().is_empty());

    actor.end_on_state_change();
    actor.end_on_state_change();

    assert_eq!(actor.keep_awake_count(), 0, "one end too many changes nothing");
    fixture.advance_ms(5_000).await;
    assert_eq!(fixture.host.intents.lock().len(), 1);
}

#[tokio::test]
async fn unsaved_state_counts_as_activity() {
    let fixture = Fixture::with(sleepy()).await;
    let actor = fixture.started().await;
    actor.mark_dirty();

    fixture.advance_ms(10_000).await;
    assert!(fixture.host.intents.lock().is_empty());
    let delta = greenroom::core::behavior::StateDelta::ActorState(Bytes::from_static(b"s"));
    actor.commit_state(vec![delta]).unwrap();
    fixture.advance_ms(5_000).await;

    assert_eq!(fixture.host.intents.lock().len(), 1);
}

#[tokio::test]
async fn an_actor_saves_before_it_asks_to_sleep() {
    let config = ActorConfig {
        durability: Durability::Interval,
        sleep_timeout: Duration::from_millis(500),
        ..ActorConfig::default()
    };
    let fixture = Fixture::with(config).await;
    let actor = fixture.started().await;
    *fixture.script.state.lock() = Some(Bytes::from_static(b"s1"));
    actor.mark_dirty();

    fixture.advance_ms(999).await;
    assert!(fixture.host.intents.lock().is_empty());
    fixture.advance_ms(501).await;

    assert_eq!(fixture.stored().await.state.as_deref(), Some(&b"s1"[..]));
    assert_eq!(fixture.host.intents.lock().len(), 1);
}

#[tokio::test]
async fn sleep_on_demand_asks_at_once_and_only_once() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;

    actor.sleep().unwrap();
    actor.sleep().unwrap();

    assert_eq!(*fixture.host.intents.lock(), [SLEEP]);
}

#[tokio::test]
async fn intents_leave_in_the_order_of_the_requests() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;

    actor.sleep().unwrap();
    actor.stop_with_error("crashed").unwrap();
    actor.destroy().unwrap();

    let crashed = Intent::Sleep { error: Some("crashed".into()) };
    assert_eq!(*fixture.host.intents.lock(), [SLEEP, crashed, Intent::Destroy]);
    assert!(actor.destroy().is_err());
    assert!(actor.is_destroy_requested());
}
