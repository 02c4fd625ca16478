//! The connection of an actor's file for one turn, on the JavaScript thread.
//!
//! # Invariants
//!
//! 1. From the lease to the end of the turn nobody else uses the connection.
//! 2. What the actor committed before the turn is in the file before the turn's first
//!    statement, so that the turn sees it and comes after it.
//! 3. A turn that is dropped has changed nothing.
//! 4. The end of a turn waits for no disk: when the directory must hear of an alarm
//!    first, the turn is parked. A sync thread commits it then, or the next turn, which
//!    waits for it.
//! 5. A turn waits for a thread of the pool only while that has its own actor's
//!    connection: the others may be busy with statements of other actors. What a turn
//!    waits for to be done with a connection that nobody has, it does.

use std::sync::Arc;
use std::thread;

use parking_lot::MutexGuard;

use super::alarm::Books;
use super::guests::Guest;
use super::lease::Lease;
use super::slot::{Holder, Slot, State};
use super::task::{self, Task};
use crate::ids::Generation;
use crate::store::job::Reply;
use crate::store::mishaps::Ordeal;
use crate::store::sql::{SqlError, SqlSession, TurnConnection};
use crate::store::{CommitDone, StoreError, WriteBatch};

/// One turn's use of its actor's file. It is taken at the turn's first statement and
/// committed at the turn's end or before its first output.
#[must_use = "the connection is held until this is committed or dropped"]
pub struct Turn {
    /// `None` once the turn is committed.
    lease: Option<Lease>,
    /// What its commit goes through, in tests.
    ordeal: Option<Ordeal>,
}

/// A turn whose commit waits for the directory.
pub(super) struct Parked {
    lease: Lease,
    batch: WriteBatch,
    reply: Reply<()>,
}

impl Turn {
    /// Begins the turn's transaction, before its first statement that writes. Statements
    /// that only read need none.
    pub fn begin(&self) -> Result<(), StoreError> {
        self.lease().begin()
    }

    /// Lets the turn go from hand to hand: whoever asks for the next one waits until this one
    /// is over, its own thread too, which otherwise hears [`StoreError::Busy`]. Whoever keeps
    /// it sees to it that another thread ends it then.
    pub fn share(&self) {
        self.lease().slot().lock().holder = Holder::Turn(None);
    }

    /// Whether the turn's transaction is open. One that SQLite ended by itself, after an
    /// error, is not.
    pub fn is_open(&self) -> bool {
        !self.sqlite().is_autocommit()
    }

    /// The connection, for the statements of the turn.
    pub(in crate::store) fn sqlite(&self) -> &rusqlite::Connection {
        self.lease().sqlite()
    }

    fn lease(&self) -> &Lease {
        self.lease.as_ref().expect("only the commit, which takes the turn, takes the lease")
    }

    /// Ends the turn: what its statements and the batch change is committed together,
    /// here and now; `done` hears once it is durable, or why nothing of it was
    /// committed. An empty batch of the turn's generation commits the statements alone.
    pub fn commit(mut self, batch: WriteBatch, done: CommitDone) {
        match self.ordeal.take() {
            None => self.commit_here(batch, done),
            Some(ordeal) => {
                ordeal.meet(batch.fails_generation, done, |done| self.commit_here(batch, done));
            }
        }
    }

    /// The same, whose commit meets what a test has planned.
    pub(super) fn through(mut self, ordeal: Option<Ordeal>) -> Self {
        self.ordeal = ordeal;
        self
    }

    fn commit_here(mut self, batch: WriteBatch, done: CommitDone) {
        let reply = Reply::new(done);
        let Some(mut lease) = self.lease.take() else { return };
        if batch.alarm.is_none() {
            return lease.commit(&batch, reply);
        }
        let slot = Arc::clone(lease.slot());
        let opens = {
            let mut state = slot.lock();
            if state.books == Books::Open || state.gone.is_some() {
                drop(state);
                return lease.commit(&batch, reply);
            }
            // Whoever ends what is on its way takes the parked turn up.
            // Not the pool's before that: a thread that needs room must not wait for it.
            state.holder = Holder::Turn(None);
            state.parked = Some(Parked { lease, batch, reply });
            let opens = state.books == Books::Exact;
            if opens {
                state.books = Books::Opening;
            }
            opens
        };
        if opens {
            slot.open_alarm();
        }
    }

