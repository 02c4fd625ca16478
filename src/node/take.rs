//! Handing jobs over: what is queued becomes records in a JavaScript array.
//!
//! # Invariants
//!
//! 1. An action counts as begun when JavaScript takes it, not when it was queued:
//!    until then nothing is admitted in place, so starts follow acceptance.
//! 2. A job that cannot be written is answered, and the others still arrive.
//! 3. What is taken for a generation that is over is answered by dropping it.

use std::sync::Arc;

use bytes::Bytes;
use napi::Env;
use napi::bindgen_prelude::{Array, FromNapiValue};
use napi_derive::napi;
use serde_json::json;

use super::connections::request_json;
use super::env::{self, Pending, next_number};
use super::guard::trip;
use super::hub::Hub;
use super::job::{FIELDS, Job, Kind, OverAction, Records, Whom, caller_number};
use super::schedule::kind_label;
use crate::core::behavior::{Hook, SerializeReason, StopOutcome};
use crate::core::connections::ConnHook;
use crate::core::identity::Identity;
use crate::core::schedule::FireInfo;
use crate::ids::KeyPart;

/// The jobs that wait, as one flat array of records, or null when there are none.
/// At most 256 at once. Actions count as begun from here on.
#[napi(catch_unwind, ts_return_type = "unknown[] | null")]
pub fn take(env: &Env, environment: f64) -> napi::Result<Option<Array<'_>>> {
    trip();
    let Some(hub) = env::hub(environment) else { return Ok(None) };
    if let Some(lockstep) = hub.lockstep() {
        lockstep.settle();
    }
    let jobs = hub.take();
    if jobs.is_empty() {
        return Ok(None);
    }
    let mut records = Records::new(env)?;
    for job in jobs {
        write(&hub, &mut records, job)?;
    }
    let array = records.finish()?;
    // SAFETY: it is the array that `new` made in this call.
    unsafe { Array::from_napi_value(env.raw(), array) }.map(Some)
}

/// The kinds of records and how many fields each has, as JSON; for the test that
/// compares them with the JavaScript half.
#[napi(catch_unwind, js_name = "__jobFields")]
pub fn job_fields() -> String {
    trip();
    json!(FIELDS).to_string()
}

