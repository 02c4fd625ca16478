//! How often and after which pauses a message of a name is handed out.

use std::num::NonZeroU32;

use crate::time::Duration;

/// What becomes of a message that was not completed. By default it waits again at
/// once, as often as need be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePolicy {
    /// After how many deliveries it is given up; `None` for never.
    pub max_deliveries: Option<NonZeroU32>,
    /// How long it waits after each delivery; `None` for not at all.
    pub backoff: Option<Backoff>,
}

/// Pauses that double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The pause after the first delivery.
    pub initial: Duration,
    /// The longest pause.
    pub max: Duration,
}

impl QueuePolicy {
    /// The pause after so many deliveries, in milliseconds.
    pub(super) fn pause_ms(self, deliveries: u32) -> i64 {
        let Some(Backoff { initial, max }) = self.backoff else { return 0 };
        let doubled = 2_u32.saturating_pow(deliveries.saturating_sub(1));
        let pause = initial.saturating_mul(doubled).min(max);
        i64::try_from(pause.as_millis()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_the_first_to_the_longest() {
        let second = Duration::from_secs(1);
        let backoff = Some(Backoff { initial: second, max: 5 * second });
        let policy = QueuePolicy { max_deliveries: None, backoff };

        let pauses: Vec<_> = [1, 2, 3, 4, u32::MAX].map(|n| policy.pause_ms(n)).into();

        assert_eq!(pauses, [1_000, 2_000, 4_000, 5_000, 5_000]);
        assert_eq!(QueuePolicy::default().pause_ms(7), 0);
    }
}
