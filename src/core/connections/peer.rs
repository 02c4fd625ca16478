//! The way to a client.

use std::sync::Arc;

use super::conn::ConnId;
use super::event::Event;

/// Why a socket is closed: a code of the WebSocket protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseCode(pub u16);

impl CloseCode {
    /// The connection has served its purpose.
    pub const NORMAL: Self = Self(1_000);
    /// The client broke a rule.
    pub const POLICY: Self = Self(1_008);
    /// Something failed here.
    pub const INTERNAL: Self = Self(1_011);
}

/// What a gateway does for one client.
///
/// The methods return at once, are called by one thread at a time and in order, and no
/// lock of the actor is held meanwhile. A client that does not read is the gateway's
/// matter. See invariants 1, 2 and 4 of the [parent module](super).
pub trait Peer: Send + Sync + 'static {
    /// The connection is accepted, durably where that matters. Not called for one that
    /// was accepted by an earlier generation.
    fn accept(&self, connection: &ConnId) {
        let _ = connection;
    }

    /// Sends an event. It is shared among all its receivers.
    fn send(&self, event: &Arc<Event>);

    /// Closes the socket, behind everything that was sent. Called at most once, and not
    /// when the client or the gateway has closed it.
    fn close(&self, code: CloseCode, reason: &str);
}
