//! The sessions whose connections outlive sleeps of their actors.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::line::Line;
use super::{SessionEnd, Shared};
use crate::core::connections::{CloseCode, Peer};
use crate::core::context::ActorContext;
use crate::host::embedded::HostError;
use crate::ids::ActorId;
use crate::store::SocketId;

/// All of them, those of one actor side by side. The lock covers a few lines (invariant 7).
#[derive(Default)]
pub(in super::super) struct Register(Mutex<BTreeMap<(ActorId, SocketId), Arc<Shared>>>);

impl Register {
    pub(super) fn insert(&self, actor: ActorId, socket: SocketId, session: Arc<Shared>) {
        let before = self.0.lock().insert((actor, socket), session);
        drop(before);
    }

    pub(super) fn remove(&self, actor: ActorId, socket: SocketId) {
        let removed = self.0.lock().remove(&(actor, socket));
        drop(removed);
    }

    /// How many there are.
    pub(in super::super) fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// A generation that starts asks for the client of a stored connection.
    pub(in super::super) fn peer(
        &self,
        live: &ActorContext,
        socket: SocketId,
    ) -> Option<Arc<dyn Peer>> {
        let session = self.0.lock().get(&(live.actor_id(), socket)).map(Arc::clone)?;
        // What it was in before is dropped after the unlock.
        let before = session.state.lock().restore(live)?;
        drop(before);
        Some(Arc::new(Line { session, actor: live.specifier() }))
    }

    /// A generation has started.
    pub(in super::super) fn started(&self, live: &ActorContext) {
        for session in self.of(live.actor_id()) {
            let looks = session.state.lock().looks_in(live);
            if looks {
                session.rejoin(live);
                session.pump(false);
            }
        }
    }

    /// A generation is over.
    pub(in super::super) fn stopped(&self, live: &ActorContext) {
        for session in self.of(live.actor_id()) {
            session.parted(live);
        }
    }

    /// An actor is gone. Where it lived its clients know; one that it did not accept goes on
    /// to the next actor of the key, if it may.
    pub(in super::super) fn destroyed(&self, actor: ActorId) {
        for session in self.of(actor).into_iter().filter(|session| session.is_accepted()) {
            session.end(SessionEnd::Closed {
                code: CloseCode::NORMAL,
                reason: "actor.destroying".to_owned(),
            });
        }
    }

    /// The host is over.
    pub(in super::super) fn shut_down(&self) {
        let sessions: Vec<_> = self.0.lock().values().map(Arc::clone).collect();
        for session in sessions {
            session.end(super::pump::closed_by(&HostError::ShutDown.into()));
        }
    }

    fn of(&self, actor: ActorId) -> Vec<Arc<Shared>> {
        let first = SocketId { gateway: [0; 4], request: [0; 4] };
        let last = SocketId { gateway: [u8::MAX; 4], request: [u8::MAX; 4] };
        let sessions = self.0.lock();
        sessions
            .range((actor, first)..=(actor, last))
            .map(|(_, session)| Arc::clone(session))
            .collect()
    }
}

impl std::fmt::Debug for Register {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Register").field(&self.len()).finish()
    }
}
