//! What the store has done so far, for metrics and tests.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStats {
    /// Commits that succeeded.
    pub commits: u64,
    /// Writes that these commits held.
    pub batches: u64,
    /// The most writes that one commit held.
    pub largest_group: u64,
    /// Frames in the write-ahead log as of the last commit.
    pub wal_frames: u64,
    /// The most frames that the log has had.
    pub largest_wal_frames: u64,
    /// Checkpoints that copied the whole log.
    pub checkpoints: u64,
    /// Checkpoints that failed or that a reader kept from the end.
    pub checkpoints_cut_short: u64,
    /// Groups whose writes had to be tried again one by one.
    pub replays: u64,
    /// Times that there was no room.
    pub full: u64,
    /// Times that a commit ended in the unknown and the store was reopened.
    pub fail_stops: u64,
}

/// The counters behind [`StoreStats`]. Only the writer thread changes them.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) commits: Counter,
    pub(super) batches: Counter,
    pub(super) largest_group: Counter,
    pub(super) wal_frames: Counter,
    pub(super) largest_wal_frames: Counter,
    pub(super) checkpoints: Counter,
    pub(super) checkpoints_cut_short: Counter,
    pub(super) replays: Counter,
    pub(super) full: Counter,
    pub(super) fail_stops: Counter,
}

/// One number; readers need no order among several.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    pub(super) fn set(&self, value: u32) {
        self.0.store(u64::from(value), Ordering::Relaxed);
    }

    pub(super) fn raise(&self, value: usize) {
        self.0.fetch_max(value as u64, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(super) fn snapshot(&self) -> StoreStats {
        StoreStats {
            commits: self.commits.get(),
            batches: self.batches.get(),
            largest_group: self.largest_group.get(),
            wal_frames: self.wal_frames.get(),
            largest_wal_frames: self.largest_wal_frames.get(),
            checkpoints: self.checkpoints.get(),
            checkpoints_cut_short: self.checkpoints_cut_short.get(),
            replays: self.replays.get(),
            full: self.full.get(),
            fail_stops: self.fail_stops.get(),
        }
    }
}
