//! Where a copy of a database appears.
//!
//! # Invariants
//!
//! 1. A copy appears under its name whole and durable, or not at all: until then it has
//!    another name, or lies in a folder that is not finished itself.
//! 2. Two copies in one process never have the same target.
//! 3. Nothing is replaced unless that was asked for, even if it comes meanwhile.
//!
//! The connections of this module do not sync: nobody reads a copy before the whole file
//! is synced at its end.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags};

use super::StoreError;
use super::connection::Database;
use super::file::beside;
use super::folder::{missing_parent, sync_directory};

/// What SQLite may have kept beside an unfinished copy; the copy itself goes last.
const SUFFIXES: [&str; 4] = ["-wal", "-shm", "-journal", ""];

/// Targets of copies that are being made in this process.
static CLAIMED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// What becomes of a file that has the name of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the copy is refused.
    Refuse,
    /// It is replaced, once the copy is whole.
    Replace,
}

/// How a copy comes to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Appears {
    /// One of its own, as one file that any program can read.
    Named(Existing),
    /// It has it from the beginning, as a file of a store.
    InPlace,
}

/// Where a copy is made, and where it will be.
pub(super) struct Target {
    path: PathBuf,
    unfinished: PathBuf,
    appears: Appears,
    claim: PathBuf,
}

impl Drop for Target {
    fn drop(&mut self) {
        CLAIMED.lock().remove(&self.claim);
    }
}

impl Target {
    /// A file that appears when it is whole.
    pub(super) fn new(path: PathBuf, existing: Existing) -> Result<Self, StoreError> {
        let unfinished = beside(&path, ".tmp");
        Self::claim(path, unfinished, Appears::Named(existing))
    }

    /// A file of a store in a folder that is not finished.
    pub(super) fn in_place(path: PathBuf) -> Result<Self, StoreError> {
        let unfinished = path.clone();
        Self::claim(path, unfinished, Appears::InPlace)
    }

    fn claim(path: PathBuf, unfinished: PathBuf, appears: Appears) -> Result<Self, StoreError> {
        let claim = std::path::absolute(&path).map_err(|error| fault(&path, &error))?;
        if !CLAIMED.lock().insert(claim.clone()) {
            return Err(StoreError::Busy { path: path.display().to_string() });
        }
        let target = Self { path, unfinished, appears, claim };
        if target.appears == Appears::Named(Existing::Refuse) {
            target.refuse_existing()?;
        }
        if let Some(missing) = missing_parent(&target.path) {
            let reason = format!("there is no folder {}", missing.display());
            return Err(StoreError::Io { path: target.label(), reason });
        }
        if target.path.is_dir() {
            let reason = "it is a folder".to_owned();
            return Err(StoreError::Io { path: target.label(), reason });
        }
        target.clear()?;
        Ok(target)
    }

    /// The name for messages: the one that was asked for.
    pub(super) fn label(&self) -> String {
        self.path.display().to_string()
    }

    /// What an error of SQLite means.
    pub(super) fn fault(&self, error: &rusqlite::Error) -> StoreError {
        self.database().fault(error)
    }

    pub(super) fn database(&self) -> Database {
        Database::File(self.path.clone())
    }

