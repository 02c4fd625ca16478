//! A copy of an actor as a database file of its own, while it lives.
//!
//! # Invariants
//!
//! 1. The copy appears under its name whole and durable, or not at all.
//! 2. It holds one moment, everything that was sent before the copy was asked for, and
//!    nothing that is not durable where it comes from.
//! 3. An actor that has a file is copied in steps, each a lease of its own: turns and
//!    commits go on between them, and SQLite brings the copy up to date with what the
//!    same connection writes.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags, ffi};

use super::Files;
use super::folder::beside;
use super::image::image;
use super::pool::Job;
use super::promote::copy;
use super::routes::Sent;
use super::slot::Slot;
use super::task::Task;
use crate::store::connection::Database;
use crate::store::folder::sync_directory;
use crate::store::job::Reply;
use crate::store::{ActorNumber, Place, StoreError, directory};

/// Pages that one lease copies: 256 KiB, well below a millisecond.
const STEP_PAGES: i32 = 64;

/// Who hears of the end.
type Done = Reply<()>;

/// Where a copy is made, under a name that says that it is not finished.
struct Target {
    path: PathBuf,
    unfinished: PathBuf,
}

impl Target {
    fn new(path: PathBuf) -> Result<Self, StoreError> {
        let unfinished = beside(&path, ".tmp");
        let target = Self { path, unfinished };
        target.clear().map_err(|error| target.fault(&error))?;
        Ok(target)
    }

    /// Deletes what an earlier attempt left.
    fn clear(&self) -> io::Result<()> {
        for suffix in ["-wal", "-shm", "-journal", ""] {
            match fs::remove_file(beside(&self.unfinished, suffix)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn fault(&self, error: &io::Error) -> StoreError {
        let path = self.path.display().to_string();
        match error.kind() {
            io::ErrorKind::StorageFull => StoreError::Full { path },
            _ => StoreError::Io { path, reason: error.to_string() },
        }
    }

    fn database(&self) -> Database {
        Database::File(self.unfinished.clone())
    }

    /// A connection to the unfinished copy. Not that of a live file, which would leave its
    /// log behind.
    fn open(&self) -> Result<Connection, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Connection::open_with_flags(&self.unfinished, flags)
            .map_err(|error| self.database().fault(&error))
    }

    /// One file instead of three, under its name, durably.
    fn finish(&self, copied: Connection) -> Result<(), StoreError> {
        let fault = |error: rusqlite::Error| self.database().fault(&error);
        let mode: String = copied
            .pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0))
            .map_err(fault)?;
        if mode != "delete" {
            return Err(self.fault(&io::Error::other(format!("its journal mode stays {mode}"))));
        }
        copied.close().map_err(|(_, error)| fault(error))?;
        let appear = || {
            File::open(&self.unfinished)?.sync_all()?;
            fs::rename(&self.unfinished, &self.path)?;
            match self.path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => sync_directory(folder),
                _ => sync_directory(Path::new(".")),
            }
        };
        appear().map_err(|error| self.fault(&error))
    }

    fn end(&self, result: Result<(), StoreError>, done: Done) {
        if result.is_err()
            && let Err(error) = self.clear()
        {
            tracing::warn!(%error, path = %self.unfinished.display(), "an unfinished copy stays");
        }
        done.send(result);
    }
}

impl Files {
    /// Copies an actor to `path`, on this thread of the pool or from here on.
    pub(in crate::store) fn export(
        self: &Arc<Self>,
        number: ActorNumber,
        path: PathBuf,
        done: Done,
    ) {
        let target = match Target::new(path) {
            Ok(target) => target,
            Err(error) => return done.send(Err(error)),
        };
        match self.slot(number) {
            Err(error) => target.end(Err(error), done),
            Ok(None) => match self.export_small(number, &target) {
                // It left while it was copied, and its rows may have been swept.
                Ok(Place::File { .. }) => self.export(number, target.path, done),
                Ok(Place::Shared) => target.end(Ok(()), done),
                Err(error) => target.end(Err(error), done),
            },
            Ok(Some(slot)) => match Copying::new(slot, &target) {
                Err(error) => target.end(Err(error), done),
                Ok(copying) => copying.go_on(target, done),
            },
        }
    }

    /// Says where the actor was afterwards; the copy is finished if that is the shared
    /// store.
    fn export_small(&self, number: ActorNumber, target: &Target) -> Result<Place, StoreError> {
        if self.queue.is_pending(number) {
            self.wait_for_the_last_batch()?;
        }
        fs::write(&target.unfinished, image()?).map_err(|error| target.fault(&error))?;
        let database = target.database();
        let copied = target.open()?;
        let (copied, row) = self.ask(move |sqlite, store| {
            let find = || {
                let row = directory::find_by_number(sqlite, store, number)?;
                row.ok_or(StoreError::NotFound)
            };
            find()?;
            copy(sqlite, store, &copied, &database, number)?;
            Ok((copied, find()?))
        })?;
        self.note(&row);
        if row.place == Place::Shared {
            target.finish(copied)?;
        }
        Ok(row.place)
    }
}

