//! Which generation of each actor may write.
//!
//! Kept in memory: asking the database would cost every batch a statement, and a
//! durable number at each wake would cost a commit. Numbers of earlier processes
//! are smaller, because their epoch is.
//!
//! # Invariants
//!
//! 1. An actor has at most one current generation; opening one ends the one before.
//! 2. A generation that ended never becomes current again.
//! 3. The lock is held for a look-up only.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::ActorNumber;
use crate::ids::Generation;

/// The fence of one open store.
#[derive(Debug)]
pub(super) struct Fence {
    epoch: u32,
    /// Starts so far in this process.
    starts: AtomicU64,
    /// Changed by host (open, revoke) and writer (confirm, forget, revoke).
    current: Mutex<HashMap<ActorNumber, Entry>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    generation: Generation,
    /// Whether the directory row has been seen and given this generation.
    confirmed: bool,
    /// Whether the actor left the shared store while this generation lived.
    moved: bool,
}

/// What the fence says of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It may be applied, and its actor's directory row is known.
    Confirmed,
    /// It may be applied if its actor's directory row exists; the row's
    /// generation is to be written.
    Unconfirmed,
    /// Another generation is current.
    Stale,
    /// The actor has no current generation: it was never opened, was revoked,
    /// or is destroyed.
    Unknown,
}

impl Fence {
    pub(super) fn new(epoch: u32) -> Self {
        Self { epoch, starts: AtomicU64::new(0), current: Mutex::default() }
    }

    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Makes a new generation current.
    pub(super) fn open(&self, number: ActorNumber) -> Generation {
        let mut current = self.current.lock();
        // Counted under the lock, so that the later start has the larger number.
        let start = self.starts.fetch_add(1, Ordering::Relaxed) + 1;
        let generation = numbered(self.epoch, start);
        current.insert(number, Entry { generation, confirmed: false, moved: false });
        generation
    }

    /// Ends `generation` if it is current; says whether it was.
    pub(super) fn revoke(&self, number: ActorNumber, generation: Generation) -> bool {
        let mut current = self.current.lock();
        let is_current = current.get(&number).is_some_and(|entry| entry.generation == generation);
        if is_current {
            current.remove(&number);
        }
        is_current
    }

    /// Ends whatever is current of an actor that is or may be destroyed, and
    /// returns it.
    pub(super) fn forget(&self, number: ActorNumber) -> Option<Generation> {
        self.current.lock().remove(&number).map(|entry| entry.generation)
    }

    /// What a batch of this generation may do in the shared store.
    pub(super) fn standing(&self, number: ActorNumber, generation: Generation) -> Standing {
        match self.current.lock().get(&number) {
            None => Standing::Unknown,
            Some(entry) if entry.generation != generation || entry.moved => Standing::Stale,
            Some(Entry { confirmed: true, .. }) => Standing::Confirmed,
            Some(_) => Standing::Unconfirmed,
        }
    }

    /// Whether the generation is current, wherever its actor's rows are.
    pub(super) fn is_current(&self, number: ActorNumber, generation: Generation) -> bool {
        self.current.lock().get(&number).is_some_and(|entry| entry.generation == generation)
    }

    /// Notes that the actor has left the shared store: nothing of this generation is
    /// written there any more.
    pub(super) fn move_away(&self, number: ActorNumber, generation: Generation) {
        if let Some(entry) = self.current.lock().get_mut(&number)
            && entry.generation == generation
        {
            entry.moved = true;
        }
    }

    /// Notes that the directory row durably has this generation.
    pub(super) fn confirm(&self, number: ActorNumber, generation: Generation) {
        if let Some(entry) = self.current.lock().get_mut(&number)
            && entry.generation == generation
        {
            entry.confirmed = true;
        }
    }
}

/// The `start`-th generation of a process. Beyond four billion starts it goes on
/// in the next epoch, which the batch that writes it makes durable.
fn numbered(epoch: u32, start: u64) -> Generation {
    let carried = u32::try_from(start >> 32).unwrap_or(u32::MAX);
    let counter = u32::try_from(start & u64::from(u32::MAX)).expect("masked to 32 bits");
    Generation::new(epoch.saturating_add(carried), counter)
}

/// The epoch that a generation belongs to.
pub(super) fn epoch_of(generation: Generation) -> u32 {
    u32::try_from(generation.get() >> 32).expect("shifted to 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTOR: ActorNumber = ActorNumber(7);

    #[test]
    fn opening_a_generation_ends_the_one_before() {
        let fence = Fence::new(3);
        let first = fence.open(ACTOR);
        let second = fence.open(ACTOR);

        assert!(second > first);
        assert_eq!(fence.standing(ACTOR, first), Standing::Stale);
        assert_eq!(fence.standing(ACTOR, second), Standing::Unconfirmed);
    }

    #[test]
    fn revoking_an_older_generation_changes_nothing() {
        let fence = Fence::new(3);
        let first = fence.open(ACTOR);
        let second = fence.open(ACTOR);

        assert!(!fence.revoke(ACTOR, first));
        assert_eq!(fence.standing(ACTOR, second), Standing::Unconfirmed);
        assert!(fence.revoke(ACTOR, second));
        assert_eq!(fence.standing(ACTOR, second), Standing::Unknown);
    }

    #[test]
    fn a_confirmation_that_comes_late_does_not_confirm_the_next_generation() {
        let fence = Fence::new(3);
        let first = fence.open(ACTOR);
        let second = fence.open(ACTOR);

        fence.confirm(ACTOR, first);

        assert_eq!(fence.standing(ACTOR, second), Standing::Unconfirmed);
    }

    #[test]
    fn starts_beyond_the_counter_go_on_in_the_next_epoch() {
        let last = numbered(3, u64::from(u32::MAX));
        let next = numbered(3, u64::from(u32::MAX) + 1);

        assert_eq!(last, Generation::new(3, u32::MAX));
        assert_eq!(next, Generation::new(4, 0));
        assert!(next > last);
        assert_eq!(epoch_of(next), 4);
    }
}
