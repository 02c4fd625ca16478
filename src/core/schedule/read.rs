//! What an author reads: one-shots, jobs, histories.

use bytes::Bytes;

use super::error::read_fault;
use super::job::{Job, due_at};
use super::{ScheduleError, Schedules, StoredFault, event_id_of, limits, name_of};
use crate::store::{FireKind, FireRow, HistoryResult, HistoryRow, ScheduleKind};

/// A one-shot that is pending, or waits to be tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledEvent {
    /// Its id.
    pub id: String,
    /// The action.
    pub action: String,
    /// Its encoded arguments; may be empty.
    pub args: Bytes,
    /// When it is due, in milliseconds since the Unix epoch.
    pub run_at: i64,
}

/// A recurring job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronJob {
    /// Its name.
    pub name: String,
    /// When it is due.
    pub cadence: JobCadence,
    /// The action.
    pub action: String,
    /// Its encoded arguments; may be empty.
    pub args: Bytes,
    /// Its next deadline, in milliseconds since the Unix epoch.
    pub next_run_at: i64,
    /// When it last began to run, in milliseconds since the Unix epoch.
    pub last_run_at: Option<i64>,
    /// How many fires its history keeps.
    pub max_history: u32,
}

/// When a recurring job is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobCadence {
    /// By the clock on the wall.
    Cron {
        /// Five fields.
        expression: String,
        /// A zone of the IANA database.
        timezone: String,
    },
    /// After each interval.
    Every {
        /// Its length in milliseconds.
        interval_ms: i64,
    },
}

/// One attempt of a recurring job.
#[derive(Clone, Debug, PartialEq)]
pub struct CronFire {
    /// The action.
    pub action: String,
    /// The deadline, in milliseconds since the Unix epoch.
    pub scheduled_at: i64,
    /// When it began, in milliseconds since the Unix epoch.
    pub fired_at: i64,
    /// When it ended, in milliseconds since the Unix epoch; `None` while it runs.
    pub finished_at: Option<i64>,
    /// Which attempt for its deadline it is, from 1 on.
    pub attempt: u32,
    /// How it ended.
    pub result: FireResult,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum FireResult {
    /// It runs.
    Running,
    /// It succeeded.
    Ok,
    /// It failed.
    Error(StoredFault),
    /// Another one ran still.
    Skipped,
}

impl Schedules {
    /// A one-shot that is pending, or waits to be tried again.
    ///
    /// # Errors
    ///
    /// `schedule/invalid_schedule_row`.
    pub fn get(&self, id: &str) -> Result<Option<ScheduledEvent>, ScheduleError> {
        self.readable()?;
        let pending = self.jobs.get(id).and_then(shot);
        Ok(pending.or_else(|| self.fires.get(id).and_then(waiting_shot)))
    }

    /// The one-shots that are pending or wait to be tried again, by deadline, then id.
    ///
    /// # Errors
    ///
    /// `schedule/invalid_schedule_row`.
    pub fn list(&self) -> Result<Vec<ScheduledEvent>, ScheduleError> {
        self.readable()?;
        let pending = self.jobs.values().filter_map(shot);
        let waiting = self.fires.values().filter_map(waiting_shot);
        let mut all: Vec<_> = pending.chain(waiting).collect();
        all.sort_by(|a, b| (a.run_at, &a.id).cmp(&(b.run_at, &b.id)));
        Ok(all)
    }

    /// The job of a name.
    ///
    /// # Errors
    ///
    /// `schedule/invalid_name`.
    pub fn cron_get(&self, name: &str) -> Result<Option<CronJob>, ScheduleError> {
        self.readable()?;
        limits::check_name(name)?;
        Ok(self.jobs.get(&event_id_of(name)).and_then(recurring))
    }

    /// The jobs, by deadline, then name.
    ///
    /// # Errors
    ///
    /// `schedule/invalid_schedule_row`.
    pub fn cron_list(&self) -> Result<Vec<CronJob>, ScheduleError> {
        self.readable()?;
        let mut all: Vec<_> = self.jobs.values().filter_map(recurring).collect();
        all.sort_by(|a, b| (a.next_run_at, &a.name).cmp(&(b.next_run_at, &b.name)));
        Ok(all)
    }

    /// What to ask the store for a job's history: the event id, and how much of it. What
    /// it answers is read by [`history_of`].
    ///
    /// # Errors
    ///
    /// `schedule/invalid_name`, `schedule/invalid_max_history` for a limit that is not
    /// within 1 to 1,000.
    pub fn cron_history(
        &self,
        name: &str,
        limit: Option<i64>,
    ) -> Result<(String, u32), ScheduleError> {
        self.readable()?;
        limits::check_name(name)?;
        Ok((event_id_of(name), limits::check_history_limit(limit)?))
    }
}

/// A job's history as the store has it.
pub fn history_of(rows: Vec<HistoryRow>) -> Vec<CronFire> {
    let fire = |row: HistoryRow| CronFire {
        action: row.action,
        scheduled_at: row.scheduled_at,
        fired_at: row.fired_at,
        finished_at: row.finished_at,
        attempt: row.attempt,
        result: match row.result {
            HistoryResult::Running => FireResult::Running,
            HistoryResult::Ok => FireResult::Ok,
            HistoryResult::Error(error) => FireResult::Error(read_fault(error)),
            HistoryResult::Skipped => FireResult::Skipped,
        },
    };
    rows.into_iter().map(fire).collect()
}

fn shot(job: &Job) -> Option<ScheduledEvent> {
    (job.kind() == FireKind::At).then(|| ScheduledEvent {
        id: job.row.event_id.clone(),
        action: job.row.action.clone(),
        args: job.row.args.clone().unwrap_or_default(),
        run_at: job.row.trigger_at,
    })
}

fn waiting_shot(fire: &FireRow) -> Option<ScheduledEvent> {
    let run_at = due_at(fire).filter(|_| fire.kind == FireKind::At)?;
    Some(ScheduledEvent {
        id: fire.id.clone(),
        action: fire.action.clone(),
        args: fire.args.clone().unwrap_or_default(),
        run_at,
    })
}

fn recurring(job: &Job) -> Option<CronJob> {
    let cadence = match &job.row.kind {
        ScheduleKind::At => return None,
        ScheduleKind::Cron { expression, timezone } => {
            JobCadence::Cron { expression: expression.clone(), timezone: timezone.clone() }
        }
        ScheduleKind::Every { interval_ms } => JobCadence::Every { interval_ms: *interval_ms },
    };
    Some(CronJob {
        name: name_of(&job.row.event_id)?.to_owned(),
        cadence,
        action: job.row.action.clone(),
        args: job.row.args.clone().unwrap_or_default(),
        next_run_at: job.row.trigger_at,
        last_run_at: job.row.last_started_at,
        max_history: job.row.max_history,
    })
}
