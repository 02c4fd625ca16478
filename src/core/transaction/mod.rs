//! State transactions: what an author changes over several turns, all or nothing.
//!
//! # Invariants
//!
//! 1. Nothing of it is seen outside before it commits, and nothing of it is left when it
//!    does not.
//! 2. What it plans is checked when it is asked for, as far as can be told then, and again
//!    when it commits: a part that refuses then undoes all of it.
//! 3. Whatever ends it by itself, as its deadline does or the end of the generation, is
//!    told to every later call.
//! 4. A handle that is dropped without an end rolls it back.
//!
//! The locks here are held for a few lines, one at a time, and never while the machine's
//! is.

mod error;
mod plan;
mod sql;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

pub use self::error::{MAX_BYTES, MAX_STATEMENTS, TransactionError};
pub(crate) use self::plan::Plan;
use self::sql::Begun;
use super::actor::gate::CommitNumber;
use super::actor::{Actor, Covers, TransactionId};
use super::behavior::{Reply, StateDelta};
use super::context::ActorContext;
use super::kv::ActorKv;
use super::messages::ActorQueue;
use super::queue::{Change, Moment, NewMessage, Queue, QueueError, Sent};
use super::schedule::{ActorSchedule, Changed, ScheduleError, Schedules};
use crate::error::{Error, Result};
use crate::store::{MessageId, RowOp, SqlError};
use crate::time::Duration;

/// How long one may take when nothing is said.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// A state transaction of one generation. Clones are the same one.
#[derive(Clone)]
pub struct StateTransaction(Arc<Inner>);

struct Inner {
    actor: Arc<Actor>,
    id: TransactionId,
    timeout: Duration,
    /// What names its statements.
    key: String,
    /// What it will change; taken by its end.
    plan: Mutex<Option<Plan>>,
    /// Its statements, once there is one.
    begun: Mutex<Option<Begun>>,
    /// Statements and bytes that count against the budget.
    spent: Mutex<(usize, usize)>,
}

/// The one that ends it when it is dropped (invariant 4).
pub struct TransactionOwner {
    transaction: StateTransaction,
    /// Set by its end.
    is_over: AtomicBool,
}

impl ActorContext {
    /// Begins a state transaction, which waits until no other is open. The future resolves
    /// when it is open; from then on it may take `timeout`.
    ///
    /// # Errors
    ///
    /// `actor/starting` before a new actor is stored, `actor/stopping` at its end.
    pub fn begin_state_transaction(
        &self,
        timeout: Duration,
    ) -> (TransactionOwner, BoxFuture<'static, Result<()>>) {
        let (reply, opened) = Reply::channel();
        let id = self.0.begin_transaction(timeout, reply);
        let transaction = StateTransaction(Arc::new(Inner {
            actor: Arc::clone(&self.0),
            id,
            timeout,
            key: self.0.new_id(),
            plan: Mutex::new(Some(Plan::default())),
            begun: Mutex::default(),
            spent: Mutex::default(),
        }));
        (TransactionOwner { transaction, is_over: AtomicBool::new(false) }, opened.boxed())
    }
}

impl TransactionOwner {
    /// The transaction.
    pub fn transaction(&self) -> &StateTransaction {
        &self.transaction
    }

    /// Commits what was planned with the statements and, if it is given, the state.
    /// `covers_state` says that the author's side has no other state to save. Returns the
    /// number of the commit, and what resolves when that is durable.
    ///
    /// # Errors
    ///
    /// Why it was rolled back: a part refused, it came to its deadline, a statement ended
    /// it.
    pub fn commit(
        &self,
        state: Option<Bytes>,
        covers_state: bool,
    ) -> Result<(CommitNumber, BoxFuture<'static, Result<()>>)> {
        self.commit_deltas(state.map(StateDelta::ActorState).into_iter().collect(), covers_state)
    }

