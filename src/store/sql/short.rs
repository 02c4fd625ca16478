//! Short statements of the asynchronous way: those that whoever asks for them runs itself.
//!
//! Waking a thread, and being woken by it, takes far longer than most statements do.
//!
//! # Invariants
//!
//! 1. A statement is run by who asks only if it was short when it ran last: on a thread of
//!    the store, the first time.
//! 2. One that turns out to be long is cut off. It stood alone, outside a transaction, so
//!    SQLite undoes all of it, and a thread of the store runs it as if it came for the first
//!    time.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::Mutex;
use rusqlite::Connection;

use crate::time::Duration;

/// The longest that a statement may have taken to count as short.
const SHORT: Duration = Duration::from_micros(500);
/// The longest text that is remembered, in bytes: to read one takes time, too.
const MAX_TEXT: usize = 4 * 1024;
/// Texts that are remembered.
const MAX_TEXTS: usize = 256;
/// Instructions of SQLite's machine between two looks at the meter.
const STEPS: i32 = 1_000;
/// The looks at which a statement is cut off: well below a millisecond.
const LOOKS: u32 = 10;

/// Which statements were short when they ran last.
#[derive(Default)]
pub(super) struct ShortStatements {
    hasher: RandomState,
    /// Hashes of texts: two texts of one hash are no more than a wrong guess (invariant 2).
    /// Changed by whoever ran a statement.
    texts: Mutex<HashSet<u64>>,
}

impl ShortStatements {
    pub(super) fn has(&self, sql: &str) -> bool {
        sql.len() <= MAX_TEXT && self.texts.lock().contains(&self.hasher.hash_one(sql))
    }

    /// Notes how a statement ran.
    pub(super) fn note(&self, sql: &str, run: Run) {
        if sql.len() > MAX_TEXT {
            return;
        }
        let text = self.hasher.hash_one(sql);
        let mut texts = self.texts.lock();
        // Below what cuts it off, or it would be cut off each second time.
        if run.took > SHORT || run.looks >= LOOKS {
            texts.remove(&text);
        } else if !texts.contains(&text) {
            // Whoever makes a text for each statement has none that comes again.
            if texts.len() >= MAX_TEXTS {
                texts.clear();
            }
            texts.insert(text);
        }
    }
}

/// How a statement ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) took: Duration,
    /// How often SQLite looked at the meter.
    pub(super) looks: u32,
}

/// How far the statement in work on a connection has come, and how far it may.
///
/// Atomic only because SQLite's callback must be `Send`: it is read and changed by whoever
/// uses the connection.
#[derive(Debug, Default)]
pub(super) struct Meter {
    looks: AtomicU32,
    is_limited: AtomicBool,
}

impl Meter {
    /// Has SQLite look at it.
    pub(super) fn install(sqlite: &mut Connection) -> rusqlite::Result<Arc<Self>> {
        let meter = Arc::new(Self::default());
        let asked = Arc::clone(&meter);
        sqlite.progress_handler(STEPS, Some(move || asked.look()))?;
        Ok(meter)
    }

    /// Begins anew, and limits what runs until the guard is dropped.
    pub(super) fn limit(&self) -> Limited<'_> {
        self.begin();
        self.is_limited.store(true, Ordering::Relaxed);
        Limited(self)
    }

    /// Begins anew.
    pub(super) fn begin(&self) {
        self.looks.store(0, Ordering::Relaxed);
    }

    pub(super) fn looks(&self) -> u32 {
        self.looks.load(Ordering::Relaxed)
    }

    /// True to cut the statement off.
    fn look(&self) -> bool {
        let looks = self.looks().saturating_add(1);
        self.looks.store(looks, Ordering::Relaxed);
        looks >= LOOKS && self.is_limited.load(Ordering::Relaxed)
    }
}

/// Lifts the limit when it is dropped.
#[must_use = "the limit is lifted at once"]
pub(super) struct Limited<'a>(&'a Meter);

impl Drop for Limited<'_> {
    fn drop(&mut self) {
        self.0.is_limited.store(false, Ordering::Relaxed);
    }
}
