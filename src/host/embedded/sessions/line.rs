//! The way from a connection to the client of its session.

use std::sync::Arc;

use super::{SessionEnd, Shared};
use crate::core::connections::{CloseCode, ConnId, Event, Peer};
use crate::error::ActorSpecifier;

/// What one generation knows of a client.
pub(super) struct Line {
    pub(super) session: Arc<Shared>,
    pub(super) actor: ActorSpecifier,
}

impl Peer for Line {
    fn accept(&self, connection: &ConnId) {
        self.session.state.lock().connection = Some(connection.clone());
        self.session.client.accepted(connection, &self.actor);
    }

    fn send(&self, event: &Arc<Event>) {
        self.session.client.event(event);
    }

    fn close(&self, code: CloseCode, reason: &str) {
        self.session.end(SessionEnd::Closed { code, reason: reason.to_owned() });
    }
}
