//! The one thread that writes.
//!
//! # Invariants
//!
//! 1. It alone uses the write connection, so a commit never meets another.
//! 2. It answers before it checkpoints: nobody waits for a copy.
//! 3. After a commit of unknown outcome nothing is read or written before every
//!    connection has been closed and recovery has decided what is true; reads
//!    are stopped before anybody hears of it.
//! 4. The folder is freed after the last connection is closed.
//! 5. In a store that waits for its turn it is lent to the thread that gives the turns,
//!    one job at a time, the closing included.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::wal::CheckpointMode;

use super::checkpoint::LogGauge;
use super::connection::WriteConnection;
use super::faults::CrashPoint;
use super::folder::Folder;
use super::group::{Committer, GroupEnd};
use super::job::{Read, Write, guarded};
use super::options::{StoreObserver, StoreOptions};
use super::place::PlaceChange;
use super::queue::{GroupLimit, Next};
use super::shared::{Shared, as_store_thread};
use super::{ActorNumber, StoreError, rows};
use crate::ids::Generation;
use crate::time::Instant;

/// What the writer thread owns.
pub(super) struct Writer {
    shared: Arc<Shared>,
    options: StoreOptions,
    /// `None` once the store is down or closed.
    connection: Option<WriteConnection>,
    reader_threads: Vec<JoinHandle<()>>,
    /// Held for its lock; `None` in memory.
    folder: Option<Folder>,
    log: LogGauge,
    sweep: Sweep,
    /// Whether the last commit found no room: groups are then single writes, so
    /// that small ones pass beside one that is too large.
    is_full: bool,
    /// Whether nothing was committed since the last commit of unknown outcome.
    is_doubtful: bool,
}

