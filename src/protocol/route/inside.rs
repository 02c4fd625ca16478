//! What a request wants of an actor: the paths behind the gateway (§3.2, §4.1).

use super::RouteError;
use crate::protocol::percent_decode;

/// What an HTTP call wants of an actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActorRoute {
    /// The inspector, by its path with the query. A path under `/request` leads here,
    /// too: where headers name the actor, no other does.
    Inspector(String),
    /// What the author does with requests, by the path with the query as the author's
    /// code sees it.
    Request(String),
    /// A call of the action of this name, with dots if it is nested.
    Action(String),
    /// A message for the queue of this name.
    Queue(String),
    /// What runs here.
    Metadata,
    /// Whether the actor lives.
    Health,
    /// A line for people.
    Banner,
    /// What is counted.
    Metrics,
}

impl ActorRoute {
    /// Reads the path of a call with its query, as it is behind the gateway.
    ///
    /// # Errors
    ///
    /// [`RouteError::NoActorRoute`], [`RouteError::MethodNotAllowed`], and
    /// [`RouteError::InvalidPath`] of a name that is not percent-encoded.
    pub fn parse(method: &str, uri: &str) -> Result<Self, RouteError> {
        let (seen, is_users) = match uri.strip_prefix("/request") {
            Some(rest) if is_under(uri, "/request") => (rest, true),
            _ => (uri, false),
        };
        // The author's code is never without a path.
        let seen = if seen.starts_with('/') { seen.to_owned() } else { format!("/{seen}") };
        if seen.starts_with("/inspector/") {
            return Ok(Self::Inspector(seen));
        }
        if is_users {
            return Ok(Self::Request(seen));
        }
        let path = without_query(&seen);
        let (route, allowed) = if let Some(name) = segment(path, "/action/")? {
            (Self::Action(name), "POST")
        } else if let Some(name) = segment(path, "/queue/")? {
            (Self::Queue(name), "POST")
        } else {
            let route = match path {
                "/metadata" => Self::Metadata,
                "/health" => Self::Health,
                "/" => Self::Banner,
                "/metrics" => Self::Metrics,
                _ => return Err(RouteError::NoActorRoute { path: path.to_owned() }),
            };
            (route, "GET")
        };
        if method != allowed {
            let (method, path) = (method.to_owned(), path.to_owned());
            return Err(RouteError::MethodNotAllowed { method, path });
        }
        Ok(route)
    }
}

/// What an upgrade wants of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeRoute {
    /// A connection that speaks the client protocol.
    Connect,
    /// The inspector.
    Inspector,
    /// A socket for the author's code.
    Raw,
}

impl UpgradeRoute {
    /// Reads the path of an upgrade, as it is behind the gateway. The query does not count.
    pub fn parse(uri: &str) -> Self {
        match without_query(uri) {
            "/connect" => Self::Connect,
            "/inspector/connect" => Self::Inspector,
            _ => Self::Raw,
        }
    }
}

/// Whether a path with its query is `under` or has it for its first segments.
pub(super) fn is_under(uri: &str, under: &str) -> bool {
    uri.strip_prefix(under).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
}

fn without_query(uri: &str) -> &str {
    uri.split('?').next().unwrap_or_default()
}

/// The one segment behind a prefix, decoded.
fn segment(path: &str, prefix: &str) -> Result<Option<String>, RouteError> {
    match path.strip_prefix(prefix) {
        Some(segment) if !segment.is_empty() && !segment.contains('/') => percent_decode(segment)
            .map(Some)
            .map_err(|reason| RouteError::InvalidPath { path: path.to_owned(), reason }),
        _ => Ok(None),
    }
}
