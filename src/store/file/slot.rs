//! One actor's file, open or not: its connection, its sync descriptor, its gate, and
//! what waits for it.
//!
//! # Invariants
//!
//! 1. The connection is in one place: closed, free, or in one [`Lease`]. Nobody uses it
//!    but the holder of the lease.
//! 2. Tasks leave in the order in which they came, but while a transaction that spans
//!    turns is open only its own parts do, and readings that no commit came before.
//! 3. A file is closed only when nobody holds it, nothing waits for it, and its gate has
//!    drained; the sync descriptor goes with the connection.
//! 4. A slot is in the line of the pool at most once, and in that of the sync threads at
//!    most once.
//! 5. A file that is gone answers everything with the reason.
//!
//! One lock; nothing is called, answered, opened or closed under it.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use std::thread::ThreadId;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Files;
use super::alarm::Books;
use super::gate::{Gate, Waiter};
use super::lease::Lease;
use super::manual::ByHand;
use super::open::FileConnection;
use super::pool::Job;
use super::sync::SyncJob;
use super::task::Task;
use super::turn::Parked;
use crate::store::connection::Database;
use crate::store::copy::Copies;
use crate::store::place::FileName;
use crate::store::{ActorNumber, StoreError};
use crate::time::Instant;

/// A file of the store. Held by handles, by the routes of the store, and by whoever
/// works on it.
pub(in crate::store) struct Slot {
    pub(super) files: Arc<Files>,
    pub(super) number: ActorNumber,
    pub(super) name: FileName,
    pub(super) database: Database,
    /// Changed by callers (tasks, turns), the pool and the sync threads.
    state: Mutex<State>,
    /// Told when the connection or a number of the gate may have become free.
    freed: Condvar,
    /// Copies that are being made through the connection. Changed, and locked, by whoever
    /// has that, and never together with the state.
    pub(super) copies: Mutex<Copies>,
}

pub(super) struct State {
    pub(super) holder: Holder,
    /// JavaScript threads that wait for the connection: the pool lets them pass.
    pub(super) turns_waiting: usize,
    pub(super) tasks: VecDeque<Waiting>,
    /// Whether the slot is in the line of the pool.
    pub(super) is_scheduled: bool,
    /// Whether the free connection is in a transaction that spans turns.
    pub(super) in_transaction: bool,
    /// Whether that one ends by itself: its commit was asked for, and needs no thread of
    /// its author's.
    pub(super) is_ending: bool,
    /// The transaction, if it was begun by hand. Changed by whoever has the connection.
    pub(super) by_hand: Option<ByHand>,
    pub(super) gate: Gate,
    pub(super) sync: Sync,
    /// The second descriptor of the log, for the sync threads.
    pub(super) log: Option<Arc<File>>,
    pub(super) books: Books,
    /// A turn whose commit waits until the directory knows that the alarm is open.
    pub(super) parked: Option<Parked>,
    /// Frames in the log as of the last lease.
    pub(super) frames: u32,
    pub(super) last_used: Instant,
    /// Whether its spare memory was given back since it was used last.
    pub(super) is_trimmed: bool,
    /// Whether the actor sleeps, so that the file closes as soon as it may.
    pub(super) wants_close: bool,
    /// The last number before a commit that ended in the unknown; `None` once a later one
    /// has been synced.
    pub(super) doubt: Option<u64>,
    /// How many frames make the next checkpoint due.
    pub(super) due_frames: u32,
    /// What the author said of foreign keys in this generation: the next connection is
    /// told.
    pub(super) foreign_keys: Option<bool>,
    /// Whether the connection may have temporary tables, which closing would lose.
    pub(super) has_temporary: bool,
    /// Whether the free connection is being copied.
    pub(super) is_copied: bool,
    /// Whether the rows are in memory, where closing would be losing them.
    is_memory: bool,
    /// Why nothing is served any more.
    pub(super) gone: Option<StoreError>,
}

/// A task that waits for its turn.
pub(super) struct Waiting {
    pub(super) task: Task,
    /// Since when.
    pub(super) since: Instant,
}

/// Where the connection is.
pub(super) enum Holder {
    Closed,
    Free(FileConnection),
    /// In the hands of a thread of the store.
    Pool,
    /// In the hands of a turn, that of this thread where it is known.
    Turn(Option<ThreadId>),
}

/// Where the slot stands with the sync threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    Idle,
    Waiting,
    Running,
}

