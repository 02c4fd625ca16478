//! What an actor has been asked to do later: one-shots, cron jobs, intervals, and the
//! moment at which its `run` is to be active again.
//!
//! All of it is in memory while a generation lives, and each change is returned as
//! the rows to write. No I/O, no clock, no lock: time comes in as an argument, in
//! milliseconds since the Unix epoch.
//!
//! ```text
//! pending ──due──▶ taken ──▶ an attempt runs ──ok──▶ gone
//!                    ▲             │ failed
//!                    └── waiting ◀─┴─▶ dead (given up, or interrupted)
//! ```
//!
//! # Invariants
//!
//! 1. Memory is what the store will hold once the returned rows are written; a
//!    commit of them that fails ends the generation.
//! 2. What is due is taken in one change, recurring and not, by deadline and then id.
//! 3. A one-shot without a retry runs at most once: it is no longer pending before it
//!    runs. One that never ended is found dead by the next start.
//! 4. With a retry, the number of an attempt is stored before it runs, and the fire
//!    is tried until one succeeds or all are used up; then it is dead.
//! 5. Fires of one job never overlap within a generation: a deadline that comes
//!    while a fire is not finished is skipped.
//! 6. `due` holds every pending schedule and every waiting fire, under its deadline.
//! 7. `busy` names the fire of each job that runs or waits to be tried again.

mod change;
pub mod cron;
mod dead;
pub mod error;
mod finish;
mod handle;
mod job;
pub mod limits;
mod load;
mod read;
mod take;
#[cfg(test)]
mod tests;
mod wake;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;

pub use self::change::{CronSpec, EverySpec, OneShot};
pub use self::dead::DeadLetter;
pub use self::error::{ScheduleError, StoredFault};
pub use self::finish::Finished;
pub use self::handle::ActorSchedule;
use self::job::Job;
pub use self::limits::Retry;
pub use self::read::{CronFire, CronJob, FireResult, JobCadence, ScheduledEvent, history_of};
pub use self::take::{Dispatch, FireInfo, RunId};
pub use self::wake::{Consumed, RunWake};
use crate::store::{FireKind, FireRow, RowOp, ScheduleOp};

/// How many fires that were given up are kept; the oldest make room.
pub const MAX_DEAD: usize = 1_000;

/// How many rows of history an actor keeps at most, rounded to the times at which
/// they are pruned.
const KEPT_HISTORY: u32 = 9_900;
/// After how many rows of history an actor's are pruned.
const PRUNED_EVERY: u64 = 100;

/// An answer, and the rows that change with it.
pub type Changed<T> = (T, Vec<RowOp>);

/// What one generation of an actor is to do later.
#[derive(Clone, Debug)]
pub struct Schedules {
    /// How many may be pending.
    maximum: usize,
    /// The pending ones, by event id.
    jobs: BTreeMap<String, Job>,
    /// What was taken and is not finished, or is given up, by fire id.
    fires: BTreeMap<String, FireRow>,
    /// When what is due (invariant 6).
    due: BTreeSet<(i64, Due)>,
    /// Which of the one-shots that are not finished has a key.
    keys: HashMap<String, String>,
    /// The attempts that run.
    runs: HashMap<RunId, Run>,
    /// Which jobs may not begin another fire, and because of which (invariant 7).
    busy: HashMap<String, Holder>,
    /// The fires that were given up, the oldest first.
    dead: BTreeSet<(i64, String)>,
    /// How many one-shots wait to be tried again: they count as pending.
    waiting_shots: usize,
    last_run: u64,
    last_history: i64,
    /// How many rows of history this generation has added.
    history_added: u64,
    run_wake: RunWake,
    /// Whether nothing is taken any more.
    suspended: bool,
    /// What is stored breaks its rules: then nothing can be asked for.
    invalid: Option<ScheduleError>,
    /// Raised with each change that an inspector would see.
    revision: u64,
}

/// What becomes due.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A pending schedule, by its event id.
    Job(String),
    /// A fire that waits for its next attempt, by its id.
    Fire(String),
}

/// What keeps a job from beginning another fire.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Holder {
    /// An attempt that runs.
    Run(RunId),
    /// A fire that waits to be tried again.
    Waiting(String),
}

/// An attempt that runs.
#[derive(Clone, Debug)]
struct Run {
    /// The event id of its schedule.
    event_id: String,
    kind: FireKind,
    action: String,
    /// The row of its fire, if it has one.
    fire: Option<String>,
    /// Its row of the history, if it has one.
    history: Option<i64>,
}

