//! The hot path: free functions with numbers, over the table of the thread.
//!
//! # Invariants
//!
//! 1. Nothing here throws for an expected outcome: 0, -1 and false say it.
//! 2. A number of a generation that is over is never mistaken for another's.
//! 3. Bytes are copied in before the call returns.

use bytes::Bytes;
use napi::Env;
use napi::bindgen_prelude::BufferSlice;
use napi_derive::napi;

use super::env::{self, number, to_js};
use super::error::from_record;
use super::guard::trip;
use super::host::settles;
use super::runtime;
use crate::core::actor::InPlace;
use crate::core::actor::activity::WorkKind;
use crate::core::actor::save_queue::SaveRequest;
use crate::core::behavior::{CallId, Reply, StateDelta};
use crate::error::{Error, Result};
use crate::time::{Clock, Duration};

/// Admits a call in place: its number, or 0 when it must take the ordinary way.
#[napi(catch_unwind)]
pub fn admit(actor: f64) -> f64 {
    trip();
    env::context(actor).and_then(|context| context.try_admit()).map_or(0.0, |call| to_js(call.0))
}

/// Queues a call of this environment behind what was accepted before it: its number,
/// which comes back when it may begin, or 0 when the actor takes no work now. Only the
/// number crosses; the caller keeps what the call is about.
#[napi(catch_unwind)]
pub fn queue(actor: f64) -> f64 {
    trip();
    env::context(actor).and_then(|context| context.try_queue()).map_or(0.0, |call| to_js(call.0))
}

/// Ends a call that was admitted in place or queued so: -1 when its generation is over or its
/// caller was answered before, -2 when it took too long, -3 when [`output_may_leave`]
/// says when its output may leave, 0 when it may, else the commit that it has to wait for.
#[napi(catch_unwind)]
pub fn finish(actor: f64, call: f64) -> f64 {
    trip();
    let Some(context) = env::context(actor) else { return -1.0 };
    match context.finish_in_place(CallId(number(call))) {
        InPlace::Over => -1.0,
        InPlace::TimedOut => -2.0,
        InPlace::Leave => 0.0,
        InPlace::Ask => -3.0,
        InPlace::Hold(number) => to_js(number.get()),
    }
}

/// Settles `ticket` once an output may leave that was made before this call; with the error
/// it has to say instead, when what it may reveal is lost. False when the generation is over,
/// and nobody is left to settle it.
#[napi(catch_unwind)]
pub fn output_may_leave(actor: f64, ticket: f64) -> bool {
    trip();
    let Some((context, hub)) = env::context_and_hub(actor) else { return false };
    let settled = settles(&hub, number(ticket));
    let told = Reply::new(move |result: Result<()>| settled.send(result.map(|()| None)));
    context.output_may_leave(told);
    true
}

/// Says that a clean actor's state has changed.
#[napi(catch_unwind)]
pub fn mark_dirty(actor: f64) {
    trip();
    if let Some(context) = env::context(actor) {
        context.mark_dirty();
    }
}

/// Begins a commit of the state, or with null says that nothing changed after
/// all: the commit after which everything so far is durable, -1 when none can
/// begin now.
#[napi(catch_unwind)]
pub fn commit(actor: f64, state: Option<&[u8]>) -> f64 {
    trip();
    let Some(context) = env::context(actor) else { return -1.0 };
    let delta = state.map(|state| StateDelta::ActorState(Bytes::copy_from_slice(state)));
    let begun = context.commit_state(delta.into_iter().collect());
    begun.map_or(-1.0, |number| to_js(number.get()))
}

/// Begins a commit of the rows that wait for the end of a turn, without the state:
/// its number, 0 when none wait, -1 when none can begin now.
#[napi(catch_unwind)]
pub fn commit_rows(actor: f64) -> f64 {
    trip();
    let Some(context) = env::context(actor) else { return -1.0 };
    context.commit_rows().map_or(0.0, |number| to_js(number.get()))
}

/// The encoded state of a running generation as it was last saved or loaded, empty for
/// none; null when the generation is over.
#[napi(catch_unwind, ts_return_type = "Buffer | null")]
pub fn stored_state(env: &Env, actor: f64) -> napi::Result<Option<BufferSlice<'_>>> {
    trip();
    env::context(actor).map(|context| BufferSlice::copy_from(env, context.state())).transpose()
}

/// Ends an action that was taken: `status` 0 with its encoded result, 1 with the
/// record of its error. False when nobody waited any more.
#[napi(catch_unwind)]
pub fn finish_call(actor: f64, call: f64, status: u32, bytes: Option<&[u8]>) -> bool {
    trip();
    env::forget_connection(actor, call);
    let Some(context) = env::context(actor) else { return false };
    let result = outcome(status, bytes).map(Option::unwrap_or_default);
    context.finish_call(CallId(number(call)), result)
}