/// A copy of a file that is being made.
struct Copying {
    slot: Arc<Slot>,
    to: Connection,
    /// `None` before the first step, which has the connection that is copied.
    backup: Option<Backup>,
}

/// SQLite's own state of a copy. It lies between two connections, neither of which this
/// holds: rusqlite's type borrows both, and would keep the source for all steps.
struct Backup(NonNull<ffi::sqlite3_backup>);

// SAFETY: SQLite has no thread of its own here; one thread at a time uses the state, with
// the lease of the source and as the owner of the target.
unsafe impl Send for Backup {}

impl Backup {
    fn begin(from: &Connection, to: &Connection) -> Option<Self> {
        // SAFETY: both handles are those of live connections, used by this thread alone. The
        // state outlives neither: `sqlite3_close`, which rusqlite calls, refuses to close a
        // source while it has one, and `Copying` drops the state before the target.
        let backup = unsafe {
            ffi::sqlite3_backup_init(to.handle(), c"main".as_ptr(), from.handle(), c"main".as_ptr())
        };
        NonNull::new(backup).map(Self)
    }

    /// Says whether everything is copied.
    fn step(&self) -> Result<bool, i32> {
        // SAFETY: the state is live, and this thread has both connections.
        match unsafe { ffi::sqlite3_backup_step(self.0.as_ptr(), STEP_PAGES) } {
            ffi::SQLITE_DONE => Ok(true),
            ffi::SQLITE_OK => Ok(false),
            code => Err(code),
        }
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        // SAFETY: the state is live, and nobody has it afterwards.
        let code = unsafe { ffi::sqlite3_backup_finish(self.0.as_ptr()) };
        if code != ffi::SQLITE_OK {
            tracing::debug!(code, "a copy ended unfinished");
        }
    }
}

impl Copying {
    fn new(slot: Arc<Slot>, target: &Target) -> Result<Self, StoreError> {
        Ok(Self { slot, to: target.open()?, backup: None })
    }

    /// Has the next step made, behind what waits for the file. A reading, for it must not
    /// be made in the middle of a transaction, whose changes this connection sees.
    fn go_on(mut self, target: Target, done: Done) {
        let slot = Arc::clone(&self.slot);
        let step = Task::Read(Box::new(move |sqlite| match sqlite {
            Err(error) => self.give_up(&target, error, done),
            Ok(sqlite) => match self.step(sqlite) {
                Ok(false) => self.go_on(target, done),
                Ok(true) => self.finish(target, done),
                Err(error) => self.give_up(&target, error, done),
            },
        }));
        match slot.files.send(slot.number, step) {
            Sent::Taken => {}
            Sent::Refused(task, error) => task.refuse(error),
            Sent::ToStore(task) => task.refuse(StoreError::NotFound),
        }
    }

    fn step(&mut self, from: &Connection) -> Result<bool, StoreError> {
        if self.backup.is_none() {
            self.backup = Backup::begin(from, &self.to);
            self.slot.lock().copies += 1;
        }
        let fault = |code: i32| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            self.slot.database.fault(&error)
        };
        let backup = self.backup.as_ref().ok_or_else(|| fault(ffi::SQLITE_ERROR))?;
        let is_whole = backup.step().map_err(fault)?;
        if is_whole {
            self.end_backup();
        }
        Ok(is_whole)
    }

    /// Frees the source, which does not close before.
    fn end_backup(&mut self) {
        if self.backup.take().is_some() {
            self.slot.lock().copies -= 1;
        }
    }

    fn give_up(mut self, target: &Target, error: StoreError, done: Done) {
        self.end_backup();
        drop(self.to);
        target.end(Err(error), done);
    }

    /// Everything is copied; waits until it is durable in the file, too (invariant 2).
    fn finish(self, target: Target, done: Done) {
        let Self { slot, to, .. } = self;
        let number = slot.note_commit(false);
        let files = Arc::clone(&slot.files);
        let durable = move |result: Result<(), StoreError>| {
            // Syncing and renaming is nothing for a sync thread, nor under a lease.
            files.ready.push(Job::Run(Box::new(move || {
                let result = result.and_then(|()| target.finish(to));
                target.end(result, done);
            })));
        };
        slot.wait_durable(number, Reply::new(Box::new(durable)));
    }
}
