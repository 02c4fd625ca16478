//! The paths under `/gateway` (§6.4).

use super::query::{Split, not_encoded};
use super::{Addressee, RouteError};
use crate::ids::ActorName;
use crate::protocol::error::shown;
use crate::protocol::percent_decode;

/// What such a path says.
pub(super) struct GatewayPath {
    pub actor: Addressee,
    /// The rest of it, with the rest of the query; begins with a slash.
    pub path: String,
    /// A secret.
    pub token: Option<String>,
    /// `None` if it does not say.
    pub skip_ready_wait: Option<bool>,
}

/// Reads a path with its query; `None` of one that is for no actor.
pub(super) fn parse(uri: &str) -> Result<Option<GatewayPath>, RouteError> {
    let (path, query) = match uri.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (uri, None),
    };
    let Some(rest) = path.strip_prefix("/gateway") else { return Ok(None) };
    if path.contains("//") || !(rest.is_empty() || rest.starts_with('/')) {
        return Ok(None);
    }
    let rest = rest.strip_prefix('/').unwrap_or_default();
    let (segment, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let split = Split::new(query.unwrap_or_default());
    if split.is_ours() {
        by_query(segment, rest, &split).map(Some)
    } else {
        by_id(segment, rest, query)
    }
}

/// `/gateway/{name}{path}?rvt-…`
fn by_query(segment: &str, rest: &str, split: &Split) -> Result<GatewayPath, RouteError> {
    if let Some((name, _)) = segment.split_once('@') {
        return Err(RouteError::TokenBehindName { name: shown(name).to_owned() });
    }
    let name = percent_decode(segment).map_err(|error| not_encoded("the name", &error))?;
    if name.is_empty() {
        return Err(RouteError::EmptyName);
    }
    let name = ActorName::new(name).map_err(RouteError::InvalidName)?;
    let parameters = split.parameters()?;
    let query = Some(&*split.rest).filter(|rest| !rest.is_empty());
    Ok(GatewayPath {
        actor: Addressee::Query(parameters.query(name)?),
        path: joined(rest, query),
        skip_ready_wait: parameters.skip_ready_wait()?,
        token: parameters.token.filter(|token| !token.is_empty()),
    })
}

/// `/gateway/{id}{path}` and `/gateway/{id}@{token}{path}`; `None` if a part is missing.
fn by_id(
    segment: &str,
    rest: &str,
    query: Option<&str>,
) -> Result<Option<GatewayPath>, RouteError> {
    let (id, token) = match segment.split_once('@') {
        Some((id, token)) => (id, Some(token)),
        None => (segment, None),
    };
    if id.is_empty() || token.is_some_and(str::is_empty) {
        return Ok(None);
    }
    let decoded = |part, text| percent_decode(text).map_err(|error| not_encoded(part, &error));
    Ok(Some(GatewayPath {
        actor: Addressee::Id(decoded("the id", id)?),
        path: joined(rest, query),
        token: token.map(|token| decoded("the token", token)).transpose()?,
        skip_ready_wait: None,
    }))
}

/// Path and query as an actor sees them.
fn joined(path: &str, query: Option<&str>) -> String {
    let path = if path.is_empty() { "/" } else { path };
    match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}
