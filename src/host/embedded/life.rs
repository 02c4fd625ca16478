//! What the host hears: from its actors, of their environments, of its store.

use std::collections::HashSet;
use std::sync::Arc;

use super::entry::StoreStanding;
use super::error::HostError;
use super::shutdown::close_doors;
use super::{EmbeddedHost, EnvironmentId};
use crate::core::actor::lifecycle::{Intent, StopReason};
use crate::core::behavior::StopOutcome;
use crate::core::connections::Peer;
use crate::core::context::ActorContext;
use crate::core::host::Host;
use crate::error::Error;
use crate::ids::Generation;
use crate::store::{ActorNumber, SocketId, StoreError};
use crate::time::Duration;

impl Host for EmbeddedHost {
    fn intent(&self, actor: &ActorContext, intent: Intent) {
        let (id, generation) = (actor.actor_id(), actor.generation());
        match intent {
            Intent::Destroy => {
                let resigned = |state: &mut super::State| {
                    state.table.change(id, |entry| entry.resign(generation))
                };
                if self.locked(resigned) == Some(true) {
                    actor.stop(StopReason::Destroy);
                }
            }
            Intent::Sleep { error } => {
                let crash = self.locked(|state| {
                    state.table.change(id, |entry| {
                        entry
                            .is_live(generation)
                            .then(|| error.is_some() && entry.crash(generation))
                    })
                });
                let Some(is_first_crash) = crash.flatten() else { return };
                if let (true, Some(error)) = (is_first_crash, error) {
                    tracing::error!(
                        actor_id = %id,
                        name = %actor.name(),
                        key = %actor.key(),
                        generation = generation.get(),
                        error,
                        "an actor crashed"
                    );
                }
                actor.stop(StopReason::Sleep);
            }
        }
    }

    fn peer(&self, actor: &ActorContext, socket: SocketId) -> Option<Arc<dyn Peer>> {
        self.sessions.peer(actor, socket)
    }

    fn stopped(&self, actor: &ActorContext, outcome: StopOutcome) {
        let (id, generation) = (actor.actor_id(), actor.generation());
        let (number, last_alarm) = (actor.identity().number, actor.next_alarm());
        // First, so that whatever it may still try to write is refused.
        self.store.revoke(number, generation);
        let (callers, is_condemned, question) = self.locked(|state| {
            let places = &state.places;
            let ended = state.table.change(id, |entry| {
                let is_lost = entry.environment().is_some_and(|at| !places.has(at));
                let keep_callers = is_lost && places.can_run(&entry.row().name);
                let callers = entry.ended(generation, &outcome, keep_callers)?;
                Some((callers, entry.condemned().is_some()))
            });
            let (callers, is_condemned) = ended.flatten().unzip();
            let is_down = matches!(state.world.store, StoreStanding::Down(_));
            // In this scope, or what the next generation says could come first.
            let question = state.alarms.ended(number, id, actor.name(), &outcome, last_alarm);
            (callers, is_condemned == Some(true) && !is_down, question)
        });
        self.alarm_changed.notify_one();
        if let Some(question) = question {
            self.ask_for_alarm(actor, question);
        }
        // Otherwise the word comes when the row is deleted, or could not be.
        if !is_condemned {
            actor.mark_destruction(false);
        }
        self.departures.notify_waiters();
        // Behind the entry, which does not know the generation any more.
        self.sessions.stopped(actor);
        let Some(callers) = callers else { return };
        if let StopOutcome::StartFailed(error) | StopOutcome::Broken(error) = &outcome {
            for caller in callers {
                caller.refuse(error.clone());
            }
        }
        self.pump(id);
    }
}

impl EmbeddedHost {
    /// The start of a generation succeeded.
    pub(super) fn started(&self, actor: &ActorContext) {
        let (id, generation) = (actor.actor_id(), actor.generation());
        self.locked(|state| state.table.change(id, |entry| entry.started(generation)));
        self.sessions.started(actor);
        self.pump(id);
    }

