//! What is wrong with a call of a state transaction.

use serde_json::{Value, json};

use crate::error::{Coded, ErrorCode};

/// How many statements a transaction of the contract may have, those that write its state
/// included.
pub const MAX_STATEMENTS: usize = 128;
/// How many bytes it may bind in all, its state included: 512 KiB.
pub const MAX_BYTES: usize = 512 * 1024;

/// A fault of whoever uses a state transaction.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransactionError {
    /// It has been committed or rolled back.
    #[error("the state transaction is already finalized")]
    Finished,
    /// It is too large.
    #[error(
        "the transaction budget is {MAX_STATEMENTS} statements and {MAX_BYTES} bytes, and this one has \
         {statements} statements and {bytes} bytes"
    )]
    TooLarge {
        /// How many statements it has.
        statements: usize,
        /// How many bytes they bind.
        bytes: usize,
    },
    /// Its statements neither commit it nor roll it back.
    #[error("a statement cannot end the state transaction: use commit() or rollback()")]
    Control,
}

impl Coded for TransactionError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Finished => ErrorCode::new("actor", "state_transaction_finished"),
            Self::TooLarge { .. } => ErrorCode::new("sqlite", "transaction_too_large"),
            Self::Control => ErrorCode::new("actor", "invalid_argument"),
        }
    }

    fn metadata(&self) -> Option<Value> {
        match self {
            Self::TooLarge { statements, bytes } => {
                Some(json!({ "statements": statements, "bytes": bytes }))
            }
            Self::Finished | Self::Control => None,
        }
    }
}
