//! What the author's side sees of the connections that wait to be stored.
//!
//! An author's side that keeps the states of connections itself serialises those of
//! [`ActorContext::dirty_connections`] into the deltas of a save. One that calls
//! [`ConnHandle::set_state`] on each change needs none of this.

use std::sync::Arc;

use super::conn::ConnId;
use super::handle::ConnHandle;
use crate::core::context::ActorContext;

impl ActorContext {
    /// The hibernatable connections that the next commit stores, in order of their ids.
    pub fn dirty_connections(&self) -> Vec<ConnHandle> {
        let dirty: Vec<_> =
            self.0.with_connections(|table| table.dirty().map(Arc::clone).collect());
        dirty.into_iter().map(|conn| ConnHandle::new(&self.0, conn)).collect()
    }

    /// The ids of the connections that the next commit removes from the store, in order.
    /// Only that commit takes them away.
    pub fn pending_connection_removals(&self) -> Vec<ConnId> {
        self.0.with_connections(|table| table.pending().removals().cloned().collect())
    }

    /// Has a connection stored no more, from the next commit on. The connection itself
    /// stays; whatever changes of it later is stored again.
    pub fn queue_connection_removal(&self, id: &ConnId) {
        self.0.queue_connection_removal(id);
    }
}
