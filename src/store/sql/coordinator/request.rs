//! What the coordinator is asked and what it asks for.

use crate::store::sql::error::{Ending, SqlError};
use crate::time::Duration;

/// Names one request; never used twice by a coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub(super) u64);

/// What somebody wants of the database.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// A statement, or a text of several, on its own.
    Statement {
        /// Whether it begins or ends a transaction by hand.
        by_hand: bool,
    },
    /// Several statements in a transaction of their own, run in one go.
    Batch,
    /// A transaction that others wait for.
    Begin {
        /// What its handle names it by.
        key: String,
        /// How long it may take from its beginning on.
        timeout: Duration,
    },
    /// A statement of a transaction's handle.
    Inside {
        /// The transaction.
        key: String,
        /// How the transaction has ended, if the statement succeeds and ends it.
        ends_as: Ending,
    },
    /// The end of a transaction.
    Commit {
        /// The transaction.
        key: String,
    },
    /// The undoing of a transaction.
    RollBack {
        /// The transaction.
        key: String,
    },
    /// The end of a transaction's time.
    Expire {
        /// The transaction.
        key: String,
    },
    /// The end of the database in this generation.
    Close,
}

/// What is to be run on the connection for a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The statements of the request itself.
    Own,
    /// `BEGIN`.
    Begin,
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK`, if a transaction is open.
    RollBack,
}

/// How a step went.
#[derive(Clone, Debug, PartialEq)]
pub enum Ran {
    /// It succeeded or failed, and the connection goes on.
    Whole {
        /// What came of it.
        result: Result<(), SqlError>,
        /// Whether no transaction is open behind it.
        autocommit: bool,
    },
    /// Nobody knows what is in the database: it cannot be used any more.
    Broken(SqlError),
}

/// What an author is to be told in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// Transactions begun by hand take in whatever else is run meanwhile. Once.
    Manual,
    /// A transaction waits for the end of one that was begun by hand. Once.
    WaitsForManual,
    /// One that was begun by hand was still open at the close.
    RolledBackAtClose,
}

/// What whoever drives the coordinator has to do, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Run a step and report with `finished`. There is one at a time.
    Run(Ticket, Step),
    /// Tell who waits for a ticket. Each ticket is answered once.
    Answer(Ticket, Result<(), SqlError>),
    /// Write into the log.
    Warn(Warning),
    /// Report that the database failed for good. Once.
    Fail(SqlError),
}
