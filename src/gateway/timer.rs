//! The clock as hyper wants it (invariant 4 of the gateway).

use std::pin::Pin;
use std::time::Instant as Anchor;

use hyper::rt;

use crate::time::{Clock, Duration, Instant, Sleep};

/// A [`Clock`] that hyper can wait by.
///
/// hyper knows moments of the standard library alone. The beginning of the clock is any
/// such moment, and all others are told from it: only their distances mean anything.
#[derive(Clone, Debug)]
pub(super) struct ClockTimer {
    clock: Clock,
    start: Anchor,
}

impl ClockTimer {
    #[expect(clippy::disallowed_methods, reason = "any moment will do, and none is compared")]
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, start: Anchor::now() }
    }
}

impl rt::Timer for ClockTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(self.clock.sleep(duration))
    }

    fn sleep_until(&self, deadline: Anchor) -> Pin<Box<dyn rt::Sleep>> {
        let since = deadline.saturating_duration_since(self.start);
        Box::pin(self.clock.sleep_until(Instant::START + since))
    }

    fn now(&self) -> Anchor {
        self.start + self.clock.now().since(Instant::START)
    }
}

impl rt::Sleep for Sleep {}

#[cfg(test)]
mod tests {
    use hyper::rt::Timer as _;
    use tokio_test::{assert_pending, assert_ready, task};

    use super::*;

    #[test]
    fn hyper_waits_by_the_clock() {
        const SECOND: Duration = Duration::from_secs(1);
        let manual = Clock::manual(0);
        manual.advance(SECOND);
        let timer = ClockTimer::new(manual.clock());
        let mut sleep = task::spawn(timer.sleep_until(timer.now() + SECOND));
        assert_pending!(sleep.poll());

        manual.advance(SECOND);

        assert!(sleep.is_woken());
        assert_ready!(sleep.poll());
    }
}
