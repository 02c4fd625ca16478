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
//! 5. A part that could not be looked at is looked at again, ever less often; the others are
//!    told meanwhile.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{Notify, Semaphore};

use super::link::{Framing, Out};
use super::look::Look;
use crate::core::actor::inspection::{Attached, Glance, Revisions};
use crate::error::Error;
use crate::gateway::outbox::Outbox;
use crate::inspector::{Init, ToClient, Version};
use crate::time::Duration;

/// How long nothing is told after something was.
const PAUSE: Duration = Duration::from_millis(50);

/// The same at most, where looking fails again and again.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

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
    /// A state was put in its place here and not told.
    is_patched: bool,
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
            is_patched: false,
            state: init.state.clone(),
        }
    }

    /// Tells until the generation is over.
    pub(super) async fn run(mut self) {
        let free = Arc::new(Semaphore::new(1));
        let clock = self.look.shared.clock().clone();
        let mut pause = PAUSE;
        loop {
            tokio::select! {
                biased;
                () = self.patched.notified() => self.is_patched = true,
                changed = self.attached.changed(self.seen) => if changed.is_none() { return },
                () = clock.sleep(PAUSE), if self.is_unsaved || self.is_patched => {}
            }
            let permit = tokio::select! {
                biased;
                () = self.attached.over() => return,
                permit = Arc::clone(&free).acquire_owned() => permit,
            };
            // Nobody closes it.
            let Ok(permit) = permit else { return };
            let held = Arc::new(permit);
            let (told, failed) = self.updates().await;
            for message in told {
                let frame = self.framing.write(&message);
                self.outbox.push(Out::Update { frame, _held: Arc::clone(&held) });
            }
            drop(held);
            pause = if failed { (pause * 2).min(LONGEST_PAUSE) } else { PAUSE };
            clock.sleep(pause).await;
        }
    }

    /// What has changed since it was told, and whether a part could not be looked at. That
    /// one counts as not seen (invariant 5).
    async fn updates(&mut self) -> (Vec<ToClient>, bool) {
        let glance = self.look.actor.glance();
        let (now, before) = (glance.revisions, self.seen);
        let mut told = Vec::new();
        let mut failed = false;
        if self.is_patched || self.is_unsaved || glance.is_unsaved || now.state != before.state {
            match self.look.state().await {
                Ok(state) => {
                    let is_new = state != self.state;
                    self.state.clone_from(&state);
                    let is_patched = std::mem::take(&mut self.is_patched);
                    if let Some(state) = state.filter(|_| is_new || is_patched) {
                        told.push(ToClient::StateUpdated { state });
                    }
                    self.seen.state = now.state;
                    self.is_unsaved = glance.is_unsaved;
                }
                Err(error) => failed |= untold(&error),
            }
        }
        if now.connections != before.connections {
            match self.look.connections().await {
                Ok(connections) => {
                    told.push(ToClient::ConnectionsUpdated { connections });
                    self.seen.connections = now.connections;
                }
                Err(error) => failed |= untold(&error),
            }
        }
        if now.queue != before.queue {
            told.push(ToClient::QueueUpdated { queue_size: glance.queue_size as u64 });
            self.seen.queue = now.queue;
        }
        if now.workflow != before.workflow {
            match self.look.history().await {
                Ok(history) => {
                    let told_of = history.bytes;
                    told.extend(
                        told_of.map(|history| ToClient::WorkflowHistoryUpdated { history }),
                    );
                    self.seen.workflow = now.workflow;
                }
                Err(error) => failed |= untold(&error),
            }
        }
        if self.framing.version < Version::V6 {
            self.seen.schedules = now.schedules;
        } else if now.schedules != before.schedules {
            match self.look.schedules().await {
                Ok(schedules) => {
                    told.push(ToClient::SchedulesUpdated { schedules });
                    self.seen.schedules = now.schedules;
                }
                Err(error) => failed |= untold(&error),
            }
        }
        (told, failed)
    }
}

/// A part cannot be looked at for the moment.
fn untold(error: &Error) -> bool {
    tracing::debug!(%error, "a dashboard is not told of a change yet");
    true
}
