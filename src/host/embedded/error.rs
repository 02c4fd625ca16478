//! What can go wrong between a caller and an actor of this host.

use serde_json::{Value, json};

use super::EnvironmentId;
use crate::error::{Coded, Error, ErrorCode, InvalidArgument};
use crate::ids::{ActorId, ActorKey, ActorName, MAX_INPUT_LEN};

/// A fault of the host.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostError {
    /// No actor has the id, or no longer.
    #[error("actor instance '{id}' was not found")]
    NoSuchId {
        /// The id.
        id: ActorId,
    },
    /// No actor of this name has the key.
    #[error("actor {name} '{key}' was not found")]
    NoSuchKey {
        /// The actor's type.
        name: ActorName,
        /// The key.
        key: ActorKey,
    },
    /// No environment of this host can run the type.
    #[error("actor factory '{name}' is not registered")]
    NotRegistered {
        /// The type.
        name: ActorName,
    },
    /// Another actor of this name has the key.
    #[error("actor {name} '{key}' already exists with the id {id}")]
    AlreadyExists {
        /// The actor's type.
        name: ActorName,
        /// The key.
        key: ActorKey,
        /// The id of the actor that has it.
        id: ActorId,
    },
    /// The thread that ran the actor ended. Another try may find another thread.
    #[error("the environment {environment} that ran the actor is gone")]
    EnvironmentGone {
        /// The environment.
        environment: EnvironmentId,
    },
    /// A test had the process that ran the actor crash.
    #[error("the process crashed, as the test asked for")]
    Crashed,
    /// The host takes no more work.
    #[error("the registry is shut down")]
    ShutDown,
}

impl Coded for HostError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NoSuchId { .. } | Self::NoSuchKey { .. } => ErrorCode::new("actor", "not_found"),
            Self::NotRegistered { .. } => ErrorCode::new("actor", "not_registered"),
            Self::AlreadyExists { .. } => ErrorCode::new("actor", "already_exists"),
            Self::EnvironmentGone { .. } => ErrorCode::new("actor", "environment_gone"),
            Self::Crashed => ErrorCode::new("testing", "crashed"),
            Self::ShutDown => ErrorCode::new("registry", "shut_down"),
        }
    }

    fn metadata(&self) -> Option<Value> {
        match self {
            Self::NoSuchId { id } => Some(json!({ "resource": "instance", "id": id.to_string() })),
            Self::NoSuchKey { name, key } => {
                Some(json!({ "resource": name.as_str(), "id": key.to_string() }))
            }
            Self::NotRegistered { name } => Some(json!({ "actor_name": name.as_str() })),
            Self::AlreadyExists { name, key, id } => Some(json!({
                "actor_name": name.as_str(),
                "key": key.to_string(),
                "actor_id": id.to_string(),
            })),
            Self::EnvironmentGone { .. } => Some(json!({ "retryable": true })),
            Self::Crashed | Self::ShutDown => None,
        }
    }
}

/// Refuses an input that is larger than [`MAX_INPUT_LEN`].
pub(super) fn check_input(input: Option<&bytes::Bytes>) -> Result<(), Error> {
    let len = input.map_or(0, bytes::Bytes::len);
    if len <= MAX_INPUT_LEN {
        return Ok(());
    }
    Err(InvalidArgument {
        what: "actor input",
        value: format!("of {len} bytes"),
        reason: format!("the limit is {MAX_INPUT_LEN} bytes"),
    }
    .into())
}
