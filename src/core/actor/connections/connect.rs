//! A client connects: the hooks in their order, and what becomes of it when one refuses
//! or the caller goes away.

use std::sync::Arc;

use super::super::Actor;
use super::super::activity::WorkKind;
use super::super::effect::Output;
use super::super::lifecycle::{LifecycleError, Phase};
use super::super::machine::Machine;
use super::super::requests::callback_timed_out;
use super::super::work::WorkRegion;
use super::Farewell;
use crate::core::behavior::{ActorEvent, Reply};
use crate::core::connections::{
    Conn, ConnHandle, ConnHook, ConnId, ConnectRequest, ConnectionError,
};
use crate::error::{Error, Result};
use crate::time::Duration;

use bytes::Bytes;

/// Ends a connection whose caller went away before it was told of its success.
struct Abandoned<'a> {
    actor: &'a Arc<Actor>,
    conn: Option<Arc<Conn>>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            self.actor.disconnect(&conn, Farewell::Gone, None);
        }
    }
}

impl Actor {
    /// See [`ActorContext::connect`](crate::core::context::ActorContext::connect).
    pub(crate) async fn connect(self: &Arc<Self>, request: ConnectRequest) -> Result<ConnHandle> {
        let _region = self.admit_connection(&request)?;
        let head = request.request.clone();
        let id = ConnId::new(&self.runtime.ids().uuid());
        let conn = Arc::new(Conn::opening(id, request));
        let handle = ConnHandle::new(self, Arc::clone(&conn));
        let (hooks, config) = (self.hooks.connections, &self.config);

        if hooks.before_connect {
            let hook = ConnHook::BeforeConnect { request: head.clone() };
            let checked =
                self.connection_hook(&handle, hook, config.on_before_connect_timeout).await?;
            if let Some(params) = checked {
                conn.check_params(params);
            }
        }
        if hooks.create_state {
            let hook = ConnHook::CreateState { request: head.clone() };
            let state =
                self.connection_hook(&handle, hook, config.create_conn_state_timeout).await?;
            conn.set_state(state.unwrap_or_default());
        }
        let mut abandoned = self.show_connection(&conn)?;
        if hooks.connect {
            let hook = ConnHook::Connect { request: head };
            if let Err(error) = self.connection_hook(&handle, hook, config.on_connect_timeout).await
            {
                abandoned.conn = None;
                self.reject_connection(&conn);
                return Err(error);
            }
        }
        let (reply, accepted) = Reply::channel();
        self.accept_connection(&conn, reply)?;
        self.or_over(accepted).await??;
        abandoned.conn = None;
        Ok(handle)
    }

    /// Keeps the actor awake for a client that connects, if it may.
    fn admit_connection(self: &Arc<Self>, request: &ConnectRequest) -> Result<WorkRegion> {
        let lasts = request.peer.is_some() && request.socket.is_none();
        let began = self.step(|machine, now| {
            self.may_connect(machine, lasts)?;
            self.has_room(machine)?;
            machine.activity.begin(WorkKind::InternalKeepAwake);
            Ok::<_, Error>(now)
        })?;
        Ok(WorkRegion::begun(self, WorkKind::InternalKeepAwake, began))
    }

    /// Whether a client may connect. One whose socket would be closed at once, since the
    /// actor is about to sleep, is the next generation's.
    fn may_connect(&self, machine: &Machine, lasts: bool) -> Result<()> {
        if let Some(error) = &machine.broken {
            return Err(error.clone());
        }
        let admitted = machine.lifecycle.admit().map_err(|refusal| refusal.error);
        let sleeps = lasts && machine.lifecycle.phase() != Phase::Started;
        let taken = admitted.and(if sleeps { Err(LifecycleError::Stopping) } else { Ok(()) });
        taken.map_err(|error| Error::from(error).with_actor(self.identity.specifier()))
    }

    fn has_room(&self, machine: &Machine) -> Result<()> {
        let limit = self.config.max_connections as usize;
        let count = machine.connections.made().map_or(0, |desk| desk.table.len());
        if count < limit {
            return Ok(());
        }
        let error = Error::from(ConnectionError::TooMany { limit });
        Err(error.with_actor(self.identity.specifier()))
    }

    fn show_connection<'a>(self: &'a Arc<Self>, conn: &Arc<Conn>) -> Result<Abandoned<'a>> {
        self.step(|machine, _| {
            self.may_connect(machine, conn.has_peer() && !conn.is_hibernatable())?;
            // Others came while its hooks ran.
            self.has_room(machine)?;
            machine.connections.table.insert(Arc::clone(conn));
            self.count_connections(machine);
            Ok(Abandoned { actor: self, conn: Some(Arc::clone(conn)) })
        })
    }

    fn reject_connection(self: &Arc<Self>, conn: &Conn) {
        conn.let_go();
        self.step(|machine, _| {
            machine.connections.table.reject(&conn.id);
            self.count_connections(machine);
        });
    }

    /// `onConnect` has ended well: the client may be told, in the order of outputs.
    fn accept_connection(self: &Arc<Self>, conn: &Arc<Conn>, reply: Reply<()>) -> Result<()> {
        self.step(|machine, now| {
            // Whoever saw it come sees it go: the end of the hooks is told by the guard.
            self.may_connect(machine, conn.has_peer() && !conn.is_hibernatable())?;
            if !machine.connections.table.accept(&conn.id) {
                // The author disconnected it while it connected.
                return Err(ConnectionError::NotFound { id: conn.id.clone() }.into());
            }
            self.metrics.connection_accepted();
            machine.store_connections(now);
            let conn = Arc::clone(conn);
            let accept = Reply::new(move |result: Result<()>| {
                match &result {
                    Ok(()) => conn.accept(),
                    Err(_) => conn.let_go(),
                }
                reply.send(result);
            });
            machine.emit(Output::Flushed(accept, Ok(())));
            Ok(())
        })
    }

    /// Runs a hook of a connection, at most for `timeout`.
    pub(super) async fn connection_hook(
        self: &Arc<Self>,
        connection: &ConnHandle,
        hook: ConnHook,
        timeout: Duration,
    ) -> Result<Option<Bytes>> {
        let label = hook.label();
        let (reply, outcome) = Reply::channel();
        let connection = connection.clone();
        self.step(|machine, _| {
            machine.deliver(ActorEvent::Connection { hook, connection, reply });
        });
        let waited = self.or_over(async {
            tokio::select! {
                outcome = outcome => outcome,
                () = self.runtime.clock().sleep(timeout) => Err(callback_timed_out(label, timeout)),
            }
        });
        waited.await?
    }
}
