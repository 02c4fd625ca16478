//! Which attempt of the run handler is the current one, and when the next begins.
//!
//! # Invariants
//!
//! 1. At most one attempt is current; the end of any other changes nothing.
//! 2. A restart is due only while no attempt is active, and never after
//!    [`RunHandler::stop`].
//! 3. Failures in a row are answered after 1 s, 2 s, 4 s and so on up to 60 s. The
//!    row ends with a clean end, with a relaunch on demand, and with an attempt
//!    that lasted for 60 s, counted from when its restart was due.

use crate::time::{Duration, Instant};

/// How long the first restart waits.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// How long a restart waits at most, and how long an attempt must last to count
/// as sound.
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// What follows from the end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// It was not the current attempt: nothing follows.
    Stale,
    /// It ended cleanly: nothing follows.
    Finished,
    /// It failed and is not started again.
    Failed,
    /// It failed and starts again at this moment.
    RestartAt(Instant),
}

/// The run handler of one generation.
#[derive(Debug)]
pub struct RunHandler {
    /// Whether a failure leads to a restart; cleared by `stop`.
    restarts: bool,
    /// The number of the last attempt; 0 before the first.
    attempt: u64,
    /// Whether that attempt runs.
    active: bool,
    /// When the next attempt is due.
    due: Option<Instant>,
    /// The last failure's restart and how long it waited, while the row lasts.
    last_restart: Option<(Instant, Duration)>,
}

impl RunHandler {
    /// A run handler that has not started. `restarts` is the setting
    /// `restarts_run`.
    pub const fn new(restarts: bool) -> Self {
        Self { restarts, attempt: 0, active: false, due: None, last_restart: None }
    }

    /// Begins an attempt and returns its number. An attempt that is still active
    /// is no longer the current one.
    pub fn start(&mut self) -> u64 {
        self.attempt += 1;
        self.active = true;
        self.due = None;
        self.attempt
    }

    /// Begins an attempt because somebody demanded it, whatever the last one does;
    /// returns its number. One that is active goes on, and its end is stale.
    pub fn restart(&mut self) -> u64 {
        self.last_restart = None;
        self.start()
    }

    /// Notes that an attempt ended.
    pub fn ended(&mut self, attempt: u64, failed: bool, now: Instant) -> RunEnd {
        if attempt != self.attempt || !self.active {
            return RunEnd::Stale;
        }
        self.active = false;
        if !failed {
            self.last_restart = None;
            return RunEnd::Finished;
        }
        if !self.restarts {
            return RunEnd::Failed;
        }
        let backoff = match self.last_restart {
            Some((began, waited)) if now.since(began) < LONGEST_BACKOFF => {
                (waited * 2).min(LONGEST_BACKOFF)
            }
            _ => FIRST_BACKOFF,
        };
        let due = now + backoff;
        self.last_restart = Some((due, backoff));
        self.due = Some(due);
        RunEnd::RestartAt(due)
    }

    /// Ends all restarts, because the actor stops. An active attempt stays the
    /// current one and may still end.
    pub fn stop(&mut self) {
        self.restarts = false;
        self.due = None;
    }

    /// When the next attempt is due.
    pub fn restart_due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether the current attempt runs.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Whether it failed and waits for its restart.
    pub fn is_restarting(&self) -> bool {
        self.due.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Lets the current attempt fail at `now`; returns how long the restart waits.
    fn fail(run: &mut RunHandler, attempt: u64, now: Instant) -> Duration {
        match run.ended(attempt, true, now) {
            RunEnd::RestartAt(at) => at.since(now),
            other => panic!("a restart was expected, got {other:?}"),
        }
    }

    #[test]
    fn failures_in_a_row_wait_twice_as_long_up_to_a_minute() {
        let mut run = RunHandler::new(true);
        let mut now = Instant::START;

        let waits: Vec<u64> = (0..9)
            .map(|_| {
                let attempt = run.start();
                let wait = fail(&mut run, attempt, now);
                now = run.restart_due().expect("it was just set");
                wait.as_secs()
            })
            .collect();

        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn an_attempt_that_lasted_a_minute_ends_the_row() {
        let mut run = RunHandler::new(true);
        let attempt = run.start();
        fail(&mut run, attempt, Instant::START);
        let began = run.restart_due().expect("it failed");

        let attempt = run.start();
        assert_eq!(fail(&mut run, attempt, began + 59 * SECOND), 2 * SECOND);
        let began = run.restart_due().expect("it failed");
        let attempt = run.start();
        assert_eq!(fail(&mut run, attempt, began + 60 * SECOND), SECOND);
    }

    #[test]
    fn a_clean_end_ends_the_row_and_starts_nothing() {
        let mut run = RunHandler::new(true);
        let attempt = run.start();
        fail(&mut run, attempt, Instant::START);

        let attempt = run.start();
        assert_eq!(run.ended(attempt, false, Instant::START + SECOND), RunEnd::Finished);
        assert_eq!((run.is_active(), run.restart_due()), (false, None));
        let attempt = run.start();
        assert_eq!(fail(&mut run, attempt, Instant::START + 2 * SECOND), SECOND);
    }

    #[test]
    fn the_end_of_an_attempt_that_was_replaced_changes_nothing() {
        let mut run = RunHandler::new(true);
        let old = run.start();
        let current = run.restart();

        assert_eq!(run.ended(old, true, Instant::START), RunEnd::Stale);

        assert!(run.is_active());
        assert_eq!(run.ended(current, false, Instant::START), RunEnd::Finished);
        assert_eq!(run.ended(current, true, Instant::START), RunEnd::Stale);
    }

    #[test]
    fn a_relaunch_on_demand_takes_the_place_of_a_restart_and_ends_the_row() {
        let mut run = RunHandler::new(true);
        let attempt = run.start();
        fail(&mut run, attempt, Instant::START);
        assert!(run.is_restarting());

        let attempt = run.restart();

        assert_eq!((run.is_restarting(), run.is_active()), (false, true));
        assert_eq!(fail(&mut run, attempt, Instant::START), SECOND);
    }

    #[test]
    fn without_restarts_a_failure_is_the_end() {
        let mut run = RunHandler::new(false);
        let attempt = run.start();

        assert_eq!(run.ended(attempt, true, Instant::START), RunEnd::Failed);
        assert_eq!((run.is_active(), run.restart_due()), (false, None));
    }

    #[test]
    fn a_stopping_actor_starts_nothing_again() {
        let mut run = RunHandler::new(true);
        let attempt = run.start();
        fail(&mut run, attempt, Instant::START);
        run.stop();
        assert_eq!(run.restart_due(), None);

        let attempt = run.start();
        run.stop();

        assert!(run.is_active());
        assert_eq!(run.ended(attempt, true, Instant::START), RunEnd::Failed);
    }
}
