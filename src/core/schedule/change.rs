//! What an author asks for: one-shots made and cancelled, jobs set and deleted.

use bytes::Bytes;

use super::cron::{CronTimes, zone_exists};
use super::job::Job;
use super::limits::{self, DEFAULT_TIMEZONE, Retry};
use super::{Changed, Due, ScheduleError, Schedules, event_id_of, op, stored_args};
use crate::ids::IdSource;
use crate::store::{FireKind, RetryRow, ScheduleKind, ScheduleOp, ScheduleRow};

/// A one-shot to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneShot {
    /// When, in milliseconds since the Unix epoch; what has passed is due at once.
    pub trigger_at: i64,
    /// The action.
    pub action: String,
    /// Its encoded arguments; may be empty.
    pub args: Bytes,
    /// How it is tried again when it fails; without, it runs at most once.
    pub retry: Option<Retry>,
    /// Makes it idempotent: while one of this key is not finished, it is that one.
    /// 1 to 128 bytes.
    pub key: Option<String>,
}

/// A cron job to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronSpec {
    /// 1 to 128 bytes.
    pub name: String,
    /// Five fields.
    pub expression: String,
    /// A zone of the IANA database; `UTC` if absent.
    pub timezone: Option<String>,
    /// The action.
    pub action: String,
    /// Its encoded arguments; may be empty.
    pub args: Bytes,
    /// How many fires its history keeps, 0 to 1,000; 100 if absent.
    pub max_history: Option<i64>,
    /// How a fire is tried again when it fails; without, it is tried once.
    pub retry: Option<Retry>,
}

/// An interval to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EverySpec {
    /// 1 to 128 bytes.
    pub name: String,
    /// 5,000 at least.
    pub interval_ms: i64,
    /// The action.
    pub action: String,
    /// Its encoded arguments; may be empty.
    pub args: Bytes,
    /// How many fires its history keeps, 0 to 1,000; 100 if absent.
    pub max_history: Option<i64>,
    /// How a fire is tried again when it fails; without, it is tried once.
    pub retry: Option<Retry>,
}

impl Schedules {
    /// Makes a one-shot, and returns its id; or that of the one that has its key and is
    /// not finished, which stays as it is.
    ///
    /// # Errors
    ///
    /// `schedule/invalid_key`, `invalid_retry` or `max_schedules_exceeded`.
    pub fn at(&mut self, shot: OneShot, ids: &IdSource) -> Result<Changed<String>, ScheduleError> {
        self.at_as(shot, &ids.event_id())
    }

    /// The same, under this id.
    pub(super) fn at_as(
        &mut self,
        shot: OneShot,
        id: &str,
    ) -> Result<Changed<String>, ScheduleError> {
        self.readable()?;
        limits::check_key(shot.key.as_deref())?;
        let retry = shot.retry.map(Retry::check).transpose()?;
        if let Some(id) = shot.key.as_ref().and_then(|key| self.keys.get(key)) {
            return Ok((id.clone(), Vec::new()));
        }
        self.check_capacity()?;
        let row = ScheduleRow {
            event_id: id.to_owned(),
            trigger_at: limits::moment(shot.trigger_at),
            action: shot.action,
            args: stored_args(shot.args),
            kind: ScheduleKind::At,
            last_started_at: None,
            max_history: 0,
            retry,
            key: shot.key,
        };
        let id = row.event_id.clone();
        self.insert_job(Job::once(row.clone()));
        self.revision += 1;
        Ok((id, vec![op(ScheduleOp::Put(Box::new(row)))]))
    }

    /// Cancels a one-shot that is pending or waits to be tried again; says whether
    /// there was one.
    ///
    /// # Errors
    ///
    /// `schedule/invalid_schedule_row`.
    pub fn cancel(&mut self, id: &str) -> Result<Changed<bool>, ScheduleError> {
        self.readable()?;
        let is_shot = |job: &Job| job.kind() == FireKind::At;
        let (key, ops) = if self.jobs.get(id).is_some_and(is_shot) {
            let job = self.remove_job(id);
            (job.and_then(|job| job.row.key), vec![op(ScheduleOp::Delete(id.to_owned()))])
        } else if self.fires.get(id).is_some_and(|fire| fire.kind == FireKind::At)
            && let Some(fire) = self.remove_waiting(id)
        {
            (fire.key, vec![op(ScheduleOp::DeleteFire(id.to_owned()))])
        } else {
            return Ok((false, Vec::new()));
        };
        self.free_key(key.as_ref(), id);
        self.revision += 1;
        Ok((true, ops))
    }

