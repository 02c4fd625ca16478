//! The `onDisconnect` hooks that run.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::Actor;
use super::super::activity::WorkKind;
use super::super::effect::{Effect, Output};
use super::super::machine::Machine;
use super::super::requests::callback_timed_out;
use crate::core::behavior::{ActorEvent, Reply};
use crate::core::connections::{Conn, ConnHandle, ConnHook};
use crate::error::Result;
use crate::metrics::UserTaskKind;
use crate::time::Instant;

/// One that runs.
#[derive(Debug)]
struct Closing {
    began: Instant,
    deadline: Instant,
    /// Who waits for it.
    ended: Option<Reply<()>>,
}

/// Those of one generation, in the order in which they began, which is that of their
/// deadlines.
#[derive(Debug, Default)]
pub(in super::super) struct Closings {
    last: u64,
    open: BTreeMap<u64, Closing>,
}

impl Closings {
    /// When the first of them is given up.
    pub(in super::super) fn next_due(&self) -> Option<Instant> {
        self.open.first_key_value().map(|(_, closing)| closing.deadline)
    }

    /// Forgets all; returns who waits.
    pub(super) fn abandon(&mut self) -> Vec<Reply<()>> {
        std::mem::take(&mut self.open).into_values().filter_map(|closing| closing.ended).collect()
    }
}

impl Actor {
    /// Runs `onDisconnect`, if there is one (invariants 1 and 3 of the parent module).
    pub(super) fn begin_closing(
        self: &Arc<Self>,
        machine: &mut Machine,
        conn: &Arc<Conn>,
        ended: Option<Reply<()>>,
        now: Instant,
    ) {
        if !self.hooks.connections.disconnect || machine.is_over() {
            let told = ended.map(|reply| Effect::Release(Output::Flushed(reply, Ok(()))));
            return machine.effects.extend(told);
        }
        let closings = &mut machine.connections.closings;
        closings.last += 1;
        let number = closings.last;
        let deadline = now + self.config.on_connect_timeout;
        closings.open.insert(number, Closing { began: now, deadline, ended });
        machine.activity.begin(WorkKind::DisconnectCallback);
        self.metrics.begin_user_task(UserTaskKind::DisconnectCallback);
        let actor = Arc::clone(self);
        let reply = Reply::new(move |result: Result<_>| {
            actor.step(|machine, now| actor.closing_ended(machine, number, result.map(drop), now));
        });
        let connection = ConnHandle::new(self, Arc::clone(conn));
        let hook = ConnHook::Disconnect;
        machine.deliver(ActorEvent::Connection { hook, connection, reply });
    }

    /// One ended, or is given up. A failure is logged and stops nothing.
    fn closing_ended(&self, machine: &mut Machine, number: u64, result: Result<()>, now: Instant) {
        let Some(closing) = machine.connections.closings.open.remove(&number) else { return };
        let counted = machine.activity.end(WorkKind::DisconnectCallback);
        debug_assert!(counted, "a hook that runs is counted");
        self.metrics.end_user_task(UserTaskKind::DisconnectCallback, now.since(closing.began));
        if let Err(error) = result {
            let actor_id = self.identity.id;
            machine.log(move || {
                tracing::error!(%actor_id, hook = "on_disconnect", %error, "a hook failed");
            });
        }
        let told = closing.ended.map(|reply| Effect::Release(Output::Flushed(reply, Ok(()))));
        machine.effects.extend(told);
    }

    /// Gives up those whose deadline has come.
    pub(in super::super) fn time_out_closings(&self, machine: &mut Machine, now: Instant) {
        while let Some(desk) = machine.connections.made() {
            let first = desk.closings.open.first_key_value();
            let Some((&number, _)) = first.filter(|(_, closing)| closing.deadline <= now) else {
                return;
            };
            let label = ConnHook::Disconnect.label();
            let error = callback_timed_out(label, self.config.on_connect_timeout);
            self.closing_ended(machine, number, Err(error), now);
        }
    }
}
