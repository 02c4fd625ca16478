//! Saving: when the author's side is asked for a snapshot, how a commit begins,
//! and what its end means.
//!
//! # Invariants
//!
//! 1. The state in memory is published only after the store has taken it.
//! 2. A snapshot asked for under an outdated epoch is thrown away and asked for
//!    again: it is outdated, not an error.
//! 3. With durability `reply`, a commit that failed breaks the generation, so
//!    memory never runs ahead of the store for good. With `interval` a commit that
//!    certainly failed leaves the state dirty, is tried again after the save
//!    interval, and those who waited are told.

use std::sync::Arc;

use super::Actor;
use super::effect::{CommitOrigin, Effect, Output};
use super::gate::{CommitNumber, Required};
use super::lifecycle::Phase;
use super::machine::Machine;
use super::save_queue::{SaveRequest, Wait};
use crate::core::behavior::{ActorEvent, Reply, SerializeReason, StateDelta};
use crate::core::config::Durability;
use crate::error::{Error, Result};
use crate::store::StoreError;
use crate::time::Instant;

impl Actor {
    /// The event that asks the author's side for a snapshot.
    pub(super) fn ask_for_snapshot(self: &Arc<Self>, revision: u64, epoch: u64) -> ActorEvent {
        let actor = Arc::clone(self);
        let reply = Reply::new(move |deltas| actor.serialized(revision, epoch, deltas));
        ActorEvent::SerializeState { reason: SerializeReason::Save, reply }
    }

    /// The author's side answered with a snapshot.
    fn serialized(self: &Arc<Self>, revision: u64, epoch: u64, deltas: Result<Vec<StateDelta>>) {
        self.step(|machine, now| {
            machine.serializing = false;
            if machine.is_over() {
                return;
            }
            match deltas {
                Err(error) => {
                    tracing::error!(actor_id = %self.identity.id, %error, "could not serialise the state");
                    self.save_failed(machine, revision, now, &error);
                }
                Ok(_) if machine.state.epoch != epoch => machine.saves.outdated(now),
                Ok(deltas) if deltas.is_empty() => {
                    let waiters = machine.saves.written(revision, now);
                    nothing_to_save(machine, waiters);
                }
                Ok(deltas) => {
                    machine.begin_commit(deltas, Vec::new(), |state| CommitOrigin {
                        revision,
                        state,
                        pulled: true,
                    });
                }
            }
        });
    }

    /// Begins a commit of what the author's side hands over. `None` when the
    /// generation cannot save now: it is over, in its last save, or not yet
    /// initialised.
    pub(crate) fn commit_state(self: &Arc<Self>, deltas: Vec<StateDelta>) -> Option<CommitNumber> {
        self.step(|machine, now| push(machine, deltas, now))
    }

    /// Begins a commit and answers when it is durable. One step, so that a commit
    /// that fails at once is not missed.
    pub(crate) fn save_state(self: &Arc<Self>, deltas: Vec<StateDelta>, reply: Reply<()>) {
        self.step(|machine, now| {
            let output = Output::Flushed(reply, Ok(()));
            match push(machine, deltas, now) {
                Some(number) => machine.hold(Required::Commit(number), output),
                None => {
                    let error = machine.broken.clone().unwrap_or_else(|| self.stopping());
                    machine.effects.push_back(Effect::Release(output.fail(error)));
                }
            }
        });
    }

    /// Notes the first change of a clean state.
    pub(crate) fn mark_dirty(self: &Arc<Self>) {
        self.step(|machine, now| match self.config.durability {
            Durability::Reply => machine.pushes_pending = true,
            Durability::Interval => {
                machine.saves.request(SaveRequest::default(), now);
            }
        });
    }

    /// Asks for a save. With durability `reply` each is immediate, since replies
    /// wait for it.
    pub(crate) fn request_save(self: &Arc<Self>, request: SaveRequest) {
        self.step(|machine, now| {
            machine.saves.request(self.urgency(request), now);
        });
    }

    /// Asks for a save and for word of its end.
    pub(crate) fn request_save_and_wait(self: &Arc<Self>, request: SaveRequest, reply: Reply<()>) {
        self.step(|machine, now| {
            let revision = machine.saves.request(self.urgency(request), now);
            match machine.saves.wait(revision, reply) {
                Wait::Waits => {}
                Wait::Written(reply) => machine.emit(Output::Flushed(reply, Ok(()))),
                Wait::Failed(reply) => {
                    let stopping = Err(self.stopping());
                    machine.effects.push_back(Effect::Release(Output::Flushed(reply, stopping)));
                }
            }
        });
    }

