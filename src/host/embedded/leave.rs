//! One of several who use a host goes.
//!
//! # Invariants
//!
//! 1. Whether the host ends, stays or only loses an environment is decided in one
//!    lock scope, so nobody joins a host that is about to end.
//! 2. From then on nothing starts in an environment that leaves.
//! 3. It goes on when the one who asked for it no longer waits.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::error::HostError;
use super::shutdown::{Farewell, LAST_WORDS, NotDrained, ShutdownReport, close_doors};
use super::{EmbeddedHost, EnvironmentId};
use crate::core::actor::lifecycle::StopReason;
use crate::core::context::ActorContext;
use crate::error::Error;
use crate::time::{Duration, Instant};

/// How the end of one opening went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Departure {
    /// What was seen off.
    pub report: ShutdownReport,
    /// Whether the environment has further openings, and runs actors still.
    pub stays: bool,
}

/// What the end of one opening means.
enum Parting {
    /// The environment has opened the host more than once, and uses it still.
    Stays,
    /// Others use the host, this environment no more.
    Leaves,
    /// Nobody uses it any more; nothing to see off when it had ended already.
    Ends(Option<Farewell>),
}

impl EmbeddedHost {
    /// Ends one opening. The last one of all shuts the host down, as
    /// [`EmbeddedHost::shutdown`] does. The last one of its environment puts the
    /// generations there to sleep; what has not ended after `deadline` is ended with
    /// `actor/environment_gone` and reported: what it changed so far is stored. Any other waits, until `deadline` at
    /// most, for what has changed so far in its environment to be durable.
    pub fn leave(
        &self,
        environment: EnvironmentId,
        deadline: Duration,
    ) -> impl Future<Output = Departure> + Send + use<> {
        let (parting, left) = self.locked(|state| {
            if state.world.shut_down.is_some() {
                (Parting::Ends(None), None)
            } else if state.places.part(environment) > 0 {
                (Parting::Stays, None)
            } else if state.places.is_alone(environment) {
                (Parting::Ends(close_doors(state)), None)
            } else {
                (Parting::Leaves, state.places.leave(environment))
            }
        });
        drop(left);
        let stays = matches!(parting, Parting::Stays);
        let host = self.arc();
        let until = self.runtime.clock().now() + deadline;
        let (answer, answered) = oneshot::channel();
        let parted = async move {
            let report = match parting {
                Parting::Stays => host.settle(environment, until).await,
                Parting::Leaves => host.vacate(environment, until).await,
                Parting::Ends(farewell) => {
                    if let Some(farewell) = farewell {
                        host.see_off(farewell, deadline);
                    }
                    host.until_ended().await
                }
            };
            // Refused when nobody waits any more (invariant 3).
            drop(answer.send(Departure { report, stays }));
        };
        self.runtime.spawner().spawn("leave", parted);
        async move { answered.await.unwrap_or_default() }
    }

    /// Waits for what has changed in an environment.
    async fn settle(self: Arc<Self>, environment: EnvironmentId, until: Instant) -> ShutdownReport {
        let live = self.live_in(environment);
        // What fails is told to those who called, and what is new has nobody to tell.
        let durable = live.iter().map(|actor| async move { drop(actor.flushed().await) });
        tokio::select! {
            _ = futures::future::join_all(durable) => {}
            () = self.runtime.clock().sleep_until(until) => {}
        }
        ShutdownReport::default()
    }

    /// Sees off the generations of an environment that has left.
    async fn vacate(self: Arc<Self>, environment: EnvironmentId, until: Instant) -> ShutdownReport {
        let live = self.live_in(environment);
        let begun = live.len();
        // What is stopping already ends as what it stops for.
        for actor in live.into_iter().filter(|actor| !actor.aborted()) {
            actor.stop(StopReason::Sleep);
        }
        self.until_vacant(environment, until).await;
        let left = self.live_in(environment);
        let not_drained: Vec<_> = left.iter().map(NotDrained::of).collect();
        if !left.is_empty() {
            tracing::warn!(label = self.label, ?not_drained, "actors did not end in time");
            let error: Error = HostError::EnvironmentGone { environment }.into();
            for actor in left {
                if !actor.cut_grace_short(error.clone()) {
                    actor.break_generation(error.clone());
                }
            }
            // What they changed is stored, unless that cannot be done quickly.
            self.until_vacant(environment, self.runtime.clock().now() + LAST_WORDS).await;
            for actor in self.live_in(environment) {
                actor.break_generation(error.clone());
            }
            self.until_vacant(environment, self.runtime.clock().now() + LAST_WORDS).await;
        }
        ShutdownReport { drained: begun.saturating_sub(not_drained.len()), not_drained }
    }

    /// Waits until nothing lives in an environment.
    async fn until_vacant(&self, environment: EnvironmentId, until: Instant) {
        loop {
            // Before the look, so that an end after it is not lost.
            let mut departure = std::pin::pin!(self.departures.notified());
            departure.as_mut().enable();
            if self.live_in(environment).is_empty() {
                return;
            }
            tokio::select! {
                biased;
                () = departure => {}
                () = self.runtime.clock().sleep_until(until) => return,
            }
        }
    }

    fn live_in(&self, environment: EnvironmentId) -> Vec<ActorContext> {
        let state = self.state.lock();
        let there = state.table.iter().filter(|entry| entry.environment() == Some(environment));
        there.filter_map(|entry| entry.live().cloned()).collect()
    }
}
