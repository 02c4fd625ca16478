//! A database in memory that outlives the store on it: what a test finds again after the
//! crash that it asked for.
//!
//! # Invariants
//!
//! 1. It lives as long as somebody holds it, whatever stores are opened and closed on it.
//! 2. Each is alone: no name is used twice in a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags};

use super::StoreError;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A database in memory. Cloning gives another handle on the same.
#[derive(Clone, Debug)]
pub struct KeptMemory {
    uri: Arc<str>,
    /// Never used: SQLite frees the database with its last connection (invariant 1).
    _anchor: Arc<Mutex<Connection>>,
}

impl KeptMemory {
    /// An empty database.
    ///
    /// # Errors
    ///
    /// `storage/*` when there is no memory for it.
    pub fn new() -> Result<Self, StoreError> {
        let uri = format!("file:/greenroom-{}?vfs=memdb", NEXT.fetch_add(1, Ordering::Relaxed));
        let anchor = connect(&uri)
            .map_err(|error| StoreError::Io { path: uri.clone(), reason: error.to_string() })?;
        Ok(Self { uri: uri.into(), _anchor: Arc::new(Mutex::new(anchor)) })
    }

    /// A connection to it.
    pub(super) fn connect(&self) -> rusqlite::Result<Connection> {
        let sqlite = connect(&self.uri)?;
        // A journal of its own file system would be a file on the disk.
        sqlite.execute_batch("PRAGMA journal_mode=MEMORY;")?;
        Ok(sqlite)
    }

    /// The name for messages.
    pub(super) fn label(&self) -> &str {
        &self.uri
    }
}

fn connect(uri: &str) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(
        uri,
        OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
}

impl PartialEq for KeptMemory {
    fn eq(&self, other: &Self) -> bool {
        self.uri == other.uri
    }
}

impl Eq for KeptMemory {}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(memory: &KeptMemory) -> rusqlite::Result<i64> {
        memory.connect()?.query_row("SELECT count(*) FROM t", [], |row| row.get(0))
    }

    #[test]
    fn what_was_written_is_there_for_the_next_connection() {
        let memory = KeptMemory::new().unwrap();
        memory
            .connect()
            .unwrap()
            .execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)")
            .unwrap();

        assert_eq!(count(&memory).unwrap(), 1);
        assert_eq!(count(&memory.clone()).unwrap(), 1);
    }

    #[test]
    fn each_is_alone() {
        let memory = KeptMemory::new().unwrap();
        memory.connect().unwrap().execute_batch("CREATE TABLE t(x)").unwrap();

        assert!(count(&KeptMemory::new().unwrap()).is_err());
    }
}