    /// An environment ended, or uses this host no more. Its generations break with
    /// `actor/environment_gone`; their actors can start elsewhere. After the last
    /// one the host shuts down.
    pub fn environment_gone(&self, environment: EnvironmentId) {
        let error = HostError::EnvironmentGone { environment }.into();
        // Nothing lives any more, so there is nothing to wait for.
        self.lose(environment, &error, Duration::ZERO);
    }

    /// Ends everything as a crash of the process would, for a host that one environment
    /// uses: generations break with `testing/crashed`, nothing of them is written any
    /// more. Resolves when the store is closed.
    pub fn crash(&self, environment: EnvironmentId) -> impl Future<Output = ()> + Send + use<> {
        if let Some(mishaps) = &self.mishaps {
            mishaps.power_off();
        }
        // No time passes in a crash: what is broken ends by itself.
        self.lose(environment, &HostError::Crashed.into(), Duration::MAX);
        if let Some(mishaps) = &self.mishaps {
            mishaps.bury();
        }
        let host = self.arc();
        async move { drop(host.until_ended().await) }
    }

    /// An environment is lost, and all that lives there with it.
    fn lose(&self, environment: EnvironmentId, error: &Error, patience: Duration) {
        let (left, lost, farewell) = self.locked(|state| {
            let left = state.places.leave(environment);
            let lost: Vec<_> = state
                .table
                .iter()
                .filter(|entry| entry.environment() == Some(environment))
                .filter_map(|entry| entry.live().cloned())
                .collect();
            let is_last = left.is_some() && state.places.is_empty();
            // In this scope, so that nobody joins a host that is about to end.
            let farewell = if is_last { close_doors(state) } else { None };
            (left, lost, farewell)
        });
        drop(left);
        for actor in lost {
            actor.break_generation(error.clone());
        }
        if let Some(farewell) = farewell {
            self.see_off(farewell, patience);
        }
    }

    /// The store does not know whether a commit happened, and reopens: nothing
    /// starts before that, and the generations that wrote are void.
    pub(super) fn store_failed(&self, revoked: &[(ActorNumber, Generation)]) {
        let revoked: HashSet<_> = revoked.iter().copied().collect();
        let void: Vec<_> = self.locked(|state| {
            state.world.store = StoreStanding::Paused;
            let is_void = |live: &&ActorContext| {
                revoked.contains(&(live.identity().number, live.generation()))
            };
            let live = state.table.iter().filter_map(|entry| entry.live());
            live.filter(is_void).cloned().collect()
        });
        let error: Error = StoreError::OutcomeUnknown {
            path: self.label.clone(),
            reason: "the store failed while it wrote".to_owned(),
        }
        .into();
        for actor in void {
            actor.break_generation(error.clone());
        }
    }

    /// The file of one actor failed, and its generation ends.
    pub(super) fn file_failed(
        &self,
        number: ActorNumber,
        generation: Generation,
        error: &StoreError,
    ) {
        let void = self.locked(|state| {
            let mut live = state.table.iter().filter_map(|entry| entry.live());
            let is_void = |live: &&ActorContext| {
                live.identity().number == number && live.generation() == generation
            };
            live.find(is_void).cloned()
        });
        if let Some(actor) = void {
            actor.break_generation(error.clone().into());
        }
    }

    /// The store is open again, or down for good: those who waited go on, off the
    /// store's thread.
    pub(super) fn store_stands(&self, standing: StoreStanding) {
        let (waiting, undestroyed): (Vec<_>, Vec<_>) = self.locked(|state| {
            let is_down = matches!(standing, StoreStanding::Down(_));
            state.world.store = standing;
            let condemned = state.table.iter().filter_map(|entry| entry.condemned());
            let undestroyed = condemned.filter(|_| is_down).cloned().collect();
            let busy = state.table.iter().filter(|entry| !entry.is_at_rest());
            (busy.map(|entry| entry.row().id).collect(), undestroyed)
        });
        for actor in undestroyed {
            actor.mark_destruction(false);
        }
        let host = self.arc();
        self.runtime.spawner().spawn("go on after a failure of the store", async move {
            for id in waiting {
                host.pump(id);
            }
        });
    }
}
