//! What may be asked for: names, times, intervals, histories, retries.

use super::error::ScheduleError;
use crate::store::RetryRow;

/// The longest name of a job and the longest key of a one-shot, in UTF-8 bytes.
pub const MAX_NAME_BYTES: usize = 128;
/// The shortest interval, in milliseconds.
pub const MIN_INTERVAL_MS: i64 = 5_000;
/// How many fires the history of a job keeps, unless said otherwise.
pub const DEFAULT_MAX_HISTORY: i64 = 100;
/// How many fires the history of a job keeps at most.
pub const MAX_HISTORY: u32 = 1_000;
/// How much of a history is read, unless said otherwise.
pub const DEFAULT_HISTORY_LIMIT: i64 = 20;
/// The zone of a cron job, unless said otherwise.
pub const DEFAULT_TIMEZONE: &str = "UTC";
/// The last moment that JavaScript can name, in milliseconds since the Unix epoch;
/// the first one is as far before it. What is due then never comes.
pub const MAX_MOMENT_MS: i64 = 8_640_000_000_000_000;
/// How often a fire is tried at most.
pub const MAX_ATTEMPTS: u32 = 1_000;
/// How long a fire that failed waits for its second attempt, unless said otherwise,
/// in milliseconds.
pub const DEFAULT_BACKOFF_INITIAL_MS: i64 = 1_000;
/// The longest wait for a further attempt, unless said otherwise, in milliseconds.
pub const DEFAULT_BACKOFF_MAX_MS: i64 = 60_000;

/// How a fire that fails is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How often it is tried in all: 1 to [`MAX_ATTEMPTS`].
    pub max_attempts: i64,
    /// How long it waits after the first failure, in milliseconds, and twice as long
    /// after each further one; [`DEFAULT_BACKOFF_INITIAL_MS`] if absent.
    pub initial_ms: Option<i64>,
    /// The longest wait, in milliseconds; [`DEFAULT_BACKOFF_MAX_MS`], or `initial_ms`
    /// if that is longer, if absent.
    pub max_ms: Option<i64>,
}

impl Retry {
    pub(super) fn check(self) -> Result<RetryRow, ScheduleError> {
        let refused = |reason: String| Err(ScheduleError::InvalidRetry { reason });
        let max_attempts = match u32::try_from(self.max_attempts) {
            Ok(attempts @ 1..=MAX_ATTEMPTS) => attempts,
            _ => {
                let attempts = self.max_attempts;
                return refused(format!("{attempts} attempts are not within 1..={MAX_ATTEMPTS}"));
            }
        };
        let initial_ms = self.initial_ms.unwrap_or(DEFAULT_BACKOFF_INITIAL_MS);
        let max_ms = self.max_ms.unwrap_or(DEFAULT_BACKOFF_MAX_MS.max(initial_ms));
        if !(0..=MAX_MOMENT_MS).contains(&initial_ms) {
            return refused(format!("a first backoff of {initial_ms} ms is out of range"));
        }
        if !(initial_ms..=MAX_MOMENT_MS).contains(&max_ms) {
            return refused(format!(
                "a longest backoff of {max_ms} ms is not at least the first of {initial_ms} ms"
            ));
        }
        Ok(RetryRow { max_attempts, initial_ms, max_ms })
    }
}

/// When the next attempt is due after the given number of attempts, the last of which
/// failed at `now`.
pub(super) fn backoff(retry: &RetryRow, attempts: u32, now: i64) -> i64 {
    let factor = 1_i64.checked_shl(attempts.saturating_sub(1)).filter(|factor| *factor > 0);
    let wait = factor.and_then(|factor| retry.initial_ms.checked_mul(factor));
    moment(now.saturating_add(wait.unwrap_or(i64::MAX).min(retry.max_ms)))
}

/// A moment that is `delay_ms` from `now`, in milliseconds since the Unix epoch. What is
/// less than a millisecond is dropped; a negative delay is none.
///
/// # Errors
///
/// `schedule/invalid_time` for what is not a finite number.
pub fn after(now: i64, delay_ms: f64) -> Result<i64, ScheduleError> {
    let delay = finite(delay_ms)?.max(0);
    Ok(moment(now.saturating_add(delay)))
}

/// A moment in milliseconds since the Unix epoch. What is less than a millisecond is
/// dropped.
///
/// # Errors
///
/// `schedule/invalid_time` for what is not a finite number.
pub fn at(moment_ms: f64) -> Result<i64, ScheduleError> {
    finite(moment_ms).map(moment)
}

/// The nearest moment that JavaScript can name.
pub(super) fn moment(ms: i64) -> i64 {
    ms.clamp(-MAX_MOMENT_MS, MAX_MOMENT_MS)
}

fn finite(value: f64) -> Result<i64, ScheduleError> {
    if !value.is_finite() {
        return Err(ScheduleError::InvalidTime { value: value.to_string() });
    }
    // Saturates.
    Ok(value as i64)
}

pub(super) fn check_name(name: &str) -> Result<(), ScheduleError> {
    short(name).map_err(|reason| ScheduleError::InvalidName { reason })
}

