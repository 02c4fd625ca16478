//! What can go wrong with an author's SQL.

use std::fmt;

use serde_json::{Value, json};

use crate::error::{Coded, ErrorCode};
use crate::store::StoreError;
use crate::time::Duration;

const SEVERAL: &str = "sqlite execute only supports a single statement";

/// How a transaction ended that can be named no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its changes are there.
    Committed,
    /// Its changes are not there.
    RolledBack,
}

/// A fault of an author's SQL, or of the transaction that it is in.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
#[non_exhaustive]
pub enum SqlError {
    /// A statement was refused or failed.
    #[error("{message}")]
    Statement {
        /// SQLite's extended result code; [`SqlError::NOT_SQLITE`] when SQLite was not asked.
        code: i32,
        /// Which statement of the text, from 0; blank ones are not counted.
        index: usize,
        /// What SQLite said.
        message: String,
    },
    /// A parameter has no value that can be bound.
    #[error("invalid bind parameter {name:?}: {reason}")]
    InvalidBindParameter {
        /// Its name, with the sigil.
        name: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// The turn's transaction is gone, and all that the turn changed with it.
    #[error("the turn's transaction was rolled back by a statement: {reason}")]
    TurnLost {
        /// What the statement that ended it said.
        reason: String,
    },
    /// A synchronous statement from outside met an open transaction.
    #[error("a transaction is open: use its handle, or the asynchronous api, which waits")]
    TransactionOpen,
    /// Too much waits for the database.
    #[error("{limit} operations wait for the database, which is the limit")]
    TransactionQueueFull {
        /// How many may wait.
        limit: usize,
    },
    /// The database was closed, or had to be.
    #[error("the database is closed")]
    TransactionClosed,
    /// A timeout or a name that no transaction may have.
    #[error("invalid transaction {what} {value}: {reason}")]
    TransactionInvalidArgument {
        /// Which argument.
        what: &'static str,
        /// What it was.
        value: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// There is no transaction of this key, or it ended too long ago.
    #[error("there is no transaction {key:?}")]
    TransactionUnknown {
        /// The key.
        key: String,
    },
    /// The transaction has ended.
    #[error("transaction {key:?} is already {state}")]
    TransactionTerminal {
        /// Its key.
        key: String,
        /// How it ended.
        state: Ending,
    },
    /// The transaction took too long, or this had to wait for one that did.
    #[error(
        "the transaction expired after {timeout_ms} ms, the safety backstop; raise its timeout, \
         or look for a nested transaction or a call of the outer `db` within its callback: \
         both wait for the transaction itself"
    )]
    TransactionExpired {
        /// How long it was allowed to take, in milliseconds.
        timeout_ms: u64,
    },
    /// A transaction that was begun by hand did not end in time.
    #[error("a transaction begun by hand was still open after {timeout_ms} ms")]
    ManualTransactionOpen {
        /// How long this waited, in milliseconds.
        timeout_ms: u64,
    },
    /// The place that keeps the actor failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SqlError {
    /// The code of a statement that was refused before SQLite saw it.
    pub const NOT_SQLITE: i32 = -1;

    /// What SQLite said of the `index`-th statement.
    pub(super) fn of(index: usize, error: &rusqlite::Error) -> Self {
        let (code, message) = match error {
            rusqlite::Error::SqliteFailure(error, Some(message)) => {
                (error.extended_code, message.clone())
            }
            rusqlite::Error::SqlInputError { error, msg, .. } => (error.extended_code, msg.clone()),
            other => (
                other.sqlite_error().map_or(Self::NOT_SQLITE, |error| error.extended_code),
                other.to_string(),
            ),
        };
        Self::Statement { code, index, message }
    }

    /// Whether a COMMIT that failed so may have happened all the same.
    pub fn leaves_commit_unknown(&self) -> bool {
        use rusqlite::ffi::{
            SQLITE_BUSY, SQLITE_CONSTRAINT, SQLITE_ERROR, SQLITE_FULL, SQLITE_LOCKED,
        };
        let certain = [SQLITE_BUSY, SQLITE_CONSTRAINT, SQLITE_ERROR, SQLITE_FULL, SQLITE_LOCKED];
        self.primary_code().is_some_and(|code| !certain.contains(&code))
    }

