//! The folder of actor files: their names, how one comes to be and how it goes.
//!
//! # Invariants
//!
//! 1. A name is never used twice: SQLite would replay the log that an earlier file of
//!    the name left into the next one.
//! 2. A database file that may be live is opened by SQLite alone. Here are opened: a
//!    file before an actor has it, and the directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::faults::{FileFaults, PromotionStep};
use super::image::image;
use crate::store::folder::{create_durably, sync_directory, unusable};
use crate::store::place::{self, FileName};
use crate::store::{StoreError, connection::Database};

/// What SQLite keeps beside a database. The database itself goes last, so that a log
/// never outlives it under its name.
const SUFFIXES: [&str; 4] = ["-wal", "-shm", "-journal", ""];

/// The folder `actors/`.
#[derive(Clone, Debug)]
pub(in crate::store) struct ActorsFolder(PathBuf);

impl ActorsFolder {
    /// The folder at this path. It is created with its first file.
    pub(in crate::store) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Where a file is.
    pub(super) fn path(&self, name: FileName) -> PathBuf {
        self.0.join(name.to_string())
    }

    /// Writes a file without rows under a name that nothing has; it is durable, and so
    /// is its name. `None` when something has the name. A file that could not be written
    /// is deleted.
    pub(super) fn create(&self, name: FileName, faults: &FileFaults) -> io::Result<Option<()>> {
        let image = image().map_err(io::Error::other)?;
        let mut file = match self.create_empty(name) {
            Ok(file) => file,
            // It was left by a failure, or another promotion of the actor was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            Err(error) => return Err(error),
        };
        let written = file
            .write_all(image)
            .and_then(|()| file.sync_all())
            .and_then(|()| faults.promotion(PromotionStep::Written))
            .and_then(|()| sync_directory(&self.0))
            .and_then(|()| faults.promotion(PromotionStep::Created));
        drop(file);
        // From here on the file is ours to delete, and only ours.
        written.inspect_err(|_| self.remove(name)).map(Some)
    }

    /// Takes a name for a file that SQLite is to fill.
    pub(super) fn claim(&self, name: FileName) -> io::Result<()> {
        self.create_empty(name).map(drop)
    }

    fn create_empty(&self, name: FileName) -> io::Result<File> {
        create_durably(&self.0)?;
        let path = self.path(name);
        if SUFFIXES.iter().any(|suffix| beside(&path, suffix).symlink_metadata().is_ok()) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        OpenOptions::new().write(true).create_new(true).open(&path)
    }

    /// Makes a file that SQLite has filled and closed durable, and its name.
    pub(super) fn make_durable(&self, name: FileName) -> io::Result<()> {
        File::open(self.path(name))?.sync_all()?;
        sync_directory(&self.0)
    }

    /// Deletes a file that nobody has open, and what SQLite left beside it. What cannot
    /// be deleted is for the sweep of the next start.
    pub(super) fn remove(&self, name: FileName) {
        remove(&self.path(name));
    }

    /// Deletes every file of an actor that the directory does not name: what a crash
    /// left in the middle of a promotion or of an actor's end.
    pub(in crate::store) fn sweep(
        &self,
        directory: &Connection,
        database: &Database,
    ) -> Result<(), StoreError> {
        let unreadable = |error: io::Error| unusable(&self.0, &error);
        let mut swept = Vec::new();
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(unreadable)?,
        };
        for entry in entries {
            let file = entry.map_err(unreadable)?.file_name();
            let Some(name) = file.to_str().and_then(FileName::parse) else {
                tracing::warn!(file = %file.display(), "not the file of an actor, left alone");
                continue;
            };
            if !place::has_file(directory, name).map_err(|error| database.fault(&error))? {
                swept.push(name);
            }
        }
        swept.sort_by_key(|name| (name.id.to_bytes(), name.n));
        swept.dedup();
        for name in swept {
            tracing::info!(%name, "the directory does not name this file, it is deleted");
            self.remove(name);
        }
        Ok(())
    }
}

/// What SQLite keeps under this suffix beside a database.
pub(in crate::store) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn remove(path: &Path) {
    for suffix in SUFFIXES {
        let path = beside(path, suffix);
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "could not delete an actor's file");
                return;
            }
        }
    }
}
