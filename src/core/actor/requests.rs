//! Calls, and the requests that an actor makes of its own life.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use super::Actor;
use super::activity::WorkKind;
use super::calls::InPlaceEnd;
use super::effect::{Effect, Output};
use super::gate::{CommitNumber, Required, StatementNumber};
use super::lifecycle::{First, Grace, LifecycleError, Phase, StopReason};
use super::machine::{self, Machine};
use super::run::note_run;
use crate::core::behavior::{ActorEvent, CallId, call_given_up};
use crate::core::connections::ConnHandle;
use crate::core::context::{Admission, CallRequest};
use crate::core::warnings::{Charge, Verdict, WarningKind};
use crate::error::{Error, ErrorCode, Result};
use crate::metrics::UserTaskKind;
use crate::time::{Duration, Instant};

/// What becomes of a result that was made in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// The generation is over, or the caller was answered before: the result
    /// goes nowhere.
    Over,
    /// The call took longer than its timeout.
    TimedOut,
    /// The result may leave.
    Leave,
    /// The result leaves when this commit or a later one is durable.
    Hold(CommitNumber),
    /// The result leaves when the machine says so ([`Actor::output_may_leave`]): it waits
    /// for statements too, whose numbers its keeper does not know.
    Ask,
}

/// A call that was not taken.
struct Refused {
    error: Error,
    warning: Option<(WarningKind, Charge, Instant)>,
    request: CallRequest,
}

impl Actor {
    /// Whether a call would be taken now.
    pub(crate) fn admission(&self) -> Admission {
        let machine = self.machine.lock();
        if machine.broken.is_some() {
            return Admission::Wait;
        }
        if machine.lifecycle.admit().is_ok() {
            return Admission::Open;
        }
        let destroying = machine.lifecycle.destroy_requested()
            || matches!(machine.lifecycle.phase(), Phase::DestroyGrace | Phase::Destroying);
        if destroying { Admission::Gone } else { Admission::Wait }
    }

    /// Takes a call on the ordinary way, over one of its connections or over none, or hands
    /// it back unanswered.
    pub(crate) fn accept(
        self: &Arc<Self>,
        request: CallRequest,
        connection: Option<&ConnHandle>,
    ) -> Result<CallId, Box<(Error, CallRequest)>> {
        self.step(|machine, now| {
            let gone = |connection: &ConnHandle| machine.no_call_over(connection.id());
            if let Some(error) = machine.broken.clone().or_else(|| connection.and_then(gone)) {
                return Err(Box::new(Refused { error, warning: None, request }));
            }
            if let Err(refusal) = machine.lifecycle.admit() {
                let kind = refusal.warning;
                let warning = kind.map(|kind| (kind, machine.warnings.charge(kind, now), now));
                return Err(Box::new(Refused { error: refusal.error.into(), warning, request }));
            }
            let CallRequest { name, args, caller, origin, taken_by, reply } = request;
            if let Some(taken_by) = taken_by {
                // A generation that refuses a call gives it back untouched, so this is the first.
                taken_by.get_or_init(|| self.identity.specifier());
            }
            let call = machine.calls.queue(reply, now);
            self.begin_action(machine);
            let connection = connection.cloned();
            let action =
                ActorEvent::Action { call, name, args, caller, connection, origin, fire: None };
            machine.deliver(action);
            Ok(call)
        })
        .map_err(|refused| {
            if let Some((kind, charge, now)) = refused.warning {
                self.warn(kind, charge, now);
            }
            Box::new((refused.error.with_actor(self.identity.specifier()), refused.request))
        })
    }

    fn warn(&self, kind: WarningKind, charge: Charge, now: Instant) {
        let verdict = self.runtime.warnings().decide(kind, charge, now);
        if let Verdict::Emit { per_actor_suppressed, global_suppressed } = verdict {
            tracing::warn!(
                actor_id = %self.identity.id,
                operation = "dispatch",
                kind = kind.label(),
                per_actor_suppressed,
                global_suppressed,
                "work was refused"
            );
        }
    }

    pub(super) fn begin_action(&self, machine: &mut Machine) {
        machine.activity.begin(WorkKind::Action);
        self.metrics.begin_user_task(UserTaskKind::Action);
    }

    fn end_action(&self, machine: &mut Machine, took: Duration) {
        let ended = machine.activity.end(WorkKind::Action);
        debug_assert!(ended, "an open call has a region");
        self.metrics.end_user_task(UserTaskKind::Action, took);
    }

    /// Admits a call in place, unless the actor takes no work or older work waits.
    pub(crate) fn try_admit(self: &Arc<Self>) -> Option<CallId> {
        self.step(|machine, now| {
            if machine.is_over() || machine.lifecycle.admit().is_err() {
                return None;
            }
            let call = machine.calls.admit(now)?;
            self.begin_action(machine);
            Some(call)
        })
    }

