//! Whom a request is for, and what it wants of it: URLs and the headers beside them, as
//! values (§3.2, §4.1, §6.4).
//!
//! A request reaches an actor by a path under `/gateway` that names its id, by such a path
//! with parameters `rvt-…` that ask for one of a name and a key, or by headers (of an
//! upgrade: by tokens of its offer) beside the path that the actor sees. [`route`] reads
//! all three; what is for no actor is the manager's. [`ActorRoute`] and [`UpgradeRoute`]
//! read what is left of the path.
//!
//! # Invariants
//!
//! 1. No actor sees a parameter of the gateway, in whatever way it is encoded. All else of
//!    path and query reaches it byte for byte.
//! 2. Neither an error nor the debug form of anything here has a token in it.
//! 3. A path that is not for an actor is never an error here, unless a header says that it
//!    is for one.

mod error;
mod gateway_path;
mod inside;
#[cfg(test)]
mod properties;
mod query;
#[cfg(test)]
mod tests;

use std::fmt;

pub use self::error::RouteError;
pub use self::inside::{ActorRoute, UpgradeRoute};
use super::manager::CrashPolicy;
use super::{Offer, Payload, header};
use crate::ids::{ActorKey, ActorName};

/// An actor that a request is for, and the request as it sees it.
#[derive(Clone, PartialEq)]
pub struct Target {
    /// Which one.
    pub actor: Addressee,
    /// The path within the actor, with its query; begins with a slash.
    pub path: String,
    /// What the client authenticates with at the gateway.
    pub token: Option<String>,
    /// Whether the actor gets the request before it is ready.
    pub skip_ready_wait: bool,
}

/// Without the token (invariant 2).
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("actor", &self.actor)
            .field("path", &self.path)
            .field("skip_ready_wait", &self.skip_ready_wait)
            .finish_non_exhaustive()
    }
}

/// Which actor a request is for.
#[derive(Clone, Debug, PartialEq)]
pub enum Addressee {
    /// The one of this id, which may be no id of ours.
    Id(String),
    /// One of a name and a key.
    Query(ActorQuery),
}

/// An actor that is asked for by its name and its key.
#[derive(Clone, Debug, PartialEq)]
pub struct ActorQuery {
    /// The namespace that it has to be in.
    pub namespace: String,
    /// Its type.
    pub name: ActorName,
    /// Its key. All parts are texts, and none of them has a comma, which is what parts
    /// are told apart by.
    pub key: ActorKey,
    /// What happens if there is none.
    pub find: Find,
}

/// What happens if there is no such actor.
#[derive(Clone, Debug, PartialEq)]
pub enum Find {
    /// The request fails.
    Get,
    /// One is made.
    GetOrCreate(Creation),
}

/// How an actor is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Creation {
    /// The pool that it has to run in.
    pub pool: String,
    /// What it is made from.
    pub input: Option<Payload>,
    /// Where it has to run.
    pub region: Option<String>,
    /// What becomes of it after a crash.
    pub crash_policy: CrashPolicy,
}

/// What a request says of its target beside the URL.
#[derive(Clone, PartialEq, Eq)]
pub struct Hints {
    kind: Kind,
    target: Option<String>,
    actor: Option<String>,
    token: Option<String>,
    skip_ready_wait: bool,
}

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Call,
    Upgrade,
}

impl Hints {
    /// Reads the headers of an HTTP call. `get` gives the value of a header by its name in
    /// lower case.
    pub fn of_call<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Self {
        let given = |name| get(name).filter(|value| !value.is_empty()).map(str::to_owned);
        Self {
            kind: Kind::Call,
            target: given(header::TARGET),
            actor: given(header::ACTOR),
            token: given(header::TOKEN),
            skip_ready_wait: get(header::SKIP_READY_WAIT) == Some("1"),
        }
    }

    /// Reads the offer of an upgrade, where browsers can set no headers.
    pub fn of_upgrade(offer: &Offer) -> Self {
        let given = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
        Self {
            kind: Kind::Upgrade,
            target: given(&offer.target),
            actor: given(&offer.actor),
            token: given(&offer.token),
            skip_ready_wait: offer.skip_ready_wait,
        }
    }

    /// Whether the target is an actor that nothing in the URL names.
    fn is_for_an_actor(&self) -> bool {
        self.target.as_deref() == Some("actor")
    }

    /// The actor that they name, for a path that it sees as it is (§6.4).
    fn addressee(&self, path: &str) -> Result<Addressee, RouteError> {
        let (under, header): (&[&str], _) = match self.kind {
            Kind::Call => (&["/request"], header::ACTOR),
            Kind::Upgrade => (&["/connect", "/websocket"], Offer::HEADER),
        };
        if !under.iter().any(|under| inside::is_under(path, under)) {
            // Behind an `@` is a token, if the path was meant for the gateway (invariant 2).
            let path = path.split(['?', '@']).next().unwrap_or_default().to_owned();
            return Err(RouteError::NoRoute { path });
        }
        self.actor.clone().map(Addressee::Id).ok_or(RouteError::MissingHeader { header })
    }
}

/// Without the token (invariant 2).
impl fmt::Debug for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hints")
            .field("kind", &self.kind)
            .field("target", &self.target)
            .field("actor", &self.actor)
            .field("skip_ready_wait", &self.skip_ready_wait)
            .finish_non_exhaustive()
    }
}

/// The actor that a request is for; `None` of one that is for the manager. `uri` is the
/// path of the request with its query; a fragment is dropped. What the URL says counts
/// before what stands beside it.
///
/// # Errors
///
/// [`RouteError`], with the codes of §6.4.
pub fn route(uri: &str, hints: &Hints) -> Result<Option<Target>, RouteError> {
    let uri = uri.split('#').next().unwrap_or_default();
    if let Some(found) = gateway_path::parse(uri)? {
        return Ok(Some(Target {
            actor: found.actor,
            path: found.path,
            token: found.token.or_else(|| hints.token.clone()),
            skip_ready_wait: found.skip_ready_wait.unwrap_or(hints.skip_ready_wait),
        }));
    }
    if !hints.is_for_an_actor() {
        return Ok(None);
    }
    Ok(Some(Target {
        actor: hints.addressee(uri)?,
        path: uri.to_owned(),
        token: hints.token.clone(),
        skip_ready_wait: hints.skip_ready_wait,
    }))
}
