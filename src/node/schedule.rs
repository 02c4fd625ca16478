//! The contract's `Schedule`: what one generation is to do later.
//!
//! The promise-returning methods are added by the JavaScript half
//! (`ts/native/schedule.ts`) on the same class; the functions with a ticket below are
//! what they stand on.
//!
//! # Invariants
//!
//! 1. A change begins before the call returns; its ticket is settled when it is durable.
//! 2. What is read comes back packed: a list of what JSON can say, then the arguments of
//!    each, in their order.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use napi::Env;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;
use serde_json::{Value, json};

use super::context::{ActorContext, settle_with};
use super::error::thrown;
use super::guard::trip;
use super::hub::Hub;
use super::kv::packed;
use crate::core::schedule::{
    ActorSchedule, CronFire, CronJob, CronSpec, DeadLetter, EverySpec, FireResult, JobCadence,
    OneShot, Retry, ScheduledEvent, limits,
};
use crate::error::Result;
use crate::store::FireKind;

/// What an actor is to do later.
#[napi]
pub struct Schedule {
    inner: ActorSchedule,
    hub: Arc<Hub>,
}

impl Schedule {
    pub(super) fn new(inner: ActorSchedule, hub: Arc<Hub>) -> Self {
        Self { inner, hub }
    }

    /// Settles `ticket` with one byte: whether there was what is changed.
    fn settle_found(&self, ticket: f64, found: BoxFuture<'static, Result<bool>>) {
        settle_with(&self.hub, ticket, async move {
            let found = found.await?;
            Ok(Some(Bytes::copy_from_slice(&[u8::from(found)])))
        });
    }

    /// Settles `ticket` with what was read (invariant 2).
    fn settle_read<T>(&self, ticket: f64, read: Result<Vec<T>>, show: fn(T) -> (Value, Bytes)) {
        let packed = read.and_then(|found| listed(found.into_iter().map(show)));
        settle_with(&self.hub, ticket, async move { packed.map(Some) });
    }
}

/// How a fire that fails is tried again; times are milliseconds.
#[napi(object)]
pub struct JsRetry {
    /// How often it is tried in all.
    pub max_attempts: f64,
    /// How long it waits after the first failure, and twice as long after each further.
    pub initial_ms: Option<f64>,
    /// The longest wait.
    pub max_ms: Option<f64>,
}

/// What only some one-shots have.
#[napi(object)]
#[derive(Default)]
pub struct JsOneShotOptions {
    /// Makes it idempotent.
    pub key: Option<String>,
    /// How it is tried again when it fails.
    pub retry: Option<JsRetry>,
}

/// What only some recurring jobs have.
#[napi(object)]
#[derive(Default)]
pub struct JsJobOptions {
    /// How many fires the history keeps.
    pub max_history: Option<f64>,
    /// How a fire is tried again when it fails.
    pub retry: Option<JsRetry>,
}

/// Makes a one-shot that is due at `when`, or that many milliseconds from now, and
/// settles `ticket` with its id when that is durable.
#[napi(catch_unwind)]
pub fn schedule_once(
    schedule: &Schedule,
    when: f64,
    is_delay: bool,
    action: String,
    args: Uint8Array,
    options: Option<JsOneShotOptions>,
    ticket: f64,
) {
    trip();
    let JsOneShotOptions { key, retry } = options.unwrap_or_default();
    let shot = |trigger_at| OneShot {
        trigger_at,
        action,
        args: Bytes::copy_from_slice(&args),
        retry: retry.map(Retry::from),
        key,
    };
    let made = if is_delay {
        schedule.inner.after(when, shot(0))
    } else {
        match limits::at(when) {
            Ok(trigger_at) => schedule.inner.at(shot(trigger_at)),
            Err(error) => Box::pin(async move { Err(error.into()) }),
        }
    };
    settle_with(&schedule.hub, ticket, async move { Ok(Some(made.await?.into())) });
}

/// Cancels a one-shot; `ticket` hears whether there was one.
#[napi(catch_unwind)]
pub fn schedule_cancel(schedule: &Schedule, id: String, ticket: f64) {
    trip();
    schedule.settle_found(ticket, schedule.inner.cancel(&id));
}

