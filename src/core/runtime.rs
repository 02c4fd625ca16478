//! What all actors of one place share: the clock, tasks, timers, warnings, metrics.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::spawner::Spawner;
use super::timers::Timers;
use super::warnings::GlobalWarnings;
use crate::metrics::Metrics;
use crate::time::Clock;

/// What all actors of one place share.
#[derive(Debug)]
pub struct Runtime {
    clock: Clock,
    spawner: Spawner,
    timers: Timers,
    warnings: GlobalWarnings,
    metrics: Metrics,
}

impl Runtime {
    /// Begins the timers on the given tokio runtime.
    pub fn new(clock: Clock, handle: Handle) -> Arc<Self> {
        let spawner = Spawner::new(handle);
        let timers = Timers::new(clock.clone(), &spawner);
        Arc::new(Self {
            clock,
            spawner,
            timers,
            warnings: GlobalWarnings::default(),
            metrics: Metrics::new(),
        })
    }

    /// The clock that everything here goes by.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Begins tasks.
    pub fn spawner(&self) -> &Spawner {
        &self.spawner
    }

    /// The deadlines of all actors.
    pub fn timers(&self) -> &Timers {
        &self.timers
    }

    /// The process-wide suppression of repeated warnings.
    pub fn warnings(&self) -> &GlobalWarnings {
        &self.warnings
    }

    /// Counts and durations for operators.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}
