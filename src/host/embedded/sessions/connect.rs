//! A client connects.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::line::Line;
use super::message::Farewell;
use super::state::{Joined, State};
use super::{Session, SessionClient, SessionEnd, SessionRequest, Shared};
use crate::core::connections::{ConnHandle, ConnectRequest, Peer};
use crate::core::context::{ActorContext, Admission};
use crate::error::{Error, Result};
use crate::host::embedded::{Address, EmbeddedHost, EnvironmentId};
use crate::store::SocketId;

impl EmbeddedHost {
    /// Connects a client to an actor, which is woken and, if the address says so, made.
    /// Returns at once; the client is told of the acceptance, or why there is none. What it
    /// sends before waits. A client that comes while the actor is on its way to sleep is
    /// the next generation's.
    ///
    /// With `hibernatable` the connection outlives sleeps of the actor, and does not keep
    /// it awake. It is found again by what is in the memory of this process, so it does not
    /// outlive that.
    pub fn connect(
        &self,
        address: Address,
        request: SessionRequest,
        environment: EnvironmentId,
        client: Arc<dyn SessionClient>,
    ) -> Session {
        let socket = request.hibernatable.then(|| self.new_socket());
        let shared = Arc::new(Shared {
            host: self.this.clone(),
            environment,
            client,
            socket,
            gave_up: CancellationToken::new(),
            state: Mutex::new(State::new()),
        });
        let (host, session, panicked) = (self.arc(), Arc::clone(&shared), Arc::clone(&shared));
        let connecting = async move {
            let gave_up = session.gave_up.clone();
            tokio::select! {
                biased;
                // Dropping what connects ends what it has begun.
                () = gave_up.cancelled() => session.unregister(session.actor_id()),
                () = host.connect_session(address, request, &session) => {}
            }
        };
        self.runtime.spawner().spawn_guarded("session", connecting, move |text| {
            let error = Error::internal(format_args!("panic: {text}"));
            panicked.end(SessionEnd::Refused(error));
        });
        Session(shared)
    }

    /// A number that no socket of this host has, nor one of an earlier process: rows of
    /// those are found by none.
    fn new_socket(&self) -> SocketId {
        let [a, b, c, d, e, f, g, h] = self.runtime.ids().eight_bytes();
        SocketId { gateway: [a, b, c, d], request: [e, f, g, h] }
    }

    async fn connect_session(
        &self,
        address: Address,
        request: SessionRequest,
        session: &Arc<Shared>,
    ) {
        match self.connect_once_open(&address, &request, session).await {
            Ok((conn, live)) => session.joined(Joined { conn, live }, false),
            // It was accepted, and its generation has ended by now.
            Err(_) if session.is_accepted() => session.outlived(self),
            Err(error) => session.end(SessionEnd::Refused(error)),
        }
        session.pump(false);
    }

    async fn connect_once_open(
        &self,
        address: &Address,
        request: &SessionRequest,
        session: &Arc<Shared>,
    ) -> Result<(ConnHandle, ActorContext)> {
        loop {
            let live = self.meet_open(address, session.environment).await?;
            if !session.meets(self, &live) {
                return Err(crate::core::behavior::call_given_up());
            }
            let line = Arc::new(Line { session: Arc::clone(session), actor: live.specifier() });
            let connected = live.connect(ConnectRequest {
                params: request.params.clone(),
                request: request.request.clone(),
                peer: Some(line as Arc<dyn Peer>),
                socket: session.socket,
            });
            match connected.await {
                Ok(conn) => return Ok((conn, live)),
                Err(error) if session.is_accepted() || !is_closed_to(&live, &error) => {
                    return Err(error.with_actor(live.specifier()));
                }
                Err(_) => self.until_gone(&live).await,
            }
        }
    }
}

/// Whether a generation refused a client because it ends, so that the next one is to have
/// it.
pub(super) fn is_closed_to(live: &ActorContext, error: &Error) -> bool {
    let by_end = ["stopping", "destroying", "not_ready"].iter().any(|code| error.is("actor", code));
    by_end && (live.aborted() || live.admission() != Admission::Open)
}

impl Shared {
    pub(super) fn is_accepted(&self) -> bool {
        self.state.lock().connection.is_some()
    }

    /// It was accepted by a generation that has ended.
    fn outlived(self: &Arc<Self>, host: &EmbeddedHost) {
        self.state.lock().outlive();
        // The next one may have started before the session was seen to be away, and has
        // told those who were.
        let live = self.actor_id().and_then(|actor| host.living(actor));
        if let Some(live) = live {
            self.woken(&live);
        }
    }

    /// Notes the actor, and makes the session known to its next generations. `false` when
    /// the client has gone.
    fn meets(self: &Arc<Self>, host: &EmbeddedHost, live: &ActorContext) -> bool {
        let before = {
            let mut state = self.state.lock();
            if state.is_ended() {
                return false;
            }
            state.actor.replace(live.actor_id())
        };
        if let Some(socket) = self.socket {
            // By its key it may be another actor than the one that was met before.
            if let Some(before) = before.filter(|before| *before != live.actor_id()) {
                host.sessions.remove(before, socket);
            }
            host.sessions.insert(live.actor_id(), socket, Arc::clone(self));
            if self.state.lock().is_ended() {
                // It went in between, and had nothing to take back yet.
                self.bid(Farewell { actor: Some(live.actor_id()), ..Farewell::default() });
                return false;
            }
        }
        true
    }
}
