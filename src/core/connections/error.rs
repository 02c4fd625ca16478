//! What can go wrong with a connection.

use serde_json::{Value, json};

use super::conn::ConnId;
use super::{MAX_SUBSCRIBED_BYTES, MAX_SUBSCRIPTIONS};
use crate::error::{Coded, ErrorCode};
use crate::store::SocketId;

/// A fault of a connection.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionError {
    /// It is not, or no longer, one of the actor's.
    #[error("the actor has no connection `{id}`")]
    NotFound {
        /// Which.
        id: ConnId,
    },
    /// It does not outlive a sleep.
    #[error("connection `{id}` is not hibernatable")]
    NotHibernatable {
        /// Which.
        id: ConnId,
    },
    /// So many clients are connected already.
    #[error("the actor has {limit} connections already")]
    TooMany {
        /// How many may be.
        limit: usize,
    },
    /// It would want more events than a connection may.
    #[error(
        "connection `{id}` subscribes to more than {MAX_SUBSCRIPTIONS} events or {MAX_SUBSCRIBED_BYTES} bytes of names"
    )]
    TooManySubscriptions {
        /// Which.
        id: ConnId,
    },
    /// No connection that was stored belongs to this socket.
    #[error("no connection is kept for socket {:02x?} of gateway {:02x?}", .socket.request, .socket.gateway)]
    RestoreNotFound {
        /// Which.
        socket: SocketId,
    },
}

impl Coded for ConnectionError {
    fn code(&self) -> ErrorCode {
        ErrorCode::new(
            "connection",
            match self {
                Self::NotFound { .. } => "not_found",
                Self::NotHibernatable { .. } => "not_hibernatable",
                Self::TooMany { .. } => "too_many",
                Self::TooManySubscriptions { .. } => "too_many_subscriptions",
                Self::RestoreNotFound { .. } => "restore_not_found",
            },
        )
    }

    fn metadata(&self) -> Option<Value> {
        match self {
            Self::NotFound { id }
            | Self::NotHibernatable { id }
            | Self::TooManySubscriptions { id } => Some(json!({ "conn_id": id.as_str() })),
            Self::TooMany { limit } => Some(json!({ "limit": limit })),
            Self::RestoreNotFound { .. } => None,
        }
    }
}
