//! What an actor asks of the place it runs in.
//!
//! A host decides *where* and *when* an actor lives; everything an actor does
//! while it lives is decided in this module's siblings.

use super::actor::lifecycle::Intent;
use super::behavior::StopOutcome;
use super::context::ActorContext;

/// Implemented by each place where actors live.
pub trait Host: Send + Sync + 'static {
    /// The actor asks to be put to sleep or destroyed. The host answers, now or
    /// later, with [`ActorContext::stop`]. Hearing it twice is harmless.
    fn intent(&self, actor: &ActorContext, intent: Intent);

    /// The generation ended: its outputs are out, its last state is durable (or
    /// the outcome says otherwise), and it takes no more work. Called once.
    fn stopped(&self, actor: &ActorContext, outcome: StopOutcome);
}
