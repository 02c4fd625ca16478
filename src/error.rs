//! The one error that travels: between core, host, store and the author's side.
//!
//! Subsystems keep their own `thiserror` enums and say through [`Coded`] which
//! stable `(group, code)` each variant has. Where an error leaves a subsystem it
//! becomes an [`Error`], which also carries what an author's code threw.
//!
//! # Invariants
//!
//! 1. `group` and `code` are API and never change for a given fault; messages may.
//! 2. An error that nobody meant for users is `core/internal_error` with
//!    [`INTERNAL_MESSAGE`]; the real text is in `metadata.error`, which
//!    whoever answers a client drops.
//! 3. Adding the actor or the phase never changes group, code, message or metadata.

mod public;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::public::public_status;

/// What a client reads in place of the text of an internal error.
pub const INTERNAL_MESSAGE: &str = "An internal error occurred";

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A stable pair of group and code, such as `actor` / `stopping`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode {
    /// The part of the system that the fault belongs to.
    pub group: &'static str,
    /// The fault within the group.
    pub code: &'static str,
}

impl ErrorCode {
    /// The code of everything that is not meant for users.
    pub const INTERNAL: Self = Self::new("core", "internal_error");

    /// Names a pair.
    pub const fn new(group: &'static str, code: &'static str) -> Self {
        Self { group, code }
    }
}

/// Implemented by each subsystem's error enum.
pub trait Coded: std::error::Error {
    /// The stable pair of this variant.
    fn code(&self) -> ErrorCode;

    /// The named fields that callers may rely on, as JSON.
    fn metadata(&self) -> Option<Value> {
        None
    }

    /// The HTTP status of a variant whose message and metadata clients may read.
    fn public_status(&self) -> Option<u16> {
        None
    }
}

/// Which generation of which actor an error came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActorSpecifier {
    /// The id that stays over generations.
    pub actor_id: String,
    /// The run of the actor in which the error happened.
    pub generation: u64,
    /// The key in its display form; absent when unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The step of starting or stopping that failed, such as `create_state`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

impl fmt::Display for ActorSpecifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "actor {} generation {}", self.actor_id, self.generation)?;
        match &self.key {
            Some(key) => write!(f, " key {key}"),
            None => Ok(()),
        }
    }
}

/// An error with everything that may cross a boundary. Its fields are those of
/// [`Fault`]; they are behind a pointer, so that a `Result` stays small.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Error(Box<Fault>);

/// The fields of an [`Error`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// The part of the system that the fault belongs to.
    pub group: Cow<'static, str>,
    /// The fault within the group.
    pub code: Cow<'static, str>,
    /// Text for people.
    pub message: String,
    /// Named values for programs.
    #[serde(default)]
    pub metadata: Option<Value>,
    /// Whether clients may read message and metadata; `None` leaves it to the code.
    #[serde(default)]
    pub public: Option<bool>,
    /// The HTTP status to answer with, when the thrower chose one.
    #[serde(default)]
    pub status_code: Option<u16>,
    /// The id of the request in which the error happened.
    #[serde(default)]
    pub ray_id: Option<String>,
    /// The actor that it happened in.
    #[serde(default)]
    pub actor: Option<ActorSpecifier>,
    /// The name under which the author's side keeps what its code threw. It means
    /// nothing to anybody else, and no client reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thrown: Option<String>,
}

impl Error {
    /// An error of the given code with a message for people.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(Fault {
            group: code.group.into(),
            code: code.code.into(),
            message: message.into(),
            metadata: None,
            public: None,
            status_code: None,
            ray_id: None,
            actor: None,
            thrown: None,
        }))
    }

    /// An error that nobody meant for users; `detail` is for the log and for
    /// `metadata.error` (invariant 2).
    pub fn internal(detail: impl fmt::Display) -> Self {
        Self::new(ErrorCode::INTERNAL, INTERNAL_MESSAGE)
            .with_metadata(json!({ "error": detail.to_string() }))
    }

    /// Adds named values for programs.
    pub fn with_metadata(mut self, metadata: Value) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Names the actor, unless the error already names one (invariant 3).
    pub fn with_actor(mut self, actor: ActorSpecifier) -> Self {
        self.actor.get_or_insert(actor);
        self
    }

    /// Names the step of starting or stopping that failed, unless one is named
    /// already. Without an actor there is nowhere to put it and nothing changes.
    pub fn with_phase(mut self, phase: &str) -> Self {
        if let Some(actor) = &mut self.actor {
            actor.phase.get_or_insert_with(|| phase.to_owned());
        }
        self
    }

    /// The text under `error` in its metadata: of an error that nobody meant for users
    /// the real one (invariant 2).
    pub fn detail(&self) -> Option<&str> {
        self.metadata.as_ref()?.get("error")?.as_str()
    }

    /// Whether this is the given fault.
    pub fn is(&self, group: &str, code: &str) -> bool {
        self.group == group && self.code == code
    }
}

impl std::ops::Deref for Error {
    type Target = Fault;

    fn deref(&self) -> &Fault {
        &self.0
    }
}

impl std::ops::DerefMut for Error {
    fn deref_mut(&mut self) -> &mut Fault {
        &mut self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}/{})", self.message, self.group, self.code)?;
        match self.detail() {
            Some(detail) => write!(f, ": {detail}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl<E: Coded> From<E> for Error {
    fn from(error: E) -> Self {
        let code = error.code();
        if code == ErrorCode::INTERNAL {
            return Self::internal(chain(&error));
        }
        let mut out = Self::new(code, error.to_string());
        out.metadata = error.metadata();
        out.status_code = error.public_status();
        out.public = out.status_code.map(|_| true);
        out
    }
}

/// An error's text and those of its causes, joined by colons.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// What is thrown by a part that holds a typed parameter out of range: the
/// value and the rule, in one sentence.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("invalid {what} {value}: {reason}")]
pub struct InvalidArgument {
    /// The name of the argument.
    pub what: &'static str,
    /// The value that was refused, shortened when long.
    pub value: String,
    /// The rule that it breaks.
    pub reason: String,
}

impl Coded for InvalidArgument {
    fn code(&self) -> ErrorCode {
        ErrorCode::new("actor", "invalid_argument")
    }

    fn metadata(&self) -> Option<Value> {
        Some(json!({ "argument": self.what, "value": self.value, "reason": self.reason }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer failed")]
    struct Outer(#[source] std::io::Error);

    impl Coded for Outer {
        fn code(&self) -> ErrorCode {
            ErrorCode::INTERNAL
        }
    }

    #[test]
    fn an_internal_error_keeps_its_chain_in_the_metadata_only() {
        let error = Error::from(Outer(std::io::Error::other("disk on fire")));

        assert_eq!(error.message, INTERNAL_MESSAGE);
        assert_eq!(error.metadata, Some(json!({ "error": "outer failed: disk on fire" })));
    }

    #[test]
    fn the_first_actor_and_the_first_phase_win() {
        let actor = |id: &str| ActorSpecifier {
            actor_id: id.to_owned(),
            generation: 1,
            key: None,
            phase: None,
        };

        let error = Error::internal("x")
            .with_actor(actor("a"))
            .with_actor(actor("b"))
            .with_phase("create_state")
            .with_phase("total");

        let actor = error.actor.as_ref().expect("set above");
        assert_eq!((actor.actor_id.as_str(), actor.phase.as_deref()), ("a", Some("create_state")));
    }
}
