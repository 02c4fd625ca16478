//! What can go wrong with the store.

use serde_json::{Value, json};

use crate::error::{Coded, ErrorCode};

/// A fault of the store. Cheap to clone, since one fault may answer a whole group.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// No room; certainly not committed.
    #[error("the disk that holds {path} is full")]
    Full {
        /// The database.
        path: String,
    },
    /// Another connection held the database; certainly not committed.
    #[error("{path} is busy")]
    Busy {
        /// The database.
        path: String,
    },
    /// The batch belongs to a generation that has ended; certainly not committed.
    #[error("the generation that wrote has ended")]
    Stale,
    /// The commit may or may not be on the disk; recovery decides.
    #[error("whether {path} took the change is unknown: {reason}")]
    OutcomeUnknown {
        /// The database.
        path: String,
        /// What SQLite said.
        reason: String,
    },
    /// Too much waits to be written.
    #[error("{waiting_bytes} bytes wait to be written, the limit is {limit_bytes}")]
    Overloaded {
        /// What waits.
        waiting_bytes: usize,
        /// What may wait.
        limit_bytes: usize,
    },
    /// The actor has no row.
    #[error("the actor is not in the directory")]
    NotFound,
    /// The store failed and could not be reopened.
    #[error("the store {path} is down: {reason}")]
    Down {
        /// The folder.
        path: String,
        /// Why.
        reason: String,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// Another owner has the folder open.
    #[error("{path} is in use by {owner}")]
    Locked {
        /// The folder.
        path: String,
        /// Who holds it, such as `process 4711 on host-a`.
        owner: String,
        /// The holder's process id, when it is known.
        pid: Option<u32>,
    },
    /// The folder was written by a later version.
    #[error("{path} has schema version {found}, this version reads up to {supported}")]
    NewerSchema {
        /// The database.
        path: String,
        /// The version found.
        found: i64,
        /// The newest version that can be read.
        supported: i64,
    },
    /// A file is not a sound database.
    #[error("{path} is corrupt: {reason}")]
    Corrupt {
        /// The file.
        path: String,
        /// What SQLite said.
        reason: String,
    },
    /// The file of an actor that the directory names is not there.
    #[error("the actor file {path} is missing")]
    FileMissing {
        /// The file.
        path: String,
    },
    /// A transaction that spans turns is open on the actor's file.
    #[error("a transaction is open on {path}")]
    TransactionOpen {
        /// The file.
        path: String,
    },
    /// A transaction that the author began by hand did not end in time; certainly not done.
    #[error("a transaction begun by hand was still open after {timeout_ms} ms")]
    ManualTransactionOpen {
        /// How long its end was waited for, in milliseconds.
        timeout_ms: u64,
    },
    /// A deferred foreign key of the author refused the commit of a turn; certainly not
    /// committed, with all that the turn changed.
    #[error("the turn's transaction was rolled back: {reason}")]
    TurnLost {
        /// What SQLite said.
        reason: String,
    },
    /// Something has the name that was asked for.
    #[error("{path} exists already")]
    Exists {
        /// The file.
        path: String,
    },
    /// A folder that is to be filled has something in it.
    #[error("the folder {path} is not empty")]
    NotEmpty {
        /// The folder.
        path: String,
    },
    /// The name belongs to the storage itself.
    #[error("{path} belongs to the storage that is open")]
    Reserved {
        /// The file or folder.
        path: String,
    },
    /// A file is not the copy of an actor.
    #[error("{path} is not the file of an actor: {reason}")]
    NotAnActor {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// A file changed while it was read.
    #[error("{path} changed while it was read")]
    Changed {
        /// The file.
        path: String,
    },
    /// The folder cannot be used.
    #[error("cannot use {path}: {reason}")]
    Io {
        /// The file or folder.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// Anything else that SQLite refused.
    #[error("sqlite: {reason}")]
    Sqlite {
        /// What SQLite said.
        reason: String,
    },
}

impl Coded for StoreError {
    fn code(&self) -> ErrorCode {
        let code = match self {
            Self::Full { .. } => "full",
            Self::Busy { .. } => "busy",
            Self::Stale => "stale_generation",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::Overloaded { .. } => return ErrorCode::new("actor", "overloaded"),
            Self::NotFound => return ErrorCode::new("actor", "not_found"),
            Self::Down { .. } => "down",
            Self::Closed => "closed",
            Self::Locked { .. } => "locked",
            Self::NewerSchema { .. } => "newer_schema",
            Self::Corrupt { .. } => "corrupt",
            Self::FileMissing { .. } => "file_missing",
            Self::TransactionOpen { .. } => return ErrorCode::new("sqlite", "transaction_open"),
            Self::ManualTransactionOpen { .. } => {
                return ErrorCode::new("sqlite", "manual_transaction_open");
            }
            Self::TurnLost { .. } => return ErrorCode::new("sqlite", "turn_lost"),
            Self::Exists { .. } => "exists",
            Self::NotEmpty { .. } => "not_empty",
            Self::Reserved { .. } => "reserved",
            Self::NotAnActor { .. } => "not_an_actor",
            Self::Changed { .. } => "changed",
            Self::Io { .. } => "io",
            Self::Sqlite { .. } => return ErrorCode::INTERNAL,
        };
        ErrorCode::new("storage", code)
    }

    fn metadata(&self) -> Option<Value> {
        match self {
            Self::Locked { path, owner, pid } => {
                Some(json!({ "path": path, "owner": owner, "pid": pid }))
            }
            Self::NewerSchema { path, found, supported } => {
                Some(json!({ "path": path, "found": found, "supported": supported }))
            }
            Self::Full { path }
            | Self::Busy { path }
            | Self::FileMissing { path }
            | Self::Exists { path }
            | Self::NotEmpty { path }
            | Self::Reserved { path }
            | Self::Changed { path } => Some(json!({ "path": path })),
            Self::OutcomeUnknown { path, reason }
            | Self::Down { path, reason }
            | Self::Corrupt { path, reason }
            | Self::NotAnActor { path, reason }
            | Self::Io { path, reason } => Some(json!({ "path": path, "reason": reason })),
            Self::ManualTransactionOpen { timeout_ms } => Some(json!({ "timeout_ms": timeout_ms })),
            Self::TurnLost { reason } => Some(json!({ "reason": reason })),
            Self::Overloaded { waiting_bytes, limit_bytes } => {
                Some(json!({ "waitingBytes": waiting_bytes, "limitBytes": limit_bytes }))
            }
            Self::Stale
            | Self::NotFound
            | Self::Closed
            | Self::TransactionOpen { .. }
            | Self::Sqlite { .. } => None,
        }
    }
}