    /// The same with everything that the author's side hands over: states of connections,
    /// too.
    ///
    /// # Errors
    ///
    /// Those of [`TransactionOwner::commit`], `connection/not_found` and
    /// `connection/not_hibernatable`.
    pub fn commit_deltas(
        &self,
        deltas: Vec<StateDelta>,
        covers_state: bool,
    ) -> Result<(CommitNumber, BoxFuture<'static, Result<()>>)> {
        let inner = &self.transaction.0;
        self.transaction.check()?;
        if self.is_over.swap(true, Ordering::Relaxed) {
            return Err(TransactionError::Finished.into());
        }
        let plan = inner.plan.lock().take().unwrap_or_default();
        let begun = inner.begun.lock().clone();
        if let Some(begun) = &begun {
            let statements = match begun.peek() {
                Some(Ok(sql)) => sql.prolong().map_err(Error::from),
                Some(Err(error)) => Err(error.clone()),
                // Its first statement has not begun: nobody waited for it.
                None => Err(SqlError::TransactionOpen.into()),
            };
            if let Err(error) = statements {
                drop(self.transaction.undo());
                return Err(error.with_actor(inner.actor.identity().specifier()));
            }
        }
        let covers = if covers_state { Covers::All } else { Covers::Itself };
        let (reply, durable) = Reply::channel();
        let (id, timeout) = (inner.id, inner.timeout);
        let number = inner.actor.commit_planned(id, timeout, plan, deltas, covers, reply)?;
        Ok((number, durable.boxed()))
    }

    /// The same within the budget of the contract.
    ///
    /// # Errors
    ///
    /// Those of [`TransactionOwner::commit`], and [`TransactionError::TooLarge`]; it is
    /// rolled back then, too.
    pub fn commit_budgeted(
        &self,
        deltas: Vec<StateDelta>,
    ) -> Result<(CommitNumber, BoxFuture<'static, Result<()>>)> {
        self.transaction.check()?;
        for delta in &deltas {
            if let Err(error) = self.transaction.count(1, delta.payload_len()) {
                drop(self.roll_back());
                return Err(error);
            }
        }
        self.commit_deltas(deltas, false)
    }

    /// Ends it without its changes; resolves when its statements are undone. Once it has
    /// ended this does nothing.
    pub fn roll_back(&self) -> BoxFuture<'static, ()> {
        if self.is_over.swap(true, Ordering::Relaxed) {
            return std::future::ready(()).boxed();
        }
        self.transaction.0.plan.lock().take();
        self.transaction.undo()
    }
}

impl Drop for TransactionOwner {
    fn drop(&mut self) {
        drop(self.roll_back());
    }
}

impl StateTransaction {
    /// Why it takes nothing; `Ok` while it does.
    ///
    /// # Errors
    ///
    /// `sqlite/transaction_expired` after its deadline, `actor/stopping` or what broke the
    /// generation, else [`TransactionError::Finished`].
    pub fn check(&self) -> Result<()> {
        self.0.actor.check_transaction(self.0.id, self.0.timeout)
    }

