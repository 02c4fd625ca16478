//! The contract's `ActorContext`: one instance per generation, which stays usable
//! after the generation ended.
//!
//! What returns a promise, holds a JavaScript object or tracks one is added by the
//! JavaScript half (`ts/native/context.ts`) on the same class; the functions with
//! a ticket below are what it stands on.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use napi::Env;
use napi::bindgen_prelude::{BufferSlice, Either, Uint8Array};
use napi_derive::napi;

use super::calls::save_request;
use super::connections::JsStateDelta;
use super::env::{self, number};
use super::error::{invalid_argument, invalid_state, thrown};
use super::guard::trip;
use super::hub::Hub;
use super::kv::{Kv, copied};
use super::queue::Queue;
use super::schedule::Schedule;
use super::sql::JsNativeDatabase;
use super::transaction::JsActorStateTransaction;
use crate::core::context::ActorContext as CoreContext;
use crate::core::transaction::DEFAULT_TIMEOUT;
use crate::error::Result;
use crate::ids::KeyPart;
use crate::time::Duration;

/// A part of an actor's key that is text.
#[napi(object)]
pub struct JsStringKeyPart {
    /// Always `string`.
    #[napi(ts_type = "'string'")]
    pub kind: String,
    /// The text.
    pub string_value: String,
}

/// A part of an actor's key that is a number.
#[napi(object)]
pub struct JsNumberKeyPart {
    /// Always `number`.
    #[napi(ts_type = "'number'")]
    pub kind: String,
    /// The number.
    pub number_value: f64,
}

/// When a save should happen.
#[napi(object)]
pub struct JsSaveOptions {
    /// Whether at once.
    pub immediate: Option<bool>,
    /// How long it may be put off, in milliseconds.
    pub max_wait_ms: Option<f64>,
}

/// One running actor, or one that has stopped.
#[napi]
pub struct ActorContext {
    pub(super) inner: CoreContext,
    number: u64,
    pub(super) hub: Arc<Hub>,
}

/// The class instance of a generation; null when it is over or runs elsewhere.
/// The JavaScript half keeps it, so that there is one per generation.
#[napi(catch_unwind)]
pub fn actor_context(environment: f64, actor: f64) -> Option<ActorContext> {
    trip();
    let inner = env::context(actor)?;
    let hub = env::hub(environment)?;
    Some(ActorContext { inner, number: number(actor), hub })
}

#[napi]
impl ActorContext {
    /// The id that stays over generations.
    #[napi(catch_unwind)]
    pub fn actor_id(&self) -> String {
        trip();
        self.inner.identity().id.to_string()
    }

    /// The actor's type.
    #[napi(catch_unwind)]
    pub fn name(&self) -> String {
        trip();
        self.inner.identity().name.as_str().to_owned()
    }

    /// The parts of the actor's key.
    #[napi(catch_unwind)]
    pub fn key(&self) -> Vec<Either<JsStringKeyPart, JsNumberKeyPart>> {
        trip();
        let part = |part: &KeyPart| match part {
            KeyPart::String(text) => {
                Either::A(JsStringKeyPart { kind: "string".to_owned(), string_value: text.clone() })
            }
            KeyPart::Number(number) => {
                Either::B(JsNumberKeyPart { kind: "number".to_owned(), number_value: *number })
            }
        };
        self.inner.identity().key.parts().iter().map(part).collect()
    }

    /// Where the actor runs; empty in this process.
    #[napi(catch_unwind)]
    pub fn region(&self) -> String {
        trip();
        self.inner.identity().region.clone()
    }