/// Ends a hook, a run or a serialisation that was taken: `status` 0 with its
/// bytes, if any, 1 with the record of its error. False when nobody waited.
#[napi(catch_unwind)]
pub fn complete(actor: f64, ticket: f64, status: u32, bytes: Option<&[u8]>) -> bool {
    trip();
    match env::take_pending(actor, ticket) {
        Some(pending) => {
            pending.answer(outcome(status, bytes));
            true
        }
        None => false,
    }
}

/// What JavaScript says became of a job.
fn outcome(status: u32, bytes: Option<&[u8]>) -> Result<Option<Bytes>> {
    match (status, bytes) {
        (0, bytes) => Ok(bytes.map(Bytes::copy_from_slice)),
        (_, Some(record)) => Err(from_record(record)),
        (_, None) => Err(Error::internal("an error without a record")),
    }
}

/// Asks for a save, at once or within the save interval, or within `max_wait_ms`
/// if that is not negative.
#[napi(catch_unwind)]
pub fn request_save(actor: f64, immediate: bool, max_wait_ms: f64) {
    trip();
    if let Some(context) = env::context(actor) {
        context.request_save(save_request(immediate, max_wait_ms));
    }
}

/// Has the time of a call begin anew. False when nobody waits for it any more.
#[napi(catch_unwind)]
pub fn renew_call(actor: f64, call: f64) -> bool {
    trip();
    env::context(actor).is_some_and(|context| context.renew_call(CallId(number(call))))
}

/// A request as JavaScript says it.
pub(super) fn save_request(immediate: bool, max_wait_ms: f64) -> SaveRequest {
    let max_wait = (max_wait_ms >= 0.0).then(|| Duration::from_millis(number(max_wait_ms)));
    SaveRequest { immediate, max_wait }
}

/// The kinds of regions that JavaScript opens, by number.
const REGION_KINDS: [WorkKind; 5] = [
    WorkKind::KeepAwake,
    WorkKind::WaitUntil,
    WorkKind::RegisteredTask,
    WorkKind::WebSocketCallback,
    WorkKind::InternalKeepAwake,
];

/// Opens a work region: 0 keeps awake, 1 is a `waitUntil`, 2 a registered task, 3
/// a callback of a raw socket, 4 work of the runtime. Its number, or 0 when the
/// generation is over or the kind unknown.
#[napi(catch_unwind)]
pub fn begin_region(actor: f64, kind: u32) -> f64 {
    trip();
    let kind = usize::try_from(kind).ok().and_then(|kind| REGION_KINDS.get(kind));
    match (env::context(actor), kind) {
        (Some(context), Some(kind)) => to_js(env::keep_region(actor, context.begin_region(*kind))),
        _ => 0.0,
    }
}

/// Ends a work region. False when it had ended, perhaps with its generation.
#[napi(catch_unwind)]
pub fn end_region(actor: f64, region: f64) -> bool {
    trip();
    env::take_region(actor, region).is_some()
}

/// Waits, for `ms` at most, until everything that these actors began to save is
/// durable. Blocks the thread, so it is for the end of a process only. True when
/// all of it is.
#[napi(catch_unwind)]
pub fn flush_sync(actors: Vec<f64>, ms: f64) -> bool {
    trip();
    let contexts: Vec<_> = actors.into_iter().filter_map(env::context).collect();
    if contexts.is_empty() {
        return true;
    }
    let flushed = futures::future::join_all(
        contexts.into_iter().map(|context| async move { context.begun_durable().await.is_ok() }),
    );
    let clock = Clock::system();
    let limit = Duration::from_millis(number(ms));
    let waited = runtime::block_on(async move {
        tokio::select! {
            all = flushed => all.into_iter().all(|durable| durable),
            () = clock.sleep(limit) => false,
        }
    });
    waited.unwrap_or(false)
}

/// Ends a generation whose memory is void, with the record of why: everything open
/// is answered with it, and nothing of the memory is saved.
#[napi(catch_unwind)]
pub fn break_generation(actor: f64, record: &[u8]) {
    trip();
    if let Some(context) = env::context(actor) {
        context.break_generation(from_record(record));
    }
}

/// The caller of a call gave up. The function goes on, and is told.
#[napi(catch_unwind)]
pub fn cancel_call(actor: f64, call: f64) {
    trip();
    if let Some(context) = env::context(actor) {
        context.cancel_call(CallId(number(call)));
    }
}

/// Logs that a promise which an actor tracks was rejected.
#[napi(catch_unwind)]
pub fn log_rejection(actor: f64, error: String) {
    trip();
    let actor_id = env::context(actor).map(|context| context.actor_id().to_string());
    tracing::warn!(actor_id, error, "a tracked promise was rejected");
}
