//! Calls of actions and messages for queues, each over a connection of its own (§4.3, §4.4).

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;

use super::actor::{ELSEWHERE, whose};
use super::answer::{Answer, Failure, add, body as body_of};
use super::body::{Read, read};
use super::error::GatewayError;
use super::{Shared, head};
use crate::core::behavior::Caller;
use crate::error::Error;
use crate::host::embedded::Address;
use crate::host::embedded::sessions::{RequestOutcome, SessionRequest};
use crate::ids::ActorName;
use crate::protocol::http::{ActionRequest, ActionResponse, QueueSendRequest, QueueSendResponse};
use crate::protocol::{
    ActorBody, Encoding, Limits, Origin, Payload, ProtocolError, Wire as _, header,
};

/// The name under which messages for queues travel. Names of actions have no control
/// characters.
pub const SEND: &str = "\u{1}send";

/// What a client wants.
pub(super) enum Wanted {
    /// The action of this name.
    Action(String),
    /// A message in the queue of this name.
    Send(String),
}

/// Whom a call is for, and what has come of it.
pub(super) struct Call {
    pub(super) address: Address,
    pub(super) name: ActorName,
    pub(super) head: Parts,
    pub(super) body: Body,
    pub(super) encoding: Encoding,
    /// The path within the actor.
    pub(super) path: String,
}

/// Has the actor do what a client wants.
pub(super) async fn answer(shared: &Shared, call: Call, wanted: Wanted, ray_id: &str) -> Answer {
    let Call { address, name, head, body, encoding, path } = call;
    let by_actor = |error: Error| Failure { error, origin: Origin::Actor(encoding) };
    let limits = limits(shared, &name);
    let request = request_of(shared, &head, body, encoding, limits, &wanted).await;
    let (called, args, params) = request.map_err(by_actor)?;
    if matches!(wanted, Wanted::Action(_)) && called.chars().any(char::is_control) {
        // What parts of this process say to each other travels under such (invariant 7).
        return Err(by_actor(GatewayError::NoSuchAction.into()));
    }
    let request = SessionRequest {
        params: params.cbor().clone(),
        request: Some(head::of_actor(&head, &path, ray_id, shared.options.token.as_ref())),
        hibernatable: false,
    };
    let outcome = shared
        .host
        .call_connected(&address, &request, called, args, Caller::Client, ELSEWHERE)
        .await;
    let RequestOutcome { result, taken_by } = outcome;
    let output = result.map_err(|error| whose(error, encoding))?;
    let mut response = respond(output, encoding, limits, &wanted).map_err(|error| {
        by_actor(match taken_by.clone() {
            Some(actor) => error.with_actor(actor),
            None => error,
        })
    })?;
    if let Some(actor) = &taken_by {
        add(&mut response, header::of_actor(&ActorBody::from(actor)));
    }
    Ok(response)
}

/// The limits of the messages of a type; of one that nobody runs the usual ones.
fn limits(shared: &Shared, name: &ActorName) -> Limits {
    shared.host.config(name).map_or_else(Limits::default, |config| Limits {
        incoming: config.max_incoming_message_size as usize,
        outgoing: config.max_outgoing_message_size as usize,
    })
}

/// Reads what a call brings, in the order of §4.3: what is called, with what, and the
/// parameters of the connection.
async fn request_of(
    shared: &Shared,
    head: &Parts,
    body: Body,
    encoding: Encoding,
    limits: Limits,
    wanted: &Wanted,
) -> Result<(String, Bytes, Payload), Error> {
    let patience = shared.options.bounds.body_timeout;
    let bytes = match read(body, limits.incoming, shared.clock(), patience).await? {
        Read::Whole(bytes) => bytes,
        Read::TooLong(size) => {
            return Err(ProtocolError::IncomingTooLong { size, limit: limits.incoming }.into());
        }
    };
    let (called, args) = match wanted {
        Wanted::Action(action) => {
            (action.clone(), ActionRequest::decode(encoding, bytes)?.args.cbor().clone())
        }
        Wanted::Send(queue) => {
            let args = QueueSendRequest::decode(encoding, bytes)?.as_call(queue)?;
            (SEND.to_owned(), args.cbor().clone())
        }
    };
    let params = header::params(head.headers.get(header::PARAMS).map(|value| value.as_bytes()))?;
    Ok((called, args, params))
}

fn respond(
    output: Bytes,
    encoding: Encoding,
    limits: Limits,
    wanted: &Wanted,
) -> Result<Response, Error> {
    let bytes = match wanted {
        Wanted::Action(_) => {
            let output = Payload::new(output).map_err(|error| {
                Error::internal(format_args!("what the action returned: {error}"))
            })?;
            ActionResponse { output }.encode(encoding)?
        }
        Wanted::Send(_) => {
            // The author's side says it in the form of the clients that speak CBOR.
            let response = QueueSendResponse::decode(Encoding::Cbor, output).map_err(|error| {
                Error::internal(format_args!("what became of the message: {error}"))
            })?;
            response.encode(encoding)?
        }
    };
    limits.check_outgoing(bytes.len())?;
    Ok(body_of(StatusCode::OK, encoding.content_type(), bytes))
}