    /// Sets a cron job, in place of the one of its name.
    ///
    /// # Errors
    ///
    /// In this order: `schedule/invalid_name`, `invalid_timezone`,
    /// `invalid_cron_expression`, `invalid_max_history`, `invalid_retry`,
    /// `max_schedules_exceeded`.
    pub fn cron_set(&mut self, spec: CronSpec, now: i64) -> Result<Changed<()>, ScheduleError> {
        self.readable()?;
        limits::check_name(&spec.name)?;
        let timezone = spec.timezone.unwrap_or_else(|| DEFAULT_TIMEZONE.to_owned());
        if !zone_exists(&timezone) {
            return Err(ScheduleError::InvalidTimezone { timezone });
        }
        let unreadable = |reason| ScheduleError::InvalidCronExpression { reason };
        let times = CronTimes::parse(&spec.expression, &timezone)
            .map_err(|reason| unreadable(reason.unwrap_or_default()))?;
        let never = || unreadable("no such date ever comes".to_owned());
        let first = times.next(now).ok_or_else(never)?;
        let max_history = limits::check_max_history(spec.max_history)?;
        let retry = spec.retry.map(Retry::check).transpose()?;
        let kind = ScheduleKind::Cron { expression: spec.expression, timezone };
        let row = self.successor(&spec.name, kind, first, max_history, retry);
        let row = ScheduleRow { action: spec.action, args: stored_args(spec.args), ..row };
        self.upsert(row, Some(times))
    }

    /// Sets an interval, in place of the job of its name. The first deadline is one
    /// interval from `now`.
    ///
    /// # Errors
    ///
    /// In this order: `schedule/invalid_name`, `invalid_interval`,
    /// `invalid_max_history`, `invalid_retry`, `max_schedules_exceeded`.
    pub fn cron_every(&mut self, spec: EverySpec, now: i64) -> Result<Changed<()>, ScheduleError> {
        self.readable()?;
        limits::check_name(&spec.name)?;
        limits::check_interval(spec.interval_ms)?;
        let max_history = limits::check_max_history(spec.max_history)?;
        let retry = spec.retry.map(Retry::check).transpose()?;
        let first = limits::moment(now.saturating_add(spec.interval_ms));
        let kind = ScheduleKind::Every { interval_ms: spec.interval_ms };
        let row = self.successor(&spec.name, kind, first, max_history, retry);
        let row = ScheduleRow { action: spec.action, args: stored_args(spec.args), ..row };
        self.upsert(row, None)
    }

    /// Deletes a job, what is left of its last fire, and its history; says whether
    /// there was such a job. An attempt that runs goes on and is the last.
    ///
    /// # Errors
    ///
    /// `schedule/invalid_name`.
    pub fn cron_delete(&mut self, name: &str) -> Result<Changed<bool>, ScheduleError> {
        self.readable()?;
        limits::check_name(name)?;
        let event_id = event_id_of(name);
        let mut ops = self.drop_job(&event_id);
        if ops.is_empty() {
            return Ok((false, ops));
        }
        ops.push(op(ScheduleOp::PruneHistory { schedule_id: event_id, keep: 0 }));
        self.revision += 1;
        Ok((true, ops))
    }

    /// Takes out a recurring job with its fires that are not dead.
    pub(super) fn drop_job(&mut self, event_id: &str) -> Vec<crate::store::RowOp> {
        if self.remove_job(event_id).is_none() {
            return Vec::new();
        }
        let mut ops = vec![op(ScheduleOp::Delete(event_id.to_owned()))];
        let waiting = self.fires.values().filter(|fire| fire.schedule_id == event_id);
        let alive: Vec<_> = waiting
            .filter(|fire| !super::dead::is_dead(fire))
            .map(|fire| fire.id.clone())
            .collect();
        for id in alive {
            // One that runs finds no fire when it ends, and so is not tried again.
            if self.remove_waiting(&id).is_none() {
                self.fires.remove(&id);
            }
            ops.push(op(ScheduleOp::DeleteFire(id)));
        }
        ops
    }

    fn check_capacity(&self) -> Result<(), ScheduleError> {
        if self.pending() >= self.maximum {
            return Err(ScheduleError::MaxSchedulesExceeded { maximum: self.maximum });
        }
        Ok(())
    }

    /// The row that replaces the job of a name: its deadline stays while its cadence
    /// does, and when it last ran stays in any case.
    fn successor(
        &self,
        name: &str,
        kind: ScheduleKind,
        first: i64,
        max_history: u32,
        retry: Option<RetryRow>,
    ) -> ScheduleRow {
        let event_id = event_id_of(name);
        let before = self.jobs.get(&event_id).map(|job| &job.row);
        let same = before.filter(|row| row.kind == kind);
        ScheduleRow {
            trigger_at: same.map_or(first, |row| row.trigger_at),
            last_started_at: before.and_then(|row| row.last_started_at),
            action: String::new(),
            args: None,
            kind,
            max_history,
            retry,
            key: None,
            event_id,
        }
    }

    fn upsert(
        &mut self,
        row: ScheduleRow,
        times: Option<CronTimes>,
    ) -> Result<Changed<()>, ScheduleError> {
        let mut ops = vec![op(ScheduleOp::Put(Box::new(row.clone())))];
        match self.jobs.get(&row.event_id) {
            Some(before) => {
                if row.max_history < before.row.max_history {
                    let schedule_id = row.event_id.clone();
                    ops.push(op(ScheduleOp::PruneHistory { schedule_id, keep: row.max_history }));
                }
                let at = before.row.trigger_at;
                self.due.remove(&(at, Due::Job(row.event_id.clone())));
            }
            None => {
                self.check_capacity()?;
                // What a job of this name has left, whose action was unknown.
                let schedule_id = row.event_id.clone();
                ops.push(op(ScheduleOp::PruneHistory { schedule_id, keep: row.max_history }));
            }
        }
        self.insert_job(Job::recurring(row, times));
        self.revision += 1;
        Ok(((), ops))
    }
}
