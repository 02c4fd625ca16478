//! The table of an actor's connections.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use super::audience::Audience;
use super::conn::{Conn, ConnId};
use super::error::ConnectionError;
use super::message_index::{Arrival, MAX_UNSTORED, earlier, later};
use super::pending::{Pending, Urgency};
use super::{MAX_SUBSCRIBED_BYTES, MAX_SUBSCRIPTIONS};
use crate::store::{ConnectionOp, RowOp, SocketId, StoredConnection};

/// A connection in the table.
#[derive(Debug)]
struct Entry {
    conn: Arc<Conn>,
    /// `onConnect` has ended well.
    accepted: bool,
    subscriptions: BTreeSet<Box<str>>,
    /// The number of the last message from the client that was handled.
    server_index: u16,
    /// That of them which a commit has taken last that did not fail, so far as is known.
    stored_index: u16,
    /// Kept for the gateway, which alone changes it.
    client_index: u16,
}

/// The states of the hibernatable connections at some moment.
#[derive(Debug, Default)]
pub(crate) struct ConnStates(Vec<(Arc<Conn>, Bytes)>);

/// The connections of one generation that are visible, in order of their ids.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    entries: BTreeMap<ConnId, Entry>,
    /// How many of them are hibernatable.
    hibernatable: usize,
    /// The newest one of each socket.
    sockets: HashMap<SocketId, ConnId>,
    pending: Pending,
    /// Raised with each change that somebody who looks would see.
    revision: u64,
}

impl Connections {
    /// Makes a connection visible.
    pub(crate) fn insert(&mut self, conn: Arc<Conn>) {
        let entry = Entry {
            accepted: false,
            subscriptions: BTreeSet::new(),
            server_index: 0,
            stored_index: 0,
            client_index: 0,
            conn,
        };
        self.put(entry);
    }

    /// Takes over one that an earlier generation accepted.
    pub(crate) fn restore(&mut self, conn: Arc<Conn>, stored: &StoredConnection) {
        self.put(Entry {
            conn,
            accepted: true,
            subscriptions: stored.subscriptions.iter().map(|name| name.as_str().into()).collect(),
            server_index: stored.server_index,
            stored_index: stored.server_index,
            client_index: stored.client_index,
        });
    }

    fn put(&mut self, entry: Entry) {
        self.revision += 1;
        if let Some(socket) = entry.conn.socket {
            self.hibernatable += 1;
            self.sockets.insert(socket, entry.conn.id.clone());
        }
        let before = self.entries.insert(entry.conn.id.clone(), entry);
        debug_assert!(before.is_none(), "ids are unique");
    }

    /// Accepts one. `false` when it is gone.
    pub(crate) fn accept(&mut self, id: &ConnId) -> bool {
        let Some(entry) = self.entries.get_mut(id) else { return false };
        entry.accepted = true;
        self.touch(id, Urgency::Urgent);
        true
    }

    /// Takes one out that was rejected: nothing of it is stored.
    pub(crate) fn reject(&mut self, id: &ConnId) {
        let taken = self.take(id);
        debug_assert!(taken.is_none_or(|entry| !entry.accepted), "an accepted one is removed");
    }

    /// Takes one out. `None` when it is gone already (invariant 3).
    pub(crate) fn remove(&mut self, id: &ConnId) -> Option<Arc<Conn>> {
        let entry = self.take(id)?;
        if entry.accepted && entry.conn.is_hibernatable() {
            self.pending.remove(id.clone());
        }
        Some(entry.conn)
    }

    /// Takes one out that stays stored for the moment. `None` when it is gone already.
    pub(crate) fn withdraw(&mut self, id: &ConnId) -> Option<Arc<Conn>> {
        self.take(id).map(|entry| entry.conn)
    }

    fn take(&mut self, id: &ConnId) -> Option<Entry> {
        let entry = self.entries.remove(id)?;
        self.revision += 1;
        if let Some(socket) = entry.conn.socket {
            self.hibernatable -= 1;
            if self.sockets.get(&socket) == Some(id) {
                self.sockets.remove(&socket);
            }
        }
        Some(entry)
    }

    /// Notes that one is to be stored no more, whether it is still there or not.
    pub(crate) fn forget(&mut self, id: ConnId) {
        self.pending.remove(id);
    }

    /// Takes all out, without a word of it to the rows.
    pub(crate) fn clear(&mut self) -> Vec<(Arc<Conn>, bool)> {
        self.sockets.clear();
        self.hibernatable = 0;
        let entries = std::mem::take(&mut self.entries);
        entries.into_values().map(|entry| (entry.conn, entry.accepted)).collect()
    }

