//! What a thread of the pool does for one file: a few tasks under one lease, or a
//! checkpoint, or the end.
//!
//! # Invariants
//!
//! 1. No thread waits for a file: whoever gives the connection back asks the pool again.
//! 2. A lease of the pool lasts for one statement, one reading, or a few commits, so
//!    that a turn never waits for longer.

use std::sync::Arc;

use rusqlite::wal::CheckpointMode;

use super::alarm::Books;
use super::lease::Lease;
use super::slot::{Holder, Slot, State, Waiting};
use super::task::Task;
use super::{schema, sync};
use crate::store::StoreError;
use crate::store::job::{Reply, guarded};

/// Commits that one lease makes: well below a millisecond.
const GROUP: usize = 64;
/// Further frames after which a checkpoint that failed is tried again.
const RETRY_FRAMES: u32 = 1_000;

/// What is to be done.
enum Step {
    Tasks(Lease, Vec<Task>),
    OpenAlarm,
    Checkpoint(Lease),
    Close(Lease),
}

impl Slot {
    /// Does what is next, for the pool.
    pub(super) fn serve(self: &Arc<Self>) {
        self.lock().is_scheduled = false;
        self.serve_next();
    }

    /// Does what is next.
    pub(super) fn serve_next(self: &Arc<Self>) {
        match self.next_step() {
            Some(Step::Tasks(lease, tasks)) => self.perform(lease, tasks),
            Some(Step::OpenAlarm) => self.open_alarm(),
            Some(Step::Checkpoint(lease)) => self.checkpoint(lease),
            Some(Step::Close(lease)) => lease.close(),
            None => {}
        }
    }

    fn next_step(self: &Arc<Self>) -> Option<Step> {
        let mut state = self.lock();
        if state.gone.is_some() || state.is_held() || state.turns_waiting > 0 {
            return None;
        }
        let runnable = state.runnable();
        let copies = state.is_checkpoint_due();
        let closes = runnable.is_none() && state.wants_close && state.may_close();
        if (copies || closes)
            && let Some(connection) = state.take(Holder::Pool)
        {
            drop(state);
            let lease = Lease::new(Arc::clone(self), Some(connection));
            return Some(if closes { Step::Close(lease) } else { Step::Checkpoint(lease) });
        }
        let at = runnable?;
        if state.waits_for_books(at) {
            state.books = Books::Opening;
            return Some(Step::OpenAlarm);
        }
        let tasks = state.take_group(at);
        let connection = state.take(Holder::Pool);
        if connection.is_none() {
            state.holder = Holder::Pool;
        }
        drop(state);
        Some(Step::Tasks(Lease::new(Arc::clone(self), connection), tasks))
    }

    fn perform(self: &Arc<Self>, mut lease: Lease, tasks: Vec<Task>) {
        if !lease.is_open() {
            self.files.make_room(self);
            if let Err(error) = lease.open() {
                drop(lease);
                return self.refuse(tasks, &error);
            }
        }
        let mut left = tasks.into_iter();
        for task in left.by_ref() {
            self.files.unweigh(task.weight());
            self.perform_one(&mut lease, task);
            if !lease.is_open() {
                break;
            }
        }
        let left: Vec<_> = left.collect();
        if !left.is_empty() {
            self.refuse(left, &self.unknown(&"a commit before it ended in the unknown"));
        }
    }

    fn perform_one(self: &Arc<Self>, lease: &mut Lease, task: Task) {
        match task {
            Task::Commit { batch, reply } => lease.commit(&batch, reply),
            Task::Read(read) | Task::Copy(read) => guarded("a read", || read(Ok(lease.sqlite()))),
            Task::Load(read) => {
                let begun = lease.begin_generation();
                guarded("a read", || read(begun.map(|()| lease.sqlite())));
            }
            Task::Run(run) => guarded("a statement", || run(Ok(lease))),
            // It was not taken before they were open.
            Task::OpenAlarm { reply } => reply.send(Ok(())),
            Task::Settle { reply } => self.settle(lease, reply),
        }
    }