/// Settles `ticket` with the one-shot of an id, or with all of them.
#[napi(catch_unwind)]
pub fn schedule_events(schedule: &Schedule, id: Option<String>, ticket: f64) {
    trip();
    let found = match id {
        Some(id) => schedule.inner.get(&id).map(Vec::from_iter),
        None => schedule.inner.list(),
    };
    schedule.settle_read(ticket, found, shown_event);
}

/// Sets a cron job and settles `ticket` when that is durable.
#[napi(catch_unwind)]
#[allow(clippy::too_many_arguments, reason = "the contract's method has as many")]
pub fn cron_set(
    schedule: &Schedule,
    name: String,
    expression: String,
    timezone: Option<String>,
    action: String,
    args: Uint8Array,
    options: Option<JsJobOptions>,
    ticket: f64,
) {
    trip();
    let JsJobOptions { max_history, retry } = options.unwrap_or_default();
    let args = Bytes::copy_from_slice(&args);
    let (max_history, retry) = (max_history.map(whole), retry.map(Retry::from));
    let spec = CronSpec { name, expression, timezone, action, args, max_history, retry };
    let set = schedule.inner.cron_set(spec);
    settle_with(&schedule.hub, ticket, async move { set.await.map(|()| None) });
}

/// Sets an interval and settles `ticket` when that is durable.
#[napi(catch_unwind)]
pub fn cron_every(
    schedule: &Schedule,
    name: String,
    interval_ms: f64,
    action: String,
    args: Uint8Array,
    options: Option<JsJobOptions>,
    ticket: f64,
) {
    trip();
    let JsJobOptions { max_history, retry } = options.unwrap_or_default();
    let args = Bytes::copy_from_slice(&args);
    let (max_history, retry) = (max_history.map(whole), retry.map(Retry::from));
    let interval_ms = whole(interval_ms);
    let spec = EverySpec { name, interval_ms, action, args, max_history, retry };
    let set = schedule.inner.cron_every(spec);
    settle_with(&schedule.hub, ticket, async move { set.await.map(|()| None) });
}

/// Deletes a job and its history; `ticket` hears whether there was one.
#[napi(catch_unwind)]
pub fn cron_delete(schedule: &Schedule, name: String, ticket: f64) {
    trip();
    schedule.settle_found(ticket, schedule.inner.cron_delete(&name));
}

/// Settles `ticket` with the job of a name, or with all of them.
#[napi(catch_unwind)]
pub fn cron_jobs(schedule: &Schedule, name: Option<String>, ticket: f64) {
    trip();
    let found = match name {
        Some(name) => schedule.inner.cron_get(&name).map(Vec::from_iter),
        None => schedule.inner.cron_list(),
    };
    schedule.settle_read(ticket, found, shown_job);
}

/// Settles `ticket` with the history of a job, the newest first.
#[napi(catch_unwind)]
pub fn cron_history(schedule: &Schedule, name: String, limit: Option<f64>, ticket: f64) {
    trip();
    let history = schedule.inner.cron_history(&name, limit.map(whole));
    settle_with(&schedule.hub, ticket, async move {
        let history = history.await?;
        listed(history.into_iter().map(|fire| (shown_fire(fire), Bytes::new()))).map(Some)
    });
}

/// Settles `ticket` with the fires that were given up, the newest first.
#[napi(catch_unwind)]
pub fn dead_fires(schedule: &Schedule, ticket: f64) {
    trip();
    schedule.settle_read(ticket, schedule.inner.dead(), shown_letter);
}

/// Has a fire that was given up tried again; `ticket` hears whether there was one.
#[napi(catch_unwind)]
pub fn dead_retry(schedule: &Schedule, id: String, ticket: f64) {
    trip();
    schedule.settle_found(ticket, schedule.inner.dead_retry(&id));
}

/// Forgets a fire that was given up; `ticket` hears whether there was one.
#[napi(catch_unwind)]
pub fn dead_delete(schedule: &Schedule, id: String, ticket: f64) {
    trip();
    schedule.settle_found(ticket, schedule.inner.dead_delete(&id));
}

#[napi]
impl ActorContext {
    /// Has the actor woken at a moment, beside all that its schedules and its `run` want;
    /// nothing for never. Throws where it is no number. It has come when the moment passes
    /// while the actor is awake.
    #[napi(catch_unwind)]
    pub fn set_alarm(&self, env: &Env, at: Option<f64>) -> napi::Result<()> {
        trip();
        let at = at.map(limits::at).transpose().map_err(|error| thrown(env, error))?;
        self.inner.set_alarm(at);
        Ok(())
    }
}

