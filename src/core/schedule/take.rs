//! Taking what is due.

use bytes::Bytes;

use super::job::{Job, due_at};
use super::{
    Changed, Due, Holder, KEPT_HISTORY, PRUNED_EVERY, Run, Schedules, limits, name_of, op,
};
use crate::ids::IdSource;
use crate::store::{
    FireKind, FireRow, FireState, HistoryResult, HistoryRow, RowOp, ScheduleOp, ScheduleRow,
};

/// How long a fire that was brought back is put off while another of its job is not
/// finished, in milliseconds.
const PUT_OFF_MS: i64 = 1_000;

/// An attempt that runs, within its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u64);

/// What an action is told of why it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FireInfo {
    /// What kind of schedule it is.
    pub kind: FireKind,
    /// The id of a one-shot, the name of a job.
    pub id: String,
    /// The name of a job; `None` for a one-shot.
    pub name: Option<String>,
    /// The deadline, in milliseconds since the Unix epoch.
    pub scheduled_at: i64,
    /// When it was taken, in milliseconds since the Unix epoch.
    pub fired_at: i64,
    /// Which attempt for this deadline it is, from 1 on.
    pub attempt: u32,
}

/// A call to be made, once the rows that came with it are on their way. Its end is to
/// be told to [`Schedules::finish`], in every case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// By which its end is known.
    pub run: RunId,
    /// The action.
    pub action: String,
    /// Its encoded arguments; may be empty.
    pub args: Bytes,
    /// What it is told of why it runs.
    pub fire: FireInfo,
}

impl Schedules {
    /// Takes all that is due, in one change (invariant 2).
    pub fn take_due(&mut self, now: i64, ids: &IdSource) -> Changed<Vec<Dispatch>> {
        let (mut dispatches, mut ops) = (Vec::new(), Vec::new());
        if self.suspended || self.invalid.is_some() {
            return (dispatches, ops);
        }
        let due = self.due.iter().take_while(|(at, _)| *at <= now && *at < limits::MAX_MOMENT_MS);
        let due: Vec<_> = due.map(|(_, due)| due.clone()).collect();
        self.revision += u64::from(!due.is_empty());
        for due in due {
            let taken = match due {
                Due::Fire(id) => self.take_again(&id, now, &mut ops),
                Due::Job(id) if name_of(&id).is_some() => self.take_job(&id, now, ids, &mut ops),
                Due::Job(id) => self.take_shot(&id, now, &mut ops),
            };
            dispatches.extend(taken);
        }
        (dispatches, ops)
    }

    /// A one-shot: it is pending no more, and on record until it ends (invariant 3).
    fn take_shot(&mut self, id: &str, now: i64, ops: &mut Vec<RowOp>) -> Option<Dispatch> {
        let Job { row, .. } = self.remove_job(id)?;
        ops.push(op(ScheduleOp::Delete(id.to_owned())));
        let fire = FireRow {
            id: id.to_owned(),
            schedule_id: id.to_owned(),
            kind: FireKind::At,
            action: row.action,
            args: row.args,
            scheduled_at: row.trigger_at,
            fired_at: now,
            attempt: 1,
            retry: row.retry,
            key: row.key,
            state: FireState::Running,
        };
        Some(self.begin(fire, None, ops))
    }

    /// A job: it moves on to its next deadline, and runs unless it is busy (invariant 5).
    fn take_job(
        &mut self,
        event_id: &str,
        now: i64,
        ids: &IdSource,
        ops: &mut Vec<RowOp>,
    ) -> Option<Dispatch> {
        let mut job = self.remove_job(event_id)?;
        let scheduled_at = job.row.trigger_at;
        job.row.trigger_at = job.following(now);
        let runs = !self.busy.contains_key(event_id);
        if runs {
            job.row.last_started_at = Some(now);
        }
        ops.push(op(ScheduleOp::Move {
            event_id: event_id.to_owned(),
            trigger_at: job.row.trigger_at,
            started_at: runs.then_some(now),
        }));
        let result = if runs { HistoryResult::Running } else { HistoryResult::Skipped };
        let history = self.note(&job.row, scheduled_at, now, 1, result, ops);
        let (row, kind) = (job.row.clone(), job.kind());
        self.insert_job(job);
        if !runs {
            return None;
        }
        let fire = FireRow {
            // Only one that may be tried again is on record by itself.
            id: if row.retry.is_some() { ids.event_id() } else { String::new() },
            schedule_id: row.event_id,
            kind,
            action: row.action,
            args: row.args,
            scheduled_at,
            fired_at: now,
            attempt: 1,
            retry: row.retry,
            key: None,
            state: FireState::Running,
        };
        Some(self.begin(fire, history, ops))
    }

