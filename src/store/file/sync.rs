//! The threads that make the commits of files durable, and make those for which a turn
//! could not wait: no author's statement ever holds these threads up.
//!
//! # Invariants
//!
//! 1. A sync thread reads what has begun, then syncs, then says so: what begins during
//!    the sync is for the next one.
//! 2. It syncs a second descriptor of the log, never the database: closing a descriptor
//!    of that would drop SQLite's locks.
//! 3. A sync that failed is not tried again. The system forgets after the first error
//!    what it could not write, so a second success would prove nothing. The file is gone
//!    until the process starts anew.

use std::fs::{File, OpenOptions};
use std::io;
use std::sync::Arc;

use super::Files;
use super::faults::FileStep;
use super::folder::beside;
use super::line::Next;
use super::slot::{Slot, Sync};
use crate::store::StoreError;
use crate::store::connection::Database;
use crate::store::job::guarded;

/// Work for a sync thread.
pub(super) enum SyncJob {
    /// The log of this file has what is not durable.
    Sync(Arc<Slot>),
    /// A turn of this file was parked, and the directory knows what it waited for.
    Resume(Arc<Slot>),
}

impl SyncJob {
    pub(super) fn perform(self) {
        match self {
            Self::Sync(slot) => guarded("a sync", || slot.sync()),
            Self::Resume(slot) => guarded("the commit of a turn", || slot.resume_parked()),
        }
    }
}

impl Files {
    /// Serves until the store is closed.
    pub(super) fn sync_files(&self) {
        while let Next::Work(job) = self.syncs.next(None) {
            job.perform();
        }
    }
}

/// Makes durable whatever the log holds. `None` in memory, where nothing is.
pub(super) fn sync_log(slot: &Slot, log: Option<Arc<File>>) -> io::Result<Arc<File>> {
    let log = match log {
        Some(log) => log,
        None => open_log(&slot.database)?,
    };
    slot.files.faults.sync()?;
    // Of the file, its length included; F_FULLFSYNC where there is such a thing.
    log.sync_data()?;
    Ok(log)
}

/// The second descriptor of a log. It exists, for there was a commit or a recovery.
pub(super) fn open_log(database: &Database) -> io::Result<Arc<File>> {
    let Database::File(path) = database else {
        return Err(io::Error::other("a database in memory has no log"));
    };
    let log = beside(path, "-wal");
    OpenOptions::new().read(true).write(true).open(log).map(Arc::new)
}

impl Slot {
    pub(super) fn sync(self: &Arc<Self>) {
        let (number, log) = {
            let mut state = self.lock();
            state.sync = Sync::Running;
            if state.gone.is_some() {
                state.sync = Sync::Idle;
                return;
            }
            (state.gate.begun(), state.log.clone())
        };
        match sync_log(self, log) {
            Ok(log) => {
                self.files.faults.step(FileStep::Synced);
                self.lock().sync = Sync::Idle;
                self.synced(number, Some(log));
            }
            Err(error) => {
                self.lock().sync = Sync::Idle;
                self.quarantine(&error);
            }
        }
    }

    /// Everything up to `number` is on the disk.
    pub(super) fn synced(self: &Arc<Self>, number: u64, log: Option<Arc<File>>) {
        let again = {
            let mut state = self.lock();
            // The connection of a commit in doubt is closed, and its descriptor goes with it.
            if state.doubt.is_none() {
                state.log = log;
            }
            state.doubt.take_if(|doubt| *doubt < number);
            state.gate.synced(number);
            let again = !state.gate.is_drained() && state.sync == Sync::Idle;
            if again {
                state.sync = Sync::Waiting;
            }
            self.schedule(state);
            again
        };
        if again {
            self.files.syncs.push(SyncJob::Sync(Arc::clone(self)));
        }
        self.files.eased();
        self.tell();
    }

    /// The log could not be synced (invariant 3).
    pub(super) fn quarantine(self: &Arc<Self>, error: &io::Error) {
        let reason = format!("its log could not be synced: {error}");
        let unknown = self.unknown(&reason);
        let down = StoreError::Down { path: self.database.label(), reason };
        // Before anybody hears: nothing more is committed.
        self.lock().gone = Some(down.clone());
        self.report(&unknown);
        self.end(&down, &Err(unknown), true);
    }
}
