//! Connections to the shared database, and what SQLite's errors mean.
//!
//! # Invariants
//!
//! 1. No connection ever has `synchronous=OFF`: whichever closes last checkpoints.
//! 2. The write connection is used by one thread at a time and never interrupted.
//! 3. Only SQLite opens the database file and its index while they are live.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rusqlite::config::DbConfig;
use rusqlite::ffi::ErrorCode;
use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, OpenFlags};

use super::stats::Counters;
use super::{KeptMemory, StoreError, schema};

/// More statements than the store has, so that none is ever prepared twice.
const WRITER_STATEMENTS: usize = 128;
const READER_STATEMENTS: usize = 32;

/// A flush that also empties the drive's own cache, where the usual one does not.
pub(super) const FULL_FLUSH: &str = if cfg!(target_os = "macos") {
    "PRAGMA fullfsync=1; PRAGMA checkpoint_fullfsync=1;"
} else {
    ""
};

/// Where the shared database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Database {
    /// A file.
    File(PathBuf),
    /// Memory. Each connection would be a database of its own, so there is one.
    Memory,
    /// Memory that outlives its connections. It has one connection at a time too.
    Kept(KeptMemory),
}

/// The connection that writes.
#[derive(Debug)]
pub(super) struct WriteConnection {
    /// The connection.
    pub(super) sqlite: Connection,
    /// How many frames the write-ahead log has after a commit that wrote any; set
    /// by SQLite's hook on the committing thread, taken by the writer.
    frames: Arc<AtomicU32>,
    /// Whether the hook was called since the writer last asked.
    has_grown: Arc<AtomicBool>,
}

/// How far a checkpoint came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checkpointed {
    /// Frames in the log.
    pub(super) frames: u32,
    /// Frames of these that are in the database file.
    pub(super) copied: u32,
}

impl Checkpointed {
    /// Whether nothing is left to copy.
    pub(super) fn is_whole(self) -> bool {
        self.copied >= self.frames
    }
}

impl Database {
    /// The name for messages.
    pub(super) fn label(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Memory => ":memory:".to_owned(),
            Self::Kept(memory) => memory.label().to_owned(),
        }
    }

    /// Opens the connection that writes, creating the file when it is missing.
    pub(super) fn open_writer(&self) -> Result<WriteConnection, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = match self {
            Self::File(path) => Connection::open_with_flags(path, flags),
            Self::Memory => Connection::open_in_memory_with_flags(flags),
            Self::Kept(memory) => memory.connect(),
        };
        let sqlite = opened.map_err(|error| self.fault(&error))?;
        // Before the settings, some of which write.
        schema::check(&sqlite, self, schema::MIGRATIONS)?;
        self.set_up_writer(sqlite).map_err(|error| self.fault(&error))
    }

    /// Gives a connection the settings of the one that writes.
    pub(super) fn set_up_writer(&self, sqlite: Connection) -> rusqlite::Result<WriteConnection> {
        sqlite.set_prepared_statement_cache_capacity(WRITER_STATEMENTS);
        // The page size comes first: it is fixed once the log is on.
        sqlite.execute_batch(
            "PRAGMA busy_timeout=0;
             PRAGMA page_size=4096;
             PRAGMA temp_store=MEMORY;
             PRAGMA cache_size=-65536;
             PRAGMA foreign_keys=OFF;
             PRAGMA mmap_size=0;",
        )?;
        if matches!(self, Self::File(_)) {
            let mode: String =
                sqlite.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
            if mode != "wal" {
                return Err(rusqlite::Error::SqliteFailure(
                    rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
                    Some(format!("the file system cannot hold a write-ahead log ({mode})")),
                ));
            }
            sqlite.execute_batch(
                "PRAGMA synchronous=FULL;
                 PRAGMA wal_autocheckpoint=0;
                 PRAGMA journal_size_limit=67108864;",
            )?;
            sqlite.execute_batch(FULL_FLUSH)?;
        }
        // After the pragma above, which would replace the hook.
        WriteConnection::watch(sqlite)
    }

    /// Opens a connection that can only read. The file must exist.
    pub(super) fn open_reader(&self) -> Result<Connection, StoreError> {
        self.try_open_reader().map_err(|error| self.fault(&error))
    }

    fn try_open_reader(&self) -> rusqlite::Result<Connection> {
        let Self::File(path) = self else {
            unreachable!("memory has no readers: its writer serves reads");
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let sqlite = Connection::open_with_flags(path, flags)?;
        sqlite.set_prepared_statement_cache_capacity(READER_STATEMENTS);
        sqlite.execute_batch(
            "PRAGMA busy_timeout=0;
             PRAGMA synchronous=FULL;
             PRAGMA wal_autocheckpoint=0;
             PRAGMA temp_store=MEMORY;
             PRAGMA cache_size=-256;
             PRAGMA mmap_size=0;
             PRAGMA query_only=ON;",
        )?;
        sqlite.execute_batch(FULL_FLUSH)?;
        Ok(sqlite)
    }

    /// What an error means outside a COMMIT: there, only [`is_certain`] errors
    /// may be passed on as they are.
    pub(super) fn fault(&self, error: &rusqlite::Error) -> StoreError {
        let path = self.label();
        let reason = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                StoreError::Corrupt { path, reason }
            }
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::NoLargeFileSupport,
            ) => StoreError::Io { path, reason },
            _ => StoreError::Sqlite { reason },
        }
    }
}

/// Whether a COMMIT that failed so has certainly not happened: there was no room for
/// it, or a deferred foreign key of an author refused it before it began. All others
/// may arrive after the commit frame is in the log.
pub(super) fn is_certain(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy | ErrorCode::ConstraintViolation)
    )
}

impl WriteConnection {
    /// Watches how the log grows. The pragma `wal_autocheckpoint` must come before.
    pub(super) fn watch(mut sqlite: Connection) -> rusqlite::Result<Self> {
        let (frames, has_grown) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, grown) = (Arc::clone(&frames), Arc::clone(&has_grown));
        sqlite.wal_hook(Some(move |_: &mut Wal, frames: std::ffi::c_int| {
            count.store(u32::try_from(frames).unwrap_or(0), Ordering::Relaxed);
            grown.store(true, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self { sqlite, frames, has_grown })
    }

    /// How many frames the log had after the last commit that wrote any.
    pub(super) fn frames(&self) -> u32 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Notes how many frames the log has.
    pub(super) fn count_frames(&self, counters: &Counters) {
        let frames = self.frames.load(Ordering::Relaxed);
        counters.wal_frames.set(frames);
        counters.largest_wal_frames.raise(frames as usize);
    }

    /// How many frames the log has, if any were written since the last call;
    /// never in memory.
    pub(super) fn grown_to(&self) -> Option<u32> {
        let has_grown = self.has_grown.swap(false, Ordering::Relaxed);
        has_grown.then(|| self.frames.load(Ordering::Relaxed))
    }

    /// Copies frames of the log into the database file.
    pub(super) fn checkpoint(&self, mode: CheckpointMode) -> rusqlite::Result<Checkpointed> {
        let (frames, copied) = self.sqlite.wal_checkpoint_v2(Some("main"), mode)?;
        let count = |frames: i32| u32::try_from(frames).unwrap_or(0);
        Ok(Checkpointed { frames: count(frames), copied: count(copied) })
    }

    /// Closes without copying the log: what is in it, recovery shall decide.
    pub(super) fn abandon(self) {
        if let Err(error) =
            self.sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        {
            tracing::error!(%error, "could not keep the failed connection from checkpointing");
        }
        drop(self);
    }
}
