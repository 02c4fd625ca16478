//! Short statements of the asynchronous way: those that whoever asks for them runs itself.
//!
//! Waking a thread, and being woken by it, takes far longer than most statements do.
//!
//! # Invariants
//!
//! 1. A statement is run by who asks only if it was short when it ran last: on a thread of
//!    the store, the first time.
//! 2. One that reads is cut off when it turns out to be long, and a thread of the store
//!    begins anew. SQLite looks between instructions only, and counting a large table is
//!    one: such a text holds its thread once, and is not short from then on.
//! 3. One that writes is never cut off. SQLite says that it was, too, right behind its
//!    commit; and what it has undone still shows in `last_insert_rowid()`. So only those
//!    are short that add no more rows than their text has, what triggers add aside.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::Mutex;
use rusqlite::Connection;

use super::text;
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
    /// Hashes of texts: two texts of one hash are no more than a wrong guess. Changed by
    /// whoever ran a statement.
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
        // Below what cuts it off, or it would be cut off each second time.
        let was_short = run.took <= SHORT && run.looks < LOOKS;
        let mut texts = self.texts.lock();
        if !was_short {
            texts.remove(&text);
        } else if !texts.contains(&text) && text::may_be_short(sql) {
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
    has_cut_off: AtomicBool,
}

impl Meter {
    /// Has SQLite look at it.
    pub(super) fn install(sqlite: &mut Connection) -> rusqlite::Result<Arc<Self>> {
        let meter = Arc::new(Self::default());
        let asked = Arc::clone(&meter);
        sqlite.progress_handler(STEPS, Some(move || asked.look()))?;
        Ok(meter)
    }

    /// Begins anew.
    pub(super) fn begin(&self) {
        self.looks.store(0, Ordering::Relaxed);
        self.has_cut_off.store(false, Ordering::Relaxed);
    }

    /// Limits what runs until the guard is dropped or the limit lifted.
    pub(super) fn limit(&self) -> Limited<'_> {
        self.is_limited.store(true, Ordering::Relaxed);
        Limited(self)
    }

    /// Lets what runs come to its end (invariant 3).
    pub(super) fn lift(&self) {
        self.is_limited.store(false, Ordering::Relaxed);
    }

    pub(super) fn looks(&self) -> u32 {
        self.looks.load(Ordering::Relaxed)
    }

    pub(super) fn has_cut_off(&self) -> bool {
        self.has_cut_off.load(Ordering::Relaxed)
    }

    /// True to cut the statement off.
    fn look(&self) -> bool {
        let looks = self.looks().saturating_add(1);
        self.looks.store(looks, Ordering::Relaxed);
        let cuts_off = looks >= LOOKS && self.is_limited.load(Ordering::Relaxed);
        self.has_cut_off.fetch_or(cuts_off, Ordering::Relaxed);
        cuts_off
    }
}

/// Lifts the limit when it is dropped.
#[must_use = "the limit is lifted at once"]
pub(super) struct Limited<'a>(&'a Meter);

impl Drop for Limited<'_> {
    fn drop(&mut self) {
        self.0.lift();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(took: Duration, looks: u32) -> Run {
        Run { took, looks }
    }

    #[test]
    fn only_what_is_limited_is_cut_off_and_nothing_once_the_limit_is_lifted() {
        let meter = Meter::default();
        assert!((0..2 * LOOKS).all(|_| !meter.look()));

        meter.begin();
        let limited = meter.limit();
        assert!((1..LOOKS).all(|_| !meter.look()));
        assert!(meter.look());
        assert!(meter.has_cut_off());
        meter.begin();
        assert!(!meter.has_cut_off());
        meter.lift();
        assert!((0..2 * LOOKS).all(|_| !meter.look()));
        drop(limited);
    }

    #[test]
    fn what_took_long_or_would_be_cut_off_is_not_short_until_it_is_again() {
        let short = ShortStatements::default();
        let sql = "SELECT 1";
        assert!(!short.has(sql));

        for (ran, is_short) in [
            (run(SHORT, LOOKS - 1), true),
            (run(SHORT + Duration::from_nanos(1), 0), false),
            (run(Duration::ZERO, 0), true),
            (run(Duration::ZERO, LOOKS), false),
        ] {
            short.note(sql, ran);
            assert_eq!(short.has(sql), is_short, "{ran:?}");
        }
    }

    #[test]
    fn no_more_texts_are_remembered_than_may_be_and_none_that_may_be_long() {
        let short = ShortStatements::default();
        for n in 0..10 * MAX_TEXTS {
            short.note(&format!("SELECT {n}"), run(Duration::ZERO, 0));
        }
        let (update, long) = ("UPDATE t SET x = 1", format!("SELECT '{}'", "x".repeat(MAX_TEXT)));
        short.note(update, run(Duration::ZERO, 0));
        short.note(&long, run(Duration::ZERO, 0));

        assert!(short.texts.lock().len() <= MAX_TEXTS);
        assert!(!short.has(update) && !short.has(&long));
    }
}