    /// Raised with each change that somebody who looks would see.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many there are that keep the actor awake (invariant 5).
    pub(crate) fn keeping_awake(&self) -> usize {
        self.entries.len() - self.hibernatable
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Conn>> {
        self.entries.values().map(|entry| &entry.conn)
    }

    pub(crate) fn accepted(&self) -> impl Iterator<Item = &Arc<Conn>> {
        self.entries.values().filter(|entry| entry.accepted).map(|entry| &entry.conn)
    }

    /// Whether one is there and accepted.
    pub(crate) fn is_accepted(&self, id: &ConnId) -> bool {
        self.entries.get(id).is_some_and(|entry| entry.accepted)
    }

    pub(crate) fn get(&self, id: &ConnId) -> Option<&Arc<Conn>> {
        self.entries.get(id).map(|entry| &entry.conn)
    }

    /// The accepted connection of a socket.
    pub(crate) fn of_socket(&self, socket: SocketId) -> Result<&Arc<Conn>, ConnectionError> {
        let entry = self.sockets.get(&socket).and_then(|id| self.entries.get(id));
        entry
            .filter(|entry| entry.accepted)
            .map(|entry| &entry.conn)
            .ok_or(ConnectionError::RestoreNotFound { socket })
    }

    /// Those who want to hear `event`.
    pub(crate) fn subscribers(&self, event: &str) -> Vec<Arc<Conn>> {
        let wants = |entry: &&Entry| entry.subscriptions.contains(event);
        self.entries.values().filter(wants).map(|entry| Arc::clone(&entry.conn)).collect()
    }

    /// Of which kinds those are that want to hear an event.
    pub(crate) fn audience(&self, event: &str) -> Audience {
        let mut audience = Audience::default();
        for entry in self.entries.values().filter(|entry| entry.subscriptions.contains(event)) {
            if entry.conn.is_remote() {
                audience.remote = true;
            } else {
                audience.local = true;
            }
        }
        audience
    }

    /// The names that one wants to hear, in order; none of one that is gone.
    pub(crate) fn subscriptions(&self, id: &ConnId) -> Vec<String> {
        self.entries.get(id).map_or_else(Vec::new, names)
    }

    /// Adds a name; says whether that changed anything.
    pub(crate) fn subscribe(&mut self, id: &ConnId, event: &str) -> Result<bool, ConnectionError> {
        let entry = self.entry(id)?;
        let has = entry.subscriptions.contains(event);
        if !has && !entry.may_subscribe(event) {
            return Err(ConnectionError::TooManySubscriptions { id: id.clone() });
        }
        let added = entry.subscriptions.insert(event.into());
        if added {
            self.touch(id, Urgency::Urgent);
        }
        Ok(added)
    }

    /// Takes a name away; says whether that changed anything.
    pub(crate) fn unsubscribe(&mut self, id: &ConnId, event: &str) -> bool {
        let Ok(entry) = self.entry(id) else { return false };
        let removed = entry.subscriptions.remove(event);
        if removed {
            self.touch(id, Urgency::Urgent);
        }
        removed
    }

    /// Where a message stands that arrives from the client.
    pub(crate) fn arrival(&self, id: &ConnId, index: u16) -> Result<Arrival, ConnectionError> {
        let entry = self.entries.get(id).ok_or_else(|| not_found(id))?;
        if !entry.conn.is_hibernatable() {
            return Err(ConnectionError::NotHibernatable { id: id.clone() });
        }
        Ok(Arrival::of(index, entry.server_index))
    }

    /// Notes that all messages up to `index` are handled. An earlier number changes
    /// nothing. Says whether the number has to be stored by now.
    pub(crate) fn acknowledge(&mut self, id: &ConnId, index: u16) -> Result<bool, ConnectionError> {
        self.arrival(id, index)?;
        let entry = self.entry(id)?;
        let last = later(entry.server_index, index);
        if last == entry.server_index {
            return Ok(false);
        }
        entry.server_index = last;
        let is_far = last.wrapping_sub(entry.stored_index) >= MAX_UNSTORED;
        self.note(id, if is_far { Urgency::Urgent } else { Urgency::Lazy });
        Ok(is_far)
    }

    fn entry(&mut self, id: &ConnId) -> Result<&mut Entry, ConnectionError> {
        self.entries.get_mut(id).ok_or_else(|| not_found(id))
    }

    /// Notes that something of a connection changed. Only a hibernatable one that is
    /// accepted is stored.
    pub(crate) fn touch(&mut self, id: &ConnId, urgency: Urgency) {
        self.revision += 1;
        self.note(id, urgency);
    }

    /// The same of what nobody who looks would see.
    fn note(&mut self, id: &ConnId, urgency: Urgency) {
        let stored = |entry: &Entry| entry.accepted && entry.conn.is_hibernatable();
        if self.entries.get(id).is_some_and(stored) {
            self.pending.update(id.clone(), urgency);
        }
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.pending
    }

    /// Those that wait to be stored and are there, in order of their ids.
    pub(crate) fn dirty(&self) -> impl Iterator<Item = &Arc<Conn>> {
        self.pending.updates().filter_map(|id| self.get(id)).filter(|conn| conn.is_hibernatable())
    }

    /// Whether the author's side may hand over a state of this connection.
    pub(crate) fn check(&self, id: &ConnId) -> Result<(), ConnectionError> {
        match self.get(id) {
            _ if self.pending.removes(id) => Ok(()),
            Some(conn) if conn.is_hibernatable() => Ok(()),
            Some(_) => Err(ConnectionError::NotHibernatable { id: id.clone() }),
            None => Err(not_found(id)),
        }
    }

    /// Takes over the state of a connection that the author's side hands over with a
    /// commit which begins (invariant 6). Nothing of one that is gone.
    pub(crate) fn hand_over(&mut self, id: &ConnId, state: Bytes) {
        let Some(entry) = self.entries.get(id) else { return };
        self.revision += u64::from(entry.conn.state() != state);
        entry.conn.set_state(state);
        // One that is not accepted is stored when it is, and then with this state.
        if entry.accepted && entry.conn.is_hibernatable() {
            self.pending.carry(id.clone());
        }
    }

    /// The states of the hibernatable ones, to be given back by
    /// [`Connections::restore_states`].
    pub(crate) fn states(&self) -> ConnStates {
        let lasting = self.all().filter(|conn| conn.is_hibernatable());
        ConnStates(lasting.map(|conn| (Arc::clone(conn), conn.state())).collect())
    }

    /// Gives states back, also to connections that are gone: their handles are read still.
    /// Says whether that changed any that is stored.
    pub(crate) fn restore_states(&mut self, states: ConnStates) -> bool {
        let mut changed = false;
        for (conn, state) in states.0 {
            if conn.state() != state {
                conn.set_state(state);
                self.touch(&conn.id, Urgency::Urgent);
                changed |= self.entries.contains_key(&conn.id);
            }
        }
        changed
    }

    /// Takes what changed, as rows: updates, then removals. Of a connection that is gone
    /// nothing is updated.
    pub(crate) fn take_rows(&mut self) -> (Vec<RowOp>, Pending) {
        let mut pending = self.pending.take();
        let entries = &mut self.entries;
        let mut before = Vec::new();
        let mut ops: Vec<_> = pending
            .updates()
            .filter_map(|id| {
                let entry = entries.get_mut(id)?;
                if entry.stored_index != entry.server_index {
                    before.push((id.clone(), entry.stored_index));
                }
                entry.store()
            })
            .map(|stored| ConnectionOp::Put(Box::new(stored)))
            .collect();
        for (id, index) in before {
            pending.note_stored(id, index);
        }
        ops.extend(pending.removals().map(|id| ConnectionOp::Delete(id.as_str().to_owned())));
        (ops.into_iter().map(RowOp::Connection).collect(), pending)
    }

    /// Gives back what a commit took that failed (invariant 6).
    pub(crate) fn give_back(&mut self, mut taken: Pending) {
        for (id, index) in taken.take_stored() {
            if let Some(entry) = self.entries.get_mut(&id) {
                // Commits that were taken one behind the other may fail in any order.
                entry.stored_index = earlier(entry.stored_index, index);
            }
        }
        self.pending.restore(taken);
    }
}

impl Entry {
    fn may_subscribe(&self, event: &str) -> bool {
        let bytes: usize = self.subscriptions.iter().map(|name| name.len()).sum();
        self.subscriptions.len() < MAX_SUBSCRIPTIONS && bytes + event.len() <= MAX_SUBSCRIBED_BYTES
    }

    /// What a commit that begins stores of it; `None` for one that does not outlive a
    /// sleep.
    fn store(&mut self) -> Option<StoredConnection> {
        self.stored_index = self.server_index;
        let conn = &self.conn;
        let head = conn.request.as_deref();
        Some(StoredConnection {
            id: conn.id.as_str().to_owned(),
            params: conn.params().clone(),
            state: conn.state(),
            subscriptions: names(self),
            socket: conn.socket?,
            server_index: self.server_index,
            client_index: self.client_index,
            path: head.map(|head| head.path.clone()).unwrap_or_default(),
            headers: head.map(|head| head.headers.clone()).unwrap_or_default(),
        })
    }
}

fn names(entry: &Entry) -> Vec<String> {
    entry.subscriptions.iter().map(|name| name.to_string()).collect()
}

fn not_found(id: &ConnId) -> ConnectionError {
    ConnectionError::NotFound { id: id.clone() }
}