    /// Queues a call whose caller holds the answer, unless the actor takes no work.
    pub(crate) fn try_queue(self: &Arc<Self>) -> Option<CallId> {
        self.step(|machine, now| {
            if machine.is_over() || machine.lifecycle.admit().is_err() {
                return None;
            }
            let call = machine.calls.queue_held(now);
            self.begin_action(machine);
            machine.deliver(ActorEvent::BeginHeld { call });
            Some(call)
        })
    }

    /// The author's side begins a call that was queued for it.
    pub(crate) fn begin_call(&self, call: CallId) {
        self.machine.lock().calls.begin(call);
    }

    /// The author's side goes on with a call in a part that has the whole time of a call
    /// again. `false`: nobody waits for it any more.
    pub(crate) fn renew_call(self: &Arc<Self>, call: CallId) -> bool {
        self.step(|machine, now| machine.calls.renew(call, now))
    }

    /// The function of a queued call ended. `false`: nobody waits any more.
    pub(crate) fn finish_call(self: &Arc<Self>, call: CallId, result: Result<Bytes>) -> bool {
        self.step(|machine, now| {
            let Some(released) = machine.calls.release(call, now) else { return false };
            self.end_action(machine, released.took);
            let Some(reply) = released.reply else { return false };
            let late = released.late;
            let result = if late { Err(action_timed_out()) } else { result };
            self.attempt_ended(machine, call, result.as_ref().map(|_| ()));
            let result = result.map_err(|error| error.with_actor(self.identity.specifier()));
            machine.emit(Output::Answer(reply, result));
            !late
        })
    }

    /// The function of a call whose caller holds the answer ended.
    pub(crate) fn finish_in_place(self: &Arc<Self>, call: CallId) -> InPlace {
        self.step(|machine, now| {
            let Some((end, took)) = machine.calls.release_held(call, now) else {
                return InPlace::Over;
            };
            self.end_action(machine, took);
            match end {
                _ if machine.broken.is_some() => InPlace::Over,
                InPlaceEnd::Answered => InPlace::Over,
                InPlaceEnd::Late => InPlace::TimedOut,
                InPlaceEnd::InTime
                    if machine.gate.required_statement() != StatementNumber::NONE =>
                {
                    InPlace::Ask
                }
                InPlaceEnd::InTime => match machine.required() {
                    Required::Pass => InPlace::Leave,
                    Required::Commit(number) => InPlace::Hold(number),
                    Required::Next => InPlace::Hold(machine.gate.begun().next()),
                },
            }
        })
    }

    /// The caller gave up. Its function goes on, and is told.
    pub(crate) fn cancel_call(self: &Arc<Self>, call: CallId) {
        self.step(|machine, _| {
            let Some(reply) = machine.calls.answer(call) else { return };
            let error = call_given_up();
            if let Some(reply) = reply {
                machine.effects.push_back(Effect::Release(Output::Answer(reply, Err(error))));
            }
            machine.deliver(ActorEvent::CancelCall { call, timed_out: false, error: None });
        });
    }

    /// Answers the calls whose deadline has come. A timeout says nothing of the
    /// state, so it waits for no commit.
    pub(super) fn time_out_calls(&self, machine: &mut Machine, now: Instant) {
        for call in machine.calls.overdue(now) {
            self.attempt_ended(machine, call, Err(&action_timed_out()));
            if let Some(Some(reply)) = machine.calls.answer(call) {
                let error = action_timed_out().with_actor(self.identity.specifier());
                machine.effects.push_back(Effect::Release(Output::Answer(reply, Err(error))));
            }
            machine.deliver(ActorEvent::CancelCall { call, timed_out: true, error: None });
        }
    }

    /// Asks to be put to sleep.
    pub(crate) fn sleep(self: &Arc<Self>) -> Result<(), LifecycleError> {
        self.request(|machine| machine.lifecycle.request_sleep())
    }

    /// Asks to be destroyed.
    pub(crate) fn destroy(self: &Arc<Self>) -> Result<(), LifecycleError> {
        self.request(|machine| machine.lifecycle.request_destroy())
    }

    /// Reports a crash.
    pub(crate) fn stop_with_error(self: &Arc<Self>, message: &str) -> Result<(), LifecycleError> {
        self.request(|machine| machine.lifecycle.request_stop_with_error(message))
    }

    fn request(
        self: &Arc<Self>,
        request: impl FnOnce(&mut Machine) -> Result<First, LifecycleError>,
    ) -> Result<(), LifecycleError> {
        self.step(|machine, _| {
            let First(first) = request(machine)?;
            if first {
                machine.restart_idle();
            }
            // A sender that finds its intent taken by an earlier one sends nothing.
            machine.effects.push_back(Effect::SendIntent);
            Ok(())
        })
    }