impl Slot {
    pub(super) fn new(
        files: &Arc<Files>,
        number: ActorNumber,
        name: FileName,
        holder: Holder,
        books: Books,
    ) -> Arc<Self> {
        let state = State {
            holder,
            turns_waiting: 0,
            tasks: VecDeque::new(),
            is_scheduled: false,
            in_transaction: false,
            is_ending: false,
            by_hand: None,
            gate: Gate::default(),
            sync: Sync::Idle,
            log: None,
            books,
            parked: None,
            frames: 0,
            last_used: files.clock.now(),
            is_trimmed: false,
            wants_close: false,
            doubt: None,
            due_frames: files.limits.log_frames,
            foreign_keys: None,
            has_temporary: false,
            is_copied: false,
            is_memory: files.is_memory(),
            gone: None,
        };
        Arc::new(Self {
            files: Arc::clone(files),
            number,
            name,
            database: files.database(name),
            state: Mutex::new(state),
            freed: Condvar::new(),
            copies: Mutex::default(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn wait<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if self.files.by_turns {
            // Nobody else is going to do it.
            let helped = MutexGuard::unlocked(&mut state, || self.files.help());
            if helped {
                return state;
            }
        }
        self.freed.wait(&mut state);
        state
    }

    /// Wakes whoever waits for the connection or for the alarm's books.
    pub(super) fn wake(&self) {
        self.freed.notify_all();
    }

    /// Takes a task, or gives it back with the reason why not, unanswered. Called under
    /// the lock of the routes.
    pub(super) fn enqueue(self: &Arc<Self>, task: Task) -> Result<(), Box<(Task, StoreError)>> {
        let weight = task.weight();
        if let Err(refusal) = self.files.weigh(weight) {
            return Err(Box::new((task, refusal)));
        }
        let mut state = self.lock();
        if let Some(gone) = state.gone.clone() {
            drop(state);
            self.files.unweigh(weight);
            return Err(Box::new((task, gone)));
        }
        state.wants_close = false;
        state.tasks.push_back(Waiting { task, since: self.files.clock.now() });
        let is_held_up = state.is_held_up();
        // A turn may wait for the end of a transaction, and do what there is to do for it.
        let is_awaited = state.is_ending;
        self.schedule(state);
        if is_awaited {
            self.wake();
        }
        if is_held_up {
            self.files.note_held_up();
        }
        Ok(())
    }

    /// Puts the slot into the line of the pool if there is something to do and somebody
    /// could do it.
    pub(super) fn schedule(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.is_scheduled || !state.has_work() || state.is_held() {
            return;
        }
        state.is_scheduled = true;
        drop(state);
        self.files.ready.push(Job::Serve(Arc::clone(self)));
    }

    /// Notes what was committed and asks for a sync; returns the number to wait for.
    /// `grown` says whether the log has more than before.
    pub(super) fn note_commit(self: &Arc<Self>, grown: bool) -> u64 {
        let mut state = self.lock();
        if !grown || state.gone.is_some() {
            return state.gate.begun();
        }
        let number = state.gate.begin();
        if state.sync == Sync::Idle {
            state.sync = Sync::Waiting;
            drop(state);
            self.files.syncs.push(SyncJob::Sync(Arc::clone(self)));
        }
        number
    }

    /// Lets `waiter` wait until `number` is on the disk.
    pub(super) fn wait_durable(&self, number: u64, waiter: Waiter) {
        {
            let mut state = self.lock();
            if let Some(gone) = state.gone.clone() {
                state.gate.refuse(waiter, self.unknown(&gone));
            } else {
                state.gate.wait(number, waiter, || self.unknown(&"its sync failed"));
            }
        }
        self.tell();
    }

    /// Answers whose wait is over, unless another thread does.
    pub(super) fn tell(&self) {
        if !self.lock().gate.begin_telling() {
            return;
        }
        loop {
            let due = self.lock().gate.next_due();
            if due.is_empty() {
                return;
            }
            due.into_iter().for_each(|(waiter, result)| waiter.send(result));
        }
    }

    /// That nobody knows whether a change was kept.
    pub(super) fn unknown(&self, reason: &dyn std::fmt::Display) -> StoreError {
        StoreError::OutcomeUnknown { path: self.database.label(), reason: reason.to_string() }
    }

    /// When the file was used last, if it may be closed (invariant 3).
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        state.may_close().then_some(state.last_used)
    }

    /// Whether the file may be closed soon without anybody's doing: a thread of the store
    /// has it, or its gate drains.
    pub(super) fn is_freed_soon(&self) -> bool {
        let state = self.lock();
        match state.holder {
            Holder::Pool => true,
            Holder::Free(_) => !state.in_transaction && !state.gate.is_drained(),
            Holder::Closed | Holder::Turn(_) => false,
        }
    }

    /// Takes the connection of a file that may be closed.
    pub(super) fn take_idle(self: &Arc<Self>) -> Option<Lease> {
        let mut state = self.lock();
        if !state.may_close() {
            return None;
        }
        let connection = state.take(Holder::Pool)?;
        drop(state);
        Some(Lease::new(Arc::clone(self), Some(connection)))
    }

    /// Ends the file: whatever waits and whatever comes hears `error`, who waits for the
    /// disk hears `unknown`. The connection is closed without a checkpoint when
    /// `abandons`.
    pub(super) fn end(
        self: &Arc<Self>,
        error: &StoreError,
        unknown: &Result<(), StoreError>,
        abandons: bool,
    ) {
        let (tasks, lease, parked) = {
            let mut state = self.lock();
            state.gone = Some(error.clone());
            let connection = state.take(Holder::Pool);
            state.log = None;
            let lease = connection.map(|open| Lease::new(Arc::clone(self), Some(open)));
            state.gate.fail(unknown);
            (state.take_tasks(), lease, state.parked.take())
        };
        if let Some(lease) = lease {
            if abandons { lease.abandon() } else { lease.close() }
        }
        self.wake();
        self.tell();
        if let Some(parked) = parked {
            parked.refuse(error.clone());
        }
        self.refuse(tasks, error);
    }

    /// Answers tasks that were taken out.
    pub(super) fn refuse(&self, tasks: Vec<Task>, error: &StoreError) {
        for task in tasks {
            self.files.unweigh(task.weight());
            self.files.refuse(self.number, task, error.clone());
        }
    }
}

impl State {
    /// Takes the free connection.
    pub(super) fn take(&mut self, holder: Holder) -> Option<FileConnection> {
        if !matches!(self.holder, Holder::Free(_)) {
            return None;
        }
        match std::mem::replace(&mut self.holder, holder) {
            Holder::Free(connection) => Some(connection),
            Holder::Closed | Holder::Pool | Holder::Turn(_) => None,
        }
    }

    pub(super) fn is_at_rest(&self) -> bool {
        let is_closed = matches!(self.holder, Holder::Closed) && self.gone.is_none();
        is_closed && self.tasks.is_empty() && self.books == Books::Exact
    }

    pub(super) fn is_held(&self) -> bool {
        matches!(self.holder, Holder::Pool | Holder::Turn(_))
    }

    pub(super) fn take_tasks(&mut self) -> Vec<Task> {
        self.tasks.drain(..).map(|waiting| waiting.task).collect()
    }

    /// Takes out those tasks, in their order.
    pub(super) fn take_where(&mut self, is_taken: impl FnMut(&Waiting) -> bool) -> Vec<Task> {
        let all = std::mem::take(&mut self.tasks);
        let (taken, kept) = all.into_iter().partition::<VecDeque<_>, _>(is_taken);
        self.tasks = kept;
        taken.into_iter().map(|waiting| waiting.task).collect()
    }

    /// Whether a thread of the pool would find something to do.
    pub(super) fn has_work(&self) -> bool {
        self.gone.is_none()
            && (self.runnable().is_some()
                || (self.wants_close && self.may_close())
                || self.is_checkpoint_due())
    }

    /// Which task is next (invariant 2), whether it can be done or not.
    pub(super) fn next_task(&self) -> Option<usize> {
        if self.in_transaction {
            let mut behind = false;
            return self.tasks.iter().position(|waiting| {
                let joins = waiting.task.may_join(behind);
                behind |= matches!(waiting.task, Task::Commit { .. });
                joins
            });
        }
        (!self.tasks.is_empty()).then_some(0)
    }

    /// Which task is next and can be done.
    pub(super) fn runnable(&self) -> Option<usize> {
        let at = self.next_task()?;
        let waits = self.waits_for_books(at) || matches!(self.tasks[at].task, Task::Settle { .. });
        (!(waits && self.books.is_moving())).then_some(at)
    }

    /// Whether the log is to be copied whatever else there is to do.
    pub(super) fn is_checkpoint_due(&self) -> bool {
        self.frames >= self.due_frames && !self.in_transaction && !self.is_memory
    }

    pub(super) fn may_close(&self) -> bool {
        !self.is_memory
            && !self.is_copied
            && (!self.has_temporary || self.wants_close)
            && matches!(self.holder, Holder::Free(_))
            && self.tasks.is_empty()
            && self.turns_waiting == 0
            && !self.in_transaction
            && self.gate.is_drained()
            && self.sync == Sync::Idle
            && self.parked.is_none()
            && !self.books.is_moving()
    }
}