    /// The encoded state as it was last saved or loaded; empty for none.
    #[napi(catch_unwind, ts_return_type = "Buffer")]
    pub fn state<'env>(&self, env: &'env Env) -> napi::Result<BufferSlice<'env>> {
        trip();
        BufferSlice::copy_from(env, self.inner.state())
    }

    /// Whether both are the same running generation.
    #[napi(catch_unwind)]
    pub fn same_actor_instance(&self, other: &ActorContext) -> bool {
        trip();
        self.number == other.number
    }

    /// The actor's keys and values.
    #[napi(catch_unwind)]
    pub fn kv(&self) -> Kv {
        trip();
        Kv::new(self.inner.kv(), Arc::clone(&self.hub))
    }

    /// The actor's database. It gets a file of its own with its first statement.
    #[napi(catch_unwind)]
    pub fn sql(&self) -> JsNativeDatabase {
        trip();
        JsNativeDatabase::new(self.inner.sql(), Arc::clone(&self.hub))
    }

    /// What the actor is to do later.
    #[napi(catch_unwind)]
    pub fn schedule(&self) -> Schedule {
        trip();
        Schedule::new(self.inner.schedule(), Arc::clone(&self.hub))
    }

    /// The actor's messages.
    #[napi(catch_unwind)]
    pub fn queue(&self) -> Queue {
        trip();
        Queue::new(self.inner.queue(), Arc::clone(&self.hub))
    }

    /// Asks for a save of the state.
    #[napi(catch_unwind)]
    pub fn request_save(&self, options: Option<JsSaveOptions>) {
        trip();
        self.inner.request_save(save_options(options));
    }

    /// Begins a callback that watches the state; the actor stays awake for it.
    #[napi(catch_unwind)]
    pub fn begin_on_state_change(&self) {
        trip();
        self.inner.begin_on_state_change();
    }

    /// Ends such a callback.
    #[napi(catch_unwind)]
    pub fn end_on_state_change(&self) {
        trip();
        self.inner.end_on_state_change();
    }

    /// Asks to be put to sleep. Throws `actor.starting` or `actor.stopping`.
    #[napi(catch_unwind)]
    pub fn sleep(&self, env: &Env) -> napi::Result<()> {
        trip();
        self.inner.sleep().map_err(|error| thrown(env, error))
    }

    /// Asks to be destroyed. Throws `actor.starting` or `actor.stopping`.
    #[napi(catch_unwind)]
    pub fn destroy(&self, env: &Env) -> napi::Result<()> {
        trip();
        self.inner.destroy().map_err(|error| thrown(env, error))
    }

    /// Whether the actor asked, or was asked, to be destroyed.
    #[napi(catch_unwind)]
    pub fn destroy_requested(&self) -> bool {
        trip();
        self.inner.is_destroy_requested()
    }

    /// Whether the actor has begun to stop.
    #[napi(catch_unwind)]
    pub fn aborted(&self) -> bool {
        trip();
        self.inner.aborted()
    }

    /// Whether the author's `run` is running.
    #[napi(catch_unwind)]
    pub fn run_handler_active(&self) -> bool {
        trip();
        self.inner.run_handler_active()
    }

    /// Ends the author's `run` and begins it again. Throws `napi.invalid_state`
    /// when there is none.
    #[napi(catch_unwind)]
    pub fn restart_run_handler(&self, env: &Env) -> napi::Result<()> {
        trip();
        self.inner
            .restart_run_handler()
            .map_err(|error| thrown(env, invalid_state("run handler", error)))
    }
}

/// Begins a state transaction that may take `timeout_ms`, and settles `ticket` when it is
/// open: no other is open then.
#[napi(catch_unwind)]
pub fn state_transaction_begin(
    context: &ActorContext,
    timeout_ms: Option<f64>,
    ticket: f64,
) -> JsActorStateTransaction {
    trip();
    let (owner, opened) = context.inner.begin_state_transaction(timeout(timeout_ms));
    settle_with(&context.hub, ticket, async move { opened.await.map(|()| None) });
    JsActorStateTransaction::new(owner, Arc::clone(&context.hub))
}

/// The JavaScript half lets positive finite numbers through only.
fn timeout(timeout_ms: Option<f64>) -> Duration {
    timeout_ms.map_or(DEFAULT_TIMEOUT, |ms| Duration::from_millis(ms.ceil() as u64))
}

/// A request as the contract's callers say it.
fn save_options(options: Option<JsSaveOptions>) -> crate::core::actor::save_queue::SaveRequest {
    let immediate = options.as_ref().and_then(|options| options.immediate).unwrap_or(false);
    let max_wait = options.and_then(|options| options.max_wait_ms).unwrap_or(-1.0);
    save_request(immediate, max_wait)
}

