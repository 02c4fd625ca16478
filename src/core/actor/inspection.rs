//! What somebody who looks into an actor is told: that something has changed.
//!
//! # Invariants
//!
//! 1. Who looks costs an actor nothing while nobody does, beyond a count per change.
//! 2. A change is counted within the step that makes it, so whoever is woken by a step reads
//!    counts that have it.
//! 3. Looking keeps an actor neither awake nor in memory beyond its end.

use std::sync::Arc;

use super::Actor;
use crate::core::context::ActorContext;

/// What a machine counts for those who look.
#[derive(Debug, Default)]
pub(super) struct Inspection {
    /// How many look.
    attached: usize,
    /// How often the state was stored.
    pub(super) stored: u64,
    /// How often rows of a workflow were stored.
    pub(super) workflow: u64,
}

/// How often each part of an actor has changed in this generation. A part that is the same
/// has not changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Revisions {
    /// The state, stored or not yet.
    pub state: u64,
    /// Who is connected, and what is known of them.
    pub connections: u64,
    /// The messages that wait.
    pub queue: u64,
    /// What is to be done later.
    pub schedules: u64,
    /// The rows of a workflow.
    pub workflow: u64,
}

/// An actor at one moment, for somebody who looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// What has changed so far.
    pub revisions: Revisions,
    /// Whether the state has changes that no save has taken, so that the next change of it
    /// may come without a word.
    pub is_unsaved: bool,
    /// How many connections there are.
    pub connections: usize,
    /// How many messages wait.
    pub queue_size: usize,
    /// How many look.
    pub attached: usize,
}

/// Somebody who looks into a generation, until it is dropped.
#[derive(Debug)]
pub struct Attached(Arc<Actor>);

impl ActorContext {
    /// The actor as it is.
    pub fn glance(&self) -> Glance {
        self.0.glance()
    }

    /// What the tokens of the place are made of that keeps this actor.
    pub fn folder_secret(&self) -> Option<[u8; 32]> {
        self.0.store.secret()
    }

    /// Whether the actor has a file of its own.
    pub fn has_file(&self) -> bool {
        self.0.store.file().is_some()
    }

    /// Begins to look.
    pub fn attach(&self) -> Attached {
        {
            let mut machine = self.0.machine.lock();
            machine.inspection.attached = machine.inspection.attached.saturating_add(1);
            machine.watchers += 1;
        }
        Attached(Arc::clone(&self.0))
    }
}

impl Attached {
    /// Resolves when the generation is over. Cancel safe.
    pub async fn over(&self) {
        self.0.tokens.over.reached().await;
    }

    /// Resolves with the actor as it is once it is not `seen` any more; `None` when the
    /// generation is over. Cancel safe.
    pub async fn changed(&self, seen: Revisions) -> Option<Glance> {
        let actor = &self.0;
        let over = actor.tokens.over.reached();
        tokio::pin!(over);
        loop {
            let changed = actor.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that a change between the two wakes us.
            changed.as_mut().enable();
            let glance = actor.glance();
            if actor.machine.lock().is_over() {
                return None;
            }
            if glance.revisions != seen {
                return Some(glance);
            }
            tokio::select! {
                biased;
                () = &mut over => return None,
                () = changed => {}
            }
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let mut machine = self.0.machine.lock();
        machine.inspection.attached = machine.inspection.attached.saturating_sub(1);
        machine.watchers -= 1;
    }
}

impl Actor {
    fn glance(&self) -> Glance {
        let machine = self.machine.lock();
        let inspection = &machine.inspection;
        let table = machine.connections.made().map(|desk| &desk.table);
        let desk = machine.desk.made();
        let schedules = machine.later.made().map_or(0, |later| later.schedules.revision());
        Glance {
            revisions: Revisions {
                state: inspection.stored + machine.saves.request_revision(),
                connections: table.map_or(0, |table| table.revision()),
                queue: desk.map_or(0, |desk| desk.revision()),
                schedules,
                workflow: inspection.workflow,
            },
            is_unsaved: machine.saves.requested() || machine.saves.is_saving(),
            connections: table.map_or(0, |table| table.len()),
            queue_size: desk.map_or(0, |desk| desk.queue().len()),
            attached: inspection.attached,
        }
    }
}
