//! State transactions within the machine: one at a time, and what waits for its end.
//!
//! # Invariants
//!
//! 1. At most one is open. Who asks meanwhile waits, in the order of asking.
//! 2. While one is open no commit begins: what would be saved waits, and begins when it
//!    ends. So nothing that others change comes between what it reads and what it writes.
//! 3. It commits in one step: memory of the parts, rows and state change together, with
//!    its statements, or nothing does.
//! 4. Its beginning and each of its ends raise the epoch: a snapshot that was asked for
//!    on the other side of either is outdated.
//! 5. One with statements counts as open until the store has answered its commit, so that
//!    answers come in the order of the commits.
//! 6. The states that hibernatable connections had when it began come back when it is
//!    rolled back, whoever changed them meanwhile: they belong to it while it is open.
//! 7. It keeps the actor awake. At its deadline, and at the end of the generation, it is
//!    rolled back; one that commits is waited for.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Actor;
use super::activity::WorkKind;
use super::commits;
use super::effect::{Effect, Output};
use super::gate::CommitNumber;
use super::machine::Machine;
use crate::core::behavior::{Reply, StateDelta};
use crate::core::connections::ConnStates;
use crate::core::transaction::TransactionError;
use crate::error::{Error, Result};
use crate::store::{Bindings, SqlCursor, SqlError, SqlTransaction, StoreError};
use crate::time::{Duration, Instant};

/// Names a state transaction among those of its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransactionId(u64);

/// The state transactions of one generation.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    last: u64,
    pub(super) open: Option<Open>,
    /// Those who wait for their turn (invariant 1).
    waiting: Vec<Waiting>,
    /// Saves that were handed over meanwhile (invariant 2).
    postponed: Vec<(Vec<StateDelta>, Reply<()>)>,
    /// The last ones that came to their deadline.
    expired: VecDeque<TransactionId>,
    /// Set at the end of the generation, never cleared.
    closed: bool,
}

#[derive(Debug)]
struct Waiting {
    id: TransactionId,
    timeout: Duration,
    reply: Reply<()>,
}

#[derive(Debug)]
pub(super) struct Open {
    id: TransactionId,
    /// `None` from its commit on.
    pub(super) deadline: Option<Instant>,
    timeout: Duration,
    /// Its statements, once there are any.
    pub(super) sql: Option<SqlTransaction>,
    /// What it would give back (invariant 6).
    connections: ConnStates,
    /// Its commit, until the store has answered that (invariant 5).
    pub(super) commit: Option<CommitNumber>,
    /// Told when it ends.
    ended: Vec<Reply<()>>,
}

/// How many expired ones are known by their ids.
const KNOWN: usize = 64;

impl Machine {
    /// Whether a state transaction is open.
    pub(super) fn is_in_transaction(&self) -> bool {
        self.transactions.as_ref().is_some_and(|all| all.open.is_some())
    }

    /// Whether it only waits for the store.
    pub(super) fn is_committing_transaction(&self) -> bool {
        let open = self.transactions.as_ref().and_then(|all| all.open.as_ref());
        open.is_some_and(|open| open.commit.is_some())
    }

    /// When the open one is over.
    pub(super) fn transaction_due(&self) -> Option<Instant> {
        self.transactions.as_ref()?.open.as_ref()?.deadline
    }

    /// Keeps a save for the end of the transaction; gives it back when none is open.
    pub(super) fn postpone(
        &mut self,
        deltas: Vec<StateDelta>,
        reply: Reply<()>,
    ) -> Option<(Vec<StateDelta>, Reply<()>)> {
        match &mut self.transactions {
            Some(all) if all.open.is_some() => {
                all.postponed.push((deltas, reply));
                None
            }
            _ => Some((deltas, reply)),
        }
    }

    fn open_transaction(&mut self, id: TransactionId, timeout: Duration, now: Instant) {
        self.state.epoch += 1;
        self.activity.begin(WorkKind::InternalKeepAwake);
        let connections = self.connection_states();
        let all = self.transactions.get_or_insert_default();
        let deadline = Some(now + timeout);
        let (sql, commit, ended) = (None, None, Vec::new());
        all.open = Some(Open { id, deadline, timeout, sql, connections, commit, ended });
    }

