//! When the writer copies the log into the database file: arithmetic only.
//!
//! # Invariants
//!
//! 1. A checkpoint is due from [`DUE_FRAMES`] on, well below the 4,062 frames at
//!    which the index of the log would have to grow, which it may not be able to
//!    do on a full disk.
//! 2. What is left is copied once nothing was committed for [`IDLE`].

use std::time::Duration;

use super::connection::Checkpointed;
use crate::time::Instant;

/// 8 MiB of log.
pub(super) const DUE_FRAMES: u32 = 2_000;
/// How long nothing must be committed before the rest is copied.
pub(super) const IDLE: Duration = Duration::from_millis(500);
/// How often in a row a reader may keep a checkpoint from its end before it is logged.
const PATIENCE: u32 = 10;

/// What the log holds and whether all of it is copied.
#[derive(Debug)]
pub(super) struct LogGauge {
    frames: u32,
    /// Whether any of the frames is not in the database file.
    has_rest: bool,
    cut_short: u32,
    /// The last commit or the last attempt to copy.
    quiet_since: Instant,
}

impl LogGauge {
    /// An empty log.
    pub(super) fn new(now: Instant) -> Self {
        Self { frames: 0, has_rest: false, cut_short: 0, quiet_since: now }
    }

    /// Notes commits that wrote something, after which the log has this many frames.
    pub(super) fn committed(&mut self, frames: u32, now: Instant) {
        self.frames = frames;
        self.has_rest = true;
        self.quiet_since = now;
    }

    /// Whether to copy now, between two groups.
    pub(super) fn is_due(&self) -> bool {
        self.has_rest && self.frames >= DUE_FRAMES
    }

    /// How long to wait for work before asking [`LogGauge::is_due_when_idle`];
    /// `None` when nothing is left to copy.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.has_rest.then_some(IDLE)
    }

    /// Whether to copy when no work came.
    pub(super) fn is_due_when_idle(&self, now: Instant) -> bool {
        self.has_rest && now.since(self.quiet_since) >= IDLE
    }

    /// Notes how far a checkpoint came; says whether it is time to log that a
    /// reader pins the log.
    pub(super) fn checkpointed(&mut self, reached: Checkpointed, now: Instant) -> bool {
        self.frames = reached.frames;
        self.has_rest = !reached.is_whole();
        self.quiet_since = now;
        if self.has_rest {
            return self.count_cut_short();
        }
        self.cut_short = 0;
        false
    }

    /// Notes a checkpoint that failed; says whether to log that it is a habit.
    pub(super) fn checkpoint_failed(&mut self, now: Instant) -> bool {
        self.quiet_since = now;
        self.count_cut_short()
    }

    fn count_cut_short(&mut self) -> bool {
        self.cut_short = self.cut_short.saturating_add(1);
        self.cut_short == PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::START;

    fn at(ms: u64) -> Instant {
        START + Duration::from_millis(ms)
    }

    #[test]
    fn a_checkpoint_is_due_at_2000_frames_and_not_before() {
        let mut log = LogGauge::new(START);

        log.committed(1_999, START);
        assert!(!log.is_due());
        log.committed(2_000, START);
        assert!(log.is_due());
    }

    #[test]
    fn the_rest_is_copied_after_half_a_second_without_a_commit() {
        let mut log = LogGauge::new(START);
        assert_eq!(log.patience(), None);

        log.committed(5, at(100));

        assert_eq!(log.patience(), Some(IDLE));
        assert!(!log.is_due_when_idle(at(599)));
        assert!(log.is_due_when_idle(at(600)));
        log.checkpointed(Checkpointed { frames: 5, copied: 5 }, at(600));
        assert_eq!(log.patience(), None);
    }

    #[test]
    fn a_log_that_is_copied_whole_has_a_rest_again_after_as_many_frames_as_before() {
        let mut log = LogGauge::new(START);
        log.committed(3, START);
        log.checkpointed(Checkpointed { frames: 3, copied: 3 }, START);

        log.committed(3, START);

        assert_eq!(log.patience(), Some(IDLE));
    }

    #[test]
    fn a_log_that_is_copied_whole_is_not_due_until_it_has_more() {
        let mut log = LogGauge::new(START);
        log.committed(3_000, START);

        log.checkpointed(Checkpointed { frames: 3_000, copied: 3_000 }, START);
        assert!(!log.is_due());
        log.committed(4, START);

        assert!(!log.is_due());
        assert_eq!(log.patience(), Some(IDLE));
    }

    #[test]
    fn a_pinned_log_is_tried_after_each_group_and_logged_once() {
        let mut log = LogGauge::new(START);
        let mut logged = 0;

        for group in 0..30 {
            log.committed(3_000 + group, START);
            assert!(log.is_due());
            let reached = Checkpointed { frames: 3_000 + group, copied: 10 };
            logged += u32::from(log.checkpointed(reached, START));
        }

        assert_eq!(logged, 1);
    }

    #[test]
    fn an_attempt_that_failed_is_not_repeated_before_the_next_pause() {
        let mut log = LogGauge::new(START);
        log.committed(5, START);

        log.checkpoint_failed(at(500));

        assert!(!log.is_due_when_idle(at(999)));
        assert!(log.is_due_when_idle(at(1_000)));
    }
}
