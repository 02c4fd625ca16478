//! What an actor asks of the place it runs in.
//!
//! A host decides *where* and *when* an actor lives; everything an actor does
//! while it lives is decided in this module's siblings.

use std::sync::Arc;

use super::actor::lifecycle::Intent;
use super::behavior::StopOutcome;
use super::connections::Peer;
use super::context::ActorContext;
use crate::store::SocketId;

/// Implemented by each place where actors live.
pub trait Host: Send + Sync + 'static {
    /// The actor asks to be put to sleep or destroyed. The host answers, now or
    /// later, with [`ActorContext::stop`]. Hearing it twice is harmless.
    fn intent(&self, actor: &ActorContext, intent: Intent);

    /// The way to the client of a socket that has outlived the actor's sleep; absent when
    /// that is closed. Asked once for each connection that is stored, before the first
    /// hook of a generation runs.
    fn peer(&self, actor: &ActorContext, socket: SocketId) -> Option<Arc<dyn Peer>> {
        let _ = (actor, socket);
        None
    }

    /// The generation ended: its outputs are out, its last state is durable (or
    /// the outcome says otherwise), and it takes no more work. Called once.
    fn stopped(&self, actor: &ActorContext, outcome: StopOutcome);
}
