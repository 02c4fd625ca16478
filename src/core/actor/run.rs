//! The author's `run`: begun when the actor is ready, and again when it failed.
//!
//! # Invariants
//!
//! 1. An attempt that was replaced goes on until it ends by itself, and holds the
//!    actor until then; its end begins nothing.
//! 2. A `run` that ends because the actor stops (`actor/aborted`) has not failed.

use std::sync::Arc;

use serde_json::json;

use super::Actor;
use super::lifecycle::LifecycleError;
use super::machine::Machine;
use super::run_handler::RunEnd;
use crate::core::behavior::{ActorEvent, Reply};
use crate::core::schedule::Consumed;
use crate::error::{Error, ErrorCode, Result};
use crate::time::Instant;

impl Actor {
    /// Begins an attempt.
    pub(super) fn start_run(self: &Arc<Self>, machine: &mut Machine) {
        let attempt = machine.run.start();
        self.deliver_run(machine, attempt);
    }

    fn deliver_run(self: &Arc<Self>, machine: &mut Machine, attempt: u64) {
        let actor = Arc::clone(self);
        let reply = Reply::new(move |result| actor.run_ended(attempt, result));
        note_run(machine);
        machine.deliver(ActorEvent::Run { reply });
    }

    fn run_ended(self: &Arc<Self>, attempt: u64, result: Result<bool>) {
        let again = result == Ok(false);
        let failure = result.err().filter(|error| !error.is("actor", "aborted"));
        let end = self.step(|machine, now| {
            if machine.is_over() {
                return RunEnd::Stale;
            }
            let end = machine.run.ended(attempt, failure.is_some(), now);
            if end != RunEnd::Stale {
                machine.woken_run_ended(again);
            }
            if end == RunEnd::Stale {
                machine.replaced_runs = machine.replaced_runs.saturating_sub(1);
            }
            note_run(machine);
            end
        });
        if let (RunEnd::Failed | RunEnd::RestartAt(_), Some(error)) = (end, failure) {
            // The author's side has what was thrown, and logs it.
            tracing::debug!(actor_id = %self.identity.id, %error, "the run handler failed");
        }
    }

    /// Begins the next attempt when it is due.
    pub(super) fn restart_due_run(self: &Arc<Self>, machine: &mut Machine, now: Instant) {
        if machine.run.restart_due().is_some_and(|due| due <= now) {
            self.start_run(machine);
        }
    }

    /// Whether the author's `run` runs.
    pub(crate) fn run_handler_active(&self) -> bool {
        self.machine.lock().run.is_active()
    }

    /// Starts `run` anew.
    pub(crate) fn restart_run_handler(self: &Arc<Self>) -> Result<()> {
        if !self.hooks.run {
            let reason = "the actor has no run handler";
            return Err(Error::new(
                ErrorCode::new("actor", "invalid_operation"),
                format!("actor operation `restart_run_handler` is invalid: {reason}"),
            )
            .with_metadata(json!({ "operation": "restart_run_handler", "reason": reason })));
        }
        self.step(|machine, _| {
            if !machine.lifecycle.started() || machine.grace.is_some() {
                return Err(LifecycleError::Stopping.into());
            }
            machine.replaced_runs += usize::from(machine.run.is_active());
            let attempt = machine.run.restart();
            self.deliver_run(machine, attempt);
            Ok(())
        })
    }
}

impl Machine {
    /// Notes the deadline that `run` was woken for.
    pub(super) fn run_woken(&mut self, consumed: Consumed) {
        self.later.woken = Some(consumed);
    }

    /// An attempt ended. Where it asks for that, the deadline that it was woken for comes
    /// once more.
    fn woken_run_ended(&mut self, again: bool) {
        let woken = self.later.made_mut().and_then(|later| later.woken.take());
        let Some(consumed) = woken.filter(|_| again) else { return };
        if !self.may_save() {
            return;
        }
        let (_, ops) = self.later.schedules.restore_run_wake(consumed);
        self.write_soon(ops);
    }
}

/// Brings what `run` holds up to date.
pub(super) fn note_run(machine: &mut Machine) {
    machine.activity.run_active = machine.run.is_active() || machine.replaced_runs > 0;
    machine.activity.run_restarting = machine.run.is_restarting();
}
