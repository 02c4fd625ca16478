//! What gateways and the author's side do with a connection.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::audience::Audience;
use super::conn::{Conn, ConnId};
use super::error::ConnectionError;
use super::message_index::Arrival;
use super::peer::CloseCode;
use super::{ConnectRequest, RequestHead};
use crate::core::actor::Actor;
use crate::core::actor::connections::Farewell;
use crate::core::behavior::{CallId, Reply};
use crate::core::context::{ActorContext, CallRequest};
use crate::error::{Error, Result};
use crate::store::SocketId;

/// A handle on one connection. Cheap to clone; readable also when the connection is gone.
#[derive(Clone)]
pub struct ConnHandle {
    actor: Arc<Actor>,
    pub(crate) conn: Arc<Conn>,
}

/// The connection of a single request, which ends with it.
#[must_use = "the connection ends as soon as this is dropped"]
#[derive(Debug)]
pub struct RequestConnection(ConnHandle);

impl std::ops::Deref for RequestConnection {
    type Target = ConnHandle;

    fn deref(&self) -> &ConnHandle {
        &self.0
    }
}

impl Drop for RequestConnection {
    fn drop(&mut self) {
        self.0.closed();
    }
}

impl ActorContext {
    /// Connects a client: runs `onBeforeConnect`, `createConnState` and `onConnect`, and
    /// resolves when the client is accepted and may hear of it. One that is rejected is
    /// told nothing, and its peer is not closed: that is left to whoever asked.
    ///
    /// Dropping the future gives up: a connection that was visible by then is ended as
    /// if the client had gone, with `onDisconnect`.
    ///
    /// # Errors
    ///
    /// What a hook threw, `actor/callback_timed_out`, why the actor takes no work, or
    /// `actor/stopping` for a client that a sleep would cut off at once.
    pub async fn connect(&self, request: ConnectRequest) -> Result<ConnHandle> {
        self.0.connect(request).await
    }

    /// The connections that are visible, in the order of their ids. A copy: whoever goes
    /// through it may disconnect them meanwhile.
    pub fn connections(&self) -> Vec<ConnHandle> {
        let conns = self.0.with_connections(|table| table.all().map(Arc::clone).collect());
        let conns: Vec<_> = conns;
        conns.into_iter().map(|conn| ConnHandle::new(&self.0, conn)).collect()
    }

    /// A visible connection.
    pub fn connection(&self, id: &str) -> Option<ConnHandle> {
        let conn = self.0.with_connections(|table| table.get(&ConnId::new(id)).map(Arc::clone));
        conn.map(|conn| ConnHandle::new(&self.0, conn))
    }

    /// The connection of a socket that has outlived the actor's sleep.
    ///
    /// # Errors
    ///
    /// `connection/restore_not_found`.
    pub fn connection_of(&self, socket: SocketId) -> Result<ConnHandle> {
        let conn = self.0.with_connections(|table| table.of_socket(socket).map(Arc::clone))?;
        Ok(ConnHandle::new(&self.0, conn))
    }

    /// Sends an event to all connections that want it, in the order of their ids. An
    /// output: it waits for the changes made before it. `args` are opaque here.
    pub fn broadcast(&self, event: &str, args: Bytes) {
        self.0.broadcast(event, args, |_| true);
    }

    /// The same to the clients within the process only, or to the remote ones only: the
    /// author's side encodes values differently for the two.
    pub fn broadcast_to(&self, remote: bool, event: &str, args: Bytes) {
        self.0.broadcast(event, args, |conn| conn.is_remote() == remote);
    }

    /// Of which kinds the clients are that a broadcast of this event would reach now.
    pub fn audience(&self, event: &str) -> Audience {
        self.0.with_connections(|table| table.audience(event))
    }

    /// Disconnects all connections that `which` picks, as [`ConnHandle::disconnect`] does.
    /// Resolves when all their `onDisconnect` have ended.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn disconnect_where(
        &self,
        which: impl Fn(&ConnHandle) -> bool,
        reason: &str,
    ) -> Result<()> {
        let picked = self.connections().into_iter().filter(|connection| which(connection));
        // All begin before the first is awaited.
        let ends: Vec<_> = picked.map(|connection| connection.disconnect(reason)).collect();
        for end in ends {
            end.await?;
        }
        Ok(())
    }
}

impl ConnHandle {
    pub(crate) fn new(actor: &Arc<Actor>, conn: Arc<Conn>) -> Self {
        Self { actor: Arc::clone(actor), conn }
    }

    /// Its id.
    pub fn id(&self) -> &ConnId {
        &self.conn.id
    }

    /// What the client passed, or what `onBeforeConnect` made of it, encoded.
    pub fn params(&self) -> &Bytes {
        self.conn.params()
    }

    /// Whether the client is outside of the process: it has to be told values in the form
    /// that its encoding has for them.
    pub fn is_remote(&self) -> bool {
        self.conn.is_remote()
    }

    /// Whether it is one of the actor's, as a part of [`ActorContext::connections`].
    pub fn is_visible(&self) -> bool {
        self.actor.with_connections(|table| table.get(self.id()).is_some())
    }

