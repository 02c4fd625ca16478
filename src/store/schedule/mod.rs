//! What an actor is to do later, as rows: pending schedules, the fires of those that
//! are taken and not finished, and the history of recurring ones.
//!
//! # Invariants
//!
//! 1. Whoever writes holds all of it but the history in memory, so nothing but the
//!    history is read after the start.
//! 2. A row of the history is finished once: what finds it finished changes nothing.
//! 3. A schedule's history is ordered by the time of the fire, then by number; the
//!    numbers of an actor grow.

mod read;
mod write;

use bytes::Bytes;

pub(super) use self::read::{history, load};
pub(super) use self::write::apply;

/// What makes a schedule due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleKind {
    /// A moment, once.
    At,
    /// A cron expression.
    Cron {
        /// Five fields.
        expression: String,
        /// A zone of the IANA database.
        timezone: String,
    },
    /// An interval.
    Every {
        /// Its length in milliseconds.
        interval_ms: i64,
    },
}

/// How often a fire that failed is tried again, and how soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryRow {
    /// How often it is tried in all.
    pub max_attempts: u32,
    /// How long it waits after the first failure, in milliseconds; twice as long
    /// after each further one.
    pub initial_ms: i64,
    /// The longest wait, in milliseconds.
    pub max_ms: i64,
}

/// A pending schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleRow {
    /// What tells it from the actor's others.
    pub event_id: String,
    /// When it is due, in milliseconds since the Unix epoch.
    pub trigger_at: i64,
    /// The action.
    pub action: String,
    /// Its encoded arguments; `None` for none.
    pub args: Option<Bytes>,
    /// What makes it due.
    pub kind: ScheduleKind,
    /// When a recurring one last began to run, in milliseconds since the Unix epoch.
    pub last_started_at: Option<i64>,
    /// How many fires its history keeps.
    pub max_history: u32,
    /// How a fire of it is retried, if it is.
    pub retry: Option<RetryRow>,
    /// The key that makes a one-shot idempotent.
    pub key: Option<String>,
}

/// A schedule that was taken and is not finished, or never will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FireRow {
    /// What tells it from the actor's others; of a one-shot its event id.
    pub id: String,
    /// The event id of its schedule.
    pub schedule_id: String,
    /// Whether it is of a one-shot, a cron job or an interval.
    pub kind: FireKind,
    /// The action.
    pub action: String,
    /// Its encoded arguments; `None` for none.
    pub args: Option<Bytes>,
    /// The deadline that it is for, in milliseconds since the Unix epoch.
    pub scheduled_at: i64,
    /// When its last attempt began, in milliseconds since the Unix epoch.
    pub fired_at: i64,
    /// How many attempts have begun.
    pub attempt: u32,
    /// How it is retried, if it is.
    pub retry: Option<RetryRow>,
    /// The key of its one-shot.
    pub key: Option<String>,
    /// Where it stands.
    pub state: FireState,
}

impl FireRow {
    /// Whether it is tried again if its last attempt does not succeed.
    pub fn has_attempts_left(&self) -> bool {
        self.retry.is_some_and(|retry| self.attempt < retry.max_attempts)
    }
}

/// What kind of schedule a fire is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FireKind {
    /// A moment, once.
    At,
    /// A cron expression.
    Cron,
    /// An interval.
    Every,
}

/// Where a fire stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FireState {
    /// An attempt runs; after a start: it never ended.
    Running,
    /// The next attempt waits for this moment, in milliseconds since the Unix epoch.
    Waiting {
        /// When it is due.
        due_at: i64,
    },
    /// It is given up.
    Dead {
        /// When, in milliseconds since the Unix epoch.
        died_at: i64,
        /// Why the last attempt failed.
        error: FaultRow,
    },
}

/// An error as it is stored: what a client may know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRow {
    /// The part of the system that the fault belongs to.
    pub group: String,
    /// The fault within the group.
    pub code: String,
    /// Text for people.
    pub message: String,
    /// Named values for programs, encoded.
    pub metadata: Option<Bytes>,
}

