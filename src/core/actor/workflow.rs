//! Flushes of a workflow within the machine: rows that are stored with the state.
//!
//! # Invariants
//!
//! 1. Flushes are stored one at a time, in the order in which they were asked for.
//! 2. One begins with a snapshot of its own, which counts as a save, and only while none is
//!    on its way: so whatever the author's side has to save goes with the rows.
//! 3. A snapshot that is outdated when it comes is asked for again, for the same flush.
//! 4. Each is answered exactly once: at the latest when nothing is saved any more.
//! 5. An actor whose workflow has flushed comes back after a crash with nobody calling: what
//!    the workflow was to do next may not have been said yet.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Actor;
use super::effect::{Effect, Output, SaveOf};
use super::lifecycle::{LifecycleError, Phase};
use super::machine::{Machine, SNAPSHOT_LIMIT, Snapshot};
use crate::core::behavior::{ActorEvent, Reply, StateDelta};
use crate::core::workflow::WorkflowRows;
use crate::error::Error;
use crate::time::Instant;

/// The flushes of one generation.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// The first one is the one in work, until its commit begins.
    waiting: VecDeque<Flush>,
    stage: Stage,
    /// Whether the actor has the file that holds the rows.
    has_file: bool,
}

#[derive(Debug)]
struct Flush {
    rows: WorkflowRows,
    reply: Reply<()>,
}

/// How far the one in work has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// There is none.
    #[default]
    Idle,
    /// The actor moves to a file of its own.
    Moves,
    /// Its snapshot was asked for.
    Asked,
    /// The store has it.
    Commits,
}

impl Actor {
    /// Takes a flush, or refuses it where nothing of the kind can be stored.
    pub(crate) fn flush_workflow(self: &Arc<Self>, rows: WorkflowRows, reply: Reply<()>) {
        let has_file = self.store.file().is_some();
        let moves = self.step(|machine, _| {
            let closed = if machine.rows_closed { self.no_reading(machine) } else { None };
            if let Some(error) = closed.or_else(|| machine.no_flush()) {
                let error = error.with_actor(self.identity.specifier());
                machine.effects.push_back(Effect::Release(Output::Flushed(reply, Err(error))));
                return false;
            }
            let flushes = machine.flushes.get_or_insert_default();
            flushes.has_file |= has_file;
            flushes.waiting.push_back(Flush { rows, reply });
            let moves = !flushes.has_file && flushes.stage == Stage::Idle;
            if moves {
                flushes.stage = Stage::Moves;
            }
            moves
        });
        if moves {
            self.move_for_flushes();
        }
    }

    fn move_for_flushes(self: &Arc<Self>) {
        let moving = self.store.own_file(self.identity.generation);
        let actor = Arc::clone(self);
        self.runtime.spawner().spawn("promotion", async move {
            let moved = moving.await;
            actor.step(|machine, _| {
                let Some(flushes) = &mut machine.flushes else { return };
                flushes.stage = Stage::Idle;
                match moved {
                    Ok(_) => flushes.has_file = true,
                    Err(error) => machine.refuse_flushes(&Error::from(error)),
                }
            });
        });
    }

    /// Asks for the snapshot of the next flush (invariant 2). To be called at the end of
    /// every step, before a save begins that is due.
    pub(super) fn begin_flush(self: &Arc<Self>, machine: &mut Machine, now: Instant) {
        let Some(flushes) = &machine.flushes else { return };
        if flushes.stage != Stage::Idle || flushes.waiting.is_empty() {
            return;
        }
        if let Some(error) = machine.no_flush() {
            return machine.refuse_flushes(&error.with_actor(self.identity.specifier()));
        }
        if !machine.may_push() || machine.saves.is_saving() || machine.snapshot.is_some() {
            return;
        }
        machine.set_flush_stage(Stage::Asked);
        let revision = machine.saves.begin(now);
        let epoch = machine.state.epoch;
        machine.snapshot = Some(Snapshot { revision, deadline: now + SNAPSHOT_LIMIT });
        let event = self.ask_for_snapshot(revision, epoch);
        if self.hooks.serialize_state {
            return machine.deliver(event);
        }
        if let ActorEvent::SerializeState { reply, .. } = event {
            let unasked = Reply::new(move |_| reply.send(Ok(Vec::new())));
            machine.effects.push_back(Effect::Release(Output::Flushed(unasked, Ok(()))));
        }
    }

    /// Begins the commit of the flush whose snapshot has come. `false` when it is too large,
    /// which whoever waits for it hears.
    pub(super) fn commit_flush(
        self: &Arc<Self>,
        machine: &mut Machine,
        deltas: Vec<StateDelta>,
        revision: u64,
    ) -> bool {
        let Some(Flush { rows, reply }) = machine.take_flush() else { return false };
        let state = deltas.iter().map(StateDelta::payload_len).reduce(|sum, len| sum + len);
        if let Err(error) = rows.check(state) {
            machine.set_flush_stage(Stage::Idle);
            let error = Error::from(error).with_actor(self.identity.specifier());
            machine.effects.push_back(Effect::Release(Output::Flushed(reply, Err(error))));
            return false;
        }
        machine.set_flush_stage(Stage::Commits);
        // With the rows, so that no crash comes between (invariant 5).
        machine.alarm.hand_out(self.unix_ms());
        let number = machine.begin_commit(deltas, rows.into_ops(), SaveOf::Pulled(revision));
        let actor = Arc::clone(self);
        let ended = Reply::new(move |result| {
            actor.step(|machine, _| {
                machine.set_flush_stage(Stage::Idle);
                machine.inspection.workflow += 1;
            });
            reply.send(result);
        });
        machine.watch_commit(number, ended);
        true
    }
}

impl Machine {
    /// Whether the snapshot that is on its way is for a flush.
    pub(super) fn is_flushing(&self) -> bool {
        self.flushes.as_ref().is_some_and(|flushes| flushes.stage == Stage::Asked)
    }

    /// The snapshot is outdated: it is asked for again (invariant 3).
    pub(super) fn repeat_flush(&mut self) {
        self.set_flush_stage(Stage::Idle);
    }

    /// The snapshot of the flush in work will not come.
    pub(super) fn fail_flush(&mut self, error: &Error) {
        if !self.is_flushing() {
            return;
        }
        self.set_flush_stage(Stage::Idle);
        if let Some(Flush { reply, .. }) = self.take_flush() {
            let failed = Output::Flushed(reply, Err(error.clone()));
            self.effects.push_back(Effect::Release(failed));
        }
    }

    /// Answers every flush whose commit has not begun (invariant 4).
    pub(super) fn refuse_flushes(&mut self, error: &Error) {
        let Some(flushes) = &mut self.flushes else { return };
        if flushes.stage == Stage::Asked {
            flushes.stage = Stage::Idle;
        }
        for Flush { reply, .. } in std::mem::take(&mut flushes.waiting) {
            let refused = Output::Flushed(reply, Err(error.clone()));
            self.effects.push_back(Effect::Release(refused));
        }
    }

    /// Why no flush can be stored now.
    fn no_flush(&self) -> Option<Error> {
        if let Some(error) = &self.broken {
            return Some(error.clone());
        }
        let takes = matches!(self.lifecycle.phase(), Phase::Started | Phase::SleepGrace);
        (!takes).then(|| LifecycleError::NotReady.into())
    }

    fn take_flush(&mut self) -> Option<Flush> {
        self.flushes.as_mut()?.waiting.pop_front()
    }

    fn set_flush_stage(&mut self, stage: Stage) {
        if let Some(flushes) = &mut self.flushes {
            flushes.stage = stage;
        }
    }
}
