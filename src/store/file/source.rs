//! A file that somebody says is the copy of an actor.
//!
//! # Invariants
//!
//! 1. It is read in one transaction and never written.
//! 2. Nothing of it is used if it was changed meanwhile by something that does not ask
//!    SQLite, such as a program that copies another file over it.

use std::fs::{self, Metadata};
use std::path::Path;
use std::time::SystemTime;

use rusqlite::{Connection, OpenFlags};

use super::adopt;
use crate::store::StoreError;
use crate::store::connection::Database;
use crate::store::copy::{Copied, PageCopy};
use crate::store::target::fault;

/// A file that is open for reading.
pub(super) struct Source<'a> {
    path: &'a Path,
    sqlite: Connection,
    mark: Mark,
}

/// What tells a file from the same file after it was changed.
#[derive(PartialEq, Eq)]
struct Mark {
    len: u64,
    modified: Option<SystemTime>,
}

impl Mark {
    fn of(metadata: &Metadata) -> Self {
        Self { len: metadata.len(), modified: metadata.modified().ok() }
    }
}

impl<'a> Source<'a> {
    /// Opens a file that says that it is an actor's, in a version that is known.
    pub(super) fn open(path: &'a Path) -> Result<Self, StoreError> {
        let database = Database::File(path.to_owned());
        let metadata = fs::metadata(path).map_err(|error| fault(path, &error))?;
        if !metadata.is_file() {
            let reason = "it is no regular file".to_owned();
            return Err(StoreError::NotAnActor { path: database.label(), reason });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || {
            let sqlite = Connection::open_with_flags(path, flags)?;
            adopt::distrust(&sqlite)?;
            // What others write with SQLite has to wait, or is not seen.
            sqlite.execute_batch("PRAGMA busy_timeout=0; BEGIN")?;
            Ok(sqlite)
        };
        let sqlite = open().map_err(|error| database.fault(&error))?;
        adopt::check_version(&sqlite, &database)?;
        Ok(Self { path, sqlite, mark: Mark::of(&metadata) })
    }

    /// Copies everything into `to`, whose content is replaced.
    pub(super) fn copy_into(self, to: Connection) -> Result<Connection, StoreError> {
        let database = Database::File(self.path.to_owned());
        let fault_of = |error: rusqlite::Error| database.fault(&error);
        let copy = PageCopy::begin(&self.sqlite, to).map_err(fault_of)?;
        let result = loop {
            match copy.step() {
                Ok(Copied::Part) => {}
                Ok(Copied::Whole | Copied::Ended) => break Ok(()),
                Err(error) => break Err(fault_of(error)),
            }
        };
        // By whoever has the source, also after an error.
        let copied = copy.take();
        let metadata = fs::metadata(self.path).map_err(|error| fault(self.path, &error))?;
        if Mark::of(&metadata) != self.mark {
            return Err(StoreError::Changed { path: database.label() });
        }
        result.and(copied.ok_or(StoreError::Closed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::file::schema;

    fn copy(path: &Path) -> Connection {
        let sqlite = Connection::open(path).unwrap();
        schema::migrate(&sqlite, &Database::Memory).unwrap();
        sqlite
    }

    #[test]
    fn a_file_that_is_replaced_while_it_is_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("copy.db");
        drop(copy(&path));
        let source = Source::open(&path).unwrap();
        std::fs::write(&path, "another file").unwrap();

        let refused = source.copy_into(Connection::open_in_memory().unwrap()).unwrap_err();

        assert_eq!(refused, StoreError::Changed { path: path.display().to_string() });
    }

    #[test]
    fn what_others_commit_while_it_is_read_in_log_mode_is_not_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("copy.db");
        let writer = copy(&path);
        writer.pragma_update(None, "journal_mode", "WAL").unwrap();
        let source = Source::open(&path).unwrap();
        writer.execute_batch("CREATE TABLE late (x)").unwrap();

        let copied = source.copy_into(Connection::open_in_memory().unwrap()).unwrap();

        let late: i64 = copied
            .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'late'", [], |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(late, 0);
    }
}
