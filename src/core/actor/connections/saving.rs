//! What is stored of connections, and when (invariants 4 and 5 of the
//! [parent module](super)).

use std::sync::Arc;

use bytes::Bytes;

use super::super::Actor;
use super::super::machine::Machine;
use super::super::save_queue::SaveRequest;
use super::ConnDesk;
use crate::core::behavior::StateDelta;
use crate::core::config::Durability;
use crate::core::connections::{Conn, ConnId, ConnStates, ConnectionError, Pending, Urgency};
use crate::store::RowOp;
use crate::time::Instant;

impl Machine {
    /// Whether changes of connections wait that outputs must wait for.
    pub(in super::super) fn has_connection_rows(&self) -> bool {
        self.desk_of_connections().is_some_and(|desk| desk.table.pending().is_urgent())
    }

    /// Whether any wait.
    pub(in super::super) fn has_lazy_rows(&self) -> bool {
        self.desk_of_connections().is_some_and(|desk| !desk.table.pending().is_empty())
    }

    fn desk_of_connections(&self) -> Option<&ConnDesk> {
        self.connections.made()
    }

    /// Takes what changed of connections for a commit that begins.
    pub(in super::super) fn take_connection_rows(&mut self) -> (Vec<RowOp>, Pending) {
        let desk = self.connections.made_mut();
        desk.map(|desk| desk.table.take_rows()).unwrap_or_default()
    }

    /// Gives back what a commit took that is tried again.
    pub(in super::super) fn give_connection_rows_back(&mut self, taken: Pending, now: Instant) {
        if taken.is_empty() {
            return;
        }
        let urgent = taken.is_urgent();
        self.connections.table.give_back(taken);
        if urgent {
            self.saves.request(SaveRequest::default(), now);
        }
    }

    /// Sees to it that urgent changes are stored (invariant 4).
    pub(super) fn store_connections(&mut self, now: Instant) {
        if !self.has_connection_rows() {
            return;
        }
        match self.config().durability {
            Durability::Interval => {
                self.saves.request(SaveRequest::default(), now);
            }
            Durability::Reply => {
                let turn_commits = !self.rows.is_empty()
                    || self.sql_wrote
                    || self.sql_in_use
                    || self.state_is_dirty();
                if !turn_commits {
                    self.commit_rows();
                }
            }
        }
    }

    /// Sees to it that they are stored without waiting for a save to be due, which may be
    /// too late: at once, unless a commit that takes them along has to come first.
    pub(super) fn store_connections_now(&mut self, now: Instant) {
        match self.config().durability {
            Durability::Reply => self.store_connections(now),
            Durability::Interval => {
                let turn_commits = !self.rows.is_empty() || self.sql_wrote || self.sql_in_use;
                if turn_commits || self.commit_rows().is_none() {
                    self.saves.request(SaveRequest { immediate: true, max_wait: None }, now);
                }
            }
        }
    }

    /// Whether a direct save may hand these over. A removal among them beats an update.
    pub(in super::super) fn check_connections(
        &self,
        deltas: &[StateDelta],
    ) -> Result<(), ConnectionError> {
        let removed = |wanted: &ConnId| {
            let removes = |delta: &StateDelta| matches!(delta, StateDelta::ConnectionRemoved { id } if id == wanted);
            deltas.iter().any(removes)
        };
        for delta in deltas {
            if let StateDelta::ConnectionState { id, .. } = delta
                && !removed(id)
            {
                match self.desk_of_connections() {
                    Some(desk) => desk.table.check(id)?,
                    None => return Err(ConnectionError::NotFound { id: id.clone() }),
                }
            }
        }
        Ok(())
    }

    /// What a state transaction gives back when it is rolled back.
    pub(in super::super) fn connection_states(&self) -> ConnStates {
        self.desk_of_connections().map(|desk| desk.table.states()).unwrap_or_default()
    }

    /// Gives the states back that connections had when a transaction began. No commit has
    /// begun since, so what is stored is not newer.
    pub(in super::super) fn restore_connection_states(&mut self, states: ConnStates, now: Instant) {
        if let Some(desk) = self.connections.made_mut()
            && desk.table.restore_states(states)
        {
            self.store_connections(now);
        }
    }

    /// Takes over a state of a connection for a commit that begins (invariant 5).
    pub(in super::super) fn hand_connection_over(&mut self, id: &ConnId, state: Bytes) {
        if let Some(desk) = self.connections.made_mut() {
            desk.table.hand_over(id, state);
        }
    }
}

impl Actor {
    /// See [`ConnHandle::set_state`].
    pub(crate) fn set_connection_state(self: &Arc<Self>, conn: &Conn, state: Bytes) {
        if !conn.is_hibernatable() {
            conn.set_state(state);
            return self.note_connection(&conn.id);
        }
        self.step(|machine, now| {
            conn.set_state(state);
            machine.connections.table.touch(&conn.id, Urgency::Urgent);
            self.store_with_turn(machine, now);
        });
    }

    /// A connection changed that is not stored: only those who look would see it.
    fn note_connection(&self, id: &ConnId) {
        let is_watched = {
            let mut machine = self.machine.lock();
            if let Some(desk) = machine.connections.made_mut() {
                desk.table.touch(id, Urgency::Lazy);
            }
            machine.watchers > 0
        };
        if is_watched {
            self.changed.notify_waiters();
        }
    }

    /// See [`ActorContext::queue_connection_removal`].
    ///
    /// [`ActorContext::queue_connection_removal`]: crate::core::context::ActorContext
    pub(crate) fn queue_connection_removal(self: &Arc<Self>, id: &ConnId) {
        self.step(|machine, now| {
            machine.connections.table.forget(id.clone());
            self.store_with_turn(machine, now);
        });
    }

    /// Sees to it that a change of the author's side is stored: with durability `reply`
    /// that commits at the end of its turn.
    fn store_with_turn(&self, machine: &mut Machine, now: Instant) {
        if self.config.durability == Durability::Interval {
            machine.store_connections(now);
        }
    }
}