    /// Executes one statement without parameters, for tests.
    ///
    /// # Errors
    ///
    /// What SQLite said, as text.
    #[cfg(feature = "faults")]
    pub fn execute(&self, sql: &str) -> Result<usize, String> {
        self.sqlite().execute(sql, []).map_err(|error| error.to_string())
    }

    /// Reads one number, for tests.
    ///
    /// # Errors
    ///
    /// What SQLite said, as text.
    #[cfg(feature = "faults")]
    pub fn number(&self, sql: &str) -> Result<i64, String> {
        self.sqlite().query_row(sql, [], |row| row.get(0)).map_err(|error| error.to_string())
    }
}

/// What [`crate::store::sql::SqlTurn`] runs its statements on.
impl TurnConnection for Turn {
    fn session(&self) -> SqlSession<'_> {
        self.lease().session()
    }

    fn begin(&self) -> Result<(), SqlError> {
        // By the session, for it is called in the middle of an author's statement, whose
        // rights do not reach so far.
        self.session().begin()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(lease) = &self.lease {
            undo(lease);
        }
    }
}

/// Undoes what is left of a turn that was given up.
fn undo(lease: &Lease) {
    if lease.is_open()
        && let Err(error) = task::undo(lease.sqlite())
    {
        tracing::error!(%error, "a turn that was given up could not be undone");
    }
}

impl Parked {
    /// The directory knows; commits.
    pub(super) fn resume(mut self) {
        self.lease.commit(&self.batch, self.reply);
    }

    /// Undoes the turn and answers.
    pub(super) fn refuse(self, error: StoreError) {
        undo(&self.lease);
        if self.batch.fails_generation {
            let slot = self.lease.slot();
            slot.files.fence.revoke(slot.number, self.batch.generation);
        }
        drop(self.lease);
        self.reply.send(Err(error));
    }
}

impl Slot {
    /// Takes the connection for a turn of this generation. Waits while another turn or a
    /// thread of the pool has it.
    /// While a transaction that spans turns is open it is refused, or with `waits` waits
    /// for the end, which then must be on its way.
    pub(super) fn begin_turn(
        self: &Arc<Self>,
        generation: Generation,
        waits: bool,
    ) -> Result<Turn, StoreError> {
        if !self.files.fence.is_current(self.number, generation) {
            return Err(StoreError::Stale);
        }
        let leased = self.lease_for_turn(waits);
        let (mut lease, commits) = leased.inspect_err(|_| {
            // The pool has let a turn pass that does not come.
            self.schedule(self.lock());
        })?;
        if !lease.is_open() {
            self.files.take_room(self);
            if let Err(error) = lease.open() {
                drop(lease);
                self.refuse(commits, &error);
                return Err(error);
            }
        }
        // Invariant 2.
        let mut left = commits.into_iter();
        for commit in left.by_ref() {
            self.files.unweigh(commit.weight());
            if let Task::Commit { batch, reply } = commit {
                lease.commit(&batch, reply);
            }
            if !lease.is_open() {
                let error = self.unknown(&"a commit before it ended in the unknown");
                self.refuse(left.collect(), &error);
                return Err(error);
            }
        }
        Ok(Turn { lease: Some(lease), ordeal: None })
    }

    /// Takes the connection for one synchronous statement of the transaction that spans
    /// turns. Waits while a thread of the pool has it.
    pub(super) fn lend(self: &Arc<Self>, generation: Generation) -> Result<Lease, StoreError> {
        if !self.files.fence.is_current(self.number, generation) {
            return Err(StoreError::Stale);
        }
        let me = thread::current().id();
        let mut state = self.lock();
        loop {
            if let Some(gone) = &state.gone {
                return Err(gone.clone());
            }
            match &state.holder {
                Holder::Pool => {
                    state.turns_waiting += 1;
                    state = self.wait(state);
                    state.turns_waiting -= 1;
                }
                Holder::Turn(_) => {
                    self.schedule(state);
                    return Err(StoreError::Busy { path: self.database.label() });
                }
                // No file with an open transaction is closed: it has just ended.
                Holder::Closed => {
                    self.schedule(state);
                    return Err(StoreError::Closed);
                }
                Holder::Free(_) => break,
            }
        }
        let connection = state.take(Holder::Turn(Some(me)));
        drop(state);
        Ok(Lease::new(Arc::clone(self), connection))
    }

