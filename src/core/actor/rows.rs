//! Changes of rows beside the state: keys and values, messages, schedules.
//!
//! # Invariants
//!
//! 1. Rows that a turn of the author's side changes wait until the turn ends, and are
//!    committed together with the state, in the order in which they were changed.
//! 2. What is changed while others wait goes behind them, whoever changes it: rows
//!    reach the store in the order in which memory took them.
//! 3. A read sees every change that was made before it: while some wait, it waits
//!    until their commit is with the store, and is read behind it.
//! 4. Until a new actor is stored, nothing waits for its rows: they are stored with
//!    its first state or not at all, and nobody has heard of it before. Nothing else
//!    is stored of it, so what waits is also all there is to read.
//! 5. Rows begin no commit of their own that would overtake one that is about to come: of
//!    a turn that has the connection, or of a state that answers wait for. Such an answer
//!    waits for the number of the next commit, which must be the one with the state.

use std::sync::Arc;

use super::Actor;
use super::effect::{Effect, Output, SaveOf};
use super::gate::CommitNumber;
use super::lifecycle::Phase;
use super::machine::Machine;
use crate::core::behavior::Reply;
use crate::core::config::Durability;
use crate::error::{Error, Result};
use crate::store::{ActorStoreRef, RowOp, SqlError};

/// Changes that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The changes, in order.
    pub ops: Vec<RowOp>,
    /// Memory has made them already and nothing undoes that, so a commit of them that
    /// fails ends the generation.
    pub in_memory: bool,
}

/// Where rows are read.
pub(crate) enum Readable {
    /// In the store.
    Store(ActorStoreRef),
    /// All there is of an actor that is not stored: changes from nothing, in order.
    Unstored(Vec<RowOp>),
}

/// What waits for the next commit.
#[derive(Debug, Default)]
pub(super) struct TurnRows {
    pub(super) ops: Vec<RowOp>,
    /// See [`Rows::in_memory`].
    pub(super) in_memory: bool,
    /// Who reads behind that commit (invariant 3).
    pub(super) readers: Vec<Reply<()>>,
}

impl TurnRows {
    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    pub(super) fn add(&mut self, rows: Rows) {
        self.ops.extend(rows.ops);
        self.in_memory |= rows.in_memory;
    }
}

impl Machine {
    /// Adds changes that the machine makes by itself. They are committed at once,
    /// unless a turn has some that wait: then they go with those (invariant 2).
    pub(super) fn write_own_rows(&mut self, rows: Rows) {
        let goes_with_others = self.turn_has_rows();
        self.rows.add(rows);
        if !goes_with_others {
            self.commit_own_rows();
        }
    }

    /// Whether a turn has rows that its end commits. With durability `interval` changes of
    /// connections wait for a save, which may be long in coming.
    fn turn_has_rows(&self) -> bool {
        let with_turn = self.config().durability == Durability::Reply;
        !self.rows.is_empty() || self.sql_wrote || (with_turn && self.has_connection_rows())
    }

    /// Commits the rows that wait, unless a commit that takes them along comes soon
    /// (invariant 5).
    pub(super) fn commit_own_rows(&mut self) {
        let state_comes = self.config().durability == Durability::Reply && self.state_is_dirty();
        if !self.sql_in_use && !state_comes {
            self.commit_rows();
        }
    }

    /// Begins a commit of the rows that wait, without the state.
    pub(super) fn commit_rows(&mut self) -> Option<CommitNumber> {
        if !self.has_rows() || !self.may_push() {
            return None;
        }
        Some(self.begin_commit(Vec::new(), Vec::new(), SaveOf::Rows))
    }

    /// Whether changes of rows can still be stored.
    pub(super) fn takes_rows(&self) -> bool {
        !self.is_over() && (self.saves_now() || self.is_being_created())
    }

    /// Tells `reply` when all rows so far are durable, whatever becomes of the state;
    /// at once for a new actor (invariant 4).
    pub(super) fn when_rows_are_durable(&mut self, reply: Reply<()>) {
        let wait_for = if self.is_being_created() {
            None
        } else if !self.rows.is_empty() {
            // Whatever commit begins next takes them along.
            Some(self.gate.begun().next())
        } else {
            (!self.gate.all_durable()).then(|| self.gate.begun())
        };
        match wait_for {
            Some(number) => self.watch_commit(number, reply),
            None => self.effects.push_back(Effect::Release(Output::Flushed(reply, Ok(())))),
        }
    }

