//! Saving: when the author's side is asked for a snapshot, how a commit begins,
//! and what its end means.
//!
//! # Invariants
//!
//! 1. The state in memory is published only after the store has taken it, the very
//!    first excepted, which `create_state` makes for `on_create` to read.
//! 2. A snapshot asked for under an outdated epoch is thrown away and asked for
//!    again: it is outdated, not an error.
//! 3. With durability `reply`, a commit that failed breaks the generation, so
//!    memory never runs ahead of the store for good. With `interval` a commit that
//!    certainly failed leaves the state dirty, is tried again after the save
//!    interval, and those who waited are told; one that carried changes which
//!    nothing in memory undoes breaks the generation there, too.

use std::sync::Arc;

use super::Actor;
use super::effect::{CommitOrigin, Effect, Output, SaveOf};
use super::gate::CommitNumber;
use super::lifecycle::{LifecycleError, Phase};
use super::machine::Machine;
use super::save_queue::{SaveRequest, Wait};
use crate::core::behavior::{ActorEvent, Reply, SerializeReason, StateDelta};
use crate::core::config::Durability;
use crate::error::{Error, ErrorCode, Result};
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
        let broken = self.step(|machine, now| {
            // One that was given up is nobody's any more.
            if machine.is_over()
                || machine.snapshot.take_if(|asked| asked.revision == revision).is_none()
            {
                return None;
            }
            match deltas {
                Err(error) => return self.snapshot_failed(machine, revision, now, error),
                Ok(_) if machine.state.epoch != epoch && machine.is_flushing() => {
                    machine.repeat_flush();
                    machine.saves.outdated(now);
                }
                Ok(deltas) if machine.is_flushing() => {
                    if !self.commit_flush(machine, deltas, revision) {
                        // The state goes without it, with a save of its own.
                        machine.saves.outdated(now);
                    }
                }
                Ok(deltas) if deltas.is_empty() && !machine.has_rows() => {
                    let waiters = machine.saves.written(revision, now);
                    nothing_to_save(machine, waiters);
                }
                Ok(_) if machine.state.epoch != epoch => machine.saves.outdated(now),
                Ok(deltas) => {
                    let save = SaveOf::Pulled(revision);
                    machine.begin_commit(deltas, Vec::new(), save);
                }
            }
            None
        });
        if let Some(error) = broken {
            self.break_generation(error);
        }
    }

    /// A snapshot could not be had. With durability `reply` outputs wait for it, and
    /// would for ever: the error is returned, to break the generation.
    fn snapshot_failed(
        &self,
        machine: &mut Machine,
        revision: u64,
        now: Instant,
        error: Error,
    ) -> Option<Error> {
        machine.fail_flush(&error);
        let (actor_id, shown) = (self.identity.id, error.clone());
        machine.log(move || tracing::error!(%actor_id, error = %shown, "no snapshot of the state"));
        if self.config.durability == Durability::Reply {
            return Some(error);
        }
        let waiters = machine.saves.failed(revision, now);
        tell(machine, waiters, &Err(error));
        None
    }

    /// Gives up a snapshot that takes too long; its late answer is nobody's.
    pub(super) fn time_out_snapshot(self: &Arc<Self>, machine: &mut Machine, now: Instant) {
        let Some(given_up) = machine.snapshot.take_if(|asked| asked.deadline <= now) else {
            return;
        };
        let revision = given_up.revision;
        let error = Error::internal("the serialisation of the state timed out");
        if let Some(error) = self.snapshot_failed(machine, revision, now, error) {
            machine.effects.push_back(Effect::Break(error));
        }
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
            // Not before a state transaction that is open.
            if let Some((deltas, reply)) = machine.postpone(deltas, reply) {
                save(machine, deltas, reply, now);
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
            if let Some(error) = self.no_save_yet(machine) {
                let refused = Output::Flushed(reply, Err(error));
                machine.effects.push_back(Effect::Release(refused));
                return;
            }
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
            let error = machine.broken.clone().or_else(|| self.no_save_yet(machine));
            let over = machine.is_over().then(|| self.stopping()).filter(|_| machine.is_dirty());
            if let Some(error) = error.or(over) {
                let refused = Output::Flushed(reply, Err(error));
                machine.effects.push_back(Effect::Release(refused));
                return;
            }
            if machine.saves.is_open() {
                machine.saves.request(SaveRequest { immediate: true, max_wait: None }, now);
            }
            let required = machine.gate.fence(machine.is_dirty());
            let statement = machine.gate.last_statement();
            machine.hold_behind(required, statement, Output::Flushed(reply, Ok(())));
        });
    }

    /// Answers once an output may leave that was made before this call, and so was every
    /// one before it.
    pub(crate) fn output_may_leave(self: &Arc<Self>, reply: Reply<()>) {
        self.step(|machine, _| machine.emit(Output::Flushed(reply, Ok(()))));
    }

    /// Answers when all commits that have begun are durable. Past the gate, whose
    /// order would let it wait behind outputs for a commit that has not begun.
    pub(crate) fn begun_durable(self: &Arc<Self>, reply: Reply<()>) {
        self.step(|machine, _| {
            if let Some(error) = machine.broken.clone() {
                let refused = Output::Flushed(reply, Err(error));
                machine.effects.push_back(Effect::Release(refused));
            } else if machine.gate.all_durable() || machine.is_over() {
                machine.effects.push_back(Effect::Release(Output::Flushed(reply, Ok(()))));
            } else {
                machine.watch_commit(machine.gate.begun(), reply);
            }
        });
    }

    /// Why nobody can wait for a save now: a new actor is stored for the first time
    /// when its first hooks have ended, and they must not wait for that.
    pub(super) fn no_save_yet(&self, machine: &Machine) -> Option<Error> {
        let waits = machine.lifecycle.phase() == Phase::Loading && !machine.state.initialized;
        waits.then(|| {
            Error::new(
                ErrorCode::new("actor", "starting"),
                "a new actor is stored once onCreate has ended, so nothing can wait for it before",
            )
            .with_actor(self.identity.specifier())
        })
    }

    /// The store answered a commit.
    pub(super) fn committed(
        self: &Arc<Self>,
        number: CommitNumber,
        origin: CommitOrigin,
        result: Result<(), StoreError>,
    ) {
        let is_broken = self.step(|machine, now| {
            machine.writes_in_flight = machine.writes_in_flight.saturating_sub(1);
            if machine.is_over() {
                return false;
            }
            match result {
                Ok(()) => {
                    if let Some(state) = origin.state {
                        machine.state.current = state;
                        machine.inspection.stored += 1;
                    }
                    // First, since what the author's side holds may have been made
                    // before what the gate holds, and knows its place among it.
                    machine.deliver(ActorEvent::Committed { number, result: Ok(()) });
                    for output in machine.gate.durable(number) {
                        machine.effects.push_back(Effect::Release(output));
                    }
                    machine.tell_commit(number, &Ok(()));
                    let waiters = match origin.save {
                        SaveOf::Pulled(revision) => machine.saves.written(revision, now),
                        SaveOf::Pushed(revision) => machine.saves.written_directly(revision, now),
                        SaveOf::Rows => Vec::new(),
                    };
                    tell(machine, waiters, &Ok(()));
                    machine.transaction_committed(number, now);
                    false
                }
                Err(error) if !origin.in_memory && self.retries(&error) => {
                    machine.alarm.unstored();
                    machine.give_connection_rows_back(origin.connections, now);
                    let error = Error::from(error).with_actor(self.identity.specifier());
                    let (actor_id, shown) = (self.identity.id, error.clone());
                    machine.log(move || tracing::warn!(%actor_id, error = %shown, "a save failed"));
                    for output in machine.gate.give_up(number) {
                        machine.effects.push_back(Effect::Release(output.fail(error.clone())));
                    }
                    machine.tell_commit(number, &Err(error.clone()));
                    let waiters = match origin.save {
                        SaveOf::Pulled(revision) => machine.saves.failed(revision, now),
                        SaveOf::Pushed(revision) => machine.saves.failed_directly(revision, now),
                        SaveOf::Rows => Vec::new(),
                    };
                    tell(machine, waiters, &Err(error.clone()));
                    machine.deliver(ActorEvent::Committed { number, result: Err(error) });
                    false
                }
                // In this step: an end that waits for this answer alone would come first,
                // and leave those who wait for the commit without a word.
                Err(error) => {
                    let (actor_id, error) = (self.identity.id, Error::from(error));
                    let shown = error.clone();
                    machine.log(move || {
                        tracing::error!(%actor_id, error = %shown, "a commit failed; its generation ends");
                    });
                    self.break_within(machine, error);
                    true
                }
            }
        });
        if is_broken {
            self.abort_tasks();
        }
    }

    /// Whether a failed commit is tried again (invariant 3).
    fn retries(&self, error: &StoreError) -> bool {
        self.config.durability == Durability::Interval
            && matches!(
                error,
                StoreError::Full { .. }
                    | StoreError::Busy { .. }
                    | StoreError::Overloaded { .. }
                    | StoreError::ManualTransactionOpen { .. }
            )
    }
}