    /// Copies the log into the database and begins it anew, so that no turn pays for
    /// either.
    pub(super) fn checkpoint(self: &Arc<Self>, lease: Lease) {
        let usual = self.files.limits.log_frames;
        let due = match self.try_checkpoint(&lease) {
            Ok(()) => usual,
            Err(error) => {
                // No error for anybody: the log has everything.
                tracing::debug!(%error, path = %self.database.label(), "a checkpoint failed");
                lease.connection().frames().saturating_add(RETRY_FRAMES)
            }
        };
        self.lock().due_frames = due.max(usual);
    }

    fn try_checkpoint(self: &Arc<Self>, lease: &Lease) -> Result<(), StoreError> {
        let fault = |error: rusqlite::Error| self.database.fault(&error);
        let number = self.note_commit(false);
        // The gate is drained first: nobody waits for what is being copied.
        let log = self.lock().log.clone();
        let log = sync::sync_log(self, log).map_err(|error| {
            self.quarantine(&error);
            StoreError::Io { path: self.database.label(), reason: error.to_string() }
        })?;
        self.synced(number, Some(log));
        let reached = lease.connection().checkpoint(CheckpointMode::PASSIVE).map_err(fault)?;
        if !reached.is_whole() {
            return Err(StoreError::Busy { path: self.database.label() });
        }
        schema::count_checkpoint(lease.sqlite()).map_err(fault)?;
        self.files.checkpoints.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    /// A commit ended in the unknown, its connection is closed. Whoever waits hears so,
    /// and the generation ends; what is true, the next opening finds out.
    pub(super) fn fail_unknown(self: &Arc<Self>, reason: String, reply: Option<Reply<()>>) {
        let error = self.unknown(&reason);
        let (tasks, down) = {
            let mut state = self.lock();
            let number = state.gate.begun();
            let is_second = state.doubt.replace(number).is_some();
            let down = is_second.then(|| StoreError::Down {
                path: self.database.label(),
                reason: format!("a second commit in a row ended in the unknown: {reason}"),
            });
            state.gone = down.clone();
            state.gate.fail(&Err(error.clone()));
            (state.take_writes(down.is_some()), down)
        };
        self.report(down.as_ref().unwrap_or(&error));
        if let Some(reply) = reply {
            reply.send(Err(error.clone()));
        }
        self.tell();
        self.refuse(tasks, &error);
    }

    /// Ends the generation and tells the observer.
    pub(super) fn report(&self, error: &StoreError) {
        tracing::error!(%error, "an actor's file failed");
        let ended = self.files.fence.forget(self.number);
        if let Some(observer) = &self.files.observer {
            guarded("file_failed", || observer.file_failed(self.number, ended, error));
        }
    }
}

impl State {
    /// Whether the directory must hear first that this task changes the alarm.
    pub(super) fn waits_for_books(&self, at: usize) -> bool {
        let needs_books = match &self.tasks[at].task {
            Task::Commit { batch, .. } => batch.alarm.is_some(),
            Task::OpenAlarm { .. } => true,
            _ => false,
        };
        needs_books && self.books != Books::Open
    }

    /// The task at `at`, and if that is a commit those right behind it.
    fn take_group(&mut self, at: usize) -> Vec<Task> {
        let is_commit = |waiting: &Waiting| matches!(waiting.task, Task::Commit { .. });
        let mut count = 1;
        if is_commit(&self.tasks[at]) {
            while count < GROUP
                && self.tasks.get(at + count).is_some_and(is_commit)
                && !self.waits_for_books(at + count)
            {
                count += 1;
            }
        }
        self.tasks.drain(at..at + count).map(|waiting| waiting.task).collect()
    }

    /// Takes out what writes, or everything.
    fn take_writes(&mut self, everything: bool) -> Vec<Task> {
        self.take_where(|Waiting { task, .. }| {
            everything || !matches!(task, Task::Read(_) | Task::Load(_) | Task::Copy(_))
        })
    }
}