    /// Whether the actor is not stored yet (invariant 4).
    pub(super) fn is_being_created(&self) -> bool {
        self.lifecycle.phase() == Phase::Loading && !self.state.initialized
    }
}

impl Actor {
    /// Adds changes of the author's side, which ends its turn with a commit. `reply`
    /// hears when they are durable.
    pub(crate) fn write_rows(self: &Arc<Self>, rows: Rows, reply: Reply<()>) {
        self.step(|machine, _| {
            if let Some(error) = self.no_rows(machine) {
                let refused = Output::Flushed(reply, Err(error));
                machine.effects.push_back(Effect::Release(refused));
                return;
            }
            machine.rows.add(rows);
            // Without a gate nothing has to be told in order, and the state may be long
            // in coming.
            let is_gated = self.config.durability == Durability::Reply;
            if machine.is_being_created() || !is_gated {
                return machine.when_rows_are_durable(reply);
            }
            let required = machine.gate.fence(machine.is_dirty());
            machine.hold(required, Output::Flushed(reply, Ok(())));
        });
    }

    /// Why the author's side can store no change of rows now; `None` when it can.
    pub(super) fn no_rows(&self, machine: &Machine) -> Option<Error> {
        let refused = !machine.takes_rows();
        let stopping = || machine.broken.clone().unwrap_or_else(|| self.stopping());
        self.no_reading(machine).or_else(|| refused.then(stopping))
    }

    /// Why the author's side can read nothing any more.
    pub(super) fn no_reading(&self, machine: &Machine) -> Option<Error> {
        // The next generation changes what is stored, and not what is in memory here.
        if machine.is_over() || machine.broken.is_some() {
            return Some(machine.broken.clone().unwrap_or_else(|| self.stopping()));
        }
        let closed = || Error::from(SqlError::TransactionClosed);
        machine.rows_closed.then(|| closed().with_actor(self.identity.specifier()))
    }

    /// Refuses whatever the author's side would store or read in the rest of this
    /// generation. What it did before is stored.
    pub(crate) fn close_rows(self: &Arc<Self>) {
        self.step(|machine, _| machine.rows_closed = true);
    }

    /// Begins a commit of the rows that wait, for an author's side that does not hand
    /// its state over with them. `None` when none wait, or nothing can be saved now.
    pub(crate) fn commit_rows(self: &Arc<Self>) -> Option<CommitNumber> {
        self.step(|machine, _| machine.commit_rows())
    }

    /// Where a transaction reads rows: behind every commit that has begun, and not behind
    /// what waits for its end.
    pub(crate) fn stored_rows(
        self: &Arc<Self>,
    ) -> impl Future<Output = Result<Readable>> + Send + 'static + use<> {
        let (reply, begun) = Reply::channel();
        self.step(|machine, _| machine.effects.push_back(Effect::Begun(vec![reply])));
        let store = Arc::clone(&self.store);
        async move { begun.await.map(|()| Readable::Store(store)) }
    }

    /// Where to read rows now. Resolves when a read of the store sees every change so
    /// far (invariant 3), or at once for an actor that is not stored (invariant 4).
    ///
    /// # Errors
    ///
    /// `actor/stopping` or what ended the generation, and `sqlite/transaction_closed` once
    /// the author has closed its rows.
    pub(crate) fn readable_rows(
        self: &Arc<Self>,
    ) -> impl Future<Output = Result<Readable>> + Send + 'static {
        let (reply, begun) = Reply::channel();
        let unstored = self.step(|machine, _| {
            if let Some(error) = self.no_reading(machine) {
                let refused = Output::Flushed(reply, Err(error));
                machine.effects.push_back(Effect::Release(refused));
                return None;
            }
            if machine.is_being_created() {
                return Some(machine.rows.ops.clone());
            }
            if machine.rows.is_empty() {
                machine.effects.push_back(Effect::Begun(vec![reply]));
            } else {
                machine.rows.readers.push(reply);
            }
            None
        });
        let store = Arc::clone(&self.store);
        async move {
            match unstored {
                Some(ops) => Ok(Readable::Unstored(ops)),
                None => begun.await.map(|()| Readable::Store(store)),
            }
        }
    }
}
