//! Waits of the author's side on the clock: which there are, and which is due next.
//!
//! They are entries of the actor's machine and share its ticks: a wait has no task
//! and no timer of its own. They keep nothing awake; what waits does, or does not.
//!
//! # Invariants
//!
//! 1. A wait ends once: when it is due, when it is given up, or with the generation.
//! 2. Waits that are due end in the order of their moments, equal ones in the order
//!    in which they began.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Actor;
use super::effect::Effect;
use super::machine::Machine;
use crate::core::behavior::{Reply, actor_stops};
use crate::error::Error;
use crate::time::{Duration, Instant};

/// The number of a wait within its generation; never 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WaitId(pub u64);

/// The waits of one generation that have not ended.
#[derive(Debug)]
pub(super) struct Waits<T> {
    last: u64,
    /// In the order of ending (invariant 2).
    open: BTreeMap<(Instant, WaitId), T>,
    /// The moment of each entry of `open`.
    moments: BTreeMap<WaitId, Instant>,
}

impl<T> Waits<T> {
    pub(super) const fn new() -> Self {
        Self { last: 0, open: BTreeMap::new(), moments: BTreeMap::new() }
    }

    /// Begins a wait until `moment`.
    pub(super) fn begin(&mut self, moment: Instant, waiting: T) -> WaitId {
        self.last += 1;
        let wait = WaitId(self.last);
        self.open.insert((moment, wait), waiting);
        self.moments.insert(wait, moment);
        wait
    }

    /// Gives a wait up; `None` when it has ended.
    pub(super) fn give_up(&mut self, wait: WaitId) -> Option<T> {
        let moment = self.moments.remove(&wait)?;
        self.open.remove(&(moment, wait))
    }

    /// Ends the first wait that is due at `now`.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<T> {
        let first = self.open.first_entry().filter(|first| first.key().0 <= now)?;
        let ((_, wait), waiting) = first.remove_entry();
        self.moments.remove(&wait);
        Some(waiting)
    }

    /// When the next wait is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.open.first_key_value().map(|((moment, _), _)| *moment)
    }

    /// Ends all, in the order in which they would have ended.
    pub(super) fn end_all(&mut self) -> Vec<T> {
        self.moments.clear();
        std::mem::take(&mut self.open).into_values().collect()
    }
}

impl Actor {
    /// See [`ActorContext::begin_wait`](crate::core::context::ActorContext::begin_wait).
    pub(crate) fn begin_wait(
        self: &Arc<Self>,
        duration: Duration,
        reply: Reply<()>,
    ) -> Option<WaitId> {
        let begun = self.step(|machine, now| {
            if machine.is_over() {
                return Err(reply);
            }
            let wait = machine.waits.begin(now + duration, reply);
            end_due_waits(machine, now);
            Ok(wait)
        });
        begun.map_err(|reply| reply.send(Err(self.stops()))).ok()
    }

    /// See [`ActorContext::give_up_wait`](crate::core::context::ActorContext::give_up_wait).
    pub(crate) fn give_up_wait(self: &Arc<Self>, wait: WaitId) -> bool {
        let given_up = self.machine.lock().waits.give_up(wait);
        // Dropped here, after the unlock, since that answers it.
        given_up.is_some()
    }

    /// Ends what still waits, because the generation is over: from here on none
    /// begins.
    pub(super) fn end_waits(&self) {
        let waits = self.machine.lock().waits.end_all();
        for reply in waits {
            reply.send(Err(self.stops()));
        }
    }

    /// `actor/aborted`, naming the actor.
    fn stops(&self) -> Error {
        actor_stops().with_actor(self.identity.specifier())
    }
}

/// Ends the waits that are due.
pub(super) fn end_due_waits(machine: &mut Machine, now: Instant) {
    while let Some(reply) = machine.waits.take_due(now) {
        machine.effects.push_back(Effect::EndWait(reply));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_end_in_the_order_of_their_moments_and_equal_ones_in_that_of_beginning() {
        let mut waits = Waits::new();
        for (what, after) in [("d", 3), ("b", 2), ("c", 2), ("a", 1)] {
            waits.begin(Instant::START + SECOND * after, what);
        }

        assert_eq!(waits.next_due(), Some(Instant::START + SECOND));
        let now = Instant::START + SECOND * 2;
        let ended: Vec<_> = std::iter::from_fn(|| waits.take_due(now)).collect();

        assert_eq!(ended, ["a", "b", "c"]);
        assert_eq!(waits.next_due(), Some(Instant::START + SECOND * 3));
    }

    #[test]
    fn a_wait_that_was_given_up_ends_no_more() {
        let mut waits = Waits::new();
        let wait = waits.begin(Instant::START, "a");

        assert_eq!(waits.give_up(wait), Some("a"));

        assert_eq!(waits.give_up(wait), None);
        assert_eq!(waits.take_due(Instant::START), None);
        assert_eq!(waits.next_due(), None);
    }

    #[test]
    fn the_end_of_all_leaves_nothing() {
        let mut waits = Waits::new();
        let first = waits.begin(Instant::START + SECOND, "b");
        waits.begin(Instant::START, "a");

        assert_eq!(waits.end_all(), ["a", "b"]);

        assert_eq!((waits.give_up(first), waits.next_due()), (None, None));
    }
}
