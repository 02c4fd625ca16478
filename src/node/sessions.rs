//! Clients within the process: sessions that JavaScript holds, and calls with a connection
//! of their own.
//!
//! # Invariants
//!
//! 1. What a session hears becomes jobs of the environment that opened it, in the order in
//!    which it heard it, so events come before the answer that was made after them.
//! 2. A session ends with its environment: its actor sees that the client has gone.
//! 3. Calls are given up by their tickets, as those without a connection are.

use std::sync::Arc;

use bytes::Bytes;
use napi::Env;
use napi_derive::napi;
use serde_json::json;

use super::callers::{Target, call};
use super::env::{self, next_number, number, to_js};
use super::error::{invalid_argument, thrown};
use super::guard::trip;
use super::host::{opened, settles};
use super::hub::Hub;
use super::job::Job;
use crate::core::behavior::Reply;
use crate::core::connections::{ConnId, Event};
use crate::core::context::CallRequest;
use crate::error::{ActorSpecifier, Error};
use crate::host::embedded::sessions::{SessionClient, SessionEnd, SessionRequest};

/// What a session has heard.
#[derive(Debug)]
pub(super) enum Heard {
    /// It is accepted.
    Accepted { connection: ConnId, actor: ActorSpecifier },
    /// An event.
    Event(Arc<Event>),
    /// It is over.
    Ended(SessionEnd),
}

/// The client of a session that JavaScript holds.
struct Client {
    hub: Arc<Hub>,
    session: u64,
}

impl Client {
    fn hear(&self, heard: Heard) {
        // Refused by a hub that is dead: nobody is left to hear it.
        drop(self.hub.push(Job::Session { session: self.session, heard }));
    }
}

impl SessionClient for Client {
    fn accepted(&self, connection: &ConnId, actor: &ActorSpecifier) {
        self.hear(Heard::Accepted { connection: connection.clone(), actor: actor.clone() });
    }

    fn event(&self, event: &Arc<Event>) {
        self.hear(Heard::Event(Arc::clone(event)));
    }

    fn ended(&self, end: SessionEnd) {
        self.hear(Heard::Ended(end));
    }
}

/// Who wants to be connected, within the process.
fn request(params: &[u8], hibernatable: bool) -> SessionRequest {
    SessionRequest { params: Bytes::copy_from_slice(params), request: None, hibernatable }
}

/// Connects a client to `target`, with encoded parameters: the number of its session, by
/// which everything is told that it hears.
#[napi(catch_unwind)]
pub fn session_open(
    env: &Env,
    host: f64,
    target: String,
    params: &[u8],
    hibernatable: bool,
) -> napi::Result<f64> {
    trip();
    let opened = opened(host).map_err(|error| thrown(env, error))?;
    let address = Target::read(&target).and_then(|target| target.into_address(None));
    let address = address.map_err(|error| thrown(env, error))?;
    let session = next_number();
    let client = Arc::new(Client { hub: Arc::clone(&opened.hub), session });
    let environment = opened.environment();
    let made = opened.host.connect(address, request(params, hibernatable), environment, client);
    env::keep_session(opened.hub.environment(), session, made);
    Ok(to_js(session))
}

/// Calls an action over a session with encoded arguments. Settles `ticket` with the encoded
/// result. One that is `cancellable` can be given up by its ticket.
#[napi(catch_unwind)]
#[allow(clippy::too_many_arguments, reason = "an object would cost more than the call")]
pub fn session_call(
    env: &Env,
    environment: f64,
    session: f64,
    action: String,
    args: &[u8],
    caller: u32,
    ticket: f64,
    cancellable: bool,
) -> napi::Result<()> {
    trip();
    let Some(hub) = env::hub(environment) else { return Err(no_session(env)) };
    let request = call(&hub, action, args, caller, ticket, cancellable);
    let called = env::with_session(session, |session| session.call(request));
    called.ok_or_else(|| no_session(env))
}

/// Begins or ends to hear the events of a name. Settles `ticket` when that has taken effect.
#[napi(catch_unwind)]
pub fn session_subscribe(
    env: &Env,
    environment: f64,
    session: f64,
    event: String,
    wanted: bool,
    ticket: f64,
) -> napi::Result<()> {
    trip();
    let Some(hub) = env::hub(environment) else { return Err(no_session(env)) };
    let told = settles(&hub, number(ticket));
    let reply = Reply::new(move |result: crate::error::Result<()>| {
        told.send(result.map(|()| None));
    });
    let asked = env::with_session(session, |session| session.subscribe(event, wanted, reply));
    asked.ok_or_else(|| no_session(env))
}

/// The client of a session has gone. It hears nothing more.
#[napi(catch_unwind)]
pub fn session_close(session: f64) {
    trip();
    drop(env::take_session(session));
}

/// Calls an action of `target` over a connection of its own, which has ended when `ticket`
/// is settled with the encoded result. One that is `cancellable` can be given up by its
/// ticket.
#[napi(catch_unwind)]
#[allow(clippy::too_many_arguments, reason = "an object would cost more than the call")]
pub fn submit_connected(
    env: &Env,
    host: f64,
    target: String,
    params: &[u8],
    action: String,
    args: &[u8],
    caller: u32,
    ticket: f64,
    cancellable: bool,
) -> napi::Result<()> {
    trip();
    let opened = opened(host).map_err(|error| thrown(env, error))?;
    let CallRequest { name, args, caller, origin, reply, .. } =
        call(&opened.hub, action, args, caller, ticket, cancellable);
    let address = match Target::read(&target).and_then(|target| target.into_address(None)) {
        Ok(address) => address,
        Err(error) => {
            reply.send(Err(error));
            return Ok(());
        }
    };
    let spawner = opened.hub.spawner().map_err(|error| thrown(env, error))?;
    let (request, environment) = (request(params, false), opened.environment());
    let host = Arc::clone(&opened.host);
    // A task that panics drops the reply, which answers.
    drop(spawner.spawn("connected call", async move {
        let by = (caller, origin);
        let called = host.call_connected_by(&address, &request, name, args, by, environment);
        reply.send(called.await.result);
    }));
    Ok(())
}

fn no_session(env: &Env) -> napi::Error {
    thrown(env, invalid_argument("session", "it is not open"))
}

impl Heard {
    /// What it is, as a number, its text, its bytes and its error.
    pub(super) fn parts(&self) -> (i32, String, Option<&Bytes>, Option<&Error>) {
        match self {
            Self::Accepted { connection, actor } => {
                let ActorSpecifier { actor_id, generation, key, .. } = actor;
                let actor = json!({ "actorId": actor_id, "generation": generation, "key": key });
                let text = json!({ "connId": connection.as_str(), "actor": actor }).to_string();
                (0, text, None, None)
            }
            Self::Event(event) => (1, event.name().to_owned(), Some(event.args()), None),
            Self::Ended(SessionEnd::Closed { code, reason }) => {
                (2, json!({ "code": code.0, "reason": reason }).to_string(), None, None)
            }
            Self::Ended(SessionEnd::Refused(error)) => (3, String::new(), None, Some(error)),
        }
    }
}
