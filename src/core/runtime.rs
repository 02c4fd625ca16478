//! What all actors of one place share: the clock, tasks, timers, warnings, metrics.

use std::sync::Arc;

use super::spawner::Spawner;
use super::timers::Timers;
use super::warnings::GlobalWarnings;
use crate::ids::IdSource;
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
    ids: Arc<IdSource>,
}

impl Runtime {
    /// Begins the timers on the given tokio runtime. Nobody can foresee the ids.
    pub fn new(clock: Clock, spawner: impl Into<Spawner>) -> Arc<Self> {
        Self::with_ids(clock, spawner.into(), Arc::new(IdSource::from_os()))
    }

    /// Begins the timers.
    pub fn with_ids(clock: Clock, spawner: Spawner, ids: Arc<IdSource>) -> Arc<Self> {
        let timers = Timers::new(clock.clone(), &spawner);
        Arc::new(Self {
            clock,
            spawner,
            timers,
            warnings: GlobalWarnings::default(),
            metrics: Metrics::new(),
            ids,
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

    /// Where new ids come from.
    pub fn ids(&self) -> &IdSource {
        &self.ids
    }

    /// [`Runtime::ids`], for whoever keeps it.
    pub fn shared_ids(&self) -> Arc<IdSource> {
        Arc::clone(&self.ids)
    }

    /// Counts and durations for operators.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}
