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
//! 4. Statements of the author end before the last save, with whatever transaction is
//!    open; one that commits is waited for.
//! 5. Whoever still waits for a save or an answer is told `actor/stopping`.

use std::sync::Arc;

use super::Actor;
use super::effect::{Effect, Output, SaveOf};
use super::lifecycle::StopReason;
use crate::core::behavior::{ActorEvent, Hook, Reply, SerializeReason, StateDelta, StopOutcome};
use crate::core::config::Durability;
use crate::error::{Error, Result};
use crate::time::Duration;

/// The least time that the last serialisation gets.
const SERIALIZE_CAP: Duration = Duration::from_secs(15);

/// How a grace period ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drained {
    /// Nothing held it any more.
    InTime,
    /// Its deadline came.
    AtDeadline,
}

/// Who ended the saving of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// Whoever asks.
    Here,
    /// Somebody before.
    Before,
}

impl Actor {
    /// Begins the task that waits for the grace period to end.
    pub(super) fn begin_grace(self: &Arc<Self>, reason: StopReason) {
        self.tokens.abort.fire();
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
        loop {
            let Ok(drained) = self.drain(reason).await else { return };
            if self.leave_grace(drained) {
                break;
            }
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
    async fn drain(self: &Arc<Self>, reason: StopReason) -> Result<Drained> {
        loop {
            let (deadline, drained) = {
                let machine = self.machine.lock();
                match &machine.grace {
                    Some(grace) if machine.grace_drained() == Some(false) => {
                        (grace.deadline, Arc::clone(&grace.drained))
                    }
                    _ => return Ok(Drained::InTime),
                }
            };
            let in_time = self.or_over(async {
                tokio::select! {
                    biased;
                    // A permit is stored, so an end or a nearer deadline before the wait
                    // is not lost.
                    () = drained.notified() => true,
                    () = self.runtime.clock().sleep_until(deadline) => false,
                }
            });
            if !in_time.await? {
                self.deadline_reached(reason);
                return Ok(Drained::AtDeadline);
            }
        }
    }

    /// Ends the grace period, unless work was taken since it was found drained: one
    /// step decides both, so that no call is taken that could not end.
    fn leave_grace(self: &Arc<Self>, drained: Drained) -> bool {
        self.step(|machine, _| {
            if drained == Drained::InTime && machine.grace_drained() == Some(false) {
                return false;
            }
            if machine.lifecycle.finalize().is_some() {
                self.log_phase(machine);
            }
            true
        })
    }

    /// Ends the grace period now: what still runs is given up and answered with `error`,
    /// and the last state is stored as at any other end. `false` when there is none.
    pub(crate) fn cut_grace_short(self: &Arc<Self>, error: Error) -> bool {
        let drained = self.step(|machine, now| {
            let grace = machine.grace.as_mut()?;
            grace.deadline = grace.deadline.min(now);
            grace.cut_short = Some(error.with_actor(self.identity.specifier()));
            Some(Arc::clone(&grace.drained))
        });
        let Some(drained) = drained else { return false };
        drained.notify_one();
        true
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
        self.tokens.deadline.fire();
        self.step(|machine, _| machine.deliver(ActorEvent::DeadlineReached));
    }

    async fn finalize(self: &Arc<Self>, reason: StopReason) -> Result<StopOutcome> {
        // First: nobody is left to end a transaction begun by hand, and writes wait for that.
        self.or_over(self.close_sql()).await?;
        // A commit that fails leaves the state dirty, and the author's side must have
        // heard so before it is asked for the last snapshot.
        self.close_transactions();
        self.or_over(self.writes_answered()).await?;
        self.last_save().await?;
        self.or_over(self.tasks.close()).await?;
        self.answer_open_calls();
        self.or_over(self.writes_answered()).await?;
        if reason == StopReason::Sleep {
            self.or_over(self.rest()).await?;
        }
        Ok(match reason {
            StopReason::Sleep => StopOutcome::Slept,
            StopReason::Destroy => StopOutcome::Destroyed,
        })
    }

    /// Asks for the last snapshot and commits it. `Err` when it could not be written
    /// or the generation was broken meanwhile.
    async fn last_save(self: &Arc<Self>) -> Result<()> {
        let (done, outcome) = Reply::channel();
        let epoch = self.ask_last_snapshot(done);
        let cap = SERIALIZE_CAP.max(self.config.effective_sleep_grace_period());
        self.or_over(async {
            let mut outcome = std::pin::pin!(outcome);
            tokio::select! {
                biased;
                outcome = &mut outcome => return outcome,
                () = self.runtime.clock().sleep(cap) => {}
            }
            let error = Error::internal("the last serialisation timed out");
            match self.end_saving(epoch, 0, Err(error), Reply::new(|_| {})) {
                Ended::Here => Ok(()),
                // It has just arrived, and its commit is on its way.
                Ended::Before => outcome.await,
            }
        })
        .await?
    }

    /// Asks for the last snapshot; returns the epoch by which its answer is known.
    fn ask_last_snapshot(self: &Arc<Self>, done: Reply<()>) -> u64 {
        let asks = self.hooks.serialize_state;
        let (epoch, unasked) = self.step(|machine, _| {
            // One that is still on its way is older than the one asked for here.
            machine.snapshot = None;
            machine.state.epoch += 1;
            let (epoch, revision) = (machine.state.epoch, machine.saves.request_revision());
            let actor = Arc::clone(self);
            let reply = Reply::new(move |deltas| {
                actor.end_saving(epoch, revision, deltas, done);
            });
            if asks {
                let reason = SerializeReason::Save;
                machine.deliver(ActorEvent::SerializeState { reason, reply });
                return (epoch, None);
            }
            (epoch, Some(reply))
        });
        if let Some(reply) = unasked {
            reply.send(Ok(Vec::new()));
        }
        epoch
    }

    /// The last snapshot arrived, or will not. Everything about it is decided in the
    /// step in which it arrives: from then on no change can be stored any more.
    fn end_saving(
        self: &Arc<Self>,
        epoch: u64,
        revision: u64,
        deltas: Result<Vec<StateDelta>>,
        done: Reply<()>,
    ) -> Ended {
        let (ended, broken) = self.step(|machine, now| {
            if machine.is_over() || machine.state.epoch != epoch {
                machine.effects.push_back(Effect::Release(Output::Flushed(done, Ok(()))));
                return (Ended::Before, None);
            }
            // An answer after the limit finds another epoch.
            machine.state.epoch += 1;
            machine.last_saved = true;
            let stopping = self.stopping();
            machine.set_queue_alarm(self.moment(now));
            machine.alarm.take_back();
            machine.alarm.set_schedules(machine.schedule_alarm());
            let nothing = !machine.has_rows()
                && !machine.has_lazy_rows()
                && !machine.alarm.is_changed()
                && !machine.sql_wrote;
            match deltas {
                Ok(deltas) if deltas.is_empty() && nothing => {
                    machine.pushes_pending = false;
                    let waiters = machine.saves.written_directly(revision, now);
                    super::commits::nothing_to_save(machine, waiters);
                    for output in machine.gate.settle() {
                        machine.effects.push_back(Effect::Release(output));
                    }
                    machine.close_gate(&stopping);
                    machine.effects.push_back(Effect::Release(Output::Flushed(done, Ok(()))));
                }
                Ok(deltas) => {
                    machine.pushes_pending = false;
                    let save = SaveOf::Pushed(revision);
                    let number = machine.begin_commit(deltas, Vec::new(), save);
                    machine.watch_commit(number, done);
                    machine.close_gate(&stopping);
                }
                Err(error) => {
                    let (actor_id, shown) = (self.identity.id, error.clone());
                    machine.log(move || {
                        tracing::error!(%actor_id, error = %shown, "the last state could not be serialised");
                    });
                    let lost = self.config.durability == Durability::Reply && machine.is_dirty();
                    machine.close_gate(&stopping);
                    machine.effects.push_back(Effect::Release(Output::Flushed(done, Ok(()))));
                    return (Ended::Here, lost.then_some(error));
                }
            }
            (Ended::Here, None)
        });
        // Answers that waited for this state have failed, and it is not stored: the
        // next generation begins from what is.
        if let Some(error) = broken {
            self.break_generation(error);
        }
        ended
    }

    /// Answers the calls whose functions did not end in time (invariant 5).
    fn answer_open_calls(self: &Arc<Self>) {
        self.step(|machine, _| {
            let cut_short = machine.grace.as_ref().and_then(|grace| grace.cut_short.clone());
            let error = cut_short.clone().unwrap_or_else(|| self.stopping());
            for (call, reply) in machine.calls.answer_all() {
                if let Some(reply) = reply {
                    let output = Output::Answer(reply, Err(error.clone()));
                    machine.effects.push_back(Effect::Release(output));
                }
                let event =
                    ActorEvent::CancelCall { call, timed_out: false, error: cut_short.clone() };
                machine.deliver(event);
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
            machine.close_gate(&self.stopping());
            let reason = machine.grace.as_ref().map(|grace| grace.reason);
            machine.drop_connections(&self.stopping(), reason);
            machine.lifecycle.terminate();
            machine.effects.push_back(Effect::Stopped(outcome));
        });
    }
}
