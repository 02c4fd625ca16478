//! What can be wrong with a message, and how much of it an error repeats.

use serde_json::{Value, json};

use crate::error::{Coded, ErrorCode};

/// The most characters of a client's text that an error repeats.
const SHOWN: usize = 64;

/// The beginning of a text that a client has sent, at most 64 characters: no client makes
/// an error of any length.
pub(super) fn shown(text: &str) -> &str {
    text.char_indices().nth(SHOWN).map_or(text, |(end, _)| &text[..end])
}

/// A fault of a message, of the client's or of our own making.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The text is not JSON.
    #[error("the message is not JSON: {reason}")]
    NotJson {
        /// What the parser says, with line and column.
        reason: String,
    },
    /// The bytes are not CBOR.
    #[error("the message is not CBOR: {reason} at byte {offset}")]
    NotCbor {
        /// Where the fault was seen, from the start of the item that was read.
        offset: usize,
        /// The rule that is broken.
        reason: &'static str,
    },
    /// The bytes are not BARE of the message that they should be.
    #[error("the message is not BARE: {reason} at byte {offset}")]
    NotBare {
        /// Where the fault was seen, the two bytes of the version included.
        offset: usize,
        /// The rule that is broken.
        reason: &'static str,
    },
    /// Nobody speaks this version, or it has no such message.
    #[error("the message has version {version}, which is not supported")]
    UnsupportedVersion {
        /// The version in front of the message.
        version: u16,
    },
    /// A field is missing or has another type.
    #[error("`{field}` is not {expected}")]
    Field {
        /// The name of the field.
        field: &'static str,
        /// What it has to be.
        expected: &'static str,
    },
    /// The message is of a kind that does not exist.
    #[error("the message has the unknown tag `{tag}`")]
    UnknownTag {
        /// Its name, shortened when long, or its number in BARE.
        tag: String,
    },
    /// Values are nested too deeply.
    #[error("the message is nested more than {limit} levels deep")]
    TooDeep {
        /// How many levels it may have.
        limit: usize,
    },
    /// Text of an upgrade or an URL is not as those have to write it.
    // Without the text, which may be a secret.
    #[error("the text is not percent-encoded UTF-8: byte {offset} is wrong")]
    NotPercentEncoded {
        /// Where the fault is.
        offset: usize,
    },
    /// A client asks for an encoding that nobody knows.
    #[error("the encoding `{name}` is unknown")]
    UnsupportedEncoding {
        /// Its name, shortened when long.
        name: String,
    },
    /// A client's message is too long.
    #[error("the message has {size} bytes, the limit is {limit}")]
    IncomingTooLong {
        /// Its length.
        size: usize,
        /// How long it may be.
        limit: usize,
    },
    /// A message to a client is too long.
    #[error("the message to the client has {size} bytes, the limit is {limit}")]
    OutgoingTooLong {
        /// Its length.
        size: usize,
        /// How long it may be.
        limit: usize,
    },
    /// JSON has no form of a value that an author made.
    #[error("{what} has no form in JSON")]
    Unrepresentable {
        /// The kind of the value.
        what: &'static str,
    },
}

impl ProtocolError {
    pub(super) fn not_json(error: &serde_json::Error) -> Self {
        Self::NotJson { reason: error.to_string() }
    }
}

impl Coded for ProtocolError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::UnsupportedEncoding { .. } => {
                ErrorCode::new("actor", "unsupported_websocket_encoding")
            }
            Self::NotPercentEncoded { .. } => ErrorCode::new("protocol", "invalid_http_request"),
            Self::IncomingTooLong { .. } => ErrorCode::new("message", "incoming_too_long"),
            Self::OutgoingTooLong { .. } => ErrorCode::new("message", "outgoing_too_long"),
            Self::Unrepresentable { .. } => ErrorCode::new("actor", "send_failed"),
            _ => ErrorCode::new("actor", "invalid_request"),
        }
    }

    fn metadata(&self) -> Option<Value> {
        match self {
            Self::IncomingTooLong { size, limit } | Self::OutgoingTooLong { size, limit } => {
                Some(json!({ "size": size, "limit": limit }))
            }
            _ => None,
        }
    }

    /// A client may read what is wrong with its own message.
    fn public_status(&self) -> Option<u16> {
        match self {
            Self::Unrepresentable { .. } => None,
            _ => Some(400),
        }
    }
}