    /// Ends the open one, and goes on with what waited for that.
    pub(super) fn close_transaction(&mut self, result: &Result<()>, now: Instant) {
        let Some(open) = self.transactions.as_mut().and_then(|all| all.open.take()) else { return };
        self.state.epoch += 1;
        let ended = self.activity.end(WorkKind::InternalKeepAwake);
        debug_assert!(ended, "begun when it was opened");
        for reply in open.ended {
            let output = Output::Flushed(reply, result.clone());
            self.effects.push_back(Effect::Release(output));
        }
        let postponed = self.transactions.as_mut().map(|all| std::mem::take(&mut all.postponed));
        for (deltas, reply) in postponed.into_iter().flatten() {
            commits::save(self, deltas, reply, now);
        }
        self.commit_own_rows();
        let next = self.transactions.as_mut().and_then(|all| {
            let waits = !all.waiting.is_empty();
            waits.then(|| all.waiting.remove(0))
        });
        if let Some(Waiting { id, timeout, reply }) = next {
            self.open_transaction(id, timeout, now);
            self.effects.push_back(Effect::Release(Output::Flushed(reply, Ok(()))));
        }
    }

    /// Rolls the open one back unless it commits; says whether it did.
    pub(super) fn undo_transaction(&mut self, error: &Error, expired: bool, now: Instant) -> bool {
        let open = self.transactions.as_mut().and_then(|all| all.open.as_mut());
        let Some(open) = open.filter(|open| open.commit.is_none()) else { return false };
        let sql = open.sql.take();
        let connections = std::mem::take(&mut open.connections);
        self.effects.extend(sql.map(|sql| Effect::EndTransaction { sql, expired }));
        self.restore_connection_states(connections, now);
        self.close_transaction(&Err(error.clone()), now);
        true
    }

    /// Ends the open one at its deadline (invariant 7).
    pub(super) fn expire_transaction(&mut self, now: Instant) {
        if self.transaction_due().is_none_or(|due| due > now) {
            return;
        }
        let Some(all) = &mut self.transactions else { return };
        let Some(open) = &all.open else { return };
        let error = expired(open.timeout);
        all.expired.push_back(open.id);
        if all.expired.len() > KNOWN {
            all.expired.pop_front();
        }
        self.undo_transaction(&error, true, now);
    }

    /// The memory is void: whoever waits hears why.
    pub(super) fn drop_transactions(&mut self, error: &Error) {
        let Some(all) = self.transactions.take() else { return };
        let Transactions { open, waiting, postponed, .. } = *all;
        let ended = open.map(|open| open.ended).into_iter().flatten();
        let waiting = waiting.into_iter().map(|waiting| waiting.reply);
        let postponed = postponed.into_iter().map(|(_, reply)| reply);
        for reply in ended.chain(waiting).chain(postponed) {
            let output = Output::Flushed(reply, Err(error.clone()));
            self.effects.push_back(Effect::Release(output));
        }
    }

    /// The store has answered a commit.
    pub(super) fn transaction_committed(&mut self, number: CommitNumber, now: Instant) {
        let open = self.transactions.as_ref().and_then(|all| all.open.as_ref());
        if open.is_some_and(|open| open.commit == Some(number)) {
            self.close_transaction(&Ok(()), now);
        }
    }

    /// The open one, if it is this one and does not commit yet; why not.
    pub(super) fn transaction(
        &mut self,
        id: TransactionId,
        timeout: Duration,
    ) -> Result<&mut Open> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let known = self.transactions.as_ref().is_some_and(|all| all.expired.contains(&id));
        let stopping = self.transactions.as_ref().is_none_or(|all| all.closed);
        match self.transactions.as_mut().and_then(|all| all.open.as_mut()) {
            Some(open) if open.id == id && open.commit.is_none() => Ok(open),
            _ if known => Err(expired(timeout)),
            _ if stopping => Err(super::lifecycle::LifecycleError::Stopping.into()),
            _ => Err(TransactionError::Finished.into()),
        }
    }
}

impl Actor {
    /// Opens a state transaction, or lets it wait for its turn. `reply` hears when it is
    /// open, or why it will not be.
    pub(crate) fn begin_transaction(
        self: &Arc<Self>,
        timeout: Duration,
        reply: Reply<()>,
    ) -> TransactionId {
        self.step(|machine, now| {
            let id = {
                let all = machine.transactions.get_or_insert_default();
                all.last += 1;
                TransactionId(all.last)
            };
            let closed = machine.transactions.as_ref().is_some_and(|all| all.closed);
            let refusal = if machine.is_being_created() {
                self.no_save_yet(machine)
            } else if closed {
                Some(self.stopping())
            } else {
                self.no_rows(machine)
            };
            if let Some(error) = refusal {
                let refused = Output::Flushed(reply, Err(error));
                machine.effects.push_back(Effect::Release(refused));
            } else if machine.is_in_transaction() {
                let all = machine.transactions.get_or_insert_default();
                all.waiting.push(Waiting { id, timeout, reply });
            } else {
                machine.open_transaction(id, timeout, now);
                machine.effects.push_back(Effect::Release(Output::Flushed(reply, Ok(()))));
            }
            id
        })
    }

