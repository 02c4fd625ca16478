//! What waits for the end of a transaction that an author began by hand.
//!
//! Nobody but the author can know when that is to end, and it may never be. Transactions
//! with a handle have a deadline of their own and are none of this.
//!
//! # Invariants
//!
//! 1. A batch or a reading waits for as long as a transaction may take when nothing is
//!    said, from when it came or the transaction began, whichever is later. Then it fails,
//!    and nothing of it was done.
//! 2. A transaction that something waits for is warned of, once.
//! 3. The transaction itself stays: its author ends it, or the end of its generation does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Context;

use futures::FutureExt;
use futures::task::ArcWake;

use super::Files;
use super::pool::Job;
use super::slot::{Slot, State};
use super::task::Task;
use crate::store::StoreError;
use crate::store::sql::{DEFAULT_TIMEOUT, millis};
use crate::time::Instant;

/// A transaction begun by hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByHand {
    since: Instant,
    is_warned_of: bool,
}

/// What the clock wakes in a store that waits for its turns.
struct Ring(Arc<dyn Fn() + Send + Sync>);

impl ArcWake for Ring {
    fn wake_by_ref(ring: &Arc<Self>) {
        (ring.0)();
    }
}

impl Files {
    /// Something waits for the end of a transaction begun by hand.
    pub(super) fn note_held_up(&self) {
        if !self.is_held_up.swap(true, Ordering::Relaxed) {
            self.ready.push(Job::Keep);
        }
    }

    /// Fails what has waited for too long; says whether there was anything.
    pub(super) fn refuse_overdue(&self) -> bool {
        // Before the look, so that what comes meanwhile is looked at again.
        if !self.is_held_up.swap(false, Ordering::Relaxed) {
            return false;
        }
        let now = self.clock.now();
        let slots = self.open.lock().clone();
        let mut has_refused = false;
        let mut due: Option<Instant> = None;
        for slot in slots {
            has_refused |= slot.refuse_overdue(now);
            due = due.into_iter().chain(slot.lock().overdue_at()).min();
        }
        if due.is_some() {
            self.is_held_up.store(true, Ordering::Relaxed);
        }
        self.ask_for_turn(due);
        has_refused
    }

    /// Has the clock ask for a turn at this time: no thread looks at it.
    fn ask_for_turn(&self, due: Option<Instant>) {
        let Some(asks) = &self.waits_for_turn else { return };
        let waker = futures::task::waker(Arc::new(Ring(Arc::clone(asks))));
        let mut sleep = due.map(|due| self.clock.sleep_until(due));
        if let Some(sleep) = &mut sleep
            && sleep.poll_unpin(&mut Context::from_waker(&waker)).is_ready()
        {
            asks();
        }
        let before = std::mem::replace(&mut *self.turn_at.lock(), sleep);
        drop(before);
    }
}

impl Slot {
    /// An author's statement has begun a transaction.
    pub(super) fn begun_by_hand(&self) {
        let since = self.files.clock.now();
        self.lock().by_hand = Some(ByHand { since, is_warned_of: false });
    }

    fn refuse_overdue(self: &Arc<Self>, now: Instant) -> bool {
        let (overdue, warns) = {
            let mut state = self.lock();
            if !state.is_held_up() {
                return false;
            }
            let warns = state
                .by_hand
                .as_mut()
                .is_some_and(|by_hand| !std::mem::replace(&mut by_hand.is_warned_of, true));
            (state.take_overdue(now), warns)
        };
        if warns {
            tracing::warn!(
                path = %self.database.label(),
                "what the actor saves or reads waits for a transaction that was begun by hand"
            );
        }
        let has_refused = !overdue.is_empty();
        let timeout_ms = millis(DEFAULT_TIMEOUT);
        self.refuse(overdue, &StoreError::ManualTransactionOpen { timeout_ms });
        if has_refused {
            // Readings behind a batch that is gone need not wait any more.
            self.schedule(self.lock());
        }
        has_refused
    }
}

impl State {
    /// When the first that is held up has waited for too long.
    fn overdue_at(&self) -> Option<Instant> {
        let by_hand = self.by_hand?;
        let held_up = self.tasks.iter().filter(|waiting| is_held_up(&waiting.task));
        held_up.map(|waiting| waiting.since.max(by_hand.since) + DEFAULT_TIMEOUT).min()
    }

    /// Whether something waits for the end of a transaction begun by hand.
    pub(super) fn is_held_up(&self) -> bool {
        self.by_hand.is_some() && self.tasks.iter().any(|waiting| is_held_up(&waiting.task))
    }

    fn take_overdue(&mut self, now: Instant) -> Vec<Task> {
        let Some(by_hand) = self.by_hand else { return Vec::new() };
        self.take_where(|waiting| {
            let since = waiting.since.max(by_hand.since);
            is_held_up(&waiting.task) && now.since(since) >= DEFAULT_TIMEOUT
        })
    }
}

/// Whether it fails in the end: the end of a generation takes care of what it asks for.
fn is_held_up(task: &Task) -> bool {
    matches!(task, Task::Commit { .. } | Task::Read(_) | Task::Copy(_))
}
