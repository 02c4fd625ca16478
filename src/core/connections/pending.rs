//! What changed of hibernatable connections and no commit carries (invariant 6 of the
//! [parent module](super)).

use std::collections::{BTreeMap, BTreeSet};

use super::conn::ConnId;

/// Whether outputs must wait for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It goes with the next commit, whatever that is for: losing it with the process
    /// loses nothing, since the socket is lost with it.
    Lazy,
    /// It is a change like any other: what is told later may reveal it.
    Urgent,
}

/// Changes that wait for a commit, or were taken by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pending {
    updated: BTreeSet<ConnId>,
    removed: BTreeSet<ConnId>,
    /// Some of them are urgent.
    urgent: bool,
    /// Of those that a commit took: the number of the message up to which each was stored
    /// before, where the commit stores a later one.
    stored_before: BTreeMap<ConnId, u16>,
}

impl Pending {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.updated.is_empty() && self.removed.is_empty()
    }

    /// Whether outputs must wait.
    pub(crate) fn is_urgent(&self) -> bool {
        self.urgent
    }

    /// Notes that a connection is to be stored as it is when the commit begins.
    pub(super) fn update(&mut self, id: ConnId, urgency: Urgency) {
        self.removed.remove(&id);
        self.updated.insert(id);
        self.urgent |= urgency == Urgency::Urgent;
    }

    /// Notes that a commit which begins carries a connection. Unlike an update this leaves
    /// a removal that waits: the author's side made its snapshot before it.
    pub(super) fn carry(&mut self, id: ConnId) {
        self.updated.insert(id);
        self.urgent = true;
    }

    /// Whether a connection is to be removed.
    pub(super) fn removes(&self, id: &ConnId) -> bool {
        self.removed.contains(id)
    }

    /// Notes that a connection is to be stored no more.
    pub(super) fn remove(&mut self, id: ConnId) {
        self.updated.remove(&id);
        self.removed.insert(id);
        self.urgent = true;
    }

    /// Notes up to which message a connection was stored that a commit takes.
    pub(super) fn note_stored(&mut self, id: ConnId, index: u16) {
        self.stored_before.insert(id, index);
    }

    /// What was noted of that, taken out.
    pub(super) fn take_stored(&mut self) -> BTreeMap<ConnId, u16> {
        std::mem::take(&mut self.stored_before)
    }

    /// Takes everything.
    pub(super) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Gives back what a commit took that failed. What changed meanwhile stays, so a
    /// connection may be in both sets.
    pub(super) fn restore(&mut self, taken: Self) {
        self.updated.extend(taken.updated);
        self.removed.extend(taken.removed);
        self.urgent |= taken.urgent;
    }

    /// The connections to store, in order of their ids; a removal beats an update.
    pub(super) fn updates(&self) -> impl Iterator<Item = &ConnId> {
        self.updated.difference(&self.removed)
    }

    /// The connections to remove, in order of their ids.
    pub(crate) fn removals(&self) -> impl Iterator<Item = &ConnId> {
        self.removed.iter()
    }
}
