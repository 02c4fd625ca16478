//! Why a request reaches no actor.

use serde_json::{Value, json};

use crate::error::{Coded, ErrorCode, InvalidArgument};
use crate::protocol::ProtocolError;
use crate::protocol::error::shown;

/// A fault of a URL, or of what stands beside it. No message repeats a token.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteError {
    /// A parameter that nobody knows.
    #[error("the query parameter `{name}` is unknown")]
    UnknownParameter {
        /// Its name.
        name: String,
    },
    /// A parameter that is given more than once, `rvt-runner` and `rvt-pool` together
    /// included.
    #[error("the query parameter `{name}` comes twice")]
    DuplicateParameter {
        /// Its name.
        name: &'static str,
    },
    /// A parameter that is needed and missing or empty.
    #[error("the query parameter `{name}` is missing")]
    MissingParameter {
        /// Its name.
        name: &'static str,
    },
    /// A parameter that is none of the values that it may be.
    #[error("the query parameter `{name}` is `{value}` and not {expected}")]
    InvalidParameter {
        /// Its name.
        name: &'static str,
        /// What it is, shortened when long.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A name that no actor can have.
    #[error(transparent)]
    InvalidName(InvalidArgument),
    /// A key that no actor can have.
    #[error(transparent)]
    InvalidKey(InvalidArgument),
    /// There is no name before the path.
    #[error("the actor has no name")]
    EmptyName,
    /// A name is followed by a token, which only an id may be.
    #[error("`{name}` has a token behind it: beside query parameters it belongs into `rvt-token`")]
    TokenBehindName {
        /// The name, shortened when long.
        name: String,
    },
    /// A parameter for making an actor, where none is to be made.
    #[error("the query parameter `{name}` is for `getOrCreate`, not for `get`")]
    NotForGet {
        /// Its name.
        name: &'static str,
    },
    /// An actor is to be made and nobody says where.
    #[error("the query parameter `rvt-runner` is missing")]
    MissingPool,
    /// The input is not base64 in the alphabet of URLs, without padding.
    #[error("`rvt-input` is not base64url: {reason}")]
    NotBase64 {
        /// What is wrong with it.
        reason: String,
    },
    /// The input is not CBOR.
    #[error("`rvt-input` is not an input: {0}")]
    NotCbor(ProtocolError),
    /// A part of the URL is not percent-encoded UTF-8.
    #[error("{part} is not percent-encoded UTF-8: byte {offset} is wrong")]
    NotPercentEncoded {
        /// The part of the path, or the name of the parameter.
        part: String,
        /// Where the fault is.
        offset: usize,
    },
    /// A request is for an actor and names none.
    #[error("the header `{header}` names no actor")]
    MissingHeader {
        /// The header that has to.
        header: &'static str,
    },
    /// Nothing is reached by that path.
    #[error("no route leads to `{}`", shown(path))]
    NoRoute {
        /// The path, up to an `@`.
        path: String,
    },
    /// The actor has nothing under that path.
    #[error("the actor has no route `{}`", shown(path))]
    NoActorRoute {
        /// The path, as the actor sees it.
        path: String,
    },
    /// The actor has something under that path, for another method.
    #[error("the method `{}` is not allowed for `{}`", shown(method), shown(path))]
    MethodNotAllowed {
        /// The method.
        method: String,
        /// The path, as the actor sees it.
        path: String,
    },
    /// The name of an action or a queue is not percent-encoded UTF-8.
    #[error("the path `{}` cannot be read: {reason}", shown(path))]
    InvalidPath {
        /// The path, as the actor sees it.
        path: String,
        /// What is wrong with it.
        reason: ProtocolError,
    },
}

impl Coded for RouteError {
    fn code(&self) -> ErrorCode {
        let guard = |code| ErrorCode::new("guard", code);
        match self {
            Self::UnknownParameter { .. }
            | Self::DuplicateParameter { .. }
            | Self::MissingParameter { .. }
            | Self::InvalidParameter { .. }
            | Self::InvalidName(_) => guard("query_invalid_params"),
            Self::InvalidKey(_) => ErrorCode::new("actor", "key_too_large"),
            Self::EmptyName => guard("query_empty_actor_name"),
            Self::TokenBehindName { .. } => guard("query_path_token_syntax"),
            Self::NotForGet { .. } => guard("query_get_disallowed_params"),
            Self::MissingPool => guard("query_missing_pool"),
            Self::NotBase64 { .. } => guard("query_invalid_base64_input"),
            Self::NotCbor(_) => guard("query_invalid_cbor_input"),
            Self::NotPercentEncoded { .. } => guard("query_invalid_percent_encoding"),
            Self::MissingHeader { .. } => guard("missing_header"),
            Self::NoRoute { .. } => guard("no_route"),
            Self::NoActorRoute { .. } => ErrorCode::new("actor", "not_found"),
            Self::MethodNotAllowed { .. } => ErrorCode::new("actor", "method_not_allowed"),
            Self::InvalidPath { .. } => ErrorCode::new("protocol", "invalid_http_request"),
        }
    }

    fn metadata(&self) -> Option<Value> {
        Some(match self {
            Self::UnknownParameter { name } => json!({ "name": name }),
            Self::DuplicateParameter { name }
            | Self::MissingParameter { name }
            | Self::NotForGet { name } => json!({ "name": name }),
            Self::InvalidParameter { name, value, .. } => json!({ "name": name, "value": value }),
            Self::InvalidName(argument) | Self::InvalidKey(argument) => argument.metadata()?,
            Self::NotPercentEncoded { part, .. } => json!({ "name": part }),
            Self::MissingHeader { header } => json!({ "header": header }),
            Self::NoRoute { path } => json!({ "path": path }),
            Self::NoActorRoute { path } => json!({ "resource": "route", "id": path }),
            Self::MethodNotAllowed { method, path } => json!({ "method": method, "path": path }),
            Self::InvalidPath { path, .. } => json!({ "path": path }),
            Self::EmptyName
            | Self::TokenBehindName { .. }
            | Self::MissingPool
            | Self::NotBase64 { .. }
            | Self::NotCbor(_) => return None,
        })
    }

    /// A client may read what is wrong with its own URL.
    fn public_status(&self) -> Option<u16> {
        Some(match self {
            Self::NoRoute { .. } | Self::NoActorRoute { .. } => 404,
            Self::MethodNotAllowed { .. } => 405,
            _ => 400,
        })
    }
}
