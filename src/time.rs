//! Time as an input: every wait and every look at a clock goes through [`Clock`].
//!
//! # Invariants
//!
//! 1. [`Clock::now`] never goes back.
//! 2. A manual clock moves only in [`ManualClock::advance`], stops at each
//!    deadline on its way, and wakes sleepers in the order of their deadlines,
//!    equal ones in the order in which they began to wait.
//! 3. A sleeper whose deadline has passed never waits.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
pub use std::time::Duration;

use parking_lot::Mutex;

/// A moment on a [`Clock`]: the time since that clock began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Instant(Duration);

impl Instant {
    /// The beginning of a clock.
    pub const START: Self = Self(Duration::ZERO);

    /// How long ago `earlier` was; zero when it lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl std::ops::Add<Duration> for Instant {
    type Output = Self;

    /// Saturates, so that an endless timeout is a moment far away.
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

/// Gives the time and waits for it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System { origin: std::time::Instant },
    Manual(Arc<Mutex<Manual>>),
}

impl Clock {
    /// The clock of the machine. Its sleepers need a tokio runtime with timers.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads it")]
    pub fn system() -> Self {
        Self(Source::System { origin: std::time::Instant::now() })
    }

    /// A clock that stands still at `unix_ms` until its owner advances it.
    pub fn manual(unix_ms: i64) -> ManualClock {
        let manual = Manual {
            now: Instant::START,
            start_unix_ms: unix_ms,
            next_sleeper: 0,
            sleepers: BTreeMap::new(),
        };
        ManualClock { clock: Self(Source::Manual(Arc::new(Mutex::new(manual)))) }
    }

    /// The present moment.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads it")]
    pub fn now(&self) -> Instant {
        match &self.0 {
            Source::System { origin } => {
                Instant(std::time::Instant::now().saturating_duration_since(*origin))
            }
            Source::Manual(manual) => manual.lock().now,
        }
    }

    /// The wall time in milliseconds since the Unix epoch.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads it")]
    pub fn unix_ms(&self) -> i64 {
        match &self.0 {
            Source::System { .. } => {
                let since = std::time::SystemTime::now()
                    .duration_since(std::time::UNIX_EPOCH)
                    .unwrap_or_default();
                i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
            }
            Source::Manual(manual) => {
                let manual = manual.lock();
                let passed = i64::try_from(manual.now.0.as_millis()).unwrap_or(i64::MAX);
                manual.start_unix_ms.saturating_add(passed)
            }
        }
    }

    /// Resolves at `deadline`. Cancel safe.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        match &self.0 {
            #[expect(clippy::disallowed_methods, reason = "this is the one place that waits")]
            Source::System { origin } => {
                // Far enough for "never" and near enough for the timer wheel.
                const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365);
                let at = deadline.0.min(self.now().0.saturating_add(FAR));
                let sleep = tokio::time::sleep_until((*origin + at).into());
                Sleep(SleepSource::System(Box::pin(sleep)))
            }
            Source::Manual(manual) => {
                Sleep(SleepSource::Manual { manual: Arc::clone(manual), deadline, id: None })
            }
        }
    }

    /// Resolves after `duration`. Cancel safe.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.sleep_until(self.now() + duration)
    }
}

/// The future of [`Clock::sleep_until`].
#[derive(Debug)]
#[must_use = "a sleep does nothing until it is awaited"]
pub struct Sleep(SleepSource);

#[derive(Debug)]
enum SleepSource {
    System(Pin<Box<tokio::time::Sleep>>),
    Manual { manual: Arc<Mutex<Manual>>, deadline: Instant, id: Option<u64> },
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            SleepSource::System(sleep) => sleep.as_mut().poll(cx),
            SleepSource::Manual { manual, deadline, id } => {
                let mut state = manual.lock();
                if state.now >= *deadline {
                    return Poll::Ready(());
                }
                let sleeper = *id.get_or_insert_with(|| {
                    state.next_sleeper += 1;
                    state.next_sleeper
                });
                state.sleepers.insert((*deadline, sleeper), cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let SleepSource::Manual { manual, deadline, id: Some(id) } = &self.0 {
            let waker = manual.lock().sleepers.remove(&(*deadline, *id));
            drop(waker);
        }
    }
}

#[derive(Debug)]
struct Manual {
    /// Changed by `advance` only.
    now: Instant,
    start_unix_ms: i64,
    /// Makes equal deadlines wake in the order of waiting (invariant 2).
    next_sleeper: u64,
    sleepers: BTreeMap<(Instant, u64), Waker>,
}

/// The owner's side of a manual clock.
#[derive(Clone, Debug)]
pub struct ManualClock {
    clock: Clock,
}

impl ManualClock {
    /// The clock to hand out.
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Moves the clock to the next deadline that is due within `limit` from now
    /// and wakes the one sleeper that waits for it; without one, moves by `limit`.
    /// Returns what is left of `limit`, `None` when all of it was used up and
    /// nobody was woken.
    pub fn step(&self, limit: Duration) -> Option<Duration> {
        let (left, waker) = {
            let mut state = self.manual().lock();
            let end = state.now + limit;
            match state.sleepers.first_key_value() {
                Some((&(deadline, id), _)) if deadline <= end => {
                    state.now = state.now.max(deadline);
                    let waker = state.sleepers.remove(&(deadline, id));
                    (Some(end.since(state.now)), waker)
                }
                _ => {
                    state.now = end;
                    (None, None)
                }
            }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        left
    }

    /// Moves the clock by `duration`, waking whoever becomes due on the way.
    pub fn advance(&self, duration: Duration) {
        let mut left = Some(duration);
        while let Some(limit) = left {
            left = self.step(limit);
        }
    }

    /// When the next sleeper is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.manual().lock().sleepers.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    fn manual(&self) -> &Mutex<Manual> {
        match &self.clock.0 {
            Source::Manual(manual) => manual,
            Source::System { .. } => unreachable!("only `Clock::manual` makes a ManualClock"),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_test::{assert_pending, assert_ready, task};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_sleeper_waits_for_exactly_its_deadline() {
        let manual = Clock::manual(1_000);
        let clock = manual.clock();
        let mut sleep = task::spawn(clock.sleep(SECOND));
        assert_pending!(sleep.poll());

        manual.advance(SECOND - Duration::from_millis(1));
        assert_pending!(sleep.poll());
        manual.advance(Duration::from_millis(1));

        assert!(sleep.is_woken());
        assert_ready!(sleep.poll());
        assert_eq!(clock.unix_ms(), 2_000);
    }

    #[test]
    fn the_clock_stops_at_each_deadline_on_its_way() {
        let manual = Clock::manual(0);
        let clock = manual.clock();
        let mut late = task::spawn(clock.sleep(2 * SECOND));
        let mut early = task::spawn(clock.sleep(SECOND));
        assert_pending!(late.poll());
        assert_pending!(early.poll());

        assert_eq!(manual.step(5 * SECOND), Some(4 * SECOND));

        assert!(early.is_woken() && !late.is_woken());
        assert_eq!(clock.now(), Instant::START + SECOND);
    }

    #[test]
    fn a_dropped_sleeper_is_forgotten() {
        let manual = Clock::manual(0);
        let mut sleep = task::spawn(manual.clock().sleep(SECOND));
        assert_pending!(sleep.poll());

        drop(sleep);

        assert_eq!(manual.next_deadline(), None);
    }

    #[test]
    fn an_endless_sleep_is_possible() {
        let manual = Clock::manual(0);
        let mut sleep = task::spawn(manual.clock().sleep(Duration::MAX));

        assert_pending!(sleep.poll());
    }
}
