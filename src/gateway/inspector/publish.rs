//! What a dashboard is told without asking (§8.4).
//!
//! # Invariants
//!
//! 1. One change after the other: an older look never comes behind a newer one.
//! 2. Nothing is looked at again before what was told last is on its way, nor sooner than
//!    [`PAUSE`] after it. So a dashboard that does not read has one update of each part waiting.
//! 3. A state is told whether it is stored or not. While an actor has changes that no save has
//!    taken, it is looked at again and again, since their next one may come without a word.
//! 4. A state is told when it differs from what was told last, or was put in its place here.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{Notify, Semaphore};

use super::link::{Framing, Out};
use super::look::Look;
use crate::core::actor::inspection::{Attached, Glance, Revisions};
use crate::error::Result;
use crate::gateway::outbox::Outbox;
use crate::inspector::{Init, ToClient, Version};
use crate::time::Duration;

/// How long nothing is told after something was.
const PAUSE: Duration = Duration::from_millis(50);

/// Tells a dashboard what changes.
pub(super) struct Publisher {
    look: Look,
    outbox: Arc<Outbox<Out>>,
    framing: Framing,
    attached: Attached,
    /// A dashboard has put a state in the place of the actor's.
    patched: Arc<Notify>,
    seen: Revisions,
    is_unsaved: bool,
    state: Option<Bytes>,
}

impl Publisher {
    /// Tells what `init`, which was made behind `glance`, does not say.
    pub(super) fn new(
        (look, outbox, framing): (Look, Arc<Outbox<Out>>, Framing),
        attached: Attached,
        patched: Arc<Notify>,
        glance: &Glance,
        init: &Init,
    ) -> Self {
        Self {
            look,
            outbox,
            framing,
            attached,
            patched,
            seen: glance.revisions,
            is_unsaved: glance.is_unsaved,
            state: init.state.clone(),
        }
    }

    /// Tells until the generation is over.
    pub(super) async fn run(mut self) {
        let free = Arc::new(Semaphore::new(1));
        let clock = self.look.shared.clock().clone();
        loop {
            let is_patched = tokio::select! {
                biased;
                () = self.patched.notified() => true,
                changed = self.attached.changed(self.seen) => match changed {
                    Some(_) => false,
                    None => return,
                },
                () = clock.sleep(PAUSE), if self.is_unsaved => false,
            };
            // Nobody closes it.
            let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
            let held = Arc::new(permit);
            let glance = self.look.actor.glance();
            let before = std::mem::replace(&mut self.seen, glance.revisions);
            let unsaved = std::mem::replace(&mut self.is_unsaved, glance.is_unsaved);
            let told = self.updates(before, &glance, unsaved, is_patched).await;
            let told = told.unwrap_or_else(|error| {
                // It comes to rest, which the next look finds.
                tracing::debug!(%error, "a dashboard is not told of a change");
                Vec::new()
            });
            for message in told {
                let frame = self.framing.write(&message);
                self.outbox.push(Out::Update { frame, _held: Arc::clone(&held) });
            }
            drop(held);
            clock.sleep(PAUSE).await;
        }
    }

    async fn updates(
        &mut self,
        before: Revisions,
        glance: &Glance,
        unsaved: bool,
        is_patched: bool,
    ) -> Result<Vec<ToClient>> {
        let now = glance.revisions;
        let mut told = Vec::new();
        if is_patched || unsaved || glance.is_unsaved || now.state != before.state {
            let state = self.look.state().await?;
            let is_new = state != self.state;
            self.state.clone_from(&state);
            if let Some(state) = state.filter(|_| is_new || is_patched) {
                told.push(ToClient::StateUpdated { state });
            }
        }
        if now.connections != before.connections {
            let connections = self.look.connections().await?;
            told.push(ToClient::ConnectionsUpdated { connections });
        }
        if now.queue != before.queue {
            told.push(ToClient::QueueUpdated { queue_size: glance.queue_size as u64 });
        }
        if now.workflow != before.workflow
            && let Some(history) = self.look.history().await?.bytes
        {
            told.push(ToClient::WorkflowHistoryUpdated { history });
        }
        if now.schedules != before.schedules && self.framing.version >= Version::V6 {
            told.push(ToClient::SchedulesUpdated { schedules: self.look.schedules().await? });
        }
        Ok(told)
    }
}
