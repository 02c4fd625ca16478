//! What can be wrong with a call of the manager.

use serde_json::{Value, json};

use crate::error::{Coded, ErrorCode, InvalidArgument};

/// A fault of a call of the manager, with the codes of §6.3 and O§1.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManagerError {
    /// The body or the query cannot be read.
    #[error("the request cannot be read: {reason}")]
    BadRequest {
        /// What is wrong with it, at most 256 characters.
        reason: String,
    },
    /// The request can be read and makes no sense.
    #[error("the request is not valid: {reason}")]
    InvalidInput {
        /// The rule that it breaks, at most 256 characters.
        reason: String,
    },
    /// Nothing is reached by that path.
    #[error("there is nothing under `{path}`")]
    NotFound {
        /// The path.
        path: String,
    },
    /// The call needs a token, and has none or another.
    #[error("the call needs a token")]
    Unauthorized,
    /// Whoever calls may not.
    #[error("calls from `{from}` are not allowed")]
    Forbidden {
        /// The origin or the host that the call names.
        from: String,
    },
    /// A key that no actor can have.
    #[error(transparent)]
    KeyTooLarge(InvalidArgument),
    /// An actor is to be made from too much.
    #[error("the input has {size} bytes, the limit is {limit}")]
    InputTooLarge {
        /// How many bytes it has.
        size: usize,
        /// How many it may have.
        limit: usize,
    },
    /// An actor is to be made and there is one of that name and key.
    #[error("the key `{key}` is taken by the actor {existing_actor_id}")]
    DuplicateKey {
        /// The key, as it is shown.
        key: String,
        /// Who has it.
        existing_actor_id: String,
    },
    /// An actor has no value under a key of its storage.
    #[error("the actor has no value under the key `{key}`")]
    NoSuchValue {
        /// The key in base64, as the client wrote it.
        key: String,
    },
    /// There is no such namespace.
    #[error("there is no namespace `{name}`")]
    NoSuchNamespace {
        /// Its name.
        name: String,
    },
    /// A pool is to run actors where nothing is.
    #[error("there is no datacenter `{name}`")]
    NoSuchDatacenter {
        /// Its name.
        name: String,
    },
    /// A namespace is to be made that there cannot be.
    #[error("the namespace cannot be made: {reason}")]
    BadNamespace {
        /// Why.
        reason: String,
    },
    /// An actor is to run in a pool that nobody has set up.
    #[error("nothing runs actors of the pool `{pool_name}` in the namespace `{namespace}`")]
    NoSuchPool {
        /// The namespace.
        namespace: String,
        /// Its name.
        pool_name: String,
    },
    /// A namespace is to be made and there is one of that name.
    #[error("there is a namespace `{name}` already")]
    DuplicateNamespace {
        /// Its name.
        name: String,
    },
}

impl ManagerError {
    pub(super) fn bad(reason: impl ToString) -> Self {
        Self::BadRequest { reason: shortened(&reason.to_string()) }
    }

    pub(super) fn invalid(reason: impl ToString) -> Self {
        Self::InvalidInput { reason: shortened(&reason.to_string()) }
    }
}

/// A reason of at most 256 characters: what a parser says of a field repeats its name.
fn shortened(reason: &str) -> String {
    reason.chars().take(256).collect()
}

impl Coded for ManagerError {
    fn code(&self) -> ErrorCode {
        let (group, code) = match self {
            Self::BadRequest { .. } => ("api", "bad_request"),
            Self::InvalidInput { .. } => ("validation", "invalid_input"),
            Self::NotFound { .. } => ("api", "not_found"),
            Self::Unauthorized => ("api", "unauthorized"),
            Self::Forbidden { .. } => ("api", "forbidden"),
            Self::KeyTooLarge(_) => ("actor", "key_too_large"),
            Self::InputTooLarge { .. } => ("actor", "input_too_large"),
            Self::DuplicateKey { .. } => ("actor", "duplicate_key"),
            Self::NoSuchValue { .. } => ("actor", "kv_key_not_found"),
            Self::NoSuchNamespace { .. } => ("namespace", "not_found"),
            Self::NoSuchDatacenter { .. } => ("datacenter", "not_found"),
            Self::BadNamespace { .. } => ("namespace", "failed_to_create"),
            Self::NoSuchPool { .. } => ("actor", "no_runner_config_configured"),
            Self::DuplicateNamespace { .. } => ("namespace", "name_not_unique"),
        };
        ErrorCode::new(group, code)
    }

    fn metadata(&self) -> Option<Value> {
        Some(match self {
            Self::BadRequest { reason }
            | Self::InvalidInput { reason }
            | Self::BadNamespace { reason } => json!({ "reason": reason }),
            Self::NotFound { path } => json!({ "path": path }),
            Self::KeyTooLarge(argument) => argument.metadata()?,
            Self::InputTooLarge { size, limit } => json!({ "size": size, "limit": limit }),
            Self::DuplicateKey { key, existing_actor_id } => {
                json!({ "key": key, "existing_actor_id": existing_actor_id })
            }
            Self::NoSuchValue { key } => json!({ "key": key }),
            Self::NoSuchNamespace { name }
            | Self::NoSuchDatacenter { name }
            | Self::DuplicateNamespace { name } => json!({ "name": name }),
            Self::NoSuchPool { namespace, pool_name } => {
                json!({ "namespace": namespace, "pool_name": pool_name })
            }
            Self::Unauthorized | Self::Forbidden { .. } => return None,
        })
    }

    /// Clients may read all of it; the status is that of the manager (§6.6).
    fn public_status(&self) -> Option<u16> {
        Some(match self {
            Self::NotFound { .. } => 404,
            Self::Unauthorized => 401,
            Self::Forbidden { .. } => 403,
            _ => 400,
        })
    }
}