impl Schedules {
    /// The moment of the next thing to do, in milliseconds since the Unix epoch; it may
    /// have passed.
    pub fn next_alarm(&self) -> Option<i64> {
        let due = self.due.first().map(|(at, _)| *at).filter(|_| self.invalid.is_none());
        // What comes never needs no alarm.
        let due = due.filter(|at| *at < limits::MAX_MOMENT_MS);
        due.into_iter().chain(self.run_wake.at()).min()
    }

    /// The moment from which on the actor must not stay asleep, in milliseconds since the
    /// Unix epoch: that of the next thing to do, or the deadline of an attempt that runs
    /// and is followed by another one if it does not end. That one has passed, so a
    /// generation that ends in the middle of an attempt is followed by the next.
    pub fn wake_at(&self) -> Option<i64> {
        let running = self.runs.values().filter_map(|run| self.fires.get(run.fire.as_ref()?));
        let unfinished = running.filter(|fire| fire.has_attempts_left());
        unfinished.map(|fire| fire.scheduled_at).chain(self.next_alarm()).min()
    }

    /// Lets nothing more be taken: the generation is about to end. What is due stays
    /// for the next one.
    pub fn suspend(&mut self) {
        self.suspended = true;
    }

    /// Raised with each change that an inspector would see.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How many are pending.
    fn pending(&self) -> usize {
        self.jobs.len() + self.waiting_shots
    }

    /// Refuses everything when what is stored is not readable.
    fn readable(&self) -> Result<(), ScheduleError> {
        self.invalid.clone().map_or(Ok(()), Err)
    }

    fn insert_job(&mut self, job: Job) {
        self.due.insert((job.row.trigger_at, Due::Job(job.row.event_id.clone())));
        if let Some(key) = &job.row.key {
            self.keys.insert(key.clone(), job.row.event_id.clone());
        }
        self.jobs.insert(job.row.event_id.clone(), job);
    }

    /// Takes out a pending one; its key stays, for whoever goes on with it.
    fn remove_job(&mut self, event_id: &str) -> Option<Job> {
        let job = self.jobs.remove(event_id)?;
        self.due.remove(&(job.row.trigger_at, Due::Job(event_id.to_owned())));
        Some(job)
    }

    /// Frees the key of a one-shot that is finished.
    fn free_key(&mut self, key: Option<&String>, id: &str) {
        if let Some(key) = key
            && self.keys.get(key).is_some_and(|owner| owner == id)
        {
            self.keys.remove(key);
        }
    }

    /// Notes a fire that waits for its next attempt.
    fn insert_waiting(&mut self, row: FireRow, due_at: i64) {
        self.due.insert((due_at, Due::Fire(row.id.clone())));
        if row.kind == FireKind::At {
            self.waiting_shots += 1;
        } else {
            // Invariant 7; a fire that was brought back finds its job busy with another.
            let holder = Holder::Waiting(row.id.clone());
            self.busy.entry(row.schedule_id.clone()).or_insert(holder);
        }
        self.fires.insert(row.id.clone(), row);
    }

    /// Takes out a fire that waits.
    fn remove_waiting(&mut self, id: &str) -> Option<FireRow> {
        let due_at = self.fires.get(id).and_then(job::due_at)?;
        let row = self.fires.remove(id)?;
        self.due.remove(&(due_at, Due::Fire(id.to_owned())));
        if row.kind == FireKind::At {
            self.waiting_shots -= 1;
        } else {
            self.release(&row.schedule_id, &Holder::Waiting(id.to_owned()));
        }
        Some(row)
    }

    /// Lets a job begin its next fire, if it is this one that held it.
    fn release(&mut self, event_id: &str, holder: &Holder) {
        if self.busy.get(event_id) == Some(holder) {
            self.busy.remove(event_id);
        }
    }
}

/// The event id of a recurring job.
fn event_id_of(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// The name of a recurring job; `None` for a one-shot.
fn name_of(event_id: &str) -> Option<&str> {
    event_id.strip_prefix(PREFIX)
}

/// What the event id of a recurring job begins with. Those of one-shots are UUIDs.
const PREFIX: &str = "cron:";

/// Arguments as they are stored: none is no value.
fn stored_args(args: Bytes) -> Option<Bytes> {
    (!args.is_empty()).then_some(args)
}

fn op(op: ScheduleOp) -> RowOp {
    RowOp::Schedule(op)
}