    /// A connection to the copy, whose content is to come.
    pub(super) fn open(&self) -> Result<Connection, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || {
            let sqlite = Connection::open_with_flags(&self.unfinished, flags)?;
            sqlite.execute_batch("PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF;")?;
            Ok(sqlite)
        };
        open().map_err(|error| self.fault(&error))
    }

    /// The same, with this as its content so far.
    pub(super) fn open_with(&self, content: &[u8]) -> Result<Connection, StoreError> {
        fs::write(&self.unfinished, content).map_err(|error| fault(&self.path, &error))?;
        self.open()
    }

    /// One file, under its name, durably.
    pub(super) fn finish(&self, copied: Connection) -> Result<(), StoreError> {
        let wanted = match self.appears {
            Appears::Named(_) => "delete",
            Appears::InPlace => "wal",
        };
        let mode: String = copied
            .pragma_update_and_check(None, "journal_mode", wanted, |row| row.get(0))
            .map_err(|error| self.fault(&error))?;
        if mode != wanted {
            let reason = format!("its journal mode stays {mode}");
            return Err(StoreError::Io { path: self.label(), reason });
        }
        copied.close().map_err(|(_, error)| self.fault(&error))?;
        self.appear()
    }

    fn appear(&self) -> Result<(), StoreError> {
        let failed = |error: io::Error| fault(&self.path, &error);
        File::open(&self.unfinished).and_then(|file| file.sync_all()).map_err(failed)?;
        match self.appears {
            // The names of a folder that is not finished are synced once, at its end.
            Appears::InPlace => return Ok(()),
            Appears::Named(Existing::Replace) => {
                fs::rename(&self.unfinished, &self.path).map_err(failed)?;
            }
            Appears::Named(Existing::Refuse) => self.appear_beside()?,
        }
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => sync_directory(folder),
            _ => sync_directory(Path::new(".")),
        }
        .map_err(failed)
    }

    /// Invariant 3: a second name is refused by the file system where the first is taken.
    fn appear_beside(&self) -> Result<(), StoreError> {
        let failed = |error: io::Error| fault(&self.path, &error);
        match fs::hard_link(&self.unfinished, &self.path) {
            Ok(()) => fs::remove_file(&self.unfinished).map_err(failed),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(StoreError::Exists { path: self.label() })
            }
            // A file system without second names.
            Err(_) => {
                self.refuse_existing()?;
                fs::rename(&self.unfinished, &self.path).map_err(failed)
            }
        }
    }

    fn refuse_existing(&self) -> Result<(), StoreError> {
        match self.path.symlink_metadata() {
            Ok(_) => Err(StoreError::Exists { path: self.label() }),
            Err(_) => Ok(()),
        }
    }

    /// Deletes what is not finished, or what an earlier attempt left.
    pub(super) fn clear(&self) -> Result<(), StoreError> {
        for suffix in SUFFIXES {
            match fs::remove_file(beside(&self.unfinished, suffix)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(fault(&self.path, &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Deletes what is not finished if the copy failed. Before anybody hears of the end: who
    /// does may want the same target again.
    pub(super) fn end<T>(self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if result.is_err()
            && let Err(error) = self.clear()
        {
            tracing::warn!(%error, path = %self.unfinished.display(), "an unfinished copy stays");
        }
        result
    }
}

/// What an error of the system means for this path.
pub(super) fn fault(path: &Path, error: &io::Error) -> StoreError {
    let path = path.display().to_string();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { path },
        _ => StoreError::Io { path, reason: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(path: &Path, existing: Existing) -> Result<(), StoreError> {
        let target = Target::new(path.to_owned(), existing)?;
        let copied = target.open()?;
        copied.execute_batch("CREATE TABLE t (x)").unwrap();
        let finished = target.finish(copied);
        target.end(finished)
    }

    #[test]
    fn an_existing_file_stays_unless_it_is_to_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("copy.db");
        fs::write(&path, "mine").unwrap();

        let refused = make(&path, Existing::Refuse).unwrap_err();
        assert_eq!(refused, StoreError::Exists { path: path.display().to_string() });
        assert_eq!(fs::read(&path).unwrap(), b"mine");

        make(&path, Existing::Replace).unwrap();
        assert!(fs::read(&path).unwrap().starts_with(b"SQLite format 3"));
    }

    #[test]
    fn a_file_that_comes_while_the_copy_is_made_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("copy.db");
        let target = Target::new(path.clone(), Existing::Refuse).unwrap();
        let copied = target.open().unwrap();
        fs::write(&path, "mine").unwrap();

        let finished = target.finish(copied);
        let refused = target.end(finished).unwrap_err();

        assert_eq!(refused, StoreError::Exists { path: path.display().to_string() });
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn two_copies_at_a_time_do_not_share_a_target() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("copy.db");
        let first = Target::new(path.clone(), Existing::Replace).unwrap();

        let second = Target::new(path.clone(), Existing::Replace).map(drop);

        assert_eq!(second, Err(StoreError::Busy { path: path.display().to_string() }));
        drop(first);
        make(&path, Existing::Replace).unwrap();
    }

    #[test]
    fn a_missing_folder_and_a_folder_in_the_place_of_the_file_are_named() {
        let dir = tempfile::tempdir().unwrap();

        let missing = make(&dir.path().join("none/copy.db"), Existing::Refuse).unwrap_err();
        let folder = make(dir.path(), Existing::Replace).unwrap_err();

        assert!(missing.to_string().ends_with("/none"), "{missing}");
        assert!(folder.to_string().contains("it is a folder"), "{folder}");
    }
}