/// Whether rows of destroyed actors are to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sweep {
    Nothing,
    Wanted,
    /// The last attempt failed; the next commit that succeeds makes another
    /// worth while.
    Failed,
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        options: StoreOptions,
        connection: WriteConnection,
        reader_threads: Vec<JoinHandle<()>>,
        folder: Option<Folder>,
        has_garbage: bool,
    ) -> Self {
        let log = LogGauge::new(options.clock.now());
        let mut writer = Self {
            shared,
            options,
            connection: Some(connection),
            reader_threads,
            folder,
            log,
            sweep: if has_garbage { Sweep::Wanted } else { Sweep::Nothing },
            is_full: false,
            is_doubtful: false,
        };
        // Opening has written, and a crash may have left a log.
        let now = writer.options.clock.now();
        writer.gauge_log(now);
        writer
    }

    /// Serves until the store is closed.
    pub(super) fn run(mut self) {
        if catch_unwind(AssertUnwindSafe(|| self.serve())).is_err() {
            self.go_down("the writer thread panicked".to_owned());
        }
        // A store that is down waits here to be closed.
        while !matches!(self.shared.queue.next(self.limit(), None), Next::Closed) {}
        self.close();
    }

    /// In a store that waits for its turn: lends itself to whoever gives the turns, who closes
    /// the store too. What is returned does that on a thread of its own when the last handle
    /// is gone before.
    pub(super) fn lend(self) -> impl FnOnce() + Send + use<> {
        let queue = Arc::clone(&self.shared.queue);
        let lent = Arc::new(Mutex::new(Some(self)));
        let (weak, asked) = (Arc::downgrade(&queue), Arc::clone(&lent));
        queue.served_by(Box::new(move || {
            // Held by the thread that closes, or by this one, which is serving.
            let (Some(queue), Some(mut lent)) = (weak.upgrade(), asked.try_lock()) else {
                return false;
            };
            let Some(writer) = lent.as_mut() else { return false };
            match queue.take_one() {
                None => return false,
                Some(Next::Closed) => {
                    let writer = lent.take();
                    as_store_thread(|| {
                        if let Some(writer) = writer {
                            writer.run();
                        }
                    });
                }
                Some(next) => as_store_thread(|| {
                    if catch_unwind(AssertUnwindSafe(|| writer.serve_this(next))).is_err() {
                        writer.go_down("the writer panicked".to_owned());
                    }
                }),
            }
            true
        }));
        move || {
            queue.wait_until_given_up();
            let writer = lent.lock().take();
            if let Some(writer) = writer {
                writer.run();
            }
        }
    }

    fn serve(&mut self) {
        while self.connection.is_some() {
            let next = self.shared.queue.next(self.limit(), self.patience());
            if let Next::Closed = next {
                return;
            }
            self.serve_this(next);
        }
    }

    fn serve_this(&mut self, next: Next) {
        match next {
            Next::Group(mut group) => {
                if self.sweep == Sweep::Wanted && !self.is_full {
                    group.push(Write::Sweep { more: false });
                }
                self.commit(group);
            }
            Next::Read(read) => self.read(read),
            Next::Idle if self.sweep == Sweep::Wanted => {
                self.commit(vec![Write::Sweep { more: false }]);
            }
            Next::Idle => {
                if self.log.is_due_when_idle(self.options.clock.now()) {
                    self.checkpoint();
                }
            }
            Next::Closed => {}
        }
        if self.log.is_due() {
            self.checkpoint();
        }
    }

    fn limit(&self) -> GroupLimit {
        let limits = &self.options.limits;
        let batches = if self.is_full { 1 } else { limits.group_batches.max(1) };
        GroupLimit { batches, bytes: limits.group_bytes }
    }

    fn patience(&self) -> Option<Duration> {
        match self.sweep {
            Sweep::Wanted => Some(Duration::ZERO),
            Sweep::Nothing | Sweep::Failed => self.log.patience(),
        }
    }

    fn read(&self, read: Read) {
        if let Some(connection) = &self.connection {
            guarded("a read", || read(Ok(&connection.sqlite)));
        }
    }

    fn commit(&mut self, group: Vec<Write>) {
        let Some(connection) = &self.connection else { return };
        let shared = Arc::clone(&self.shared);
        // Before the answers: whoever hears one and moves the clock moves it past this.
        let began = self.options.clock.now();
        let committer = Committer {
            connection,
            database: &shared.database,
            fence: &shared.fence,
            faults: &self.options.faults,
            counters: &shared.counters,
        };
        let sweep = &mut self.sweep;
        let end = committer.commit(group, &mut |settled| settle(&shared, sweep, settled));
        self.options.faults.crash_if_at(CrashPoint::Answered);
        self.gauge_log(began);
        let (GroupEnd::Settled { committed, .. } | GroupEnd::Unknown { committed, .. }) = &end;
        if *committed {
            self.is_doubtful = false;
        }
        match end {
            GroupEnd::Settled { full, .. } => self.is_full = full,
            GroupEnd::Unknown { unsettled, reason, .. } => self.fail_stop(unsettled, reason),
        }
    }

    /// Notes how far the log has grown by what began at `began`.
    fn gauge_log(&mut self, began: Instant) {
        if let Some(frames) = self.connection.as_ref().and_then(WriteConnection::grown_to) {
            self.log.committed(frames, began);
        }
    }

    /// Stops, tells everybody, and lets recovery decide (invariant 3).
    fn fail_stop(&mut self, unsettled: Vec<Write>, reason: String) {
        let shared = Arc::clone(&self.shared);
        let path = shared.database.label();
        tracing::error!(%path, %reason, "a commit ended in the unknown, the store is reopened");
        shared.counters.fail_stops.add(1);
        if let Some(readers) = &shared.readers {
            readers.pause();
        }
        shared.queue.settle(unsettled.iter().filter_map(Write::number));
        let mut writes = unsettled;
        writes.extend(shared.queue.take_writes());
        let revoked: Vec<_> =
            writes.iter().filter_map(|write| end_generation(&shared, write)).collect();
        self.tell("failed_stop", |observer| observer.failed_stop(&revoked));
        let error = StoreError::OutcomeUnknown { path, reason: reason.clone() };
        for write in writes {
            write.answer(Err(error.clone()));
        }
        if std::mem::replace(&mut self.is_doubtful, true) {
            return self
                .go_down(format!("a second commit in a row ended in the unknown: {reason}"));
        }
        if let Err(error) = self.reopen() {
            return self.go_down(format!("it could not be reopened: {error}"));
        }
        self.tell("reopened", |observer| observer.reopened());
        if let Some(readers) = &shared.readers {
            readers.resume();
        }
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        let database = &self.shared.database;
        let fault = |error: rusqlite::Error| database.fault(&error);
        let Some(old) = self.connection.take() else { return Ok(()) };
        self.shared.copies.lock().end();
        let connection = if self.folder.is_some() {
            old.abandon();
            self.options.faults.reopen().map_err(fault)?;
            let connection = database.open_writer()?;
            // A commit whose sync failed may be in the log and not on the disk.
            // Copied and synced in the database file, it is certain.
            let reached = connection.checkpoint(CheckpointMode::TRUNCATE).map_err(fault)?;
            if !reached.is_whole() {
                return Err(StoreError::Busy { path: database.label() });
            }
            connection
        } else {
            // What the only connection shows is all there is.
            if !old.sqlite.is_autocommit() {
                old.sqlite.execute_batch("ROLLBACK").map_err(fault)?;
            }
            old
        };
        self.sweep = match rows::has_garbage(&connection.sqlite).map_err(fault)? {
            true => Sweep::Failed,
            false => Sweep::Nothing,
        };
        self.log = LogGauge::new(self.options.clock.now());
        self.connection = Some(connection);
        Ok(())
    }

    /// Answers everything with an error until the store is closed.
    fn go_down(&mut self, reason: String) {
        let error = StoreError::Down { path: self.shared.database.label(), reason };
        tracing::error!(%error, "the store is down");
        self.shared.copies.lock().end();
        if let Some(connection) = self.connection.take() {
            connection.abandon();
        }
        self.tell("down", |observer| observer.down(&error));
        self.shared.queue.fail(&error);
        if let Some(readers) = &self.shared.readers {
            readers.fail(&error);
        }
    }

    fn checkpoint(&mut self) {
        let Some(connection) = &self.connection else { return };
        let now = self.options.clock.now();
        let is_pinned = match connection.checkpoint(CheckpointMode::PASSIVE) {
            Ok(reached) => {
                let counters = &self.shared.counters;
                if reached.is_whole() {
                    &counters.checkpoints
                } else {
                    &counters.checkpoints_cut_short
                }
                .add(1);
                self.log.checkpointed(reached, now)
            }
            Err(error) => {
                // No error for anybody: the log has everything.
                tracing::debug!(%error, "a checkpoint failed");
                self.shared.counters.checkpoints_cut_short.add(1);
                self.log.checkpoint_failed(now)
            }
        };
        if is_pinned {
            let path = self.shared.database.label();
            tracing::warn!(%path, "checkpoints do not come to their end, the log grows");
        }
    }

    /// Actor files and readers first, then the writer, then the folder (invariant 4).
    fn close(mut self) {
        self.shared.files.close();
        if let Some(readers) = &self.shared.readers {
            readers.close(std::mem::take(&mut self.reader_threads));
        }
        self.shared.copies.lock().end();
        if let Some(connection) = self.connection.take() {
            if self.folder.is_some()
                && let Err(error) = connection.checkpoint(CheckpointMode::TRUNCATE)
            {
                // The next start finds everything in the log.
                tracing::warn!(%error, "the last checkpoint failed");
            }
            drop(connection);
        }
        drop(self.folder.take());
        self.shared.closed.send_replace(true);
    }

    fn tell(&self, what: &str, call: impl FnOnce(&dyn StoreObserver)) {
        if let Some(observer) = &self.options.observer {
            guarded(what, || call(&**observer));
        }
    }
}

