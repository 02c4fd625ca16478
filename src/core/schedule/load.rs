//! What a generation begins with: what is stored, and what the last one left
//! unfinished.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::error::stored_fault;
use super::job::Job;
use super::limits::backoff;
use super::{Changed, RunWake, ScheduleError, Schedules, op};
use crate::error::Error;
use crate::store::{FireRow, FireState, RowOp, ScheduleOp, StoredSchedules};

impl Schedules {
    /// Reads what is stored, for an actor that may have `maximum` schedules. What ran
    /// when the last generation ended was interrupted: it is on record as that, and is
    /// tried again if it may be.
    pub fn load(stored: StoredSchedules, maximum: usize, now: i64) -> Changed<Self> {
        let invalid = stored.invalid.map(ScheduleError::from);
        let mut schedules = Self {
            maximum,
            jobs: BTreeMap::new(),
            fires: BTreeMap::new(),
            due: BTreeSet::new(),
            keys: HashMap::new(),
            runs: HashMap::new(),
            busy: HashMap::new(),
            dead: BTreeSet::new(),
            waiting_shots: 0,
            last_run: 0,
            last_history: stored.last_history,
            history_added: 0,
            run_wake: RunWake::stored(stored.run_wake_at),
            suspended: false,
            invalid,
            revision: 0,
        };
        for row in stored.pending {
            match Job::stored(row) {
                Ok(job) => schedules.insert_job(job),
                Err(invalid) => schedules.invalid = Some(invalid.into()),
            }
        }
        if schedules.invalid.is_some() {
            // Nothing is changed that is not understood.
            return (schedules, Vec::new());
        }
        let fault = stored_fault(&Error::from(ScheduleError::Interrupted));
        let interrupted = |&id: &i64| {
            let error = Some(fault.clone());
            op(ScheduleOp::FinishHistory { id, finished_at: now, error })
        };
        let mut ops: Vec<_> = stored.running.iter().map(interrupted).collect();
        for fire in stored.fires {
            schedules.load_fire(fire, now, &mut ops);
        }
        schedules.revision += u64::from(!ops.is_empty());
        (schedules, ops)
    }

    fn load_fire(&mut self, fire: FireRow, now: i64, ops: &mut Vec<RowOp>) {
        match &fire.state {
            FireState::Dead { died_at, .. } => {
                let died_at = *died_at;
                self.insert_dead(fire, died_at);
            }
            FireState::Waiting { due_at } => {
                let due_at = *due_at;
                self.load_waiting(fire, due_at);
            }
            FireState::Running => match fire.retry.filter(|_| fire.has_attempts_left()) {
                Some(retry) => {
                    let due_at = backoff(&retry, fire.attempt, now);
                    let fire = FireRow { state: FireState::Waiting { due_at }, ..fire };
                    ops.push(op(ScheduleOp::PutFire(Box::new(fire.clone()))));
                    self.load_waiting(fire, due_at);
                }
                None => {
                    let error = stored_fault(&Error::from(ScheduleError::Interrupted));
                    self.bury(fire, error, now, ops);
                }
            },
        }
    }

    fn load_waiting(&mut self, fire: FireRow, due_at: i64) {
        if let Some(key) = &fire.key {
            self.keys.insert(key.clone(), fire.id.clone());
        }
        self.insert_waiting(fire, due_at);
    }
}

impl From<crate::store::InvalidRow> for ScheduleError {
    fn from(row: crate::store::InvalidRow) -> Self {
        Self::InvalidScheduleRow { schedule_id: row.schedule_id, reason: row.reason }
    }
}