    /// What is wrong with the place that keeps the rows, if that failed, for want of room
    /// for instance, and not what the author asked of it. `path` names the file.
    pub fn fault_of_store(&self, path: String) -> Option<StoreError> {
        use rusqlite::ffi::{SQLITE_BUSY, SQLITE_FULL};
        match (self, self.primary_code()) {
            (Self::Store(error), _) => Some(error.clone()),
            (_, Some(SQLITE_FULL)) => Some(StoreError::Full { path }),
            (_, Some(SQLITE_BUSY)) => Some(StoreError::Busy { path }),
            _ => None,
        }
    }

    /// Whether a statement that writes may have been committed all the same, where it
    /// ends with a commit of its own.
    pub(super) fn leaves_statement_unknown(&self) -> bool {
        use rusqlite::ffi::{SQLITE_IOERR, SQLITE_NOMEM};
        self.primary_code().is_some_and(|code| [SQLITE_IOERR, SQLITE_NOMEM].contains(&code))
    }

    fn primary_code(&self) -> Option<i32> {
        match self {
            // The low byte of an extended code.
            Self::Statement { code, .. } if *code >= 0 => Some(code & 0xff),
            _ => None,
        }
    }

    /// The same fault as that of the `index`-th statement.
    pub(super) fn at(self, index: usize) -> Self {
        match self {
            Self::Statement { code, message, .. } => Self::Statement { code, index, message },
            other => other,
        }
    }

    /// A text of several statements where one is wanted.
    pub(super) fn several_statements() -> Self {
        Self::refused(0, SEVERAL)
    }

    pub(super) fn is_several_statements(&self) -> bool {
        matches!(self, Self::Statement { code: Self::NOT_SQLITE, message, .. } if message == SEVERAL)
    }

    /// A statement that SQLite was not asked about.
    pub(super) fn refused(index: usize, message: &str) -> Self {
        Self::Statement { code: Self::NOT_SQLITE, index, message: message.to_owned() }
    }

    /// A statement that an author may not run, in the words and with the code of SQLite.
    pub(super) fn denied(why: &str) -> Self {
        let code = rusqlite::ffi::SQLITE_AUTH;
        Self::Statement { code, index: 0, message: format!("not authorized: {why}") }
    }

    pub(super) fn expired(timeout: Duration) -> Self {
        Self::TransactionExpired { timeout_ms: millis(timeout) }
    }
}

/// What the store made of the commit of a transaction.
impl From<SqlError> for StoreError {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Store(error) => error,
            other => Self::Sqlite { reason: other.to_string() },
        }
    }
}

/// For messages and metadata.
pub(in crate::store) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Committed => "committed",
            Self::RolledBack => "rolled back",
        })
    }
}

impl Coded for SqlError {
    fn code(&self) -> ErrorCode {
        let code = match self {
            // Not meant for clients: an action that wants to tell them translates it.
            Self::Statement { .. } => return ErrorCode::INTERNAL,
            Self::Store(error) => return error.code(),
            Self::InvalidBindParameter { .. } => "invalid_bind_parameter",
            Self::TurnLost { .. } => "turn_lost",
            Self::TransactionOpen => "transaction_open",
            Self::TransactionQueueFull { .. } => "transaction_queue_full",
            Self::TransactionClosed => "transaction_closed",
            Self::TransactionInvalidArgument { .. } => "transaction_invalid_argument",
            Self::TransactionUnknown { .. } => "transaction_unknown",
            Self::TransactionTerminal { .. } => "transaction_terminal",
            Self::TransactionExpired { .. } => "transaction_expired",
            Self::ManualTransactionOpen { .. } => "manual_transaction_open",
        };
        ErrorCode::new("sqlite", code)
    }

    fn metadata(&self) -> Option<Value> {
        match self {
            Self::InvalidBindParameter { name, reason } => {
                Some(json!({ "name": name, "reason": reason }))
            }
            Self::TransactionQueueFull { limit } => Some(json!({ "limit": limit })),
            Self::TransactionInvalidArgument { what, reason, .. } => {
                Some(json!({ "argument": what, "reason": reason }))
            }
            Self::TransactionUnknown { key } => Some(json!({ "key": key })),
            Self::TransactionTerminal { key, state } => {
                Some(json!({ "key": key, "state": state.to_string() }))
            }
            Self::TransactionExpired { timeout_ms }
            | Self::ManualTransactionOpen { timeout_ms } => {
                Some(json!({ "timeout_ms": timeout_ms }))
            }
            Self::TurnLost { reason } => Some(json!({ "reason": reason })),
            Self::Store(error) => error.metadata(),
            Self::Statement { .. } | Self::TransactionOpen | Self::TransactionClosed => None,
        }
    }
}
