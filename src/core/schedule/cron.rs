//! When a cron job is due next, in a time zone. The only place that knows calendars.
//!
//! The expression is searched on the wall clock of the zone, where every day has all
//! its minutes; what it finds there is then placed in time. So the rules about
//! changes of the clock are here and not in the crate that reads expressions:
//!
//! # Invariants
//!
//! 1. A wall time that does not exist is skipped, one that occurs twice is the first
//!    of the two.
//! 2. The next moment lies after the one that was asked for.
//! 3. Every question is answered within a bounded number of steps.

use std::str::FromStr;

use chrono::{DateTime, LocalResult, TimeZone, Utc};
use chrono_tz::Tz;
use croner::Cron;

/// How many fields an expression has: minute, hour, day of month, month, day of week.
const FIELDS: usize = 5;

/// The longest expression, in bytes: one that lists every value of every field is
/// shorter.
const MAX_LEN: usize = 512;

/// How many wall times are skipped at most: three days of minutes. No change of a
/// clock was ever longer than a day.
const MAX_SKIPPED: usize = 3 * 24 * 60;

/// A cron expression in a time zone.
#[derive(Clone, Debug)]
pub struct CronTimes {
    pattern: Box<Cron>,
    zone: Tz,
}

/// Whether `name` is the name of a zone of the IANA database, written as there.
pub fn zone_exists(name: &str) -> bool {
    Tz::from_str(name).is_ok()
}

impl CronTimes {
    /// Reads an expression of five fields, and the name of a zone.
    ///
    /// # Errors
    ///
    /// What is wrong with the expression; `None` when it is the zone.
    pub fn parse(expression: &str, zone: &str) -> Result<Self, Option<String>> {
        let zone = Tz::from_str(zone).map_err(|_| None)?;
        if expression.len() > MAX_LEN {
            return Err(Some(format!("{} bytes exceed the limit of {MAX_LEN}", expression.len())));
        }
        let fields = expression.split_whitespace().count();
        if fields != FIELDS {
            return Err(Some(format!("expected {FIELDS} fields and found {fields}")));
        }
        let pattern = Cron::from_str(expression).map_err(|error| Some(error.to_string()))?;
        Ok(Self { pattern: Box::new(pattern), zone })
    }

    /// The first moment after `after_ms` at which the job is due, both in milliseconds
    /// since the Unix epoch. `None` when there is none before the year 5000.
    pub fn next(&self, after_ms: i64) -> Option<i64> {
        let after = DateTime::from_timestamp_millis(after_ms)?;
        // The wall clock as if it were one that never changes.
        let mut wall = after.with_timezone(&self.zone).naive_local().and_utc();
        for _ in 0..MAX_SKIPPED {
            wall = self.pattern.find_next_occurrence::<DateTime<Utc>>(&wall, false).ok()?;
            let moment = match self.zone.from_local_datetime(&wall.naive_utc()) {
                LocalResult::Single(moment) | LocalResult::Ambiguous(moment, _) => moment,
                LocalResult::None => continue,
            };
            // The second time round, what the wall clock shows next has been already.
            if moment.timestamp_millis() > after_ms {
                return Some(moment.timestamp_millis());
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "cron/tests.rs"]
mod tests;
