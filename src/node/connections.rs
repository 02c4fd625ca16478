//! The contract's `ConnHandle`: one client of a generation, and what its actor does with
//! all of them.
//!
//! The promise-returning methods are added by the JavaScript half
//! (`ts/native/connections.ts`) on the same classes; the functions with a ticket below
//! are what they stand on. That half also keeps one instance of each connection.
//!
//! # Invariants
//!
//! 1. Bytes are copied in before the call returns.
//! 2. A handle stays readable when its connection is gone.
//! 3. The connection of a hook or a call can be asked for until that is answered, also
//!    when the actor has it no more.

use std::sync::Arc;

use bytes::Bytes;
use napi::Env;
use napi::bindgen_prelude::{BufferSlice, Uint8Array};
use napi_derive::napi;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::context::{ActorContext, settle_with};
use super::env;
use super::error::{invalid_argument, thrown};
use super::guard::trip;
use super::hub::Hub;
use super::kv::copied;
use crate::core::behavior::StateDelta;
use crate::core::connections::{ConnHandle as CoreHandle, ConnId, ConnectRequest, RequestHead};

/// One client of an actor, or one that is gone.
#[napi]
pub struct ConnHandle {
    inner: CoreHandle,
    hub: Arc<Hub>,
}

#[napi]
impl ConnHandle {
    /// The id, kept over sleeps of the actor.
    #[napi(catch_unwind)]
    pub fn id(&self) -> String {
        trip();
        self.inner.id().as_str().to_owned()
    }

    /// What the client passed, encoded.
    #[napi(catch_unwind, ts_return_type = "Buffer")]
    pub fn params<'env>(&self, env: &'env Env) -> napi::Result<BufferSlice<'env>> {
        trip();
        BufferSlice::copy_from(env, self.inner.params())
    }

    /// The encoded state; empty before there is one.
    #[napi(catch_unwind, ts_return_type = "Buffer")]
    pub fn state<'env>(&self, env: &'env Env) -> napi::Result<BufferSlice<'env>> {
        trip();
        BufferSlice::copy_from(env, self.inner.state())
    }

    /// Replaces the encoded state. Of a hibernatable connection it is stored with the turn.
    #[napi(catch_unwind)]
    pub fn set_state(&self, state: &[u8]) {
        trip();
        self.inner.set_state(Bytes::copy_from_slice(state));
    }

    /// Whether it outlives a sleep of the actor.
    #[napi(catch_unwind)]
    pub fn is_hibernatable(&self) -> bool {
        trip();
        self.inner.is_hibernatable()
    }

    /// Whether the client is outside of the process.
    #[napi(catch_unwind)]
    pub fn is_remote(&self) -> bool {
        trip();
        self.inner.is_remote()
    }

    /// Whether it is one of the actor's connections.
    #[napi(catch_unwind)]
    pub fn is_visible(&self) -> bool {
        trip();
        self.inner.is_visible()
    }

    /// How the client came, as JSON; null within the process.
    #[napi(catch_unwind)]
    pub fn request(&self) -> Option<String> {
        trip();
        self.inner.request().map(request_json)
    }

    /// One header of the request with which the client came, by its name in lower case; null
    /// where there is none.
    #[napi(catch_unwind)]
    pub fn request_header(&self, name: String) -> Option<String> {
        trip();
        let headers = &self.inner.request()?.headers;
        headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    }

    /// Sends an event with encoded arguments, whether the client wants it or not.
    #[napi(catch_unwind)]
    pub fn send(&self, name: String, args: &[u8]) {
        trip();
        self.inner.send(&name, Bytes::copy_from_slice(args));
    }
}

/// Disconnects a client, and settles `ticket` when its `onDisconnect` has ended.
#[napi(catch_unwind)]
pub fn conn_disconnect(connection: &ConnHandle, reason: String, ticket: f64) {
    trip();
    let ended = connection.inner.disconnect(&reason);
    settle_with(&connection.hub, ticket, async move { ended.await.map(|()| None) });
}

/// The connection of a hook that was taken and is not answered; null for none.
#[napi(catch_unwind)]
pub fn connection_of_hook(environment: f64, actor: f64, ticket: f64) -> Option<ConnHandle> {
    trip();
    handle(environment, env::connection_of_hook(actor, ticket)?)
}

/// The connection of a call that was taken and is not answered; null for none.
#[napi(catch_unwind)]
pub fn connection_of_call(environment: f64, actor: f64, call: f64) -> Option<ConnHandle> {
    trip();
    handle(environment, env::connection_of_call(actor, call)?)
}

/// A connection of a running generation by its id; null when it has none of that id.
#[napi(catch_unwind)]
pub fn connection(environment: f64, actor: f64, id: String) -> Option<ConnHandle> {
    trip();
    handle(environment, env::context(actor)?.connection(&id)?)
}

fn handle(environment: f64, inner: CoreHandle) -> Option<ConnHandle> {
    Some(ConnHandle { inner, hub: env::hub(environment)? })
}

/// The ids of the connections of a running generation, in order.
#[napi(catch_unwind)]
pub fn connection_ids(actor: f64) -> Vec<String> {
    trip();
    let connections = env::context(actor).map(|context| context.connections());
    let id = |connection: &CoreHandle| connection.id().as_str().to_owned();
    connections.unwrap_or_default().iter().map(id).collect()
}

/// Of which kinds the clients are that a broadcast would reach: bit 0 for those within the
/// process, bit 1 for remote ones.
#[napi(catch_unwind)]
pub fn audience(actor: f64, event: String) -> u32 {
    trip();
    let audience = env::context(actor).map(|context| context.audience(&event));
    audience.map_or(0, |kinds| u32::from(kinds.local) | (u32::from(kinds.remote) << 1))
}