/// See [`Actor::save_state`].
pub(super) fn save(machine: &mut Machine, deltas: Vec<StateDelta>, reply: Reply<()>, now: Instant) {
    if let Err(error) = machine.check_connections(&deltas) {
        let refused = Output::Flushed(reply, Err(error.into()));
        machine.effects.push_back(Effect::Release(refused));
        return;
    }
    let empty = deltas.is_empty();
    match push(machine, deltas, now) {
        Some(_) if empty => {
            let required = machine.gate.fence(false);
            machine.hold(required, Output::Flushed(reply, Ok(())));
        }
        Some(number) => machine.watch_commit(number, reply),
        None => {
            let error = machine.broken.clone();
            let error = error.unwrap_or_else(|| LifecycleError::Stopping.into());
            machine.effects.push_back(Effect::Release(Output::Flushed(reply, Err(error))));
        }
    }
}

/// See [`Actor::commit_state`].
fn push(machine: &mut Machine, deltas: Vec<StateDelta>, now: Instant) -> Option<CommitNumber> {
    if !machine.may_push() {
        return None;
    }
    // A snapshot that is on its way is older than what is handed over here.
    if machine.snapshot.is_some() {
        machine.state.epoch += 1;
    }
    machine.pushes_pending = false;
    let revision = machine.saves.begin_directly();
    if deltas.is_empty() && !machine.has_rows() {
        let waiters = machine.saves.written_directly(revision, now);
        nothing_to_save(machine, waiters);
        return Some(machine.gate.begun());
    }
    Some(machine.begin_commit(deltas, Vec::new(), SaveOf::Pushed(revision)))
}

/// The author's side says that nothing changed: those who waited for a save are
/// told once what is on its way is durable.
pub(super) fn nothing_to_save(machine: &mut Machine, waiters: Vec<Reply<()>>) {
    let required = machine.gate.fence(false);
    for waiter in waiters {
        machine.hold(required, Output::Flushed(waiter, Ok(())));
    }
}

/// Tells those who waited for a save how it ended.
fn tell(machine: &mut Machine, waiters: Vec<Reply<()>>, result: &Result<()>) {
    for waiter in waiters {
        machine.effects.push_back(Effect::Release(Output::Flushed(waiter, result.clone())));
    }
}
