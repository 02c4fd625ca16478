//! The clients of an actor: who is connected, what each of them wants to hear, and what
//! of that outlives the actor's sleep.
//!
//! ```text
//! opening ──▶ visible ──▶ accepted ──▶ gone
//!    │            │
//!    └────────────┴──▶ rejected: never existed
//! ```
//!
//! A connection is *opening* while `onBeforeConnect` and `createConnState` run: nobody
//! sees it. It is *visible* while `onConnect` runs, and *accepted* when that has ended
//! well. [`Connections`] is the table of those that are visible, a part of the actor's
//! machine and pure: no I/O, no clock, no lock. A [`Conn`] is what all handles on one
//! connection share; the way to its client is a [`Peer`].
//!
//! # Invariants
//!
//! 1. A client that is rejected was told nothing: what the author sends before the
//!    connection is accepted waits in it, and leaves first and in order, or never.
//! 2. Events are outputs: each passes the gate, so no client learns of a change that is
//!    not durable. What was held when its generation broke is never told.
//! 3. Whoever is in the table is gone at most once: the removal decides who runs
//!    `onDisconnect`, and clears what the connection wanted.
//! 4. A peer is closed at most once, never before it was accepted, and is told nothing
//!    behind that.
//! 5. Connections keep the actor awake, unless they are hibernatable: those survive the
//!    sleep of their actor with their state, their subscriptions and the number of the
//!    message that was handled last.
//! 6. What changed of hibernatable connections waits in two sets until the next commit,
//!    which takes both. A removal beats an update of the same connection, except one that
//!    comes after it; a state that is handed over with the commit beats what the handle
//!    has. A commit that failed and is tried again gives back what it took.
//!
//! Locks: that of the machine comes before that of a [`Conn`], which covers a few fields
//! and is never held while anything is called.

mod audience;
mod conn;
mod error;
mod event;
mod handle;
mod message_index;
mod peer;
mod pending;
mod saving;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;

pub use self::audience::Audience;
pub(crate) use self::conn::Conn;
pub use self::conn::ConnId;
pub use self::error::ConnectionError;
pub use self::event::{Event, FORMS};
pub use self::handle::{ConnHandle, RequestConnection};
pub use self::message_index::Arrival;
pub use self::peer::{CloseCode, Peer};
pub(crate) use self::pending::{Pending, Urgency};
pub(crate) use self::table::{ConnStates, Connections};
use crate::store::SocketId;

/// How many events one connection may subscribe to. Clients choose the names, which stay in
/// memory and, of hibernatable connections, in every row of theirs.
pub const MAX_SUBSCRIPTIONS: usize = 1_024;

/// How long the names of those events may be together, in bytes: 64 KiB.
pub const MAX_SUBSCRIBED_BYTES: usize = 64 * 1024;

/// How a client came: what hooks see of its request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHead {
    /// The method, in upper case.
    pub method: String,
    /// The path and the query.
    pub path: String,
    /// The headers, names in lower case, in order of the names.
    pub headers: Vec<(String, String)>,
}

/// Somebody who wants to be connected.
pub struct ConnectRequest {
    /// What the client passed, encoded.
    pub params: Bytes,
    /// How it came; absent within the process.
    pub request: Option<Arc<RequestHead>>,
    /// The way to it; absent for one that can be told nothing, such as a single call.
    pub peer: Option<Arc<dyn Peer>>,
    /// Its socket, if the connection is to outlive a sleep of the actor.
    pub socket: Option<SocketId>,
}

impl std::fmt::Debug for ConnectRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectRequest")
            .field("params_len", &self.params.len())
            .field("request", &self.request)
            .field("has_peer", &self.peer.is_some())
            .field("socket", &self.socket)
            .finish()
    }
}

/// What the author's side runs for a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnHook {
    /// Whether the client may connect at all; a reply takes the place of its parameters.
    BeforeConnect {
        /// How it came.
        request: Option<Arc<RequestHead>>,
    },
    /// Makes the state of the connection; the reply is the encoded state.
    CreateState {
        /// How it came.
        request: Option<Arc<RequestHead>>,
    },
    /// It is there.
    Connect {
        /// How it came.
        request: Option<Arc<RequestHead>>,
    },
    /// It is gone.
    Disconnect,
    /// Whether the client may hear these events.
    BeforeSubscribe {
        /// Their name.
        event: String,
    },
}

impl ConnHook {
    /// The name for errors and logs.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::BeforeConnect { .. } => "on_before_connect",
            Self::CreateState { .. } => "create_conn_state",
            Self::Connect { .. } => "on_connect",
            Self::Disconnect => "on_disconnect",
            Self::BeforeSubscribe { .. } => "on_before_subscribe",
        }
    }
}

/// Which hooks of connections an author wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnHooks {
    /// [`ConnHook::BeforeConnect`].
    pub before_connect: bool,
    /// [`ConnHook::CreateState`].
    pub create_state: bool,
    /// [`ConnHook::Connect`].
    pub connect: bool,
    /// [`ConnHook::Disconnect`].
    pub disconnect: bool,
    /// [`ConnHook::BeforeSubscribe`].
    pub before_subscribe: bool,
}

impl ConnHooks {
    /// None of them.
    pub const NONE: Self = Self {
        before_connect: false,
        create_state: false,
        connect: false,
        disconnect: false,
        before_subscribe: false,
    };
    /// All of them.
    pub const ALL: Self = Self {
        before_connect: true,
        create_state: true,
        connect: true,
        disconnect: true,
        before_subscribe: true,
    };
}
