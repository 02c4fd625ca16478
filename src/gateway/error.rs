//! What can go wrong between a socket and an actor.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::error::{Coded, ErrorCode};

/// A fault of the gateway.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum GatewayError {
    /// Others can reach the address, and nothing keeps them out.
    #[error("listening on {address}, which others can reach, needs a token")]
    TokenNeeded {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("{address} cannot be listened on: {reason}")]
    Unusable {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        reason: String,
    },
    /// A body did not come in time.
    #[error("the body did not come within {seconds} s")]
    BodyTimeout {
        /// How long it was waited for.
        seconds: u64,
    },
    /// A body ended before its end, or is not framed as HTTP has it.
    #[error("the body cannot be read: {reason}")]
    BodyBroken {
        /// What is wrong with it.
        reason: String,
    },
    /// A body is longer than any may be.
    #[error("the body is longer than {limit} bytes")]
    BodyTooLong {
        /// The most bytes.
        limit: usize,
    },
    /// A body was given up before its end.
    #[error("the rest of the body was given up, since its request was answered")]
    BodyUnwanted,
    /// Nobody reads the answer any more, or it has ended.
    #[error("the answer has ended, or its client has gone")]
    AnswerEnded,
    /// What the author's side wrote of an answer is not all of it.
    #[error("the answer was broken off")]
    AnswerBroken,
    /// What the author's side answered is no answer of HTTP.
    #[error("the answer of the actor cannot be sent: {reason}")]
    AnswerInvalid {
        /// What is wrong with it.
        reason: String,
    },
    /// No actor can have this id.
    #[error("there is no actor with the id `{id}`")]
    NoSuchId {
        /// The id, shortened when long.
        id: String,
    },
    /// No client can call an action of this name.
    #[error("there is no action with this name, which has a control character")]
    NoSuchAction,
    /// A client sends more often than it may.
    #[error("more messages came than the actor takes of one client")]
    RateLimit,
    /// An address has as many connections to an actor as it may.
    #[error("this address has {limit} connections to the actor already")]
    TooManyFromHere {
        /// How many it may have.
        limit: u32,
    },
    /// There are as many sockets as there may be.
    #[error("{limit} sockets are open already")]
    TooManySockets {
        /// How many there may be.
        limit: usize,
    },
    /// There are as many connections as there may be.
    #[error("{limit} connections are served already")]
    TooManyConnections {
        /// How many there may be.
        limit: usize,
    },
    /// A client does not take what it is sent.
    #[error("the client is too far behind what it is sent")]
    TooSlow,
    /// An actor did not accept a client in time.
    #[error("the actor did not accept the connection within {seconds} s")]
    NotReady {
        /// How long it was waited for.
        seconds: u64,
    },
}

impl Coded for GatewayError {
    fn code(&self) -> ErrorCode {
        let (group, code) = match self {
            Self::TokenNeeded { .. } => ("gateway", "token_needed"),
            Self::Unusable { .. } => ("gateway", "address_unusable"),
            Self::BodyTimeout { .. } => ("guard", "request_timeout"),
            Self::BodyBroken { .. } => ("actor", "invalid_request"),
            Self::BodyTooLong { .. } => ("guard", "invalid_request_body"),
            Self::BodyUnwanted => ("gateway", "body_given_up"),
            Self::AnswerEnded => ("gateway", "answer_ended"),
            Self::AnswerBroken => ("gateway", "answer_broken"),
            Self::AnswerInvalid { .. } => ("gateway", "answer_invalid"),
            Self::NoSuchId { .. } => ("actor", "not_found"),
            Self::NoSuchAction => ("actor", "action_not_found"),
            Self::RateLimit => ("guard", "rate_limit"),
            Self::TooManyFromHere { .. } => ("guard", "too_many_connections"),
            Self::TooManySockets { .. } => ("guard", "service_unavailable"),
            Self::TooManyConnections { .. } => ("guard", "service_unavailable"),
            Self::TooSlow => ("connection", "too_slow"),
            Self::NotReady { .. } => ("guard", "actor_ready_timeout"),
        };
        ErrorCode::new(group, code)
    }

    fn metadata(&self) -> Option<Value> {
        match self {
            Self::TokenNeeded { address } | Self::Unusable { address, .. } => {
                Some(json!({ "address": address.to_string() }))
            }
            Self::NoSuchId { id } => Some(json!({ "resource": "instance", "id": id })),
            _ => None,
        }
    }

    /// A client may read what is wrong with its own request, and nothing else.
    fn public_status(&self) -> Option<u16> {
        Some(match self {
            Self::TokenNeeded { .. }
            | Self::Unusable { .. }
            | Self::BodyUnwanted
            | Self::AnswerEnded
            | Self::AnswerBroken
            | Self::AnswerInvalid { .. } => return None,
            Self::BodyTimeout { .. } => 504,
            Self::BodyTooLong { .. } => 413,
            Self::BodyBroken { .. } => 400,
            Self::NoSuchId { .. } | Self::NoSuchAction => 404,
            Self::RateLimit | Self::TooManyFromHere { .. } | Self::TooSlow => 429,
            Self::TooManySockets { .. }
            | Self::TooManyConnections { .. }
            | Self::NotReady { .. } => 503,
        })
    }
}
