//! What can be wrong with a call of the manager.

use serde_json::{Value, json};

use crate::error::{Coded, ErrorCode};
use crate::protocol::ProtocolError;

/// A fault of a call of the manager.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManagerError {
    /// The body or the query cannot be read.
    #[error("the request cannot be read: {reason}")]
    BadRequest {
        /// What is wrong with it.
        reason: String,
    },
    /// The query can be read and makes no sense.
    #[error("the query is not valid: {reason}")]
    InvalidInput {
        /// The rule that it breaks.
        reason: &'static str,
    },
}

impl ManagerError {
    pub(super) fn bad(reason: impl ToString) -> Self {
        Self::BadRequest { reason: reason.to_string() }
    }
}

impl From<ProtocolError> for ManagerError {
    fn from(error: ProtocolError) -> Self {
        Self::bad(error)
    }
}

impl Coded for ManagerError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::BadRequest { .. } => ErrorCode::new("api", "bad_request"),
            Self::InvalidInput { .. } => ErrorCode::new("validation", "invalid_input"),
        }
    }

    fn metadata(&self) -> Option<Value> {
        Some(match self {
            Self::BadRequest { reason } => json!({ "reason": reason }),
            Self::InvalidInput { reason } => json!({ "reason": reason }),
        })
    }

    fn public_status(&self) -> Option<u16> {
        Some(400)
    }
}
