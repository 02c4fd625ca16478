//! Keeps repeated warnings from flooding the log.
//!
//! A warning passes two windows: one per actor and kind, one per kind for all
//! actors. They live behind different locks, so they are asked one after the
//! other: [`WarningWindows::charge`] under the actor's lock, and
//! [`GlobalWarnings::decide`] after it.
//!
//! # Invariants
//!
//! 1. A window lets the first [`LIMIT`] warnings of its [`WINDOW`] pass.
//! 2. A warning is emitted only if both windows let it pass; both are charged
//!    either way.
//! 3. The first warning at or after the end of a window opens the next one and
//!    reports how many were suppressed in the one before.

use parking_lot::Mutex;

use crate::time::{Duration, Instant};

/// How long a window is open.
pub const WINDOW: Duration = Duration::from_secs(30);
/// How many warnings pass in one window.
pub const LIMIT: u32 = 3;

/// What is warned about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarningKind {
    /// A caller sent work to an instance that no longer takes any.
    WorkSentToStoppingInstance,
    /// Work arrived while the actor was still starting: probably the actor calls
    /// itself and would wait for its own start.
    SelfCallRisk,
}

impl WarningKind {
    /// How many kinds there are.
    const COUNT: usize = 2;

    /// The name in logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::WorkSentToStoppingInstance => "work_sent_to_stopping_instance",
            Self::SelfCallRisk => "self_call_risk",
        }
    }
}

/// What is to be done with a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// Write it, with how many like it were left out in the windows before.
    Emit {
        /// Left out by the actor's window.
        per_actor_suppressed: u32,
        /// Left out by the window of all actors.
        global_suppressed: u32,
    },
    /// Leave it out.
    Suppress,
}

/// What the actor's window says; to be passed to [`GlobalWarnings::decide`].
#[derive(Clone, Copy, Debug)]
#[must_use = "the window of all actors must be charged as well"]
pub struct Charge {
    /// The count to report if it passes, `None` if it does not.
    passed: Option<u32>,
}

/// The windows of one actor; made for its first warning, which most never have.
#[derive(Clone, Debug, Default)]
pub struct WarningWindows(Option<Box<[Window; WarningKind::COUNT]>>);

impl WarningWindows {
    /// Charges the actor's window with a warning.
    pub fn charge(&mut self, kind: WarningKind, now: Instant) -> Charge {
        Charge { passed: self.0.get_or_insert_default()[kind as usize].charge(now) }
    }
}

/// The windows that all actors share.
#[derive(Debug, Default)]
pub struct GlobalWarnings(Mutex<[Window; WarningKind::COUNT]>);

impl GlobalWarnings {
    /// Charges the shared window too, and decides. Not to be called under an
    /// actor's lock.
    pub fn decide(&self, kind: WarningKind, actor: Charge, now: Instant) -> Verdict {
        let passed = self.0.lock()[kind as usize].charge(now);
        match (actor.passed, passed) {
            (Some(per_actor_suppressed), Some(global_suppressed)) => {
                Verdict::Emit { per_actor_suppressed, global_suppressed }
            }
            _ => Verdict::Suppress,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// When it was opened; `None` before the first warning.
    opened: Option<Instant>,
    passed: u32,
    suppressed: u32,
}

impl Window {
    /// Counts a warning. If it passes, how many were suppressed in the window
    /// before, for the first of a window, and zero otherwise.
    fn charge(&mut self, now: Instant) -> Option<u32> {
        let open = self.opened.is_some_and(|opened| now.since(opened) < WINDOW);
        if !open {
            let before = self.suppressed;
            *self = Self { opened: Some(now), passed: 1, suppressed: 0 };
            return Some(before);
        }
        if self.passed < LIMIT {
            self.passed += 1;
            return Some(0);
        }
        self.suppressed = self.suppressed.saturating_add(1);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: WarningKind = WarningKind::WorkSentToStoppingInstance;
    const OTHER: WarningKind = WarningKind::SelfCallRisk;

    fn at(seconds: u64) -> Instant {
        Instant::START + Duration::from_secs(seconds)
    }

    fn warn(
        global: &GlobalWarnings,
        actor: &mut WarningWindows,
        kind: WarningKind,
        now: Instant,
    ) -> Verdict {
        global.decide(kind, actor.charge(kind, now), now)
    }

    fn emit(per_actor_suppressed: u32, global_suppressed: u32) -> Verdict {
        Verdict::Emit { per_actor_suppressed, global_suppressed }
    }

    #[test]
    fn three_pass_in_a_window_and_the_first_of_the_next_reports_the_rest() {
        let global = GlobalWarnings::default();
        let mut actor = WarningWindows::default();

        let verdicts = [0, 1, 2, 3].map(|s| warn(&global, &mut actor, KIND, at(s)));
        assert_eq!(verdicts, [emit(0, 0), emit(0, 0), emit(0, 0), Verdict::Suppress]);

        assert_eq!(warn(&global, &mut actor, KIND, at(30)), emit(1, 1));
        assert_eq!(warn(&global, &mut actor, KIND, at(31)), emit(0, 0));
    }

    #[test]
    fn just_before_its_end_a_window_is_still_open() {
        let mut actor = WarningWindows::default();
        let charges = [0; 4].map(|s| actor.charge(KIND, at(s)).passed);
        assert_eq!(charges, [Some(0), Some(0), Some(0), None]);

        let before = at(29) + Duration::from_nanos(999_999_999);

        assert_eq!(actor.charge(KIND, before).passed, None);
        assert_eq!(actor.charge(KIND, at(30)).passed, Some(2));
    }

    #[test]
    fn kinds_do_not_count_for_each_other() {
        let global = GlobalWarnings::default();
        let mut actor = WarningWindows::default();
        for _ in 0..LIMIT {
            assert_eq!(warn(&global, &mut actor, KIND, at(0)), emit(0, 0));
        }

        assert_eq!(warn(&global, &mut actor, OTHER, at(0)), emit(0, 0));
    }

    #[test]
    fn the_shared_window_suppresses_what_the_actors_own_lets_pass() {
        let global = GlobalWarnings::default();
        let mut actors = [(); 5].map(|()| WarningWindows::default());

        let verdicts = actors.each_mut().map(|actor| warn(&global, actor, KIND, at(0)));
        assert_eq!(verdicts[2..], [emit(0, 0), Verdict::Suppress, Verdict::Suppress]);

        assert_eq!(warn(&global, &mut actors[4], KIND, at(30)), emit(0, 2));
    }

    #[test]
    fn both_windows_are_charged_by_a_warning_that_one_suppresses() {
        let global = GlobalWarnings::default();
        let mut noisy = WarningWindows::default();
        let mut quiet = WarningWindows::default();
        assert_eq!(warn(&global, &mut quiet, KIND, at(0)), emit(0, 0));
        for second in [20, 21, 22] {
            let _ = warn(&global, &mut noisy, KIND, at(second));
        }

        // The shared window is new; that of the noisy actor is full.
        assert_eq!(warn(&global, &mut noisy, KIND, at(40)), Verdict::Suppress);

        assert_eq!(warn(&global, &mut quiet, KIND, at(41)), emit(0, 0));
        assert_eq!(warn(&global, &mut quiet, KIND, at(42)), emit(0, 0));
        assert_eq!(warn(&global, &mut quiet, KIND, at(43)), Verdict::Suppress);
    }
}