    /// The next attempt of a fire.
    fn take_again(&mut self, id: &str, now: i64, ops: &mut Vec<RowOp>) -> Option<Dispatch> {
        let holder = Holder::Waiting(id.to_owned());
        let schedule_id = self.fires.get(id)?.schedule_id.clone();
        let is_busy = self.busy.get(&schedule_id).is_some_and(|holds| *holds != holder);
        let mut fire = self.remove_waiting(id)?;
        if is_busy {
            let due_at = limits::moment(now.saturating_add(PUT_OFF_MS));
            fire.state = FireState::Waiting { due_at };
            ops.push(op(ScheduleOp::PutFire(Box::new(fire.clone()))));
            self.insert_waiting(fire, due_at);
            return None;
        }
        fire.attempt = fire.attempt.saturating_add(1);
        fire.fired_at = now;
        fire.state = FireState::Running;
        let job = self.jobs.get(&schedule_id).map(|job| job.row.clone());
        let history = job.and_then(|mut row| {
            row.action.clone_from(&fire.action);
            self.note(&row, fire.scheduled_at, now, fire.attempt, HistoryResult::Running, ops)
        });
        Some(self.begin(fire, history, ops))
    }

    /// Begins an attempt. The record of its fire is written before it runs (invariants
    /// 3 and 4).
    fn begin(&mut self, fire: FireRow, history: Option<i64>, ops: &mut Vec<RowOp>) -> Dispatch {
        self.last_run += 1;
        let run = RunId(self.last_run);
        let name = name_of(&fire.schedule_id).map(str::to_owned);
        let dispatch = Dispatch {
            run,
            action: fire.action.clone(),
            args: fire.args.clone().unwrap_or_default(),
            fire: FireInfo {
                kind: fire.kind,
                id: name.clone().unwrap_or_else(|| fire.schedule_id.clone()),
                name,
                scheduled_at: fire.scheduled_at,
                fired_at: fire.fired_at,
                attempt: fire.attempt,
            },
        };
        if fire.kind != FireKind::At {
            self.busy.insert(fire.schedule_id.clone(), Holder::Run(run));
        }
        let is_recorded = fire.kind == FireKind::At || !fire.id.is_empty();
        self.runs.insert(
            run,
            Run {
                event_id: fire.schedule_id.clone(),
                kind: fire.kind,
                action: fire.action.clone(),
                fire: is_recorded.then(|| fire.id.clone()),
                history,
            },
        );
        if is_recorded {
            debug_assert!(due_at(&fire).is_none(), "a fire that runs does not wait");
            ops.push(op(ScheduleOp::PutFire(Box::new(fire.clone()))));
            self.fires.insert(fire.id.clone(), fire);
        }
        dispatch
    }

    /// Adds a row to the history of a job that keeps one, and returns its number.
    fn note(
        &mut self,
        row: &ScheduleRow,
        scheduled_at: i64,
        now: i64,
        attempt: u32,
        result: HistoryResult,
        ops: &mut Vec<RowOp>,
    ) -> Option<i64> {
        if row.max_history == 0 {
            return None;
        }
        self.last_history += 1;
        let schedule_id = row.event_id.clone();
        ops.push(op(ScheduleOp::AddHistory(Box::new(HistoryRow {
            id: self.last_history,
            schedule_id: schedule_id.clone(),
            action: row.action.clone(),
            scheduled_at,
            fired_at: now,
            finished_at: (result != HistoryResult::Running).then_some(now),
            attempt,
            result,
        }))));
        ops.push(op(ScheduleOp::PruneHistory { schedule_id, keep: row.max_history }));
        if self.history_added.is_multiple_of(PRUNED_EVERY) {
            ops.push(op(ScheduleOp::PruneAllHistory { keep: KEPT_HISTORY }));
        }
        self.history_added += 1;
        Some(self.last_history)
    }
}
