//! Dashboards that look into an actor (§8).
//!
//! # Invariants
//!
//! 1. Nothing but files is answered without the actor's own token, and nobody without it makes
//!    or wakes an actor.
//! 2. Where the author's side answers such requests itself, it gets them as they came, once
//!    the token was checked here; files are answered here in any case.
//! 3. What dashboards are told is bounded by what there is to be told of the actor; what waits
//!    for one that does not read is one update of each kind, and answers to what it asked.
//! 4. A socket keeps no actor awake, and ends with the generation that it looks into.

mod database;
mod http;
mod link;
mod look;
mod publish;
mod requests;
mod socket;
mod tabs;

use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde_json::json;

pub(super) use self::socket::{Dashboard, serve};
use super::Shared;
use super::actor::{self, ELSEWHERE};
use super::admission::bearer;
use super::answer::{Answer, Failure, body as body_of};
use super::head;
use super::raw::{self, Recipient};
use crate::error::{Error, INTERNAL_MESSAGE, Result};
use crate::host::embedded::Address;
use crate::ids::{ActorId, ActorName};
use crate::inspector::{InspectorError, Secret};
use crate::protocol::Disclosure;
use crate::protocol::route::{ActorQuery, Addressee};
use crate::store::ActorRow;

/// A request of a dashboard, for `uri` within an actor.
pub(super) struct Asked {
    pub(super) actor: Addressee,
    pub(super) uri: String,
    pub(super) head: Parts,
    pub(super) body: Body,
}

/// Answers a request of a dashboard.
pub(super) async fn answer(shared: &Arc<Shared>, asked: Asked, ray_id: &str) -> Answer {
    let path = asked.uri.split('?').next().unwrap_or_default().to_owned();
    if asked.head.method == Method::GET
        && let Some(file) = tabs::File::of(&path)
    {
        let name = type_of(shared, &asked.actor).await.map_err(Failure::gateway)?;
        let found = tabs::answer(shared, &name, file, &asked.head).await;
        return Ok(found.unwrap_or_else(|error| failed(shared, error)));
    }
    let row = existing(shared, &asked.actor).await.map_err(Failure::gateway)?;
    if let Err(error) = authorize(shared, row.id, bearer(&asked.head.headers)) {
        return Ok(failed(shared, error));
    }
    let address = Address::Id(row.id);
    let seen = head::of_actor(&asked.head, &asked.uri, ray_id, shared.options.token.as_ref());
    if shared.options.inspects_in_runtime {
        let recipient = Recipient { address, name: row.name, seen };
        let answered = raw::answer(shared, recipient, &asked.head, asked.body).await;
        return answered.map_err(Failure::gateway);
    }
    let body = match http::take(shared, asked.body).await {
        Ok(body) => body,
        Err(error) => return Ok(failed(shared, error)),
    };
    loop {
        let actor = shared.host.visit(&address, ELSEWHERE).await.map_err(Failure::gateway)?;
        let look = look::Look::new(shared, actor, &seen);
        let answered = http::answer(&look, &path, &asked.uri, &asked.head.method, &body).await;
        match answered {
            // Nothing was done: the next generation is asked.
            Err(_) if look.was_closed() => shared.host.until_gone(&look.actor).await,
            answered => return Ok(answered.unwrap_or_else(|error| failed(shared, error))),
        }
    }
}

/// Whether a dashboard that gives `token` may look into an actor.
///
/// # Errors
///
/// `inspector/unauthorized`.
pub(super) fn authorize(shared: &Shared, actor: ActorId, token: Option<&str>) -> Result<()> {
    secret(shared).check(actor, token, shared.options.inspector_token.as_deref())
}

/// The token that lets a dashboard look into an actor.
pub(super) fn accepted(shared: &Shared, actor: ActorId) -> String {
    secret(shared).accepted(actor, shared.options.inspector_token.as_deref())
}

/// What the tokens are made of.
fn secret(shared: &Shared) -> Secret {
    Secret::new(shared.host.store().secret())
}

/// The row of an actor, which is not made (invariant 1).
async fn existing(shared: &Shared, actor: &Addressee) -> Result<ActorRow> {
    let address = match actor {
        Addressee::Id(text) => Address::Id(actor::actor_id(text)?),
        Addressee::Query(ActorQuery { namespace, name, key, .. }) => {
            shared.check_namespace(Some(namespace))?;
            Address::Key { name: name.clone(), key: key.clone(), create: None }
        }
    };
    actor::row(shared, address).await
}

/// The type of an actor, which need not be there where the URL has its name.
async fn type_of(shared: &Shared, actor: &Addressee) -> Result<ActorName> {
    match actor {
        Addressee::Query(ActorQuery { namespace, name, .. }) => {
            shared.check_namespace(Some(namespace))?;
            Ok(name.clone())
        }
        Addressee::Id(_) => Ok(existing(shared, actor).await?.name),
    }
}

/// An error as a dashboard reads it.
fn failed(shared: &Shared, error: Error) -> Response {
    let is_shown = error.is_public() || error.group == "inspector";
    let message = match (is_shown, shared.options.disclosure) {
        (true, _) => error.message.as_str(),
        (false, Disclosure::All) => error.detail().unwrap_or(&error.message),
        (false, Disclosure::Public) => {
            tracing::error!(%error, "a request of a dashboard failed");
            INTERNAL_MESSAGE
        }
    };
    let body = json!({
        "group": error.group,
        "code": error.code,
        "message": message,
        "metadata": null,
    });
    let status = StatusCode::from_u16(status(&error)).unwrap_or(StatusCode::BAD_REQUEST);
    body_of(status, "application/json", body.to_string().into())
}

fn status(error: &Error) -> u16 {
    match (&*error.group, &*error.code) {
        ("inspector", "unauthorized") => 401,
        ("inspector", "ui_asset_not_found" | "custom_tab_not_found")
        | ("inspector", "custom_tab_asset_not_found")
        | ("actor", "action_not_found" | "not_found") => 404,
        ("actor", "action_timed_out") => 408,
        ("actor", "workflow_in_flight") => 409,
        ("actor", "invalid_request" | "state_not_enabled")
        | ("inspector", _)
        | ("database", "not_enabled") => 400,
        ("guard", _) => error.status_code.unwrap_or(500),
        _ => 500,
    }
}

/// `actor/invalid_request`: what came over HTTP cannot be meant.
fn invalid_request(reason: impl Into<String>) -> Error {
    let code = crate::error::ErrorCode::new("actor", "invalid_request");
    let mut error = Error::new(code, reason);
    (error.public, error.status_code) = (Some(true), Some(400));
    error
}

/// There is nothing under a path.
fn nothing_at(path: &str) -> Error {
    crate::protocol::route::RouteError::NoActorRoute { path: path.to_owned() }.into()
}

/// The version of the protocol that a query asks for; `None` if it does not say.
///
/// # Errors
///
/// [`InspectorError::UnknownVersion`].
pub(super) fn version_of(uri: &str) -> Result<Option<crate::inspector::Version>, InspectorError> {
    let query = uri.split_once('?').map_or("", |(_, query)| query);
    let given = query.split('&').find_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name == "protocol_version").then_some(value)
    });
    let Some(given) = given else { return Ok(None) };
    let unknown = || InspectorError::UnknownVersion { version: given.chars().take(16).collect() };
    let number = given.parse().map_err(|_| unknown())?;
    crate::inspector::Version::of(number).map(Some)
}
