//! Connections within the machine: events at the gate, farewells, and what is stored.
//!
//! # Invariants
//!
//! 1. Whoever takes a connection out of the table begins its `onDisconnect` in the same
//!    step, unless it was rejected or its generation is over.
//! 2. It runs in exactly one generation: while the actor starts it waits for the end of
//!    the start, and behind the last commit of a generation the connection is left to the
//!    next one, which finds its socket closed.
//! 3. An `onDisconnect` that runs keeps the actor awake and holds its grace period. It is
//!    given up at its deadline; what it makes then is nobody's.
//! 4. What changed of hibernatable connections goes with the next commit, whatever that
//!    is for. What is urgent also asks for one: in durability `reply` at once, unless a
//!    turn is about to commit, in `interval` with the next save.
//! 5. A state that is handed over with a commit is that of the handle from its beginning
//!    on: what changes behind it is newer. Who hands over can name a connection that is
//!    gone by then, since a snapshot takes time; only who saves directly is told of it.

mod closing;
mod connect;
mod saving;

use std::sync::Arc;

use bytes::Bytes;

pub(super) use self::closing::Closings;
use super::Actor;
use super::effect::{Effect, Output};
use super::lifecycle::{LifecycleError, Phase, StopReason};
use super::machine::Machine;
use crate::core::behavior::Reply;
use crate::core::connections::{
    CloseCode, Conn, ConnHandle, ConnHook, ConnId, ConnectionError, Connections, Event,
};
use crate::error::{Error, Result};
use crate::store::StoredConnection;
use crate::time::Instant;

/// The connections of one generation, and what ends of them.
#[derive(Debug, Default)]
pub(super) struct ConnDesk {
    pub(super) table: Connections,
    pub(super) closings: Closings,
    /// Those that an earlier generation stored and that are gone: their `onDisconnect`
    /// runs as soon as the actor has started (invariant 2).
    dead: Vec<Arc<Conn>>,
}

/// What a client hears whose connection ends.
#[derive(Debug)]
pub(crate) enum Farewell {
    /// Its socket is closed.
    Close(CloseCode, String),
    /// Nothing: its socket is closed already.
    Gone,
}

impl Machine {
    /// Why a call over this connection is not taken; `None` when nothing speaks against it.
    /// A client that has been disconnected may have sent it before it knew.
    pub(super) fn no_call_over(&self, id: &ConnId) -> Option<Error> {
        let is_accepted = self.connections.made().is_some_and(|desk| desk.table.is_accepted(id));
        (!is_accepted).then(|| ConnectionError::NotFound { id: id.clone() }.into())
    }

    /// Says something to the client of a connection, in the order of outputs. Where that
    /// fails the client is told why, if it is told anything.
    fn close_in_turn(&mut self, conn: &Arc<Conn>, code: CloseCode, reason: String) {
        let conn = Arc::clone(conn);
        let close = Reply::new(move |result: Result<()>| match result {
            Ok(()) => {
                // The author ends one whose `onConnect` still runs: it hears what it was
                // sent, and why.
                conn.accept();
                conn.close(code, &reason);
            }
            Err(error) => conn.close(CloseCode::INTERNAL, &close_reason(&error)),
        });
        self.emit(Output::Flushed(close, Ok(())));
    }

    /// Why nothing of a connection is stored any more.
    fn saves_no_more(&self) -> Error {
        self.broken.clone().unwrap_or_else(|| LifecycleError::Stopping.into())
    }

    /// Lets a connection go whose client is not to hear more. After the unlock, since it
    /// drops the peer.
    fn let_go(&mut self, conn: &Arc<Conn>) {
        let conn = Arc::clone(conn);
        let gone = Reply::new(move |_: Result<()>| conn.let_go());
        self.effects.push_back(Effect::Release(Output::Flushed(gone, Ok(()))));
    }

