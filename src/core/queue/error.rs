//! What can go wrong with an actor's queue.

use serde_json::{Value, json};

use crate::error::{Coded, ErrorCode, InvalidArgument};
use crate::store::MessageId;

/// A fault of the queue.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueError {
    /// As many messages wait as may.
    // The beginning of the text is part of the behaviour.
    #[error("Queue is full. Limit is {limit} messages")]
    Full {
        /// How many may wait.
        limit: usize,
    },
    /// The encoded message is too long.
    #[error("the queue message has {size} bytes, the limit is {limit}")]
    MessageTooLarge {
        /// The length of its encoding.
        size: usize,
        /// How long it may be.
        limit: usize,
    },
    /// Nothing came in time.
    #[error("the queue wait timed out after {timeout_ms} ms")]
    TimedOut {
        /// How long was waited.
        timeout_ms: u64,
    },
    /// The message was completed before, or is no longer this consumer's.
    #[error("the queue message was already completed")]
    AlreadyCompleted,
    /// The message was not received as one to complete.
    #[error("the queue message of `{name}` was not received with `completable`")]
    CompleteNotConfigured {
        /// The name of the message.
        name: String,
    },
    /// The message of this id has another name.
    #[error("queue message {message_id} is named `{actual_name}`, not `{expected_name}`")]
    MessageIdentityMismatch {
        /// The message.
        message_id: i64,
        /// The name that was asked for.
        expected_name: String,
        /// The name that it has.
        actual_name: String,
    },
    /// The queue was reset while somebody waited for the completion of a message.
    #[error("queue message {message_id} was thrown away before its completion")]
    CompletionWaiterDropped {
        /// The message.
        message_id: i64,
    },
    /// An option of a message is out of range.
    #[error(transparent)]
    InvalidArgument(#[from] InvalidArgument),
    /// The message was given up while somebody waited for its completion.
    #[error("queue message {message_id} was given up after {deliveries} deliveries")]
    Dead {
        /// The message.
        message_id: i64,
        /// How often it was handed out.
        deliveries: u32,
    },
}

impl QueueError {
    pub(super) const fn dead(id: MessageId, deliveries: u32) -> Self {
        Self::Dead { message_id: id.0, deliveries }
    }
}

impl Coded for QueueError {
    fn code(&self) -> ErrorCode {
        let code = match self {
            Self::Full { .. } => "full",
            Self::MessageTooLarge { .. } => "message_too_large",
            Self::TimedOut { .. } => "timed_out",
            Self::AlreadyCompleted => "already_completed",
            Self::CompleteNotConfigured { .. } => "complete_not_configured",
            Self::MessageIdentityMismatch { .. } => "message_identity_mismatch",
            Self::CompletionWaiterDropped { .. } => "completion_waiter_dropped",
            Self::Dead { .. } => "dead",
            Self::InvalidArgument(error) => return error.code(),
        };
        ErrorCode::new("queue", code)
    }

    fn public_status(&self) -> Option<u16> {
        match self {
            Self::Full { .. }
            | Self::MessageTooLarge { .. }
            | Self::TimedOut { .. }
            | Self::AlreadyCompleted
            | Self::CompleteNotConfigured { .. }
            | Self::Dead { .. } => Some(400),
            Self::InvalidArgument(error) => error.public_status(),
            Self::MessageIdentityMismatch { .. } | Self::CompletionWaiterDropped { .. } => None,
        }
    }

    fn metadata(&self) -> Option<Value> {
        match self {
            Self::Full { limit } => Some(json!({ "limit": limit })),
            Self::MessageTooLarge { size, limit } => Some(json!({ "size": size, "limit": limit })),
            Self::TimedOut { timeout_ms } => Some(json!({ "timeout_ms": timeout_ms })),
            Self::AlreadyCompleted => None,
            Self::InvalidArgument(error) => error.metadata(),
            Self::CompleteNotConfigured { name } => Some(json!({ "name": name })),
            Self::MessageIdentityMismatch { message_id, expected_name, actual_name } => {
                Some(json!({
                    "message_id": message_id,
                    "expected_name": expected_name,
                    "actual_name": actual_name,
                }))
            }
            Self::CompletionWaiterDropped { message_id } => {
                Some(json!({ "message_id": message_id }))
            }
            Self::Dead { message_id, deliveries } => {
                Some(json!({ "message_id": message_id, "deliveries": deliveries }))
            }
        }
    }
}
