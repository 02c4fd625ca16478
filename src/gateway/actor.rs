//! Requests for an actor (§4, §6.4, §6.5).
//!
//! Calls wake the actor, and wait within the host until it can take them. Each has a
//! connection of its own, whose hooks run before it and have ended when it is answered.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;

use super::Shared;
use super::answer::{Answer, Failure, add, body as body_of, json};
use super::calls::{self, Call, Wanted};
use super::error::GatewayError;
use super::front::text;
use super::raw::{self, Recipient};
use super::{head, inspector, metrics};
use crate::core::behavior::Reply;
use crate::error::Error;
use crate::host::embedded::{Address, Create, EnvironmentId};
use crate::ids::{ActorId, ActorName};
use crate::protocol::http::{ActorMetadata, Deployment};
use crate::protocol::manager::{self, ManagerError};
use crate::protocol::route::{ActorQuery, ActorRoute, Addressee, Find, RouteError, Target};
use crate::protocol::{Encoding, Origin, header};
use crate::store::ActorRow;

/// Clients run in no environment of this process.
pub(super) const ELSEWHERE: EnvironmentId = EnvironmentId(0);

/// Answers a request for an actor.
pub(super) async fn answer(
    shared: &Arc<Shared>,
    target: Target,
    request: Request,
    ray_id: &str,
) -> Answer {
    let (head, body) = request.into_parts();
    let encoding = Encoding::of_header(text(&head.headers, header::ENCODING));
    let by_actor = |error: Error| Failure { error, origin: Origin::Actor(encoding) };
    let route = ActorRoute::parse(head.method.as_str(), &target.path);
    let route = route.map_err(|error| by_actor(error.into()))?;
    if let ActorRoute::Inspector(uri) = route {
        let asked = inspector::Asked { actor: target.actor, uri, head, body };
        return inspector::answer(shared, asked, ray_id).await;
    }
    let (address, name) = address(shared, target.actor).await?;
    match route {
        ActorRoute::Action(action) => {
            let call = Call { address, name, head, body, encoding, path: target.path };
            calls::answer(shared, call, Wanted::Action(action), ray_id).await
        }
        ActorRoute::Queue(queue) => {
            let call = Call { address, name, head, body, encoding, path: target.path };
            calls::answer(shared, call, Wanted::Send(queue), ray_id).await
        }
        ActorRoute::Metadata => {
            let metadata = json(manager::json(&ActorMetadata {
                runtime: "rivetkit",
                version: super::VERSION.to_owned(),
                deployment: Deployment::Local,
            }));
            existing(shared, address, metadata).await
        }
        ActorRoute::Health => existing(shared, address, line("ok")).await,
        ActorRoute::Banner => {
            existing(shared, address, line("This is an actor of greenroom.\n")).await
        }
        ActorRoute::Request(uri) => {
            let seen = head::of_actor(&head, &uri, ray_id, shared.options.token.as_ref());
            let recipient = Recipient { address, name, seen };
            raw::answer(shared, recipient, &head, body)
                .await
                .map_err(|error| whose(error, encoding))
        }
        // They are of all actors, for those who may manage them.
        ActorRoute::Metrics if shared.is_unguarded() => {
            Err(Failure::gateway(ManagerError::Unauthorized))
        }
        ActorRoute::Metrics => existing(shared, address, metrics::answer(shared)).await,
        ActorRoute::Inspector(_) => {
            let path = target.path.split('?').next().unwrap_or_default().to_owned();
            Err(by_actor(RouteError::NoActorRoute { path }.into()))
        }
    }
}

/// A response for an actor, which has to be there. None is made, whatever the URL says: any
/// page can have a browser send a GET without naming its origin.
async fn existing(shared: &Shared, address: Address, mut response: Response) -> Answer {
    let address = match address {
        Address::Key { name, key, .. } => Address::Key { name, key, create: None },
        Address::Id(id) => Address::Id(id),
    };
    let row = row(shared, address).await.map_err(Failure::gateway)?;
    add(&mut response, header::of_sleeping(row.id.to_string(), row.key.to_string()));
    Ok(response)
}

fn line(text: &'static str) -> Response {
    body_of(StatusCode::OK, "text/plain; charset=utf-8", text.into())
}

/// An error of a call, as the word of the actor if it names one: the gateway's own is JSON,
/// whatever the actor and its client speak.
pub(super) fn whose(error: Error, encoding: Encoding) -> Failure {
    let is_actors = error.actor.is_some() || error.is("actor", "action_not_found");
    let origin = if is_actors { Origin::Actor(encoding) } else { Origin::Gateway };
    Failure { error, origin }
}

/// The address of an actor and its type.
pub(super) async fn address(
    shared: &Shared,
    actor: Addressee,
) -> Result<(Address, ActorName), Failure> {
    match actor {
        Addressee::Id(text) => {
            let id = actor_id(&text).map_err(Failure::gateway)?;
            let row = row(shared, Address::Id(id)).await.map_err(Failure::gateway)?;
            Ok((Address::Id(id), row.name))
        }
        Addressee::Query(ActorQuery { namespace, name, key, find }) => {
            shared.check_namespace(Some(&namespace)).map_err(Failure::gateway)?;
            let create = match find {
                Find::Get => None,
                Find::GetOrCreate(creation) => {
                    Some(Create { input: creation.input.map(|input| input.cbor().clone()) })
                }
            };
            Ok((Address::Key { name: name.clone(), key, create }, name))
        }
    }
}

/// The id that a client names; no other form of it is one.
pub(super) fn actor_id(text: &str) -> Result<ActorId, GatewayError> {
    ActorId::parse(text)
        .ok_or_else(|| GatewayError::NoSuchId { id: text.chars().take(64).collect() })
}

/// Finds or makes the row of an actor.
pub(super) async fn row(shared: &Shared, address: Address) -> Result<ActorRow, Error> {
    let (reply, row) = Reply::channel();
    shared.host.resolve(address, ELSEWHERE, reply);
    row.await
}

impl Shared {
    /// Refuses a namespace that is not the only one.
    pub(super) fn check_namespace(&self, named: Option<&str>) -> Result<(), ManagerError> {
        match named {
            Some(name) if name != self.options.namespace => {
                let name = name.chars().take(64).collect();
                Err(ManagerError::NoSuchNamespace { name })
            }
            _ => Ok(()),
        }
    }
}