    /// Lets all connections go, because the generation is over.
    pub(super) fn drop_connections(&mut self, error: &Error, reason: Option<StopReason>) {
        let Some(desk) = self.connections.made_mut() else { return };
        let destroyed = reason == Some(StopReason::Destroy);
        let (conns, ends) = (desk.table.clear(), desk.closings.abandon());
        desk.dead = Vec::new();
        let reason = close_reason(error);
        self.activity.connections = 0;
        let closed = Reply::new(move |_: Result<()>| {
            for (conn, accepted) in conns {
                // The socket is the next generation's (invariant 5 of the table). A client
                // that is not accepted is answered by whoever connects it.
                if !accepted || (conn.is_hibernatable() && !destroyed) {
                    conn.let_go();
                } else {
                    conn.close(CloseCode::INTERNAL, &reason);
                }
            }
        });
        self.effects.push_back(Effect::Release(Output::Flushed(closed, Ok(()))));
        for reply in ends {
            let told = Output::Flushed(reply, Err(error.clone()));
            self.effects.push_back(Effect::Release(told));
        }
    }
}

/// What a close frame says of an error.
pub(super) fn close_reason(error: &Error) -> String {
    format!("{}.{}", error.group, error.code)
}

impl Actor {
    /// To be called after every change of the table.
    fn count_connections(&self, machine: &mut Machine) {
        let table = &machine.connections.table;
        machine.activity.connections = table.keeping_awake();
        self.metrics.set_connections(table.len());
    }

    /// Reads the table.
    pub(crate) fn with_connections<R>(&self, read: impl FnOnce(&Connections) -> R) -> R {
        let machine = self.machine.lock();
        match machine.connections.made() {
            Some(desk) => read(&desk.table),
            None => read(&Connections::default()),
        }
    }

    /// See [`ActorContext::broadcast`](crate::core::context::ActorContext::broadcast).
    pub(crate) fn broadcast(
        self: &Arc<Self>,
        event: &str,
        args: Bytes,
        which: impl Fn(&Conn) -> bool,
    ) {
        let event_name = event;
        let event = Arc::new(Event::new(event_name, args));
        self.step(|machine, _| {
            let Some(desk) = machine.connections.made() else { return };
            let mut to = desk.table.subscribers(event_name);
            to.retain(|conn| which(conn));
            if !to.is_empty() {
                machine.emit(Output::Event { event, to });
            }
        });
    }

    /// See [`ConnHandle::send`].
    pub(crate) fn send_event(self: &Arc<Self>, conn: &Arc<Conn>, event: &str, args: Bytes) {
        let event = Arc::new(Event::new(event, args));
        let to = vec![Arc::clone(conn)];
        self.step(|machine, _| machine.emit(Output::Event { event, to }));
    }

    /// See [`ConnHandle::subscribe`].
    pub(crate) async fn subscribe(self: &Arc<Self>, by: &ConnHandle, event: &str) -> Result<bool> {
        if self.hooks.connections.before_subscribe {
            let hook = ConnHook::BeforeSubscribe { event: event.to_owned() };
            self.connection_hook(by, hook, self.config.on_before_connect_timeout).await?;
        }
        self.change_wishes(&by.conn, |table, id| Ok(table.subscribe(id, event)?))
    }

    /// See [`ConnHandle::unsubscribe`].
    pub(crate) fn unsubscribe(self: &Arc<Self>, conn: &Conn, event: &str) -> Result<bool> {
        self.change_wishes(conn, |table, id| Ok(table.unsubscribe(id, event)))
    }

    /// Changes what a connection wants to hear, and has that stored.
    fn change_wishes(
        self: &Arc<Self>,
        conn: &Conn,
        change: impl FnOnce(&mut Connections, &ConnId) -> Result<bool>,
    ) -> Result<bool> {
        self.step(|machine, now| {
            // Behind the last commit it would be stored by none.
            if conn.is_hibernatable() && !machine.may_save() {
                return Err(machine.saves_no_more());
            }
            let changed = change(&mut machine.connections.table, &conn.id)?;
            machine.store_connections(now);
            Ok(changed)
        })
    }

