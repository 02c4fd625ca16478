//! The end of an attempt.

use super::error::stored_fault;
use super::limits::backoff;
use super::{Holder, RunId, Schedules, op};
use crate::error::Error;
use crate::store::{FireKind, FireRow, FireState, RowOp, ScheduleOp};

/// What the end of an attempt changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// The rows to write.
    pub ops: Vec<RowOp>,
    /// When it is tried again, in milliseconds since the Unix epoch.
    pub retry_at: Option<i64>,
    /// The fire that was given up, by its id.
    pub died: Option<String>,
    /// The fires that were given up before and forgotten for this one.
    pub forgotten: Vec<String>,
    /// The name of the job that was deleted because nobody knows its action.
    pub deleted: Option<String>,
}

impl Schedules {
    /// Notes how an attempt ended. One that is not known changes nothing.
    pub fn finish(&mut self, run: RunId, result: Result<(), &Error>, now: i64) -> Finished {
        let mut finished = Finished::default();
        let Some(ended) = self.runs.remove(&run) else { return finished };
        self.revision += 1;
        self.release(&ended.event_id, &Holder::Run(run));
        let fault = result.err().map(stored_fault);
        if let Some(id) = ended.history {
            let error = fault.clone();
            finished.ops.push(op(ScheduleOp::FinishHistory { id, finished_at: now, error }));
        }
        let is_unknown = result.is_err_and(|error| error.is("actor", "action_not_found"));
        let fire = ended.fire.and_then(|id| self.fires.remove(&id));
        match (fire, fault) {
            (None, _) => {}
            (Some(fire), None) => {
                self.free_key(fire.key.as_ref(), &fire.id);
                finished.ops.push(op(ScheduleOp::DeleteFire(fire.id)));
            }
            (Some(fire), Some(error)) => match self.next_attempt(&fire, is_unknown, now) {
                Next::None => {
                    self.free_key(fire.key.as_ref(), &fire.id);
                    finished.ops.push(op(ScheduleOp::DeleteFire(fire.id)));
                }
                Next::At(due_at) => {
                    let fire = FireRow { state: FireState::Waiting { due_at }, ..fire };
                    finished.ops.push(op(ScheduleOp::PutFire(Box::new(fire.clone()))));
                    finished.retry_at = Some(due_at);
                    self.insert_waiting(fire, due_at);
                }
                Next::Never => {
                    finished.died = Some(fire.id.clone());
                    finished.forgotten = self.bury(fire, error, now, &mut finished.ops);
                }
            },
        }
        let names_it = |job: &super::Job| job.row.action == ended.action;
        if is_unknown
            && ended.kind != FireKind::At
            && self.jobs.get(&ended.event_id).is_some_and(names_it)
        {
            finished.ops.extend(self.drop_job(&ended.event_id));
            finished.deleted = super::name_of(&ended.event_id).map(str::to_owned);
        }
        finished
    }

    /// What becomes of a fire whose attempt failed.
    fn next_attempt(&self, fire: &FireRow, is_unknown: bool, now: i64) -> Next {
        let Some(retry) = &fire.retry else { return Next::None };
        // The job that it is of goes with its action.
        let is_hopeless = is_unknown && fire.kind != FireKind::At;
        if fire.attempt >= retry.max_attempts || is_hopeless {
            return Next::Never;
        }
        Next::At(backoff(retry, fire.attempt, now))
    }
}

/// What becomes of a fire whose attempt failed.
enum Next {
    /// It was to be tried once.
    None,
    /// It is tried again.
    At(i64),
    /// It is given up.
    Never,
}