    /// Resolves when it ends: with an error when nobody asked for that.
    pub fn ended(&self) -> BoxFuture<'static, Result<()>> {
        let (reply, ended) = Reply::channel();
        self.0.actor.when_transaction_ended(self.0.id, self.0.timeout, reply);
        ended.boxed()
    }

    /// Keys and values as it sees and changes them.
    pub fn kv(&self) -> ActorKv {
        ActorKv::within(Arc::clone(&self.0.actor), self.clone())
    }

    /// The queue, to send, complete and give back with it. Everything else of the handle
    /// acts at once.
    pub fn queue(&self) -> ActorQueue {
        ActorQueue::within(Arc::clone(&self.0.actor), self.clone())
    }

    /// Schedules as it sees and changes them.
    pub fn schedule(&self) -> ActorSchedule {
        ActorSchedule::within(Arc::clone(&self.0.actor), self.clone())
    }

    /// Ends it, and undoes its statements.
    fn undo(&self) -> BoxFuture<'static, ()> {
        let begun = self.0.begun.lock().clone();
        let was_open = self.0.actor.undo_planned(self.0.id, self.0.timeout).is_ok();
        let statements = begun.filter(|_| was_open);
        let undone = statements.as_ref().and_then(|begun| match begun.peek() {
            Some(Ok(sql)) => Some(sql.roll_back()),
            // One that is just beginning finds the transaction ended, and undoes itself.
            _ => None,
        });
        async move {
            if let Some(undone) = undone
                && let Err(error) = undone.await
            {
                tracing::debug!(%error, "a state transaction had ended before it was rolled back");
            }
        }
        .boxed()
    }

    fn plan<T>(&self, change: impl FnOnce(&mut Plan) -> T) -> Result<T> {
        self.check()?;
        match &mut *self.0.plan.lock() {
            Some(plan) => Ok(change(plan)),
            None => Err(TransactionError::Finished.into()),
        }
    }

    pub(super) fn write_kv(&self, ops: Vec<RowOp>) -> Result<()> {
        self.plan(|plan| plan.kv.extend(ops))
    }

    pub(super) fn kv_changes(&self) -> Result<Vec<RowOp>> {
        self.plan(|plan| plan.kv.clone())
    }

    pub(super) fn send(&self, message: NewMessage) -> Result<Sent> {
        let planned = self.plan(|plan| plan.sends)?;
        let reserve = |queue: &mut Queue, at| queue.reserve(&message, planned, at);
        let sent = self.0.actor.plan_queue(reserve)?;
        if !sent.is_duplicate {
            self.plan(|plan| {
                plan.sends += 1;
                let step = move |queue: &mut Queue, at| queue.send_reserved(message, sent.id, at);
                plan.queue.push(Box::new(step));
            })?;
        }
        Ok(sent)
    }

    /// Plans the end of a delivery, which must be in its consumer's hands now and at the
    /// commit.
    pub(super) fn end_delivery(
        &self,
        id: MessageId,
        delivery: u32,
        end: impl FnOnce(&mut Queue, Moment) -> Result<Change, QueueError> + Send + 'static,
    ) -> Result<()> {
        self.0.actor.plan_queue(|queue, _| queue.check_open(id, delivery))?;
        self.plan(|plan| {
            plan.queue.push(Box::new(move |queue, at| {
                queue.check_open(id, delivery)?;
                end(queue, at)
            }));
        })
    }

    pub(super) fn complete_by_id(
        &self,
        id: MessageId,
        name: String,
        response: Option<Bytes>,
    ) -> Result<bool> {
        let is_there = self.0.actor.plan_queue(|queue, _| queue.check_identity(id, &name))?;
        if is_there {
            self.plan(|plan| {
                plan.queue.push(Box::new(move |queue, at| {
                    match queue.complete_by_id(id, &name, response, at)? {
                        (true, change) => Ok(change),
                        // Somebody else completed it meanwhile.
                        (false, _) => Err(QueueError::AlreadyCompleted),
                    }
                }));
            })?;
        }
        Ok(is_there)
    }

    pub(super) fn change_schedules<T>(
        &self,
        change: impl Fn(&mut Schedules, i64) -> Result<Changed<T>, ScheduleError> + Send + 'static,
    ) -> Result<T> {
        let now = self.0.actor.unix_ms();
        self.shadow(|plan, shadow| {
            let (answer, _) = change(shadow, now)?;
            plan.push(Box::new(move |schedules| Ok(change(schedules, now)?.1)));
            Ok(answer)
        })
    }

    pub(super) fn read_schedules<T>(
        &self,
        read: impl FnOnce(&Schedules) -> Result<T, ScheduleError>,
    ) -> Result<T> {
        self.shadow(|_, shadow| read(shadow))
    }

    fn shadow<T>(
        &self,
        act: impl FnOnce(&mut Vec<plan::ScheduleStep>, &mut Schedules) -> Result<T, ScheduleError>,
    ) -> Result<T> {
        let fresh = match self.plan(|plan| plan.shadow.is_none())? {
            true => Some(self.0.actor.read_schedules(|schedules| Ok(schedules.clone()))?),
            false => None,
        };
        let acted = self.plan(|plan| {
            if let Some(fresh) = fresh {
                plan.shadow.get_or_insert(fresh);
            }
            let Plan { schedules, shadow, .. } = plan;
            shadow.as_mut().map(|shadow| act(schedules, shadow))
        })?;
        let acted = acted.expect("it was there, or was just put there");
        Ok(acted?)
    }
}

impl std::fmt::Debug for StateTransaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateTransaction").field("id", &self.0.id).finish_non_exhaustive()
    }
}
