//! A pending schedule, and when it is due next.

use super::cron::CronTimes;
use super::limits::{self, MAX_MOMENT_MS};
use crate::store::{FireKind, FireRow, FireState, InvalidRow, ScheduleKind, ScheduleRow};

/// A pending schedule.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) row: ScheduleRow,
    /// When a cron job is due; `None` for any other.
    times: Option<CronTimes>,
}

impl Job {
    /// A schedule as it is stored.
    ///
    /// # Errors
    ///
    /// Which rule of its kind the row breaks.
    pub(super) fn stored(row: ScheduleRow) -> Result<Self, InvalidRow> {
        let broken = match &row.kind {
            ScheduleKind::At if row.max_history != 0 => "a one-shot has a history".to_owned(),
            ScheduleKind::Every { interval_ms } if *interval_ms < limits::MIN_INTERVAL_MS => {
                format!("an interval of {interval_ms} ms is too short")
            }
            _ if row.max_history > limits::MAX_HISTORY => {
                format!("a history of {} is too long", row.max_history)
            }
            ScheduleKind::At | ScheduleKind::Every { .. } => return Ok(Self { row, times: None }),
            ScheduleKind::Cron { expression, timezone } => {
                match CronTimes::parse(expression, timezone) {
                    Ok(times) => return Ok(Self { row, times: Some(times) }),
                    Err(reason) => {
                        reason.unwrap_or_else(|| format!("no such timezone: {timezone:?}"))
                    }
                }
            }
        };
        Err(InvalidRow { schedule_id: row.event_id, reason: broken })
    }

    /// A one-shot.
    pub(super) fn once(row: ScheduleRow) -> Self {
        Self { row, times: None }
    }

    /// A recurring one that has been checked; `times` of a cron job.
    pub(super) fn recurring(row: ScheduleRow, times: Option<CronTimes>) -> Self {
        Self { row, times }
    }

    pub(super) fn kind(&self) -> FireKind {
        match self.row.kind {
            ScheduleKind::At => FireKind::At,
            ScheduleKind::Cron { .. } => FireKind::Cron,
            ScheduleKind::Every { .. } => FireKind::Every,
        }
    }

    /// The deadline after the one that is due at `now`: intervals are anchored to it,
    /// and what was missed meanwhile counts as one.
    pub(super) fn following(&self, now: i64) -> i64 {
        let next = match (&self.row.kind, &self.times) {
            (ScheduleKind::Every { interval_ms }, _) => {
                let trigger = self.row.trigger_at;
                let missed = now.saturating_sub(trigger).max(0) / interval_ms;
                Some(trigger.saturating_add(interval_ms.saturating_mul(missed.saturating_add(1))))
            }
            (_, Some(times)) => times.next(now),
            _ => None,
        };
        next.map_or(MAX_MOMENT_MS, limits::moment)
    }
}

/// When a fire is tried again, if it is.
pub(super) fn due_at(fire: &FireRow) -> Option<i64> {
    match fire.state {
        FireState::Waiting { due_at } => Some(due_at),
        FireState::Running | FireState::Dead { .. } => None,
    }
}
