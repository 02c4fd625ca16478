//! How a store is opened, and who hears of its troubles.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::faults::Faults;
use super::file::{FileFaults, FileLimits};
use super::{ActorNumber, KeptMemory, StoreError};
use crate::ids::Generation;
use crate::time::Clock;

/// Where a store keeps its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    /// A folder on a local disk, created when it is missing.
    Folder(PathBuf),
    /// Memory; everything is gone with the store. "Durable" means committed here.
    Memory,
    /// Memory that a later store finds again.
    Kept(KeptMemory),
}

/// How much a store takes at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// How many bytes may wait to be written; what comes beyond is refused with
    /// [`StoreError::Overloaded`]. One write alone may be larger.
    pub queue_bytes: usize,
    /// How many writes one commit holds at most; at least 1.
    pub group_batches: usize,
    /// How many bytes one commit holds at most, unless it is one write.
    pub group_bytes: usize,
}

impl Default for StoreLimits {
    /// 64 MiB may wait; a commit holds 512 writes or 2 MiB.
    fn default() -> Self {
        Self { queue_bytes: 64 << 20, group_batches: 512, group_bytes: 2 << 20 }
    }
}

/// Everything that opening a store needs to know but its place.
#[derive(Clone)]
pub struct StoreOptions {
    /// The time. It decides whether the store has been idle for long enough to
    /// checkpoint; the writer thread looks at it at least every 500 ms while
    /// something is left to copy.
    pub clock: Clock,
    /// Who hears when the store fails, reopens or goes down.
    pub observer: Option<Arc<dyn StoreObserver>>,
    /// How much it takes at once.
    pub limits: StoreLimits,
    /// How many threads read; at least 1, and unused in memory.
    pub readers: usize,
    /// How many files of actors are open at once, and how many threads serve them.
    pub files: FileLimits,
    /// In a test runtime one thing is done at a time, by the writer or for a file, each when
    /// [`super::SharedStore::serve_one`] says so; this is called, on any thread, when
    /// something waits. It takes short locks only, and the clock is a manual one. Absent
    /// everywhere else.
    pub waits_for_turn: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Faults to come; only tests have any.
    pub faults: Faults,
    /// Faults of actor files to come; only tests have any.
    pub file_faults: FileFaults,
}

impl StoreOptions {
    /// The usual options on this clock: two readers, nobody who listens.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            observer: None,
            limits: StoreLimits::default(),
            readers: 2,
            files: FileLimits::default(),
            waits_for_turn: None,
            faults: Faults::default(),
            file_faults: FileFaults::default(),
        }
    }
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions")
            .field("limits", &self.limits)
            .field("readers", &self.readers)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

/// Hears of the store's troubles, on the writer thread. It must not block, must
/// not wait for the store, and holds the store weakly if at all: a strong handle
/// would keep it open for ever.
pub trait StoreObserver: Send + Sync {
    /// A commit ended in the unknown. Nothing is written or read until the store
    /// has been reopened. Each of `revoked` had writes waiting, or its actor's end
    /// did, and has ended; it is told before those writes are answered.
    fn failed_stop(&self, revoked: &[(ActorNumber, Generation)]) {
        let _ = revoked;
    }

    /// One actor's file failed: a commit or a sync of it ended in the unknown. Its
    /// generation, if it had one, has ended; it is told before what waited is answered.
    /// Told on a thread of the files.
    fn file_failed(&self, number: ActorNumber, ended: Option<Generation>, error: &StoreError) {
        let _ = (number, ended, error);
    }

    /// The store was reopened: what is read from here on is the truth. Told before
    /// anything is.
    fn reopened(&self) {}

    /// The store answers nothing but this error until it is closed. Told before
    /// the first such answer.
    fn down(&self, error: &StoreError) {
        let _ = error;
    }
}
