//! How many files are open, and what is done for those that nobody uses.
//!
//! # Invariants
//!
//! 1. At most as many files are open as the limit says, but for those that a turn or a
//!    transaction holds: the least recently used one closes before the next opens.
//! 2. A turn never closes a file to open its own, nor does a promotion; the pool does,
//!    right afterwards.
//! 3. Whoever waits for room holds no file, and waits only for files that the threads of
//!    the store will free by themselves.
//!
//! The lock of the open files comes before that of a slot.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::MutexGuard;

use super::Files;
use super::lease::Lease;
use super::pool::Job;
use super::slot::{Holder, Slot};
use crate::time::Instant;

/// Which part of the frames that make a copy due make it due once the actor pauses.
const IDLE_PART: u32 = 4;
/// That pause.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a file is unused before its spare memory is given back.
const IDLE: Duration = Duration::from_secs(1);
/// How often the pool looks after files while there is something to look after.
pub(super) const TICK: Duration = Duration::from_millis(50);

type OpenSlots<'a> = MutexGuard<'a, Vec<Arc<Slot>>>;

impl Files {
    /// Counts a file as open, for a thread of the pool: waits until one may be closed.
    pub(super) fn make_room(&self, slot: &Arc<Slot>) {
        let mut open = self.open.lock();
        loop {
            if self.is_memory() || open.len() < self.limits.open_files.max(1) {
                break;
            }
            if let Some(lease) = least_recently_used(&open).and_then(|slot| slot.take_idle()) {
                // It takes itself off the list.
                MutexGuard::unlocked(&mut open, || lease.close());
            } else if open.iter().any(|slot| slot.is_freed_soon()) {
                self.may_have_room.wait(&mut open);
            } else {
                break;
            }
        }
        open.push(Arc::clone(slot));
    }

    /// Counts a file as open, for a turn or a promotion (invariant 2).
    pub(super) fn take_room(&self, slot: &Arc<Slot>) {
        let mut open = self.open.lock();
        open.push(Arc::clone(slot));
        let is_over = open.len() > self.limits.open_files.max(1);
        drop(open);
        if is_over {
            self.ready.push(Job::Trim);
        }
    }

    /// Closes files while more are open than may be.
    pub(super) fn trim(&self) {
        let mut open = self.open.lock();
        while !self.is_memory() && open.len() > self.limits.open_files.max(1) {
            let idle = least_recently_used(&open).and_then(|slot| slot.take_idle());
            let Some(lease) = idle else { return };
            MutexGuard::unlocked(&mut open, || lease.close());
        }
    }

    /// A file was closed.
    pub(super) fn closed(&self, slot: &Arc<Slot>) {
        let gone = {
            let mut open = self.open.lock();
            let at = open.iter().position(|other| Arc::ptr_eq(other, slot));
            at.map(|at| open.swap_remove(at))
        };
        self.may_have_room.notify_all();
        drop(gone);
    }

    /// A file may have become one that can be closed, or that wants looking after.
    pub(super) fn eased(&self) {
        // Through the lock, so that nobody misses it who has just looked.
        let is_over = self.open.lock().len() > self.limits.open_files.max(1);
        self.may_have_room.notify_all();
        if is_over && !self.is_memory() {
            self.ready.push(Job::Trim);
        }
        if !self.has_rest.swap(true, Ordering::Relaxed) {
            self.ready.push(Job::Keep);
        }
    }

    /// How long a thread of the pool waits for work before it looks after the files.
    pub(super) fn patience(&self) -> Option<Duration> {
        let has_rest = self.has_rest.load(Ordering::Relaxed);
        (has_rest || self.is_held_up.load(Ordering::Relaxed)).then_some(TICK)
    }

    /// Looks after files that nobody uses, unless that was done just before.
    pub(super) fn keep(&self) {
        let now = self.clock.now();
        {
            let Some(mut kept) = self.kept_at.try_lock() else { return };
            if kept.is_some_and(|at| now.since(at) < TICK) {
                return;
            }
            *kept = Some(now);
        }
        self.has_rest.store(false, Ordering::Relaxed);
        let slots = self.open.lock().clone();
        let mut has_rest = false;
        for slot in slots {
            has_rest |= slot.keep(now);
        }
        if has_rest {
            self.has_rest.store(true, Ordering::Relaxed);
        }
    }

    /// How many files are open.
    pub(in crate::store) fn open_count(&self) -> usize {
        self.open.lock().len()
    }
}

fn least_recently_used(open: &OpenSlots<'_>) -> Option<Arc<Slot>> {
    let idle = open.iter().filter_map(|slot| Some((slot.idle_since()?, slot)));
    idle.min_by_key(|(since, _)| *since).map(|(_, slot)| Arc::clone(slot))
}

impl Slot {
    /// Copies a log that is long, gives spare memory back; says whether something will be
    /// left to do later.
    fn keep(self: &Arc<Self>, now: Instant) -> bool {
        let mut state = self.lock();
        let last_used = state.last_used;
        let idle = now.since(last_used);
        let idle_frames = (self.files.limits.log_frames / IDLE_PART).max(1);
        let is_long = state.frames >= idle_frames && state.frames < state.due_frames;
        let copies = is_long && idle >= PAUSE && !state.in_transaction;
        let trims = !state.is_trimmed && idle >= IDLE && !state.in_transaction;
        if state.turns_waiting > 0 || !(copies || trims) {
            return !state.is_trimmed || is_long;
        }
        let Some(connection) = state.take(Holder::Pool) else { return true };
        drop(state);
        let lease = Lease::new(Arc::clone(self), Some(connection));
        if copies {
            self.checkpoint(lease);
            return true;
        }
        lease.sqlite().flush_prepared_statement_cache();
        if let Err(error) = lease.sqlite().release_memory() {
            tracing::debug!(%error, "spare memory was not given back");
        }
        drop(lease);
        let mut state = self.lock();
        // Being looked after is no use.
        state.is_trimmed = true;
        state.last_used = last_used;
        is_long
    }
}