fn write(hub: &Arc<Hub>, to: &mut Records, job: Job) -> napi::Result<()> {
    match job {
        Job::Start { actor, factory, context } => {
            to.begin(Kind::Start, actor, 0)?;
            to.number(factory)?;
            to.text(&identity(context.identity()))?;
            env::insert(hub.environment(), actor, context);
            Ok(())
        }
        Job::Hook { actor, hook, reply } => {
            let ticket = next_number();
            if env::keep(actor, ticket, Pending::Hook(reply)).is_err() {
                return Ok(());
            }
            to.begin(Kind::Hook, actor, ticket)?;
            to.text(hook.label())?;
            let (input, is_new) = arguments(&hook);
            to.bytes(input)?;
            to.small(i32::from(is_new))
        }
        Job::Run { actor, reply } => {
            let ticket = next_number();
            if env::keep(actor, ticket, Pending::Run(reply)).is_err() {
                return Ok(());
            }
            to.begin(Kind::Run, actor, ticket)
        }
        Job::Action { actor, call, name, args, caller, origin } => {
            let Some(context) = env::context(env::to_js(actor)) else { return Ok(()) };
            context.begin_call(call);
            to.begin(Kind::Action, actor, call.0)?;
            to.text(&name)?;
            to.bytes(Some(&args))?;
            to.small(caller_number(caller))?;
            to.number(origin)
        }
        Job::Fired { actor, call, name, args, fire } => {
            let Some(context) = env::context(env::to_js(actor)) else { return Ok(()) };
            context.begin_call(call);
            to.begin(Kind::Fired, actor, call.0)?;
            to.text(&name)?;
            to.bytes(Some(&args))?;
            to.text(&fire_info(&fire))
        }
        Job::Connection { actor, hook, connection, reply } => {
            let ticket = next_number();
            let id = connection.id().clone();
            if env::keep(actor, ticket, Pending::Connection(reply, connection)).is_err() {
                return Ok(());
            }
            to.begin(Kind::Connection, actor, ticket)?;
            to.text(hook.label())?;
            to.text(id.as_str())?;
            let (request, event) = match &hook {
                ConnHook::BeforeConnect { request }
                | ConnHook::CreateState { request }
                | ConnHook::Connect { request } => (request.as_deref(), None),
                ConnHook::Disconnect => (None, None),
                ConnHook::BeforeSubscribe { event } => (None, Some(event.as_str())),
            };
            to.text_or_null(request.map(request_json).as_deref())?;
            to.text_or_null(event)
        }
        Job::Over { actor, connection, action } => {
            let Some(context) = env::context(env::to_js(actor)) else { return Ok(()) };
            let OverAction { call, name, args, caller, origin } = *action;
            let id = connection.id().clone();
            env::keep_connection(actor, call.0, connection);
            context.begin_call(call);
            to.begin(Kind::Over, actor, call.0)?;
            to.text(&name)?;
            to.bytes(Some(&args))?;
            to.small(caller_number(caller))?;
            to.number(origin)?;
            to.text(id.as_str())
        }
        Job::Session { session, heard } => {
            to.begin(Kind::Session, 0, session)?;
            let (what, text, bytes, error) = heard.parts();
            to.small(what)?;
            to.text(&text)?;
            to.bytes(bytes)?;
            to.error(error)
        }
        Job::Begin { actor, call } => {
            let Some(context) = env::context(env::to_js(actor)) else { return Ok(()) };
            context.begin_call(call);
            to.begin(Kind::Begin, actor, call.0)
        }
        Job::Cancel { actor, call, timed_out, error } => {
            to.begin(Kind::Cancel, actor, call.0)?;
            to.small(i32::from(timed_out))?;
            to.error(error.as_ref())
        }
        Job::Serialize { actor, reason, reply } => {
            let ticket = next_number();
            if env::keep(actor, ticket, Pending::Serialize(reply)).is_err() {
                return Ok(());
            }
            to.begin(Kind::Serialize, actor, ticket)?;
            to.small(i32::from(reason == SerializeReason::Inspector))
        }
        Job::Committed { actor, number, result } => {
            to.begin(Kind::Committed, actor, 0)?;
            to.number(number.get())?;
            to.error(result.err().as_ref())
        }
        Job::Abort { actor, reason } => {
            to.begin(Kind::Abort, actor, 0)?;
            to.text(reason.label())
        }
        Job::Deadline { actor } => to.begin(Kind::Deadline, actor, 0),
        Job::Stopped { actor, outcome } => {
            to.begin(Kind::Stopped, actor, 0)?;
            let (label, error) = ended(outcome);
            to.text(label)?;
            to.error(error.as_ref())?;
            env::remove(actor);
            Ok(())
        }
        Job::Settled { ticket, result } => {
            to.begin(Kind::Settled, 0, ticket)?;
            to.small(i32::from(result.is_err()))?;
            match result {
                Ok(bytes) => to.bytes(bytes.as_ref()),
                Err(error) => to.error(Some(&error)),
            }
        }
        Job::Log(line) => {
            to.begin(Kind::Log, 0, 0)?;
            to.text(line.level)?;
            to.text(&line.target)?;
            to.text(&line.message)?;
            to.text(&line.fields)?;
            to.number(line.lost)
        }
        Job::Asked { whom, asked, request } => {
            to.begin(Kind::Asked, 0, asked)?;
            let (is_factory, number) = match whom {
                Whom::Application(number) => (false, number),
                Whom::Factory(number) => (true, number),
            };
            to.number(number)?;
            to.small(i32::from(is_factory))?;
            to.bytes(Some(&request))
        }
        Job::Unasked { asked } => to.begin(Kind::Unasked, 0, asked),
        Job::Forgotten { factory } => {
            to.begin(Kind::Forgotten, 0, 0)?;
            to.number(factory)
        }
    }
}

/// What a hook is told.
fn arguments(hook: &Hook) -> (Option<&Bytes>, bool) {
    match hook {
        Hook::Migrate { is_new } => (None, *is_new),
        Hook::CreateState { input } | Hook::Create { input } => (input.as_ref(), false),
        Hook::CreateVars | Hook::Wake | Hook::BeforeStart | Hook::Sleep | Hook::Destroy => {
            (None, false)
        }
    }
}

/// Why a schedule has an action run, as JSON; the name is left out where there is none.
fn fire_info(fire: &FireInfo) -> String {
    let FireInfo { kind, id, name, scheduled_at, fired_at, attempt } = fire;
    let mut info = json!({
        "kind": kind_label(*kind),
        "id": id,
        "scheduledAt": scheduled_at,
        "firedAt": fired_at,
        "attempt": attempt,
    });
    if let Some(name) = name {
        info["name"] = json!(name);
    }
    info.to_string()
}

/// How a generation ended, and with which error.
fn ended(outcome: StopOutcome) -> (&'static str, Option<crate::error::Error>) {
    match outcome {
        StopOutcome::Slept => ("slept", None),
        StopOutcome::Destroyed => ("destroyed", None),
        StopOutcome::StartFailed(error) => ("failed", Some(error)),
        StopOutcome::Broken(error) => ("broken", Some(error)),
    }
}

/// Who an actor is, as JSON.
pub(super) fn identity(identity: &Identity) -> String {
    let key: Vec<&KeyPart> = identity.key.parts().iter().collect();
    json!({
        "actorId": identity.id.to_string(),
        "name": identity.name.as_str(),
        "key": key,
        "region": identity.region,
        "generation": identity.generation.get(),
    })
    .to_string()
}