/// One attempt of a recurring schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRow {
    /// The number within the actor.
    pub id: i64,
    /// The event id of the schedule.
    pub schedule_id: String,
    /// The action.
    pub action: String,
    /// The deadline that it was for, in milliseconds since the Unix epoch.
    pub scheduled_at: i64,
    /// When it began, in milliseconds since the Unix epoch.
    pub fired_at: i64,
    /// When it ended, in milliseconds since the Unix epoch; `None` while it runs.
    pub finished_at: Option<i64>,
    /// Which attempt for its deadline it is, from 1 on.
    pub attempt: u32,
    /// How it ended.
    pub result: HistoryResult,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryResult {
    /// It runs.
    Running,
    /// It succeeded.
    Ok,
    /// It failed.
    Error(FaultRow),
    /// Another one ran still.
    Skipped,
}

/// One change of an actor's schedules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleOp {
    /// Adds a pending schedule, or replaces the one of its event id.
    Put(Box<ScheduleRow>),
    /// Moves a recurring schedule to its next deadline.
    Move {
        /// Which.
        event_id: String,
        /// The next deadline.
        trigger_at: i64,
        /// When it began to run, if it did.
        started_at: Option<i64>,
    },
    /// Removes a pending schedule.
    Delete(String),
    /// Adds a fire, or replaces the one of its id.
    PutFire(Box<FireRow>),
    /// Removes a fire.
    DeleteFire(String),
    /// Adds to the history.
    AddHistory(Box<HistoryRow>),
    /// Notes how an attempt ended, unless that is known (invariant 2).
    FinishHistory {
        /// Which.
        id: i64,
        /// When, in milliseconds since the Unix epoch.
        finished_at: i64,
        /// Why it failed, if it did.
        error: Option<FaultRow>,
    },
    /// Keeps the newest rows of one schedule only.
    PruneHistory {
        /// Which.
        schedule_id: String,
        /// How many.
        keep: u32,
    },
    /// Keeps the newest rows of the actor only.
    PruneAllHistory {
        /// How many.
        keep: u32,
    },
    /// When the author's `run` is to be active again, in milliseconds since the Unix
    /// epoch.
    PutRunWake(Option<i64>),
}

impl ScheduleOp {
    /// The bytes that it carries.
    pub(super) fn payload(&self) -> usize {
        let args = |args: &Option<Bytes>| args.as_ref().map_or(0, Bytes::len);
        match self {
            Self::Put(row) => row.event_id.len() + row.action.len() + args(&row.args),
            Self::PutFire(row) => row.id.len() + row.action.len() + args(&row.args),
            Self::AddHistory(row) => row.schedule_id.len() + row.action.len(),
            Self::FinishHistory { error, .. } => error.as_ref().map_or(0, FaultRow::weight),
            Self::Move { event_id: id, .. }
            | Self::Delete(id)
            | Self::DeleteFire(id)
            | Self::PruneHistory { schedule_id: id, .. } => id.len(),
            Self::PruneAllHistory { .. } | Self::PutRunWake(_) => 0,
        }
    }
}

impl FaultRow {
    fn weight(&self) -> usize {
        self.message.len() + self.metadata.as_ref().map_or(0, Bytes::len)
    }
}

/// What is stored of an actor's schedules, the history excepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredSchedules {
    /// Those that are pending.
    pub pending: Vec<ScheduleRow>,
    /// Those that are taken and not finished.
    pub fires: Vec<FireRow>,
    /// The rows of the history that are not finished.
    pub running: Vec<i64>,
    /// The highest number of the history; 0 for none.
    pub last_history: i64,
    /// When the author's `run` is to be active again.
    pub run_wake_at: Option<i64>,
    /// A row that breaks the rules of its kind, and which.
    pub invalid: Option<InvalidRow>,
}

/// A row that breaks the rules of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidRow {
    /// Its id.
    pub schedule_id: String,
    /// Which rule.
    pub reason: String,
}
