//! How long an actor's start takes, step by step.

use std::sync::Arc;

use super::labels::StartupPhase;
use super::name::NameMetrics;
use crate::time::{Clock, Duration, Instant};

/// Measures one start. If it is dropped before [`StartupTimer::finish`], the start
/// counts as failed.
#[derive(Debug)]
#[must_use = "a timer that is dropped counts the start as failed"]
pub struct StartupTimer {
    name: Arc<NameMetrics>,
    clock: Clock,
    began: Instant,
    /// When the last step ended.
    step_began: Instant,
    /// Whether the actor has never been initialised; `None` until it is loaded.
    is_new: Option<bool>,
    /// Set by `finish`, for the drop.
    finished: bool,
}

impl StartupTimer {
    pub(super) fn new(name: Arc<NameMetrics>, clock: Clock) -> Self {
        let now = clock.now();
        Self { name, clock, began: now, step_began: now, is_new: None, finished: false }
    }

    /// Notes whether the actor is new, for all steps recorded from here on.
    pub fn set_is_new(&mut self, is_new: bool) {
        self.is_new = Some(is_new);
    }

    /// Records a step that ends now and began when the last one ended.
    pub fn end_phase(&mut self, phase: StartupPhase) {
        let now = self.clock.now();
        self.observe(phase.label(), "success", now.since(self.step_began));
        self.step_began = now;
    }

    /// Records that the start has succeeded; returns how long it took.
    pub fn finish(mut self) -> Duration {
        self.finished = true;
        let total = self.clock.now().since(self.began);
        self.observe("total", "success", total);
        total
    }

    fn observe(&self, phase: &'static str, outcome: &'static str, duration: Duration) {
        let is_new = match self.is_new {
            Some(true) => "true",
            Some(false) => "false",
            None => "unknown",
        };
        let labels = self.name.labels([("phase", phase), ("is_new", is_new), ("outcome", outcome)]);
        self.name.families.startup_phase.get_or_create(&labels).observe(duration);
    }
}

impl Drop for StartupTimer {
    fn drop(&mut self) {
        if !self.finished {
            self.observe("total", "error", self.clock.now().since(self.began));
        }
    }
}