    /// How the client came; absent within the process.
    pub fn request(&self) -> Option<&RequestHead> {
        self.conn.request.as_deref()
    }

    /// Its socket, if it outlives a sleep of the actor.
    pub fn socket(&self) -> Option<SocketId> {
        self.conn.socket
    }

    /// Whether it outlives a sleep of the actor.
    pub fn is_hibernatable(&self) -> bool {
        self.conn.is_hibernatable()
    }

    /// Its state, encoded; empty before there is one.
    pub fn state(&self) -> Bytes {
        self.conn.state()
    }

    /// Replaces its state. Of a hibernatable connection it is stored: with the rows that
    /// the author's side changes in this turn, which ends with a commit.
    pub fn set_state(&self, state: Bytes) {
        self.actor.set_connection_state(&self.conn, state);
    }

    /// The names of the events that it wants, in order.
    pub fn subscriptions(&self) -> Vec<String> {
        self.actor.with_connections(|table| table.subscriptions(self.id()))
    }

    /// Asks `onBeforeSubscribe` and adds the name of an event. Says whether the
    /// connection did not want it before. Of a hibernatable connection it is stored: that
    /// is durable when an output may leave that is made behind this.
    ///
    /// # Errors
    ///
    /// What the hook threw, `actor/callback_timed_out`, or `connection/not_found`; for a
    /// hibernatable connection `actor/stopping` when the last state of this generation is
    /// on its way, and why the generation broke.
    pub async fn subscribe(&self, event: &str) -> Result<bool> {
        self.actor.subscribe(self, event).await
    }

    /// Takes away the name of an event. Says whether the connection wanted it. Stored as
    /// [`ConnHandle::subscribe`] is.
    ///
    /// # Errors
    ///
    /// As there, behind the last state of a generation.
    pub fn unsubscribe(&self, event: &str) -> Result<bool> {
        self.actor.unsubscribe(&self.conn, event)
    }

    /// Sends an event to this client, whether it wants it or not. An output: it waits
    /// for the changes made before it. Nothing is sent to a client that is gone.
    pub fn send(&self, event: &str, args: Bytes) {
        self.actor.send_event(&self.conn, event, args);
    }

    /// Disconnects: closes the socket behind everything that was sent before, and runs
    /// `onDisconnect`. Begins with the call; resolves when the hook has ended, at once for
    /// one that is gone.
    ///
    /// # Errors
    ///
    /// Why the generation ended meanwhile.
    pub fn disconnect(&self, reason: &str) -> impl Future<Output = Result<()>> + Send + use<> {
        self.close(CloseCode::NORMAL, reason)
    }

    /// [`ConnHandle::disconnect`] with another code.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn close(
        &self,
        code: CloseCode,
        reason: &str,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let (reply, ended) = Reply::channel();
        let farewell = Farewell::Close(code, reason.to_owned());
        self.actor.disconnect(&self.conn, farewell, Some(reply));
        ended
    }

    /// Calls an action over this connection, which the function then knows. Otherwise as
    /// [`ActorContext::accept`]: handed back unanswered when it is not taken.
    ///
    /// # Errors
    ///
    /// `connection/not_found` when the connection is gone or not accepted, and why the
    /// generation takes no call. Another generation takes it from the connection that it
    /// has for the socket.
    pub fn call(&self, request: CallRequest) -> Result<CallId, Box<(Error, CallRequest)>> {
        self.actor.accept(request, Some(self))
    }

    /// Ties the connection to a single request: it ends when the guard is dropped, also
    /// with a request that is given up, since a connection that is forgotten would keep
    /// the actor awake for ever.
    pub fn for_request(self) -> RequestConnection {
        RequestConnection(self)
    }

    /// The client or the gateway has closed the socket: runs `onDisconnect`.
    pub fn closed(&self) {
        self.actor.disconnect(&self.conn, Farewell::Gone, None);
    }

    /// Where a message from the client stands, by its number.
    ///
    /// # Errors
    ///
    /// `connection/not_found`, `connection/not_hibernatable`.
    pub fn arrival(&self, index: u16) -> Result<Arrival> {
        let found: Result<_, ConnectionError> =
            self.actor.with_connections(|table| table.arrival(self.id(), index));
        Ok(found?)
    }

    /// Notes that all messages from the client up to this number are handled; stored with
    /// the next commit, at the latest with the last one before the actor sleeps, or 16,384
    /// messages later. A lower number than before changes nothing.
    ///
    /// Noted before the commit of what the message changed, both are durable together or
    /// not at all; so the gateway forgets a message when its answer has left. Of a
    /// generation that broke the number may be older than what the gateway has forgotten:
    /// it notes that again when it finds the connection.
    ///
    /// # Errors
    ///
    /// `connection/not_found`, `connection/not_hibernatable`; `actor/stopping` when the
    /// last state of this generation is on its way: the message is the next one's.
    pub fn acknowledge(&self, index: u16) -> Result<()> {
        self.actor.acknowledge(&self.conn, index)
    }
}

impl fmt::Debug for ConnHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.conn, f)
    }
}
