//! How an actor's file is opened, checkpointed and closed.
//!
//! # Invariants
//!
//! 1. A file is never created by opening it: a missing one is an error, not an empty
//!    actor.
//! 2. The file has one connection, and no other process can have one: its locking mode
//!    is exclusive before anything is read.
//! 3. The log stays when the connection closes, so that its inode stays the one that
//!    the sync descriptor has.

use std::ops::Deref;
use std::path::Path;
use std::sync::Once;

use rusqlite::config::DbConfig;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, FileControl, OpenFlags, ffi};

use super::schema;
use crate::store::connection::{Database, FULL_FLUSH, WriteConnection};
use crate::store::sql::UserSql;
use crate::store::{ActorNumber, StoreError};

const STATEMENTS: usize = 32;
/// The small blocks that SQLite takes ahead for a connection: 8 KiB instead of 48, for
/// there are many connections. Process-wide, and only before SQLite is used first.
const LOOKASIDE: (i32, i32) = (128, 64);
/// A log that had more frames than this (1 MiB) is cut when its file closes; a smaller
/// one stays as it is, which makes the first write after opening cheap.
const KEPT_FRAMES: u32 = 256;

/// The connection of a file, and what an author's statements need beside it.
#[derive(Debug)]
pub(super) struct FileConnection {
    write: WriteConnection,
    pub(super) user: UserSql,
}

impl FileConnection {
    fn new(mut sqlite: Connection) -> rusqlite::Result<Self> {
        let user = UserSql::install(&mut sqlite)?;
        Ok(Self { write: WriteConnection::watch(sqlite)?, user })
    }

    /// Asks `hook` at each commit whether that fails; `None` asks nobody.
    pub(super) fn watch_commits(
        &mut self,
        hook: Option<Box<dyn FnMut() -> bool + Send>>,
    ) -> rusqlite::Result<()> {
        self.write.sqlite.commit_hook(hook)
    }

    /// Closes without copying the log: what is in it, recovery shall decide.
    pub(super) fn abandon(self) {
        self.write.abandon();
    }
}

impl Deref for FileConnection {
    type Target = WriteConnection;

    fn deref(&self) -> &WriteConnection {
        &self.write
    }
}

/// Sets what SQLite takes for each connection. Without effect once it is in use.
pub(in crate::store) fn configure() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: SQLite demands that no other of its functions runs meanwhile. It refuses
        // the call once it is initialised, which the first connection of this copy of the
        // library does, and `Once` keeps other stores from being opened before this ends.
        // The variadic arguments are the two integers that this option takes.
        let code =
            unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_LOOKASIDE, LOOKASIDE.0, LOOKASIDE.1) };
        if code != ffi::SQLITE_OK {
            tracing::debug!(code, "sqlite was in use before its settings were made");
        }
    });
}

/// Opens the file of this actor.
pub(super) fn open(database: &Database, number: ActorNumber) -> Result<FileConnection, StoreError> {
    let connection = open_any(database)?;
    let owner = schema::owner(&connection.sqlite).map_err(|error| database.fault(&error))?;
    if owner != Some(number) {
        return Err(corrupt(database, &format!("it is not the file of actor {}", number.0)));
    }
    Ok(connection)
}

/// Opens the file of whichever actor, one that has no owner included.
pub(super) fn open_any(database: &Database) -> Result<FileConnection, StoreError> {
    let connection = match database {
        Database::Memory => Connection::open_in_memory_with_flags(
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )
        .and_then(in_memory),
        Database::Kept(memory) => memory.connect().and_then(in_memory),
        Database::KeptFile(file) => match file.connect() {
            Ok(None) => return Err(StoreError::FileMissing { path: database.label() }),
            Ok(Some(sqlite)) => in_memory(sqlite),
            Err(error) => Err(error),
        },
        Database::File(path) => {
            if !path.exists() {
                return Err(StoreError::FileMissing { path: database.label() });
            }
            open_file(path)
        }
    }
    .map_err(|error| database.fault(&error))?;
    connection.sqlite.set_prepared_statement_cache_capacity(STATEMENTS);
    schema::migrate(&connection.sqlite, database)?;
    Ok(connection)
}

/// With what authors notice of the settings of a file.
fn in_memory(sqlite: Connection) -> rusqlite::Result<FileConnection> {
    sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    sqlite.execute_batch("PRAGMA foreign_keys=OFF; PRAGMA temp_store=MEMORY;")?;
    FileConnection::new(sqlite)
}

/// The connection of an actor in memory, whose rows are there already.
pub(super) fn of_memory(sqlite: Connection) -> rusqlite::Result<FileConnection> {
    sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, true)?;
    sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, true)?;
    sqlite.set_prepared_statement_cache_capacity(STATEMENTS);
    in_memory(sqlite)
}

fn open_file(path: &Path) -> rusqlite::Result<FileConnection> {
    // Invariant 1: no CREATE.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let sqlite = Connection::open_with_flags(path, flags)?;
    // First of all (invariant 2).
    sqlite.execute_batch("PRAGMA locking_mode=EXCLUSIVE")?;
    let mut persist = 1;
    sqlite.file_control(Some("main"), FileControl::PersistWal(&mut persist))?;
    sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    sqlite.execute_batch(
        "PRAGMA busy_timeout=0;
         PRAGMA synchronous=NORMAL;
         PRAGMA wal_autocheckpoint=0;
         PRAGMA temp_store=MEMORY;
         PRAGMA cache_size=-256;
         PRAGMA foreign_keys=OFF;
         PRAGMA mmap_size=0;",
    )?;
    sqlite.execute_batch(FULL_FLUSH)?;
    let mode: String = sqlite.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(rusqlite::Error::SqliteFailure(
            ffi::Error::new(ffi::SQLITE_CORRUPT),
            Some(format!("its journal mode is {mode}")),
        ));
    }
    FileConnection::new(sqlite)
}

/// Puts everything into the database file and syncs it: what recovery found, or what
/// was committed so far, is certain afterwards.
pub(super) fn make_certain(
    connection: &FileConnection,
    database: &Database,
) -> Result<(), StoreError> {
    let reached =
        connection.checkpoint(CheckpointMode::TRUNCATE).map_err(|error| database.fault(&error))?;
    match reached.is_whole() {
        true => Ok(()),
        false => Err(StoreError::Busy { path: database.label() }),
    }
}

/// Closes a file. SQLite copies the log into the database; if it cannot, the log has
/// everything.
pub(super) fn close(connection: FileConnection, database: &Database) {
    connection.sqlite.flush_prepared_statement_cache();
    if connection.frames() > KEPT_FRAMES
        && let Err(error) = connection.sqlite.execute_batch("PRAGMA journal_size_limit=0")
    {
        tracing::debug!(%error, "a log stays as long as it is");
    }
    if let Err((_, error)) = connection.write.sqlite.close() {
        tracing::warn!(%error, path = %database.label(), "an actor's file did not close well");
    }
}

pub(super) fn corrupt(database: &Database, reason: &str) -> StoreError {
    StoreError::Corrupt { path: database.label(), reason: reason.to_owned() }
}
