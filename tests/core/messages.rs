//! What the tests of the queue share: messages, and waits that are looked at.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::behavior::StopOutcome;
use greenroom::core::config::ActorConfig;
use greenroom::core::context::ActorContext;
use greenroom::core::messages::{Receive, ReceivedMessage, Until};
use greenroom::core::queue::{Names, NewMessage, QueuePolicy};
use greenroom::error::{Error, Result};
use greenroom::store::MessageId;
use greenroom::time::Duration;

use crate::fixture::Fixture;

pub fn message(name: &str) -> NewMessage {
    NewMessage {
        name: name.into(),
        body: Bytes::from(format!("body of {name}")),
        delay: Duration::ZERO,
        dedupe_key: None,
    }
}

pub fn delayed(name: &str, ms: u64) -> NewMessage {
    NewMessage { delay: Duration::from_millis(ms), ..message(name) }
}

pub fn plain() -> Receive {
    Receive { names: Names::Any, count: 10, completable: false, until: Until::default() }
}

pub fn completable() -> Receive {
    Receive { completable: true, count: 1, ..plain() }
}

pub fn within(ms: u64) -> Until {
    Until { timeout: Some(Duration::from_millis(ms)), signal: None }
}

/// Sends within a turn of its own.
pub async fn send(actor: &ActorContext, message: NewMessage) -> MessageId {
    let sent = actor.queue().send(message);
    actor.commit_rows();
    sent.await.unwrap().id
}

pub async fn take(actor: &ActorContext) -> Option<ReceivedMessage> {
    let receive = Receive { until: within(0), ..completable() };
    actor.queue().receive(receive).await.unwrap().pop()
}

pub fn ids(received: &[ReceivedMessage]) -> Vec<i64> {
    received.iter().map(|message| message.delivery().id.0).collect()
}

/// The outcome of a call that must end without the clock.
pub async fn ended<T>(fixture: &Fixture, call: &mut BoxFuture<'static, Result<T>>) -> Result<T> {
    // Another thread may still be telling it.
    fixture.settle().await;
    call.now_or_never().expect("it has ended")
}

pub fn is_open<T>(call: &mut BoxFuture<'static, Result<T>>) -> bool {
    call.now_or_never().is_none()
}

pub fn refused<T>(result: Result<T>) -> Error {
    result.err().expect("it is refused")
}

pub fn with_policy(policy: QueuePolicy) -> ActorConfig {
    ActorConfig {
        has_state: true,
        queue_policies: Arc::new([("job".to_owned(), policy)].into()),
        ..ActorConfig::default()
    }
}

pub async fn sleep_and_wake(fixture: &Fixture, actor: &ActorContext) -> ActorContext {
    actor.stop(StopReason::Sleep);
    fixture.advance_ms(1).await;
    assert_eq!(fixture.host.outcomes.lock().last(), Some(&StopOutcome::Slept));
    fixture.started().await
}
