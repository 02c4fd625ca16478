//! A histogram of durations that takes no lock.
//!
//! # Invariants
//!
//! 1. The count that is encoded is the sum of the buckets that are encoded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

use crate::time::Duration;

/// The upper bounds of most durations, in seconds.
pub(super) const DEFAULT_BOUNDS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The upper bounds of the steps of a start, in seconds.
pub(super) const STARTUP_BOUNDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// Counts durations by size. Cheap to clone; clones share their counts.
#[derive(Clone, Debug)]
pub(super) struct Histogram(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    /// Upper bounds in seconds, rising; the bounds themselves belong to the bucket.
    bounds: &'static [f64],
    /// One more than the bounds: the last is for what exceeds them all.
    buckets: Box<[AtomicU64]>,
    /// Enough for 584 years.
    sum_nanos: AtomicU64,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Counts { bounds, buckets, sum_nanos: AtomicU64::new(0) }))
    }

    pub(super) fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = self.0.bounds.partition_point(|bound| *bound < seconds);
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.0.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.0.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), std::fmt::Error> {
        let bounds = self.0.bounds.iter().copied().chain([f64::INFINITY]);
        let counts = self.0.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = Duration::from_nanos(self.0.sum_nanos.load(Ordering::Relaxed)).as_secs_f64();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}
