//! One connection, as all handles on it share it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;

use super::event::Event;
use super::peer::{CloseCode, Peer};
use super::{ConnectRequest, RequestHead};
use crate::store::{SocketId, StoredConnection};

/// The id of a connection: a UUID, kept over sleeps of its actor.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(Arc<str>);

impl ConnId {
    /// The id that a text is; whether a connection has it is another question.
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The way to the client.
enum Line {
    /// There is none, and never was.
    None,
    /// The connection is not accepted: what is sent waits (invariant 1).
    Waiting { peer: Arc<dyn Peer>, held: Vec<Arc<Event>> },
    /// What is sent goes out.
    Open(Arc<dyn Peer>),
    /// It is closed, or not this generation's any more.
    Closed,
}

/// What changes of a connection beside its place in the table.
struct Cell {
    /// Changed by the author's side.
    state: Bytes,
    /// Changed by outputs, in their order, and by the end of the connection.
    line: Line,
}

/// A connection.
pub(crate) struct Conn {
    pub(crate) id: ConnId,
    /// What the client passed.
    given: Bytes,
    /// What `onBeforeConnect` made of it, set before anybody sees the connection.
    checked: OnceLock<Bytes>,
    pub(crate) request: Option<Arc<RequestHead>>,
    /// Its socket, if it is hibernatable.
    pub(crate) socket: Option<SocketId>,
    cell: Mutex<Cell>,
}

impl Conn {
    /// One that is opening.
    pub(crate) fn opening(id: ConnId, request: ConnectRequest) -> Self {
        let ConnectRequest { params, request, peer, socket } = request;
        let line = peer.map_or(Line::None, |peer| Line::Waiting { peer, held: Vec::new() });
        let cell = Mutex::new(Cell { state: Bytes::new(), line });
        Self { id, given: params, checked: OnceLock::new(), request, socket, cell }
    }

    /// One that an earlier generation accepted, with its socket or without.
    pub(crate) fn restored(stored: &StoredConnection, peer: Option<Arc<dyn Peer>>) -> Self {
        // A client within the process has no request, and so no path.
        let head = (!stored.path.is_empty()).then(|| {
            Arc::new(RequestHead {
                method: "GET".to_owned(),
                path: stored.path.clone(),
                headers: stored.headers.clone(),
            })
        });
        let line = peer.map_or(Line::Closed, Line::Open);
        Self {
            id: ConnId::new(&stored.id),
            given: stored.params.clone(),
            checked: OnceLock::new(),
            request: head,
            socket: Some(stored.socket),
            cell: Mutex::new(Cell { state: stored.state.clone(), line }),
        }
    }

    /// What the client passed, or what `onBeforeConnect` made of it.
    pub(crate) fn params(&self) -> &Bytes {
        self.checked.get().unwrap_or(&self.given)
    }

    /// Puts what `onBeforeConnect` made of the parameters in their place, once.
    pub(crate) fn check_params(&self, checked: Bytes) {
        let first = self.checked.set(checked);
        debug_assert!(first.is_ok(), "a connection is opened once");
    }

    /// Whether the client is outside of the process.
    pub(crate) fn is_remote(&self) -> bool {
        self.request.is_some()
    }

    pub(crate) fn is_hibernatable(&self) -> bool {
        self.socket.is_some()
    }

    /// Whether there is a way to the client, or was.
    pub(crate) fn has_peer(&self) -> bool {
        !matches!(self.cell.lock().line, Line::None)
    }

    pub(crate) fn state(&self) -> Bytes {
        self.cell.lock().state.clone()
    }

    pub(crate) fn set_state(&self, state: Bytes) {
        let before = std::mem::replace(&mut self.cell.lock().state, state);
        drop(before);
    }

    /// Sends an event, or keeps it until the connection is accepted.
    pub(crate) fn deliver(&self, event: &Arc<Event>) {
        let peer = {
            let mut cell = self.cell.lock();
            match &mut cell.line {
                Line::Waiting { held, .. } => return held.push(Arc::clone(event)),
                Line::Open(peer) => Arc::clone(peer),
                Line::None => {
                    drop(cell);
                    let name = event.name();
                    tracing::debug!(conn_id = %self.id, event = name, "no way to send an event");
                    return;
                }
                Line::Closed => return,
            }
        };
        peer.send(event);
    }

    /// Tells the client that it is accepted, and what was kept for it. Outputs are
    /// performed by one thread at a time, so nothing passes what is told here.
    pub(crate) fn accept(&self) {
        let (peer, held) = {
            let mut cell = self.cell.lock();
            let Line::Waiting { peer, held } = &mut cell.line else { return };
            let taken = (Arc::clone(peer), std::mem::take(held));
            cell.line = Line::Open(Arc::clone(&taken.0));
            taken
        };
        peer.accept(&self.id);
        for event in &held {
            peer.send(event);
        }
    }

    /// Closes an accepted client's socket (invariant 4).
    pub(crate) fn close(&self, code: CloseCode, reason: &str) {
        if let Line::Open(peer) = self.hang_up() {
            peer.close(code, reason);
        }
    }

    /// Tells the client nothing more: its socket is closed, or is the next generation's,
    /// or the client was rejected.
    pub(crate) fn let_go(&self) {
        drop(self.hang_up());
    }

    fn hang_up(&self) -> Line {
        let mut cell = self.cell.lock();
        match cell.line {
            Line::None => Line::None,
            _ => std::mem::replace(&mut cell.line, Line::Closed),
        }
    }
}

impl fmt::Debug for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conn").field("id", &self.id).field("socket", &self.socket).finish()
    }
}
