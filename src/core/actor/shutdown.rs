//! The end of a generation: the grace period and the last save.
//!
//! # Invariants
//!
//! 1. The hook of the stop runs once, and its failure is logged and stops nothing.
//! 2. The grace period ends when nothing holds it, or at its deadline; then the
//!    deadline token fires and what still runs is given up.
//! 3. The last state is durable before the host hears that the actor has stopped.
//!    A save that could not be made is logged and what is stored stays; a write
//!    that failed makes the outcome [`StopOutcome::Broken`].
//! 4. Whoever still waits for a save or an answer is told `actor/stopping`.

use std::sync::Arc;

use super::Actor;
use super::effect::{CommitOrigin, Effect, Output};
use super::lifecycle::StopReason;
use crate::core::behavior::{ActorEvent, Hook, Reply, SerializeReason, StateDelta, StopOutcome};
use crate::error::{Error, Result};
use crate::time::Duration;

/// The least time that the last serialisation gets.
const SERIALIZE_CAP: Duration = Duration::from_secs(15);

impl Actor {
    /// Begins the task that waits for the grace period to end.
    pub(super) fn begin_grace(self: &Arc<Self>, reason: StopReason) {
        self.tokens.abort.cancel();
        let actor = Arc::clone(self);
        let panicked = Arc::clone(self);
        self.runtime.spawner().spawn_guarded(
            "grace",
            async move { actor.wind_down(reason).await },
            move |text| {
                panicked.break_generation(Error::internal(format_args!(
                    "shutdown panicked during {}: {text}",
                    reason.label()
                )));
            },
        );
    }

    async fn wind_down(self: &Arc<Self>, reason: StopReason) {
        let began = self.runtime.clock().now();
        self.call_stop_hook(reason);
        if self.drain(reason).await.is_err() {
            return;
        }
        let outcome = self.finalize(reason).await;
        let took = self.runtime.clock().now().since(began);
        self.metrics.shutdown_wait(reason.label(), took);
        self.conclude(outcome);
    }

    /// Runs `on_sleep` or `on_destroy` beside the grace period, which it holds.
    fn call_stop_hook(self: &Arc<Self>, reason: StopReason) {
        let hook = match reason {
            StopReason::Sleep if self.hooks.sleep => Hook::Sleep,
            StopReason::Destroy if self.hooks.destroy => Hook::Destroy,
            StopReason::Sleep | StopReason::Destroy => return,
        };
        let label = hook.label();
        let actor = Arc::clone(self);
        let reply = Reply::new(move |result: Result<_>| {
            if let Err(error) = result {
                tracing::error!(actor_id = %actor.identity.id, hook = label, %error, "a hook failed");
            }
            actor.step(|machine, _| {
                machine.activity.core_hooks = machine.activity.core_hooks.saturating_sub(1);
            });
        });
        self.step(|machine, _| {
            machine.activity.core_hooks += 1;
            machine.deliver(ActorEvent::Hook { hook, reply });
        });
    }

    /// Waits until nothing holds the grace period, at most until its deadline.
    /// `Err` when the generation was broken meanwhile.
    async fn drain(self: &Arc<Self>, reason: StopReason) -> Result<()> {
        let (deadline, drained) = {
            let machine = self.machine.lock();
            match &machine.grace {
                Some(grace) => (grace.deadline, Arc::clone(&grace.drained)),
                None => return Ok(()),
            }
        };
        loop {
            if self.machine.lock().grace_drained() == Some(true) {
                return Ok(());
            }
            let in_time = self.or_over(async {
                tokio::select! {
                    biased;
                    // A permit is stored, so an end before the wait is not lost.
                    () = drained.notified() => true,
                    () = self.runtime.clock().sleep_until(deadline) => false,
                }
            });
            if !in_time.await? {
                self.deadline_reached(reason);
                return Ok(());
            }
        }
    }

    fn deadline_reached(self: &Arc<Self>, reason: StopReason) {
        let holds = self.holds();
        tracing::warn!(
            actor_id = %self.identity.id,
            reason = reason.label(),
            holds = ?holds,
            "the grace period is used up"
        );
        self.metrics.shutdown_timeout(reason.label());
        self.tokens.deadline.cancel();
        self.step(|machine, _| machine.deliver(ActorEvent::DeadlineReached));
    }

    async fn finalize(self: &Arc<Self>, reason: StopReason) -> Result<StopOutcome> {
        self.step(|machine, _| machine.lifecycle.finalize());
        if let Some(deltas) = self.last_snapshot().await? {
            self.last_save(deltas).await?;
        }
        self.tasks.close().await;
        self.tell_stopping();
        let begun = self.machine.lock().gate.begun();
        self.durable(begun).await?;
        Ok(match reason {
            StopReason::Sleep => StopOutcome::Slept,
            StopReason::Destroy => StopOutcome::Destroyed,
        })
    }

    /// Asks for the last snapshot. `None` when there is none to be had; `Err` when
    /// the generation was broken meanwhile.
    async fn last_snapshot(self: &Arc<Self>) -> Result<Option<Vec<StateDelta>>> {
        if !self.hooks.serialize_state {
            return Ok(None);
        }
        let (reply, deltas) = Reply::channel();
        let reason = SerializeReason::Save;
        self.step(|machine, _| machine.deliver(ActorEvent::SerializeState { reason, reply }));
        let cap = SERIALIZE_CAP.max(self.config.effective_sleep_grace_period());
        let deltas = self.or_over(async {
            tokio::select! {
                deltas = deltas => deltas,
                () = self.runtime.clock().sleep(cap) => Err(Error::internal("the last serialisation timed out")),
            }
        });
        match deltas.await? {
            Ok(deltas) => Ok(Some(deltas)),
            Err(error) => {
                tracing::error!(actor_id = %self.identity.id, %error, "the last state could not be serialised");
                Ok(None)
            }
        }
    }

    async fn last_save(self: &Arc<Self>, deltas: Vec<StateDelta>) -> Result<()> {
        let number = self.step(|machine, now| {
            machine.pushes_pending = false;
            let revision = machine.saves.begin_directly();
            if !deltas.is_empty() {
                return Some(machine.begin_commit(deltas, Vec::new(), |state| CommitOrigin {
                    revision,
                    state,
                    pulled: false,
                }));
            }
            let waiters = machine.saves.written_directly(revision, now);
            super::commits::nothing_to_save(machine, waiters);
            None
        });
        match number {
            Some(number) => self.durable(number).await,
            None => Ok(()),
        }
    }

    /// Answers everybody who still waits (invariant 4).
    fn tell_stopping(self: &Arc<Self>) {
        self.step(|machine, _| {
            let stopping = self.stopping();
            for waiter in machine.saves.close() {
                let output = Output::Flushed(waiter, Err(stopping.clone()));
                machine.effects.push_back(Effect::Release(output));
            }
            for (call, reply) in machine.calls.answer_all() {
                if let Some(reply) = reply {
                    let output = Output::Answer(reply, Err(stopping.clone()));
                    machine.effects.push_back(Effect::Release(output));
                }
                machine.deliver(ActorEvent::CancelCall { call, timed_out: false });
            }
            for output in machine.gate.settle() {
                machine.effects.push_back(Effect::Release(output));
            }
        });
    }

    /// Ends the generation, unless it was broken meanwhile.
    fn conclude(self: &Arc<Self>, outcome: Result<StopOutcome>) {
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return self.break_generation(error),
        };
        self.step(|machine, _| {
            if machine.is_over() {
                return;
            }
            machine.calls.clear();
            machine.lifecycle.terminate();
            machine.effects.push_back(Effect::Stopped(outcome));
        });
    }
}
