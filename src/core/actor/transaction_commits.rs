//! The commit of a state transaction: everything that it planned in one step.
//!
//! # Invariants
//!
//! 1. What is planned is tried on copies of the parts; they take the place of the parts
//!    when nothing of it is refused.
//! 2. Memory is ahead of the store from that step on, so a commit that fails ends the
//!    generation.

use std::sync::Arc;

use super::Actor;
use super::commits;
use super::effect::{SaveOf, With};
use super::gate::CommitNumber;
use super::machine::Machine;
use super::queue::By;
use super::rows::Rows;
use super::transactions::TransactionId;
use crate::core::behavior::{Reply, StateDelta};
use crate::core::queue::{Change, Moment};
use crate::core::transaction::Plan;
use crate::error::{Error, Result};
use crate::store::{CommitDone, SqlTransaction, WriteBatch};
use crate::time::Duration;

/// How the commit of a transaction counts as a save of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Covers {
    /// The author's side has nothing else to save.
    All,
    /// It says nothing of the state outside.
    Itself,
}

impl Machine {
    /// Makes in memory what a transaction planned, and leaves its rows for the commit that
    /// follows. Nothing is changed when a part refuses (invariant 1).
    fn apply_plan(&mut self, plan: Plan, at: Moment) -> Result<()> {
        let Plan { kv, queue, schedules, .. } = plan;
        let jobs = if schedules.is_empty() {
            None
        } else {
            let (mut trial, mut ops) = (self.later.schedules.clone(), Vec::new());
            for step in schedules {
                ops.extend(step(&mut trial)?);
            }
            Some((trial, ops))
        };
        if !queue.is_empty() {
            let (mut trial, mut change) = (self.desk.queue().clone(), Change::default());
            for step in queue {
                let Change { ops, wakes } = step(&mut trial, at)?;
                change.ops.extend(ops);
                change.wakes.extend(wakes);
            }
            self.desk.set_queue(trial);
            self.apply_queue(change, By::Author, at);
        }
        if let Some((trial, ops)) = jobs {
            self.later.schedules = trial;
            self.rows.add(Rows { ops, in_memory: true });
        }
        // Before the keys that others set meanwhile: those count as set behind it.
        self.rows.ops.splice(0..0, kv);
        Ok(())
    }
}

impl Actor {
    /// Commits: everything of it is decided here, and `durable` hears when
    /// the store has it.
    ///
    /// # Errors
    ///
    /// Why nothing was changed; it is rolled back then.
    pub(crate) fn commit_planned(
        self: &Arc<Self>,
        id: TransactionId,
        timeout: Duration,
        plan: Plan,
        deltas: Vec<StateDelta>,
        covers: Covers,
        durable: Reply<()>,
    ) -> Result<CommitNumber> {
        let (result, unused) = self.step(|machine, now| {
            if let Err(error) = machine.transaction(id, timeout) {
                return (Err(error), Some(durable));
            }
            let at = self.moment(now);
            let checked = machine.check_connections(&deltas).map_err(Error::from);
            if let Err(error) = checked.and_then(|()| machine.apply_plan(plan, at)) {
                machine.undo_transaction(&error, false, now);
                return (Err(error), Some(durable));
            }
            let save = match covers {
                Covers::All => {
                    machine.pushes_pending = false;
                    SaveOf::Pushed(machine.saves.begin_directly())
                }
                Covers::Itself => SaveOf::Rows,
            };
            let open = machine.transactions.as_mut().and_then(|all| all.open.as_mut());
            let sql = open.and_then(|open| open.sql.take());
            let uses_sql = sql.is_some();
            let number = if deltas.is_empty() && !machine.has_rows() && !uses_sql {
                if let SaveOf::Pushed(revision) = save {
                    let waiters = machine.saves.written_directly(revision, now);
                    commits::nothing_to_save(machine, waiters);
                }
                machine.gate.begun()
            } else {
                machine.rows.in_memory = true;
                let with = sql.map(With::Transaction);
                machine.begin_commit_with(deltas, Vec::new(), save, with)
            };
            machine.when_begun_durable(number, durable);
            let open = machine.transactions.as_mut().and_then(|all| all.open.as_mut());
            if let Some(open) = open.filter(|_| uses_sql) {
                (open.commit, open.deadline) = (Some(number), None);
            } else {
                machine.close_transaction(&Ok(()), now);
            }
            (Ok(number), None)
        });
        // Dropping it answers it, which calls out: not under the lock.
        drop(unused);
        result.map_err(|error| error.with_actor(self.identity.specifier()))
    }

    /// Commits a batch with the statements of a transaction.
    pub(super) fn commit_transaction(
        self: &Arc<Self>,
        sql: SqlTransaction,
        batch: WriteBatch,
        done: CommitDone,
    ) {
        let panicked = Arc::clone(self);
        let committed = self.store.commit_with(sql, batch, done);
        self.runtime.spawner().spawn_guarded("state_transaction", committed, move |text| {
            let error = format_args!("the commit of a state transaction panicked: {text}");
            panicked.break_generation(Error::internal(error));
        });
    }
}