    fn urgency(&self, request: SaveRequest) -> SaveRequest {
        match self.config.durability {
            Durability::Reply => SaveRequest { immediate: true, ..request },
            Durability::Interval => request,
        }
    }

    /// Answers when everything so far is durable.
    pub(crate) fn flushed(self: &Arc<Self>, reply: Reply<()>) {
        self.step(|machine, now| {
            if machine.saves.requested() {
                machine.saves.request(SaveRequest { immediate: true, max_wait: None }, now);
            }
            let required = machine.gate.fence(machine.is_dirty());
            machine.hold(required, Output::Flushed(reply, Ok(())));
        });
    }

    /// Answers when this commit is durable.
    pub(super) fn wait_durable(self: &Arc<Self>, number: CommitNumber, reply: Reply<()>) {
        self.step(|machine, _| {
            machine.hold(Required::Commit(number), Output::Flushed(reply, Ok(())));
        });
    }

    /// The store answered a commit.
    pub(super) fn committed(
        self: &Arc<Self>,
        number: CommitNumber,
        origin: CommitOrigin,
        result: Result<(), StoreError>,
    ) {
        let broken = self.step(|machine, now| {
            machine.writes_in_flight = machine.writes_in_flight.saturating_sub(1);
            if machine.is_over() {
                return None;
            }
            match result {
                Ok(()) => {
                    if let Some(state) = origin.state {
                        machine.state.current = state;
                    }
                    for output in machine.gate.durable(number) {
                        machine.effects.push_back(Effect::Release(output));
                    }
                    let waiters = if origin.pulled {
                        machine.saves.written(origin.revision, now)
                    } else {
                        machine.saves.written_directly(origin.revision, now)
                    };
                    tell_saved(machine, waiters);
                    machine.deliver(ActorEvent::Committed { number, result: Ok(()) });
                    None
                }
                Err(error) if self.retries(&error) => {
                    tracing::warn!(actor_id = %self.identity.id, %error, "a save failed");
                    let error = Error::from(error).with_actor(self.identity.specifier());
                    for output in machine.gate.give_up(number) {
                        machine.effects.push_back(Effect::Release(output.fail(error.clone())));
                    }
                    self.save_failed(machine, origin.revision, now, &error);
                    machine.deliver(ActorEvent::Committed { number, result: Err(error) });
                    None
                }
                Err(error) => Some(Error::from(error)),
            }
        });
        if let Some(error) = broken {
            tracing::error!(actor_id = %self.identity.id, %error, "a commit failed; its generation ends");
            self.break_generation(error);
        }
    }

    /// Whether a failed commit is tried again (invariant 3).
    fn retries(&self, error: &StoreError) -> bool {
        self.config.durability == Durability::Interval
            && matches!(
                error,
                StoreError::Full { .. } | StoreError::Busy { .. } | StoreError::Overloaded { .. }
            )
    }

    fn save_failed(&self, machine: &mut Machine, revision: u64, now: Instant, error: &Error) {
        for waiter in machine.saves.failed(revision, now) {
            let output = Output::Flushed(waiter, Err(error.clone()));
            machine.effects.push_back(Effect::Release(output));
        }
    }
}

/// See [`Actor::commit_state`].
fn push(machine: &mut Machine, deltas: Vec<StateDelta>, now: Instant) -> Option<CommitNumber> {
    let open = matches!(
        machine.lifecycle.phase(),
        Phase::Loading | Phase::Started | Phase::SleepGrace | Phase::DestroyGrace
    );
    if machine.is_over() || !open || !machine.state.initialized {
        return None;
    }
    machine.pushes_pending = false;
    let revision = machine.saves.begin_directly();
    if deltas.is_empty() {
        let waiters = machine.saves.written_directly(revision, now);
        nothing_to_save(machine, waiters);
        return Some(machine.gate.begun());
    }
    Some(machine.begin_commit(deltas, Vec::new(), |state| CommitOrigin {
        revision,
        state,
        pulled: false,
    }))
}

/// The author's side says that nothing changed: those who waited for a save are
/// told once what is on its way is durable.
pub(super) fn nothing_to_save(machine: &mut Machine, waiters: Vec<Reply<()>>) {
    let required = machine.gate.fence(false);
    for waiter in waiters {
        machine.hold(required, Output::Flushed(waiter, Ok(())));
    }
}

/// Tells those who waited for a save that it is durable.
fn tell_saved(machine: &mut Machine, waiters: Vec<Reply<()>>) {
    for waiter in waiters {
        machine.effects.push_back(Effect::Release(Output::Flushed(waiter, Ok(()))));
    }
}