/// Ends the generation that a write of unknown outcome belongs to, or whose actor
/// it may have destroyed; says which one it was.
fn end_generation(shared: &Shared, write: &Write) -> Option<(ActorNumber, Generation)> {
    match write {
        Write::Commit { number, batch, .. } => {
            let ended = shared.fence.revoke(*number, batch.generation);
            ended.then_some((*number, batch.generation))
        }
        Write::Destroy { number, .. } => {
            shared.fence.forget(*number).map(|generation| (*number, generation))
        }
        Write::Place { number, change: PlaceChange::MoveToFile { generation, .. }, .. } => {
            let ended = shared.fence.revoke(*number, *generation);
            ended.then_some((*number, *generation))
        }
        Write::Place { .. }
        | Write::Create { .. }
        | Write::Reserve { .. }
        | Write::Adopt(_)
        | Write::Sweep { .. } => None,
    }
}

/// What follows from writes whose end is certain, and then their answers.
fn settle(shared: &Shared, sweep: &mut Sweep, settled: Vec<(Write, Result<(), StoreError>)>) {
    let committed = settled.iter().any(|(_, result)| result.is_ok());
    if committed && *sweep == Sweep::Failed {
        *sweep = Sweep::Wanted;
    }
    for (write, result) in &settled {
        match (write, result) {
            (Write::Commit { number, batch, .. }, Ok(())) if batch.has_work() => {
                shared.fence.confirm(*number, batch.generation);
            }
            (Write::Commit { number, batch, .. }, Err(_)) if batch.fails_generation => {
                shared.fence.revoke(*number, batch.generation);
            }
            (Write::Destroy { number, existed: true, file, .. }, Ok(())) => {
                shared.fence.forget(*number);
                shared.files.forget(*number, *file);
                *sweep = Sweep::Wanted;
            }
            (
                Write::Place { number, change: PlaceChange::MoveToFile { generation, .. }, .. },
                Ok(()),
            ) => {
                shared.fence.move_away(*number, *generation);
                *sweep = Sweep::Wanted;
            }
            (Write::Sweep { more }, Ok(())) => {
                *sweep = if *more { Sweep::Wanted } else { Sweep::Nothing };
            }
            (Write::Sweep { .. }, Err(_)) => *sweep = Sweep::Failed,
            _ => {}
        }
    }
    shared.queue.settle(settled.iter().filter_map(|(write, _)| write.number()));
    for (write, result) in settled {
        write.answer(result);
    }
}
