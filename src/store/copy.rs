//! Copies of a database page by page, while whoever has its connection goes on between
//! the steps.
//!
//! # Invariants
//!
//! 1. A step is made by whoever has the source at that moment. What the same connection
//!    writes between two steps is brought into the copy by SQLite, so it is of one moment:
//!    that of the last step.
//! 2. A copy ends before its source closes: SQLite refuses to close a connection that is
//!    being copied. Whoever closes one says [`Copies::end`] first.

use std::ptr::NonNull;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::ffi::ErrorCode;
use rusqlite::{Connection, ffi};

use super::StoreError;
use super::connection::Database;

/// Pages that one step copies: 256 KiB, well below a millisecond.
const STEP_PAGES: i32 = 64;

/// A copy that is being made.
pub(super) struct PageCopy {
    /// `None` once it has ended. The lock is held for a step, and is free: only whoever
    /// has the source comes here.
    running: Mutex<Option<Running>>,
}

/// What SQLite needs; in the order in which it may go.
struct Running {
    backup: Backup,
    to: Connection,
}

/// How far a copy came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copied {
    /// A part, and there is more.
    Part,
    /// Everything, as it is at this moment.
    Whole,
    /// Its source was closed; nothing of it is of use.
    Ended,
}

impl PageCopy {
    /// Begins to copy everything into `to`, whose content is replaced.
    pub(super) fn begin(from: &Connection, to: Connection) -> rusqlite::Result<Arc<Self>> {
        let backup = Backup::begin(from, &to)?;
        Ok(Arc::new(Self { running: Mutex::new(Some(Running { backup, to })) }))
    }

    /// Copies a few pages, by whoever has the source.
    pub(super) fn step(&self) -> rusqlite::Result<Copied> {
        match &*self.running.lock() {
            Some(Running { backup, .. }) => backup.step(),
            None => Ok(Copied::Ended),
        }
    }

    /// The copy, when a step has said that it is whole. By whoever has the source, too.
    pub(super) fn take(&self) -> Option<Connection> {
        self.running.lock().take().map(|running| running.to)
    }

    fn is_running(&self) -> bool {
        self.running.lock().is_some()
    }
}

/// What an error of a step means: only the copy is written.
pub(super) fn fault(error: &rusqlite::Error, from: &Database, to: &Database) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => to.fault(error),
        _ => from.fault(error),
    }
}

/// The copies that are being made through one connection. They are held here, so that
/// none ends on a thread that does not have the source.
#[derive(Default)]
pub(super) struct Copies(Vec<Arc<PageCopy>>);

impl Copies {
    /// Remembers one.
    pub(super) fn add(&mut self, copy: &Arc<PageCopy>) {
        self.0.retain(|other| other.is_running());
        self.0.push(Arc::clone(copy));
    }

    /// Whether one is running.
    pub(super) fn are_running(&self) -> bool {
        self.0.iter().any(|copy| copy.is_running())
    }

    /// Ends them (invariant 2), by whoever has the source.
    pub(super) fn end(&mut self) {
        for copy in self.0.drain(..) {
            drop(copy.take());
        }
    }
}

/// SQLite's own state of a copy. It lies between two connections, of which it holds
/// neither: rusqlite's type borrows both, and would keep the source for all steps.
struct Backup(NonNull<ffi::sqlite3_backup>);

// SAFETY: SQLite has no thread of its own here; one thread at a time uses the state, as
// the holder of the source and of the lock of the copy.
unsafe impl Send for Backup {}

impl Backup {
    fn begin(from: &Connection, to: &Connection) -> rusqlite::Result<Self> {
        // SAFETY: both handles are those of live connections that this thread alone uses.
        // The state outlives neither: the source is closed only after `Copies::end`, and
        // SQLite would refuse to close it before; the target is dropped after the state.
        let backup = unsafe {
            ffi::sqlite3_backup_init(to.handle(), c"main".as_ptr(), from.handle(), c"main".as_ptr())
        };
        NonNull::new(backup).map(Self).ok_or_else(|| {
            // SAFETY: the handle is that of a live connection that this thread alone uses.
            failure(unsafe { ffi::sqlite3_errcode(to.handle()) })
        })
    }

    fn step(&self) -> rusqlite::Result<Copied> {
        // SAFETY: the state is live, and this thread has both connections.
        match unsafe { ffi::sqlite3_backup_step(self.0.as_ptr(), STEP_PAGES) } {
            ffi::SQLITE_DONE => Ok(Copied::Whole),
            ffi::SQLITE_OK => Ok(Copied::Part),
            code => Err(failure(code)),
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

fn failure(code: i32) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(rows: u32) -> Connection {
        let sqlite = Connection::open_in_memory().unwrap();
        sqlite.execute_batch("CREATE TABLE t (x BLOB)").unwrap();
        for _ in 0..rows {
            sqlite.execute("INSERT INTO t VALUES (zeroblob(4000))", []).unwrap();
        }
        sqlite
    }

    fn rows(sqlite: &Connection) -> u32 {
        sqlite.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn what_is_written_between_the_steps_is_in_the_copy() {
        let from = filled(200);
        let copy = PageCopy::begin(&from, Connection::open_in_memory().unwrap()).unwrap();

        assert_eq!(copy.step(), Ok(Copied::Part));
        from.execute("INSERT INTO t VALUES (1)", []).unwrap();
        while copy.step() != Ok(Copied::Whole) {}

        assert_eq!(rows(&copy.take().unwrap()), 201);
    }

    #[test]
    fn a_source_closes_once_its_copies_have_ended_and_they_hear_so() {
        let from = filled(200);
        let mut copies = Copies::default();
        let copy = PageCopy::begin(&from, Connection::open_in_memory().unwrap()).unwrap();
        copies.add(&copy);
        copy.step().unwrap();
        assert!(copies.are_running());

        let (from, _) = from.close().unwrap_err();
        copies.end();

        from.close().unwrap();
        assert!(!copies.are_running());
        assert_eq!(copy.step(), Ok(Copied::Ended));
        assert!(copy.take().is_none());
    }
}