    /// Why a state transaction takes nothing; `Ok` while it does.
    pub(crate) fn check_transaction(&self, id: TransactionId, timeout: Duration) -> Result<()> {
        let checked = self.machine.lock().transaction(id, timeout).map(drop);
        checked.map_err(|error| error.with_actor(self.identity.specifier()))
    }

    /// Tells `reply` when it ends: an error when nobody asked for that.
    pub(crate) fn when_transaction_ended(
        self: &Arc<Self>,
        id: TransactionId,
        timeout: Duration,
        reply: Reply<()>,
    ) {
        self.step(|machine, _| match machine.transaction(id, timeout) {
            Ok(open) => open.ended.push(reply),
            Err(error) => {
                machine.effects.push_back(Effect::Release(Output::Flushed(reply, Err(error))));
            }
        });
    }

    /// Its statements have begun. Undone at once when it has ended meanwhile.
    pub(crate) fn transaction_uses_sql(
        self: &Arc<Self>,
        id: TransactionId,
        timeout: Duration,
        sql: &SqlTransaction,
    ) -> Result<()> {
        let begun = self.step(|machine, _| {
            let open = machine.transaction(id, timeout);
            open.map(|open| open.sql = Some(sql.clone()))
        });
        if begun.is_err() {
            drop(sql.roll_back());
        }
        begun
    }

    /// Runs a synchronous statement of the transaction.
    pub(crate) fn run_within(
        &self,
        transaction: &SqlTransaction,
        sql: &str,
        bindings: &Bindings,
    ) -> Result<SqlCursor, SqlError> {
        let file = self.store.file().ok_or(SqlError::Store(StoreError::Closed))?;
        file.run_within(self.identity.generation, transaction, sql, bindings)
    }

    /// Gives the actor its file, and waits for that.
    pub(crate) fn make_file(&self) -> Result<(), SqlError> {
        if self.store.file().is_none() {
            futures::executor::block_on(self.store.own_file(self.identity.generation))?;
        }
        Ok(())
    }

    /// Begins a task of the runtime.
    pub(crate) fn spawn(
        &self,
        label: &'static str,
        future: impl Future<Output = ()> + Send + 'static,
    ) {
        self.runtime.spawner().spawn(label, future);
    }

    /// Gives back the connection that a turn only read through, so that the transaction can
    /// have it.
    pub(crate) fn leave_connection(self: &Arc<Self>) {
        self.step(|machine, _| {
            if !machine.sql_wrote {
                let turn = machine.sql_turn.take();
                machine.sql_in_use &= turn.is_none();
                machine.effects.extend(turn.map(Effect::EndTurn));
            }
        });
    }

    /// Ends it without its changes; its statements are the caller's to undo. `Err` when
    /// it has ended.
    pub(crate) fn undo_planned(
        self: &Arc<Self>,
        id: TransactionId,
        timeout: Duration,
    ) -> Result<()> {
        self.step(|machine, now| {
            machine.forget_waiting(id);
            let open = machine.transaction(id, timeout)?;
            open.sql = None;
            let connections = std::mem::take(&mut open.connections);
            machine.restore_connection_states(connections, now);
            machine.close_transaction(&Ok(()), now);
            Ok(())
        })
    }

    /// The generation saves for the last time: no transaction begins any more, and one
    /// that is open is rolled back (invariant 7).
    pub(super) fn close_transactions(self: &Arc<Self>) {
        self.step(|machine, now| {
            let stopping = self.stopping();
            let all = machine.transactions.get_or_insert_default();
            all.closed = true;
            for waiting in std::mem::take(&mut all.waiting) {
                let refused = Output::Flushed(waiting.reply, Err(stopping.clone()));
                machine.effects.push_back(Effect::Release(refused));
            }
            if machine.undo_transaction(&stopping, false, now) {
                let actor_id = self.identity.id;
                machine.log(move || {
                    tracing::warn!(%actor_id, "a state transaction was open at the end: rolled back");
                });
            }
        });
    }
}

impl Machine {
    fn forget_waiting(&mut self, id: TransactionId) {
        let Some(all) = &mut self.transactions else { return };
        let gone = all.waiting.extract_if(.., |waiting| waiting.id == id);
        for Waiting { reply, .. } in gone.collect::<Vec<_>>() {
            let error = TransactionError::Finished.into();
            self.effects.push_back(Effect::Release(Output::Flushed(reply, Err(error))));
        }
    }
}

fn expired(timeout: Duration) -> Error {
    let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    SqlError::TransactionExpired { timeout_ms }.into()
}