/// Sets or clears the moment at which `run` is to be active again, and settles `ticket`
/// when that is durable.
#[napi(catch_unwind)]
pub fn set_run_wake(context: &ActorContext, at: Option<f64>, ticket: f64) {
    trip();
    let schedule = context.schedule();
    let at = at.map(limits::at).transpose();
    let set = match at {
        Ok(at) => schedule.inner.set_run_wake(at),
        Err(error) => Box::pin(async move { Err(error.into()) }),
    };
    settle_with(&schedule.hub, ticket, async move { set.await.map(|()| None) });
}

/// How a kind of schedule is called.
pub(super) const fn kind_label(kind: FireKind) -> &'static str {
    match kind {
        FireKind::At => "at",
        FireKind::Cron => "cron",
        FireKind::Every => "every",
    }
}

impl From<JsRetry> for Retry {
    fn from(given: JsRetry) -> Self {
        Self {
            max_attempts: whole(given.max_attempts),
            initial_ms: given.initial_ms.map(whole),
            max_ms: given.max_ms.map(whole),
        }
    }
}

/// A whole number, saturating; the JavaScript half refuses what is no number.
const fn whole(number: f64) -> i64 {
    number as i64
}

/// See invariant 2.
fn listed(found: impl Iterator<Item = (Value, Bytes)>) -> Result<Bytes> {
    let (shown, args): (Vec<_>, Vec<_>) = found.unzip();
    let shown = Value::Array(shown).to_string();
    let args = args.iter().map(|args| Some(&args[..]));
    packed(std::iter::once(Some(shown.as_bytes())).chain(args))
}

fn shown_event(event: ScheduledEvent) -> (Value, Bytes) {
    let ScheduledEvent { id, action, args, run_at } = event;
    (json!({ "id": id, "action": action, "runAt": run_at }), args)
}

fn shown_job(job: CronJob) -> (Value, Bytes) {
    let mut shown = json!({
        "name": job.name,
        "action": job.action,
        "nextRunAt": job.next_run_at,
        "maxHistory": job.max_history,
    });
    if let Some(last) = job.last_run_at {
        shown["lastRunAt"] = json!(last);
    }
    match job.cadence {
        JobCadence::Cron { expression, timezone } => {
            shown["kind"] = json!("cron");
            shown["expression"] = json!(expression);
            shown["timezone"] = json!(timezone);
        }
        JobCadence::Every { interval_ms } => {
            shown["kind"] = json!("every");
            shown["intervalMs"] = json!(interval_ms);
        }
    }
    (shown, job.args)
}

fn shown_fire(fire: CronFire) -> Value {
    let (result, error) = match fire.result {
        FireResult::Running => ("running", None),
        FireResult::Ok => ("ok", None),
        FireResult::Skipped => ("skipped", None),
        FireResult::Error(fault) => ("error", Some(shown_fault(fault))),
    };
    let mut shown = json!({
        "action": fire.action,
        "scheduledAt": fire.scheduled_at,
        "firedAt": fire.fired_at,
        "attempt": fire.attempt,
        "result": result,
    });
    if let Some(finished) = fire.finished_at {
        shown["finishedAt"] = json!(finished);
    }
    if let Some(error) = error {
        shown["error"] = error;
    }
    shown
}

fn shown_letter(letter: DeadLetter) -> (Value, Bytes) {
    let mut shown = json!({
        "id": letter.id,
        "kind": kind_label(letter.kind),
        "action": letter.action,
        "scheduledAt": letter.scheduled_at,
        "firedAt": letter.fired_at,
        "diedAt": letter.died_at,
        "attempts": letter.attempts,
        "error": shown_fault(letter.error),
    });
    if let Some(name) = letter.name {
        shown["name"] = json!(name);
    }
    (shown, letter.args)
}

fn shown_fault(fault: crate::core::schedule::StoredFault) -> Value {
    let mut shown = json!({ "group": fault.group, "code": fault.code, "message": fault.message });
    if let Some(metadata) = fault.metadata {
        shown["metadata"] = metadata;
    }
    shown
}