    /// The connection for one short statement, if this thread has to wait for nobody and the
    /// statement would overtake nothing. The guest goes after the lease.
    pub(super) fn lease_here(self: &Arc<Self>) -> Option<(Guest<'_>, Lease)> {
        if self.files.by_turns {
            return None;
        }
        let guest = self.files.guests.enter().ok()?;
        let mut state = self.lock();
        let is_next = state.gone.is_none()
            && state.tasks.is_empty()
            && state.turns_waiting == 0
            && state.parked.is_none()
            && !state.in_transaction
            && !state.is_checkpoint_due();
        if !is_next {
            return None;
        }
        let connection = state.take(Holder::Turn(Some(thread::current().id())))?;
        state.wants_close = false;
        drop(state);
        Some((guest, Lease::new(Arc::clone(self), Some(connection))))
    }

    /// Commits the turn that was parked, unless somebody has done so.
    pub(super) fn resume_parked(&self) {
        let parked = {
            let mut state = self.lock();
            if state.may_resume() { state.parked.take() } else { None }
        };
        if let Some(parked) = parked {
            parked.resume();
        }
    }

    fn lease_for_turn(self: &Arc<Self>, waits: bool) -> Result<(Lease, Vec<Task>), StoreError> {
        let me = thread::current().id();
        let busy = || StoreError::Busy { path: self.database.label() };
        let mut state = self.lock();
        loop {
            if let Some(gone) = &state.gone {
                return Err(gone.clone());
            }
            match &state.holder {
                // It would wait for itself.
                Holder::Turn(Some(owner)) if *owner == me => return Err(busy()),
                // The sync threads may wait for a disk.
                Holder::Turn(None) if state.may_resume() => {
                    MutexGuard::unlocked(&mut state, || self.resume_parked());
                }
                Holder::Turn(_) | Holder::Pool => {
                    state.turns_waiting += 1;
                    state = self.wait(state);
                    state.turns_waiting -= 1;
                }
                // One that needs this thread for its end is not waited for. All threads of
                // the pool may be busy, so what there is to do for it is done here.
                _ if state.in_transaction && waits && state.is_ending => {
                    if state.turns_waiting == 0 && state.runnable().is_some() {
                        MutexGuard::unlocked(&mut state, || self.serve_next());
                    } else {
                        state = self.wait(state);
                    }
                }
                _ if state.in_transaction => {
                    return Err(StoreError::TransactionOpen { path: self.database.label() });
                }
                // An earlier commit of the actor waits for the directory.
                _ if state.first_unready().is_some() => {
                    if state.books.is_moving() {
                        state = self.wait(state);
                    } else {
                        state.books = Books::Opening;
                        MutexGuard::unlocked(&mut state, || self.open_alarm());
                    }
                }
                _ => break,
            }
        }
        let commits = state.take_commits();
        let connection = state.take(Holder::Turn(Some(me)));
        if connection.is_none() {
            state.holder = Holder::Turn(Some(me));
        }
        state.wants_close = false;
        drop(state);
        Ok((Lease::new(Arc::clone(self), connection), commits))
    }
}

impl State {
    /// Whether a turn is parked that could be committed.
    fn may_resume(&self) -> bool {
        self.parked.is_some() && self.books == Books::Open
    }

    /// The first task that waits for the directory.
    pub(super) fn first_unready(&self) -> Option<usize> {
        (0..self.tasks.len()).find(|&at| self.waits_for_books(at))
    }

    fn take_commits(&mut self) -> Vec<Task> {
        self.take_where(|waiting| matches!(waiting.task, Task::Commit { .. }))
    }
}
