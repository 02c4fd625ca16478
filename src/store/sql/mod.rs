//! The SQL of authors, on the connection of an actor's own file.
//!
//! Two ways lead to that one connection. Synchronous statements run within a turn,
//! whose transaction is around them ([`SqlTurn`]). Asynchronous ones wait in a queue
//! that also knows transactions which span turns ([`SqlDatabase`]).
//!
//! # Invariants
//!
//! 1. An author's statement never writes the rows of the runtime, and never changes
//!    how the connection keeps what it commits (`authorizer`).
//! 2. A statement's failure is answered and harms no other statement, except that
//!    the loss of a transaction fails all that was in it.

mod authorizer;
mod bind;
mod coordinator;
mod database;
mod error;
pub mod look;
mod reply;
mod rows;
mod session;
mod short;
mod text;
mod transaction;
mod turn;
mod value;
mod work;

#[cfg(test)]
mod tests;

pub use self::authorizer::SqlWay;
pub(super) use self::coordinator::DEFAULT_TIMEOUT;
pub use self::database::{BeginOptions, CommitEnd, SqlDatabase, SqlHost};
pub(super) use self::error::millis;
pub use self::error::{Ending, SqlError};
pub use self::reply::SqlReply;
pub use self::rows::{SqlCursor, SqlOutcome, SqlRows};
pub use self::session::{SqlSession, UserSql};
pub use self::text::{ends_transaction, has_control as controls, is_blank, touches_data};
pub use self::transaction::SqlTransaction;
pub use self::turn::{SqlTurn, TurnConnection};
pub use self::value::{Bindings, SqlValue};
pub use self::work::{AlsoCommitted, SqlRan, SqlWork};