    /// The idle time is over.
    pub(super) fn idle_sleep(&self, machine: &mut Machine) {
        match machine.lifecycle.request_sleep() {
            Ok(_) => machine.effects.push_back(Effect::SendIntent),
            Err(error) => {
                let actor_id = self.identity.id;
                machine.log(move || tracing::debug!(%actor_id, %error, "idle, but not to sleep"));
            }
        }
    }

    /// Takes the host's stop command. One that comes before the start is over
    /// waits for it.
    pub(crate) fn stop(self: &Arc<Self>, reason: StopReason) {
        self.step(|machine, now| self.enter_grace(machine, reason, now));
    }

    /// Takes no more calls, and falls asleep unless it is stopping already.
    pub(crate) fn evict(self: &Arc<Self>) {
        self.step(|machine, now| {
            machine.lifecycle.close();
            if machine.lifecycle.phase().stop_reason().is_none() {
                self.enter_grace(machine, StopReason::Sleep, now);
            }
        });
    }

    /// Notes a change of phase in the log.
    pub(super) fn log_phase(&self, machine: &mut Machine) {
        let (actor_id, phase) = (self.identity.id, machine.lifecycle.phase().label());
        machine.log(move || tracing::info!(%actor_id, phase, "lifecycle transition"));
    }

    /// `actor/stopping`, naming the actor.
    pub(super) fn stopping(&self) -> Error {
        Error::from(LifecycleError::Stopping).with_actor(self.identity.specifier())
    }

    /// The state as it was loaded or last written successfully.
    pub(crate) fn state(&self) -> Bytes {
        self.machine.lock().state.current.clone()
    }

    pub(super) fn enter_grace(
        self: &Arc<Self>,
        machine: &mut Machine,
        reason: StopReason,
        now: Instant,
    ) {
        if machine.is_over() {
            return;
        }
        if reason == StopReason::Destroy && machine.grace.is_none() {
            let First(_) = machine.lifecycle.mark_destroy_requested();
        }
        match machine.lifecycle.enter_grace(reason) {
            Grace::NotStarted => {
                // A destroy that comes while a sleep is parked wins: nothing of
                // the sleep has begun.
                if machine.parked_stop != Some(StopReason::Destroy) {
                    machine.parked_stop = Some(reason);
                }
            }
            Grace::Already { conflicting } => {
                if conflicting {
                    let (actor_id, reason) = (self.identity.id, reason.label());
                    machine.log(move || {
                        tracing::warn!(
                            %actor_id,
                            reason,
                            "a stop for another reason is ignored: the actor is stopping"
                        );
                    });
                }
            }
            Grace::Entered => {
                self.log_phase(machine);
                machine.grace = Some(machine::Grace {
                    reason,
                    deadline: now + self.config.effective_sleep_grace_period(),
                    cut_short: None,
                    drained: Arc::default(),
                });
                machine.run.stop();
                machine.stop_queue(self.moment(now));
                machine.alarm.own_has_come(self.unix_ms());
                machine.later.schedules.suspend();
                note_run(machine);
                machine.deliver(ActorEvent::Abort(reason));
                self.part(machine, reason, now);
                machine.effects.push_back(Effect::BeginGrace(reason));
            }
        }
    }
}

/// `actor/action_timed_out`: the function took longer than the actor's timeout.
pub(super) fn action_timed_out() -> Error {
    Error::new(ErrorCode::new("actor", "action_timed_out"), "Action timed out")
}

/// `actor/callback_timed_out`: a hook took longer than its timeout. It is named as its author
/// writes it, which is the label without the underscores.
pub(crate) fn callback_timed_out(label: &str, after: Duration) -> Error {
    let name = as_written(label);
    let ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
    Error::new(
        ErrorCode::new("actor", "callback_timed_out"),
        format!("callback `{name}` timed out after {ms} ms"),
    )
    .with_metadata(json!({ "callback_name": name, "duration_ms": ms }))
}

/// A label as the name of a function: `create_vars` is `createVars`.
fn as_written(label: &str) -> String {
    let mut parts = label.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut name, part| {
        let mut letters = part.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_that_takes_too_long_is_named_as_its_author_writes_it() {
        let error = callback_timed_out("on_before_actor_start", Duration::from_millis(1_500));

        assert_eq!(error.message, "callback `onBeforeActorStart` timed out after 1500 ms");
        let metadata = json!({ "callback_name": "onBeforeActorStart", "duration_ms": 1_500 });
        assert_eq!(error.metadata, Some(metadata));
    }
}