/// Settles `ticket` when what is asked for here is durable, or was dropped.
#[napi(catch_unwind)]
pub fn await_save(context: &ActorContext, immediate: bool, max_wait_ms: f64, ticket: f64) {
    trip();
    let inner = context.inner.clone();
    let request = save_request(immediate, max_wait_ms);
    settle(&context.hub, ticket, async move { inner.request_save_and_wait(request).await });
}

/// Saves what the author's side hands over, and settles `ticket` when that is durable. While
/// a state transaction is open it waits for its end.
#[napi(catch_unwind)]
pub fn await_saved(
    env: &Env,
    context: &ActorContext,
    delta: JsStateDelta,
    ticket: f64,
) -> napi::Result<()> {
    trip();
    let inner = context.inner.clone();
    let deltas = delta.read(env)?;
    settle(&context.hub, ticket, async move { inner.save_state(deltas).await });
    Ok(())
}

/// Stores the state, as it is asked for now, and rows of the actor's workflow together, and
/// settles `ticket` when that is durable. Keys and values are as many.
#[napi(catch_unwind)]
pub fn save_with_workflow(
    env: &Env,
    context: &ActorContext,
    keys: Vec<Uint8Array>,
    values: Vec<Uint8Array>,
    ticket: f64,
) -> napi::Result<()> {
    trip();
    if keys.len() != values.len() {
        return Err(thrown(env, invalid_argument("values", "they are not as many as the keys")));
    }
    let writes = keys.iter().map(copied).zip(values.iter().map(copied)).collect();
    let saved = context.inner.save_state_and_workflow_batch(writes);
    settle(&context.hub, ticket, saved);
    Ok(())
}

/// Settles `ticket` when every save that has begun is durable.
#[napi(catch_unwind)]
pub fn await_flushed(context: &ActorContext, ticket: f64) {
    trip();
    let inner = context.inner.clone();
    settle(&context.hub, ticket, async move { inner.flushed().await });
}

/// Settles `ticket` with one byte when the generation is over: 1 when the actor is
/// durably destroyed, 0 when it is still there.
#[napi(catch_unwind)]
pub fn await_destroyed(context: &ActorContext, ticket: f64) {
    trip();
    let inner = context.inner.clone();
    settle_with(&context.hub, ticket, async move {
        let destroyed = inner.wait_for_destroy_completion().await;
        Ok(Some(bytes::Bytes::copy_from_slice(&[u8::from(destroyed)])))
    });
}

/// Settles `ticket` with one byte when the tracked work has ended: 1, or 0 when
/// `bounded` and the grace period ended first.
#[napi(catch_unwind)]
pub fn await_tracked_work(context: &ActorContext, ticket: f64, bounded: bool) {
    trip();
    let inner = context.inner.clone();
    settle_with(&context.hub, ticket, async move {
        let drained = if bounded {
            inner.wait_for_tracked_work().await
        } else {
            inner.wait_for_tracked_work_unbounded().await;
            true
        };
        Ok(Some(bytes::Bytes::copy_from_slice(&[u8::from(drained)])))
    });
}

fn settle(hub: &Arc<Hub>, ticket: f64, future: impl Future<Output = Result<()>> + Send + 'static) {
    settle_with(hub, ticket, async move { future.await.map(|()| None) });
}

/// Runs `future` and settles a ticket with its outcome, also when it panics. What is ready
/// at once needs no task.
pub(super) fn settle_with(
    hub: &Arc<Hub>,
    ticket: f64,
    future: impl Future<Output = Result<Option<bytes::Bytes>>> + Send + 'static,
) {
    let reply = super::host::settles(hub, number(ticket));
    let spawner = match hub.spawner() {
        Ok(spawner) => spawner,
        Err(error) => return reply.send(Err(error)),
    };
    let mut future = Box::pin(future);
    let first = {
        // A timer that it makes belongs to the runtime.
        let _entered = spawner.handle().enter();
        future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    };
    match first {
        Poll::Ready(outcome) => reply.send(outcome),
        // A task that panics drops the reply, which answers.
        Poll::Pending => drop(spawner.spawn("settle", async move { reply.send(future.await) })),
    }
}
