//! A database in memory that outlives the store on it: what a test finds again after the
//! crash that it asked for.
//!
//! # Invariants
//!
//! 1. It lives as long as somebody holds it, whatever stores are opened and closed on it.
//! 2. Each is alone: no name is used twice in a process.
//! 3. What takes the place of the files of actors lives as long as it does, from its making
//!    to its removal.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags};

use super::StoreError;
use super::place::FileName;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A database in memory. Cloning gives another handle on the same.
#[derive(Clone, Debug)]
pub struct KeptMemory {
    uri: Arc<str>,
    /// Never used: SQLite frees the database with its last connection (invariant 1).
    _anchor: Arc<Mutex<Connection>>,
    /// Changed by promotions and by whoever removes a file (invariant 3).
    files: Arc<Mutex<HashMap<FileName, KeptMemory>>>,
}

/// What takes the place of an actor's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeptFile {
    pub(super) of: KeptMemory,
    pub(super) name: FileName,
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
        let files = Arc::default();
        Ok(Self { uri: uri.into(), _anchor: Arc::new(Mutex::new(anchor)), files })
    }

    /// Makes an empty file of this name; one that a crash left behind is forgotten.
    pub(super) fn create_file(&self, name: FileName) -> Result<(), StoreError> {
        let file = Self::new()?;
        let before = self.files.lock().insert(name, file);
        drop(before);
        Ok(())
    }

    /// Forgets a file.
    pub(super) fn remove_file(&self, name: FileName) {
        let removed = self.files.lock().remove(&name);
        drop(removed);
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

impl KeptFile {
    /// A connection to it; `None` when it was never made or is removed.
    pub(super) fn connect(&self) -> rusqlite::Result<Option<Connection>> {
        let file = self.of.files.lock().get(&self.name).cloned();
        file.map(|file| file.connect()).transpose()
    }

    /// The name for messages.
    pub(super) fn label(&self) -> String {
        format!("{}/{}", self.of.uri, self.name)
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
    use crate::ids::IdSource;

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

    #[test]
    fn a_file_is_there_from_its_making_to_its_removal() {
        let memory = KeptMemory::new().unwrap();
        let name = FileName { id: IdSource::seeded(1).actor_id(), n: 1 };
        let file = KeptFile { of: memory.clone(), name };
        assert!(file.connect().unwrap().is_none());

        memory.create_file(name).unwrap();
        file.connect().unwrap().unwrap().execute_batch("CREATE TABLE t(x)").unwrap();

        let again = KeptFile { of: memory.clone(), name }.connect().unwrap().unwrap();
        again.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        assert!(count(&memory).is_err());
        memory.remove_file(name);
        assert!(file.connect().unwrap().is_none());
    }

    #[test]
    fn a_file_that_is_made_again_is_empty_even_while_somebody_has_the_one_before() {
        let memory = KeptMemory::new().unwrap();
        let name = FileName { id: IdSource::seeded(1).actor_id(), n: 1 };
        let file = KeptFile { of: memory.clone(), name };
        memory.create_file(name).unwrap();
        let before = file.connect().unwrap().unwrap();
        before.execute_batch("CREATE TABLE t(x)").unwrap();

        memory.create_file(name).unwrap();

        file.connect().unwrap().unwrap().execute_batch("CREATE TABLE t(x)").unwrap();
    }
}