pub(super) fn check_key(key: Option<&str>) -> Result<(), ScheduleError> {
    let Some(key) = key else { return Ok(()) };
    short(key).map_err(|reason| ScheduleError::InvalidKey { reason })
}

fn short(text: &str) -> Result<(), String> {
    match text.len() {
        0 => Err("it is empty".to_owned()),
        1..=MAX_NAME_BYTES => Ok(()),
        len => Err(format!("{len} bytes exceed the limit of {MAX_NAME_BYTES}")),
    }
}

pub(super) fn check_interval(interval_ms: i64) -> Result<(), ScheduleError> {
    if interval_ms < MIN_INTERVAL_MS {
        return Err(ScheduleError::InvalidInterval { interval_ms, minimum_ms: MIN_INTERVAL_MS });
    }
    Ok(())
}

pub(super) fn check_max_history(max_history: Option<i64>) -> Result<u32, ScheduleError> {
    let max_history = max_history.unwrap_or(DEFAULT_MAX_HISTORY);
    match u32::try_from(max_history) {
        Ok(kept @ 0..=MAX_HISTORY) => Ok(kept),
        _ => Err(ScheduleError::InvalidMaxHistory { max_history, maximum: MAX_HISTORY }),
    }
}

pub(super) fn check_history_limit(limit: Option<i64>) -> Result<u32, ScheduleError> {
    let limit = limit.unwrap_or(DEFAULT_HISTORY_LIMIT);
    match u32::try_from(limit) {
        Ok(read @ 1..=MAX_HISTORY) => Ok(read),
        _ => Err(ScheduleError::InvalidMaxHistory { max_history: limit, maximum: MAX_HISTORY }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_000;

    #[test]
    fn a_delay_that_is_no_finite_number_is_refused() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(matches!(after(NOW, value), Err(ScheduleError::InvalidTime { .. })), "{value}");
            assert!(matches!(at(value), Err(ScheduleError::InvalidTime { .. })), "{value}");
        }
    }

    #[test]
    fn a_delay_is_whole_milliseconds_and_never_negative() {
        assert_eq!(after(NOW, 5_000.9), Ok(NOW + 5_000));
        assert_eq!(after(NOW, 0.0), Ok(NOW));
        assert_eq!(after(NOW, -5.0), Ok(NOW));
        assert_eq!(after(NOW, 2_147_483_648.0), Ok(NOW + 2_147_483_648));
        assert_eq!(after(NOW, f64::MAX), Ok(MAX_MOMENT_MS));
    }

    #[test]
    fn a_moment_may_lie_in_the_past() {
        assert_eq!(at(-1.5), Ok(-1));
        assert_eq!(at(f64::MIN), Ok(-MAX_MOMENT_MS));
        assert_eq!(at(1e300), Ok(MAX_MOMENT_MS));
    }

    #[test]
    fn the_wait_doubles_up_to_the_longest() {
        let retry = Retry { max_attempts: 9, initial_ms: Some(100), max_ms: Some(350) };
        let retry = retry.check().unwrap();

        let waits: Vec<_> = (1..5).map(|attempts| backoff(&retry, attempts, NOW) - NOW).collect();

        assert_eq!(waits, [100, 200, 350, 350]);
        assert_eq!(backoff(&retry, u32::MAX, NOW) - NOW, 350);
    }

    #[test]
    fn a_retry_out_of_range_is_refused() {
        let retry = |max_attempts, initial_ms, max_ms| Retry { max_attempts, initial_ms, max_ms };
        for refused in [
            retry(0, None, None),
            retry(1_001, None, None),
            retry(3, Some(-1), None),
            retry(3, Some(10), Some(9)),
            retry(3, Some(i64::MAX), None),
        ] {
            assert!(
                matches!(refused.check(), Err(ScheduleError::InvalidRetry { .. })),
                "{refused:?}"
            );
        }

        let accepted = retry(1_000, Some(90_000), None).check().unwrap();
        assert_eq!((accepted.initial_ms, accepted.max_ms), (90_000, 90_000));
        assert_eq!(retry(1, None, None).check().unwrap().max_ms, DEFAULT_BACKOFF_MAX_MS);
    }

    #[test]
    fn names_have_1_to_128_bytes() {
        assert!(check_name("").is_err());
        assert!(check_name(&"é".repeat(65)).is_err());
        assert!(check_key(Some("")).is_err());

        assert!(check_name(&"é".repeat(64)).is_ok());
        assert!(check_key(None).is_ok());
    }

    #[test]
    fn histories_and_intervals_are_limited_at_their_ends() {
        assert!(check_max_history(Some(-1)).is_err() && check_max_history(Some(1_001)).is_err());
        assert!(check_history_limit(Some(0)).is_err() && check_history_limit(Some(1_001)).is_err());
        assert!(check_interval(4_999).is_err());

        assert_eq!(check_max_history(Some(0)), Ok(0));
        assert_eq!(check_max_history(None), Ok(100));
        assert_eq!(check_history_limit(Some(1_000)), Ok(1_000));
        assert_eq!(check_history_limit(None), Ok(20));
        assert!(check_interval(5_000).is_ok());
    }
}
