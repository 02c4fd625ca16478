//! Clients that stay while their actor sleeps and wakes.
//!
//! A *session* is one client of one actor. In each generation of the actor it has a
//! connection, and it is what outlives them: gateways hold it for a socket, and callers in
//! this process for what they have connected.
//!
//! ```text
//! connecting ──▶ joined ──▶ leaving ──▶ away ──▶ restoring ──▶ joined …
//!      │        (a generation has the    (none    (one starts with
//!      ▼         connection)              has it)  its connection)
//!   refused              ended, from anywhere
//! ```
//!
//! # Invariants
//!
//! 1. What a client sends is taken by a generation in its order, each message once: it
//!    waits here until the generation before it has taken its place in the table, and what
//!    a generation has taken is answered by that one, be it with an error.
//! 2. Where the connection outlives a sleep, nothing is given to a generation that is on
//!    its way to sleep. It waits for the next one, which it wakes; how much may wait is
//!    limited ([`MAX_WAITING`], [`MAX_WAITING_BYTES`]), and what is more is refused.
//! 3. The numbers of messages that the core notes are those of what was taken. The session
//!    knows them too, and notes them anew where a generation broke before it stored them.
//! 4. A client hears [`SessionClient::accepted`] before any event, and
//!    [`SessionClient::ended`] once and last, unless it went itself.
//! 5. A client that goes is the last message of its session: what it sent before is still
//!    taken, if its actor is awake or woken for that. One that sent nothing wakes nobody:
//!    its connection ends in the next generation.
//! 6. A session keeps no generation in memory that is over.
//! 7. One lock per session; nothing is called while it is held. That of the register of
//!    those that outlive a sleep is never held with it.

mod connect;
mod line;
mod message;
mod pump;
mod register;
mod request;
mod state;

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

pub use self::message::Ticket;
use self::message::{Farewell, Message};
pub(super) use self::register::Register;
pub use self::request::RequestOutcome;
use self::state::State;
use super::{EmbeddedHost, EnvironmentId};
use crate::core::behavior::Reply;
use crate::core::connections::{CloseCode, ConnId, Event, RequestHead};
use crate::core::context::CallRequest;
use crate::error::{ActorSpecifier, Error};
use crate::ids::ActorId;
use crate::store::SocketId;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

/// How many messages of one session may wait for its actor.
pub const MAX_WAITING: usize = 4_096;

/// How many bytes of names and arguments those may have together: 16 MiB.
pub const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;

/// Who wants to be connected.
#[derive(Clone, Debug)]
pub struct SessionRequest {
    /// What the client passes, encoded.
    pub params: Bytes,
    /// How it came; absent within the process.
    pub request: Option<Arc<RequestHead>>,
    /// Whether the connection is to outlive sleeps of the actor.
    pub hibernatable: bool,
}

/// What a session does for its client.
///
/// The methods return at once and no lock is held meanwhile. Events and the answers of
/// calls come in the order in which the actor made them, by one thread at a time. A client
/// that does not listen is whoever implements this one's matter.
pub trait SessionClient: Send + Sync + 'static {
    /// The actor has accepted it: the connection's id, and whose it is.
    fn accepted(&self, connection: &ConnId, actor: &ActorSpecifier);

    /// An event. It is shared among all its receivers.
    fn event(&self, event: &Arc<Event>);

    /// It is over, by the actor or the host.
    fn ended(&self, end: SessionEnd);

    /// What a generation that has found the connection again is told before anything that
    /// the client has sent: a call of this name with these arguments.
    fn reopening(&self) -> Option<(&'static str, Bytes)> {
        None
    }

    /// What that call came to; `actor/dropped_reply` where the generation did not take it.
    fn reopened(&self, result: crate::error::Result<Bytes>) {
        let _ = result;
    }
}

/// How a session ends for its client.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionEnd {
    /// It was never accepted: what a hook threw, or why there is no actor to connect to.
    Refused(Error),
    /// Its connection was closed, behind everything that it was sent.
    Closed {
        /// Why, for the protocol.
        code: CloseCode,
        /// Why, in words or as `group.code`.
        reason: String,
    },
}

/// One client of one actor. Dropping it means that the client has gone.
pub struct Session(Arc<Shared>);

/// What the handle, the connections and the register share.
struct Shared {
    /// Held weakly: the host's register holds this.
    host: Weak<EmbeddedHost>,
    environment: EnvironmentId,
    client: Arc<dyn SessionClient>,
    /// Its socket, if it outlives a sleep of the actor.
    socket: Option<SocketId>,
    /// Fires when the client goes while it connects.
    gave_up: CancellationToken,
    state: Mutex<State>,
}

impl Session {
    /// Calls an action; whoever waits in the request is told its outcome. A call that is
    /// behind [`Session::close`] or the end is answered `connection/not_found`.
    pub fn call(&self, request: CallRequest) {
        self.0.submit(Message::Call { request, ticket: None });
    }

    /// [`Session::call`], and a way to give it up.
    pub fn call_with_ticket(&self, request: CallRequest) -> Arc<Ticket> {
        let ticket = Arc::<Ticket>::default();
        let message = Message::Call { request, ticket: Some(Arc::clone(&ticket)) };
        self.0.submit(message);
        ticket
    }

    /// Begins or ends to hear the events of a name. Answers when that has taken effect, or
    /// why it has not: what the author's hook threw, `connection/not_found`,
    /// `connection/too_many_subscriptions`.
    pub fn subscribe(&self, event: String, wanted: bool, reply: Reply<()>) {
        self.0.submit(Message::Subscribe { event, wanted, reply });
    }

    /// The client has gone (invariant 5). It hears nothing more.
    pub fn close(&self) {
        self.0.go();
    }

    /// The connection's id, once it is accepted.
    pub fn connection(&self) -> Option<ConnId> {
        self.0.state.lock().connection.clone()
    }

    /// How many messages wait for the actor.
    pub fn waiting(&self) -> usize {
        self.0.state.lock().waiting_len()
    }
}

impl EmbeddedHost {
    /// How many sessions there are whose connections outlive sleeps of their actors.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("socket", &self.0.socket).finish_non_exhaustive()
    }
}

impl Shared {
    /// The actor, once there is one.
    fn actor_id(&self) -> Option<ActorId> {
        self.state.lock().actor
    }

    /// It is over for the client: nothing that waits is taken any more. One that went
    /// itself hears nothing of it (invariant 4).
    fn end(&self, end: SessionEnd) {
        let (farewell, has_gone) = {
            let mut state = self.state.lock();
            (state.end(), state.has_gone())
        };
        let Some(farewell) = farewell else { return };
        self.bid(farewell);
        if !has_gone {
            self.client.ended(end);
        }
    }

    /// Does what is left of a session that ended.
    fn bid(&self, farewell: Farewell) {
        self.unregister(farewell.actor);
        for message in farewell.waiting {
            message.refuse(message::over(farewell.connection.as_ref()));
        }
    }

    fn unregister(&self, actor: Option<ActorId>) {
        if let (Some(socket), Some(actor), Some(host)) = (self.socket, actor, self.host.upgrade()) {
            host.sessions.remove(actor, socket);
        }
    }
}