/// Sends an event with encoded arguments to all clients of one kind that want it.
#[napi(catch_unwind)]
pub fn broadcast_to(actor: f64, remote: bool, event: String, args: &[u8]) {
    trip();
    if let Some(context) = env::context(actor) {
        context.broadcast_to(remote, &event, Bytes::copy_from_slice(args));
    }
}

/// What the author's side hands over to be stored: the state, if it has to be, states of
/// connections by their ids, and which of them are stored no more.
#[napi(object, object_to_js = false)]
pub struct JsStateDelta {
    /// The encoded state.
    pub state: Option<Uint8Array>,
    /// Of which connections there are states.
    pub ids: Option<Vec<String>>,
    /// Those, as many.
    pub states: Option<Vec<Uint8Array>>,
    /// The ids of those that are stored no more.
    pub removed: Option<Vec<String>>,
}

impl JsStateDelta {
    /// Copies it (invariant 1).
    pub(super) fn read(self, env: &Env) -> napi::Result<Vec<StateDelta>> {
        let ids = self.ids.unwrap_or_default();
        let states = self.states.unwrap_or_default();
        if ids.len() != states.len() {
            return Err(thrown(env, invalid_argument("states", "they are not as many as the ids")));
        }
        let state = self.state.map(|state| StateDelta::ActorState(copied(&state)));
        let changed = ids.iter().zip(&states).map(|(id, state)| StateDelta::ConnectionState {
            id: ConnId::new(id),
            state: copied(state),
        });
        let removed = self.removed.unwrap_or_default();
        let gone = removed.iter().map(|id| StateDelta::ConnectionRemoved { id: ConnId::new(id) });
        Ok(state.into_iter().chain(changed).chain(gone).collect())
    }
}

/// Ends a serialisation that was taken with everything that is to be stored. False when
/// nobody waited.
#[napi(catch_unwind)]
pub fn complete_save(
    env: &Env,
    actor: f64,
    ticket: f64,
    delta: JsStateDelta,
) -> napi::Result<bool> {
    trip();
    Ok(env::answer_save(actor, ticket, delta.read(env)?))
}

#[napi]
impl ActorContext {
    /// The connections, in the order of their ids.
    #[napi(catch_unwind)]
    pub fn conns(&self) -> Vec<ConnHandle> {
        trip();
        self.handles(self.inner.connections())
    }

    /// Those whose state the next save stores.
    #[napi(catch_unwind)]
    pub fn dirty_hibernatable_conns(&self) -> Vec<ConnHandle> {
        trip();
        self.handles(self.inner.dirty_connections())
    }

    /// Sends an event with encoded arguments to all clients that want it.
    #[napi(catch_unwind)]
    pub fn broadcast(&self, name: String, args: &[u8]) {
        trip();
        self.inner.broadcast(&name, Bytes::copy_from_slice(args));
    }

    /// Has a connection stored no more, from the next save on.
    #[napi(catch_unwind)]
    pub fn queue_hibernation_removal(&self, conn_id: String) {
        trip();
        self.inner.queue_connection_removal(&ConnId::new(&conn_id));
    }

    /// The ids of the connections that the next save removes; it does so by itself.
    #[napi(catch_unwind)]
    pub fn take_pending_hibernation_changes(&self) -> Vec<String> {
        trip();
        let removals = self.inner.pending_connection_removals();
        removals.iter().map(|id| id.as_str().to_owned()).collect()
    }

    /// Whether the next save stores or removes a connection.
    #[napi(catch_unwind)]
    pub fn has_pending_hibernation_changes(&self) -> bool {
        trip();
        !self.inner.pending_connection_removals().is_empty()
            || !self.inner.dirty_connections().is_empty()
    }
}

impl ActorContext {
    fn handles(&self, connections: Vec<CoreHandle>) -> Vec<ConnHandle> {
        let handle = |inner| ConnHandle { inner, hub: Arc::clone(&self.hub) };
        connections.into_iter().map(handle).collect()
    }
}

/// A request as the contract's callers say it.
#[derive(Deserialize)]
struct Request {
    method: String,
    uri: String,
    #[serde(default)]
    headers: std::collections::BTreeMap<String, String>,
}

/// Connects a client that can be told nothing, and settles `ticket` with its id. `request`
/// is JSON.
#[napi(catch_unwind)]
pub fn conn_connect(
    env: &Env,
    context: &ActorContext,
    params: &[u8],
    request: Option<String>,
    ticket: f64,
) -> napi::Result<()> {
    trip();
    let read = |text: String| serde_json::from_str::<Request>(&text);
    let request = request.map(read).transpose();
    let request = request.map_err(|error| thrown(env, invalid_argument("request", error)))?;
    let head = |request: Request| {
        let headers = request.headers.into_iter();
        Arc::new(RequestHead {
            method: request.method.to_uppercase(),
            path: request.uri,
            headers: headers.map(|(name, value)| (name.to_lowercase(), value)).collect(),
        })
    };
    let request = ConnectRequest {
        params: Bytes::copy_from_slice(params),
        request: request.map(head),
        peer: None,
        socket: None,
    };
    let inner = context.inner.clone();
    settle_with(&context.hub, ticket, async move {
        let connection = inner.connect(request).await?;
        Ok(Some(Bytes::copy_from_slice(connection.id().as_str().as_bytes())))
    });
    Ok(())
}

/// How a client came, as JSON.
pub(super) fn request_json(head: &RequestHead) -> String {
    let headers: Map<String, Value> =
        head.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({ "method": head.method, "uri": head.path, "headers": headers }).to_string()
}
