//! The moment at which an author's `run` is to be active again.

use super::{Changed, Schedules, limits, op};
use crate::store::{RowOp, ScheduleOp};

/// The deadline, and how often it was changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunWake {
    at: Option<i64>,
    /// Raised with each change, so that an older one is not taken back over a newer.
    revision: u64,
}

/// A deadline that was consumed, to be restored if nothing came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumed {
    at: i64,
    revision: u64,
}

impl RunWake {
    pub(super) fn stored(at: Option<i64>) -> Self {
        Self { at, revision: 0 }
    }

    pub(super) fn at(self) -> Option<i64> {
        self.at
    }
}

impl Schedules {
    /// Sets or clears the deadline, in milliseconds since the Unix epoch.
    pub fn set_run_wake(&mut self, at: Option<i64>) -> Changed<()> {
        ((), self.change_wake(at.map(limits::moment)))
    }

    /// Consumes the deadline, if it has come.
    pub fn consume_run_wake(&mut self, now: i64) -> Changed<Option<Consumed>> {
        let Some(at) = self.run_wake.at.filter(|at| *at <= now) else { return (None, Vec::new()) };
        let ops = self.change_wake(None);
        (Some(Consumed { at, revision: self.run_wake.revision }), ops)
    }

    /// Restores a consumed deadline, unless it was set or cleared since; says whether
    /// it did.
    pub fn restore_run_wake(&mut self, consumed: Consumed) -> Changed<bool> {
        if self.run_wake.revision != consumed.revision {
            return (false, Vec::new());
        }
        (true, self.change_wake(Some(consumed.at)))
    }

    fn change_wake(&mut self, at: Option<i64>) -> Vec<RowOp> {
        self.run_wake.at = at;
        self.run_wake.revision += 1;
        vec![op(ScheduleOp::PutRunWake(at))]
    }
}