    /// See [`ConnHandle::acknowledge`].
    pub(crate) fn acknowledge(self: &Arc<Self>, conn: &Conn, index: u16) -> Result<()> {
        self.step(|machine, now| {
            // What is noted behind the last commit would be handled twice.
            if !machine.may_save() {
                return Err(machine.saves_no_more());
            }
            if machine.connections.table.acknowledge(&conn.id, index)? {
                machine.store_connections_now(now);
            }
            Ok(())
        })
    }

    /// Takes over what earlier generations stored.
    pub(super) fn install_connections(
        &self,
        machine: &mut Machine,
        stored: Vec<(StoredConnection, Arc<Conn>, bool)>,
    ) {
        if stored.is_empty() {
            return;
        }
        for (stored, conn, is_live) in stored {
            let (actor_id, conn_id) = (self.identity.id, conn.id.clone());
            let outcome = if is_live { "live" } else { "dead_not_live" };
            machine.log(move || {
                tracing::debug!(%actor_id, %conn_id, outcome, "hibernated connection settled");
            });
            if is_live {
                machine.connections.table.restore(conn, &stored);
            } else {
                machine.connections.dead.push(conn);
            }
        }
        self.count_connections(machine);
    }

    /// Ends the connections whose sockets went while the actor slept.
    pub(super) fn bury_dead(self: &Arc<Self>, machine: &mut Machine, now: Instant) {
        let Some(desk) = machine.connections.made_mut() else { return };
        for conn in std::mem::take(&mut desk.dead) {
            machine.connections.table.forget(conn.id.clone());
            self.begin_closing(machine, &conn, None, now);
        }
        machine.store_connections(now);
    }

    /// Ends what does not outlive the stop that begins.
    pub(super) fn part(self: &Arc<Self>, machine: &mut Machine, reason: StopReason, now: Instant) {
        let Some(desk) = machine.connections.made() else { return };
        let accepted: Vec<_> = desk.table.accepted().map(Arc::clone).collect();
        for conn in accepted {
            // What changed of one that stays waits for the last commit already.
            if reason == StopReason::Destroy || !conn.is_hibernatable() {
                let why = match reason {
                    StopReason::Sleep => LifecycleError::Stopping,
                    StopReason::Destroy => LifecycleError::Destroying,
                };
                let farewell = Farewell::Close(CloseCode::NORMAL, close_reason(&why.into()));
                self.end_connection(machine, &conn, farewell, None, now);
            }
        }
    }

    /// See [`ConnHandle::close`] and [`ConnHandle::closed`].
    pub(crate) fn disconnect(
        self: &Arc<Self>,
        conn: &Arc<Conn>,
        farewell: Farewell,
        ended: Option<Reply<()>>,
    ) {
        self.step(|machine, now| self.end_connection(machine, conn, farewell, ended, now));
    }

    fn end_connection(
        self: &Arc<Self>,
        machine: &mut Machine,
        conn: &Arc<Conn>,
        farewell: Farewell,
        ended: Option<Reply<()>>,
        now: Instant,
    ) {
        let told = |machine: &mut Machine, ended: Option<Reply<()>>| {
            let told = ended.map(|reply| Effect::Release(Output::Flushed(reply, Ok(()))));
            machine.effects.extend(told);
        };
        let stops = conn.is_hibernatable() && !machine.may_save();
        let starts = machine.lifecycle.phase() == Phase::Loading;
        let table = &mut machine.connections.table;
        let found = match () {
            () if stops => table.get(&conn.id).map(Arc::clone),
            () if starts => table.withdraw(&conn.id),
            () => table.remove(&conn.id),
        };
        if found.is_none() {
            return told(machine, ended);
        }
        self.count_connections(machine);
        match farewell {
            Farewell::Close(code, reason) => machine.close_in_turn(conn, code, reason),
            Farewell::Gone => machine.let_go(conn),
        }
        if stops || starts {
            machine.connections.dead.extend(starts.then(|| Arc::clone(conn)));
            return told(machine, ended);
        }
        self.begin_closing(machine, conn, ended, now);
        machine.store_connections(now);
    }
}
