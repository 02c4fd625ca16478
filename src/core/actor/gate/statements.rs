//! Which of the author's asynchronous statements may still commit something.
//!
//! They are numbered apart from the commits: a commit takes its number when it goes to
//! the store, and who waits for the next one may count on that number.
//!
//! # Invariants
//!
//! 1. A statement that has ended never is open again.

use std::collections::BTreeSet;

/// The place of a statement that may commit among those of one generation, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatementNumber(u64);

impl StatementNumber {
    /// Before every statement: nothing to wait for.
    pub const NONE: Self = Self(0);
}

/// The statements of one generation that may commit.
#[derive(Debug, Default)]
pub(super) struct Statements {
    /// Grows in `begin`.
    begun: u64,
    /// Those that have not ended, in whatever order they end. Empty nearly always.
    open: BTreeSet<StatementNumber>,
}

impl Statements {
    pub(super) const fn new() -> Self {
        Self { begun: 0, open: BTreeSet::new() }
    }

    /// Numbers a statement that is asked for now.
    pub(super) fn begin(&mut self) -> StatementNumber {
        self.begun += 1;
        let number = StatementNumber(self.begun);
        self.open.insert(number);
        number
    }

    /// Notes that a statement has ended.
    pub(super) fn end(&mut self, number: StatementNumber) {
        self.open.remove(&number);
    }

    /// The last one that has not ended.
    pub(super) fn last_open(&self) -> StatementNumber {
        self.open.last().copied().unwrap_or_default()
    }

    /// Whether all up to `number` have ended.
    pub(super) fn are_over(&self, number: StatementNumber) -> bool {
        self.open.first().is_none_or(|&first| first > number)
    }
}
