//! Wakes sleeping actors when their alarms are due: one task and one timer for all.
//!
//! # Invariants
//!
//! 1. The task holds the host only while it looks, so a host can be dropped; it ends with
//!    the host, or when that shuts down.
//! 2. An alarm is waited for by the wall clock: the timer is armed anew at least every
//!    [`LOOK_AGAIN`], since that clock can be set.

use std::sync::{Arc, Weak};

use tokio::sync::Notify;

use super::alarms::{Next, Question, WINDOW};
use super::waiter::Want;
use super::{Address, EmbeddedHost, EnvironmentId};
use crate::core::behavior::Reply;
use crate::core::context::ActorContext;
use crate::ids::ActorId;
use crate::store::ActorNumber;
use crate::time::{Clock, Duration};

/// How long the timer is armed at most.
const LOOK_AGAIN: Duration = Duration::from_secs(60 * 60);

/// Begins the task of a host.
pub(super) fn begin(host: &Arc<EmbeddedHost>) {
    let (clock, changed) = (host.runtime.clock().clone(), Arc::clone(&host.alarm_changed));
    let task = watch(Arc::downgrade(host), clock, changed);
    host.runtime.spawner().spawn("alarms", task);
}

async fn watch(host: Weak<EmbeddedHost>, clock: Clock, changed: Arc<Notify>) {
    loop {
        let Some(next) = host.upgrade().and_then(|host| host.next_alarm()) else { return };
        match next {
            // A permit is stored, so a change between the look and the wait is not lost.
            Next::Wait => changed.notified().await,
            Next::WaitUntil(at) => {
                let ms = u64::try_from(at.saturating_sub(clock.unix_ms())).unwrap_or(0);
                tokio::select! {
                    () = clock.sleep(Duration::from_millis(ms).min(LOOK_AGAIN)) => {}
                    () = changed.notified() => {}
                }
            }
            Next::Wake(due) => {
                let Some(host) = host.upgrade() else { return };
                for (number, id) in due {
                    host.wake(number, id);
                }
            }
            Next::Read(after) => {
                let Some(read) = host.upgrade().map(|host| host.store.alarms(after, WINDOW)) else {
                    return;
                };
                let rows = read.await;
                let Some(host) = host.upgrade() else { return };
                match rows {
                    Ok(rows) => host.locked(|state| state.alarms.read(rows, WINDOW)),
                    Err(error) => {
                        tracing::warn!(label = host.label, %error, "the alarms could not be read");
                        host.locked(|state| state.alarms.not_read(clock.unix_ms()));
                    }
                }
            }
        }
    }
}

impl EmbeddedHost {
    /// What the task does next; `None` once the host shuts down.
    fn next_alarm(&self) -> Option<Next> {
        let now = self.runtime.clock().unix_ms();
        self.locked(|state| {
            if state.world.shut_down.is_some() {
                return None;
            }
            let places = &state.places;
            Some(state.alarms.next(now, |name| places.can_run(name)))
        })
    }

    /// Starts an actor, unless it lives.
    fn wake(&self, number: ActorNumber, id: ActorId) {
        let host = self.this.clone();
        let reply = Reply::new(move |woken: crate::error::Result<()>| {
            let Some(host) = host.upgrade() else { return };
            if let Err(error) = &woken {
                if error.is("actor", "not_found") {
                    return host.alarms_change(|alarms| alarms.destroyed(number));
                }
                tracing::warn!(actor_id = %id, %error, "an actor could not be woken for its alarm");
            }
            let now = host.runtime.clock().unix_ms();
            host.alarms_change(|alarms| alarms.woken(number, woken.is_ok(), now));
        });
        // Whoever can run it: nobody here asked.
        self.submit(Address::Id(id), EnvironmentId(0), Want::Wake(reply));
    }

    /// Learns the alarm of an actor whose generation broke from the directory: what its
    /// memory says is void.
    pub(super) fn ask_for_alarm(&self, actor: &ActorContext, question: Question) {
        let (number, id, name) = (actor.identity().number, actor.actor_id(), actor.name().clone());
        let (host, stored) = (self.this.clone(), self.store.alarm_of(number));
        self.runtime.spawner().spawn("alarm of a broken generation", async move {
            let stored = stored.await;
            let Some(host) = host.upgrade() else { return };
            let now = host.runtime.clock().unix_ms();
            // Without an answer it is woken to look for itself.
            let at = stored.unwrap_or(Some(now));
            host.alarms_change(|alarms| {
                if alarms.is_news(number, question) {
                    alarms.broke(number, id, &name, at, now);
                }
            });
        });
    }

    /// Changes the alarms, and has the task look at them.
    pub(super) fn alarms_change(&self, change: impl FnOnce(&mut super::alarms::Alarms)) {
        self.locked(|state| change(&mut state.alarms));
        self.alarm_changed.notify_one();
    }
}
