//! The end of a host.
//!
//! # Invariants
//!
//! 1. It happens once: whoever asks again waits for the same report.
//! 2. It goes on when those who asked for it no longer wait.
//! 3. The store is closed after the last generation has ended or was broken.

use super::error::HostError;
use super::table::Task;
use super::{EmbeddedHost, shared};
use crate::core::actor::activity::Hold;
use crate::core::actor::lifecycle::StopReason;
use crate::core::context::ActorContext;
use crate::error::Error;
use crate::ids::{ActorId, ActorKey, ActorName};
use crate::time::Duration;

/// How long after the deadline generations may take to store what they changed, and
/// broken ones to say that they ended.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(1);

/// How a shutdown went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShutdownReport {
    /// How many generations ended by themselves before the deadline.
    pub drained: usize,
    /// Those that did not, and were broken.
    pub not_drained: Vec<NotDrained>,
}

/// An actor that did not end in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotDrained {
    /// The actor's type.
    pub name: ActorName,
    /// What tells it from the others of its type.
    pub key: ActorKey,
    /// Its id.
    pub actor_id: ActorId,
    /// What it was busy with.
    pub holds: Vec<Hold>,
}

impl NotDrained {
    /// What an actor that lives is busy with.
    pub(super) fn of(actor: &ActorContext) -> Self {
        Self {
            name: actor.name().clone(),
            key: actor.key().clone(),
            actor_id: actor.actor_id(),
            holds: actor.holds(),
        }
    }
}

/// Whom a shutdown has to see off.
pub(super) struct Farewell {
    live: Vec<ActorContext>,
    tasks: Vec<Task>,
}

/// From here on nothing is let in; to be called in the lock scope that decides on
/// it, so that nobody joins in between. `None` when the doors were closed before.
pub(super) fn close_doors(state: &mut super::State) -> Option<Farewell> {
    if state.world.shut_down.is_some() {
        return None;
    }
    let error: Error = HostError::ShutDown.into();
    let mut tasks = Vec::new();
    state.world.shut_down = Some(error.clone());
    state.table.dismiss_lookups(&error, &mut tasks);
    let busy = state.table.iter().filter(|entry| !entry.is_at_rest());
    tasks.extend(busy.map(|entry| Task::Pump(entry.row().id)));
    Some(Farewell { live: live_ones(state), tasks })
}

impl EmbeddedHost {
    /// Puts all actors to sleep and closes the store. From now on every request is
    /// answered with `registry/shut_down`, and so are those that wait for an actor.
    /// What has not ended after `deadline` is ended with that error and reported: what it
    /// changed so far is stored, what it was doing is given up.
    ///
    /// A second call joins the first, whatever its deadline.
    pub fn shutdown(
        &self,
        deadline: Duration,
    ) -> impl Future<Output = ShutdownReport> + Send + use<> {
        self.begin_shutdown(deadline);
        let host = self.arc();
        async move { host.until_ended().await }
    }

    /// Resolves when a shutdown that somebody began has ended.
    pub(super) async fn until_ended(&self) -> ShutdownReport {
        let mut ended = self.ended.subscribe();
        // The sender lives in this host, so the wait cannot fail.
        let report = ended.wait_for(Option::is_some).await;
        report.ok().and_then(|report| report.clone()).unwrap_or_default()
    }

    /// Whether it takes no more work.
    pub fn is_shut_down(&self) -> bool {
        self.state.lock().world.shut_down.is_some()
    }

    /// Begins the shutdown, unless it has begun.
    pub(super) fn begin_shutdown(&self, deadline: Duration) {
        if let Some(farewell) = self.locked(close_doors) {
            self.see_off(farewell, deadline);
        }
    }

    /// What follows once the doors are closed.
    pub(super) fn see_off(&self, Farewell { live, tasks }: Farewell, deadline: Duration) {
        let (host, panicked) = (self.arc(), self.arc());
        let begun = live.len();
        let end = async move { host.end(begun, deadline).await };
        self.runtime.spawner().spawn_guarded("shutdown", end, move |_| {
            // Whoever waits is not left waiting; the panic is in the log.
            shared::forget(&panicked);
            panicked.ended.send_replace(Some(ShutdownReport::default()));
        });
        self.alarm_changed.notify_one();
        // After the pumps, which refuse those who wait: a stop must not let them in.
        self.perform(tasks);
        // What is stopping already ends as what it stops for.
        for actor in live.into_iter().filter(|actor| !actor.aborted()) {
            actor.stop(StopReason::Sleep);
        }
    }

    async fn end(&self, begun: usize, deadline: Duration) {
        let clock = self.runtime.clock();
        self.until_quiet(deadline).await;
        let left = self.locked(|state| live_ones(state));
        let not_drained: Vec<_> = left.iter().map(NotDrained::of).collect();
        if !left.is_empty() {
            tracing::warn!(label = self.label, ?not_drained, "actors did not end in time");
            for actor in left {
                if !actor.cut_grace_short(HostError::ShutDown.into()) {
                    actor.break_generation(HostError::ShutDown.into());
                }
            }
            // What they changed is stored, unless that cannot be done quickly.
            self.until_quiet(LAST_WORDS).await;
            for actor in self.locked(|state| live_ones(state)) {
                actor.break_generation(HostError::ShutDown.into());
            }
            self.until_quiet(LAST_WORDS).await;
        }
        self.sessions.shut_down();
        tracing::debug!(label = self.label, at = ?clock.now(), "closing the store");
        self.store.close().await;
        shared::forget(self);
        // Now, and not with the last who knows this host: authors' code is large.
        let types = self.locked(|state| state.places.clear());
        drop(types);
        let drained = begun.saturating_sub(not_drained.len());
        self.ended.send_replace(Some(ShutdownReport { drained, not_drained }));
    }

    /// Waits until nothing lives and no question to the directory is on its way,
    /// at most `patience`.
    async fn until_quiet(&self, patience: Duration) {
        let deadline = self.runtime.clock().now() + patience;
        while !self.state.lock().table.is_quiet() {
            tokio::select! {
                biased;
                // A permit is stored, so an end before the wait is not lost.
                () = self.quiet.notified() => {}
                () = self.runtime.clock().sleep_until(deadline) => return,
            }
        }
    }
}

fn live_ones(state: &super::State) -> Vec<ActorContext> {
    state.table.iter().filter_map(|entry| entry.live().cloned()).collect()
}
