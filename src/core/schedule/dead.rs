//! Fires that were given up: listed, brought back, deleted.

use bytes::Bytes;

use super::error::read_fault;
use super::limits;
use super::{Changed, MAX_DEAD, ScheduleError, Schedules, StoredFault, name_of, op};
use crate::store::{FaultRow, FireKind, FireRow, FireState, RowOp, ScheduleOp};

/// A fire that was given up.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter {
    /// What tells it from the actor's others; of a one-shot its id.
    pub id: String,
    /// What kind of schedule it is of.
    pub kind: FireKind,
    /// The name of its job; `None` for a one-shot.
    pub name: Option<String>,
    /// The action.
    pub action: String,
    /// Its encoded arguments; may be empty.
    pub args: Bytes,
    /// The deadline, in milliseconds since the Unix epoch.
    pub scheduled_at: i64,
    /// When its last attempt began, in milliseconds since the Unix epoch.
    pub fired_at: i64,
    /// When it was given up, in milliseconds since the Unix epoch.
    pub died_at: i64,
    /// How many attempts there were.
    pub attempts: u32,
    /// Why the last one failed.
    pub error: StoredFault,
}

pub(super) fn is_dead(fire: &FireRow) -> bool {
    matches!(fire.state, FireState::Dead { .. })
}

impl Schedules {
    /// The fires that were given up, the newest first.
    ///
    /// # Errors
    ///
    /// `schedule/invalid_schedule_row`.
    pub fn dead(&self) -> Result<Vec<DeadLetter>, ScheduleError> {
        self.readable()?;
        let newest_first = self.dead.iter().rev().filter_map(|(_, id)| self.fires.get(id));
        Ok(newest_first.filter_map(letter).collect())
    }

    /// Has a fire that was given up tried again at once, with all its attempts; says
    /// whether there is one.
    ///
    /// # Errors
    ///
    /// `schedule/max_schedules_exceeded`, for a one-shot.
    pub fn dead_retry(&mut self, id: &str, now: i64) -> Result<Changed<bool>, ScheduleError> {
        self.readable()?;
        let Some(fire) = self.fires.get(id).filter(|fire| is_dead(fire)) else {
            return Ok((false, Vec::new()));
        };
        if fire.kind == FireKind::At && self.pending() >= self.maximum {
            return Err(ScheduleError::MaxSchedulesExceeded { maximum: self.maximum });
        }
        let Some(mut fire) = self.unbury(id) else { return Ok((false, Vec::new())) };
        let now = limits::moment(now);
        fire.attempt = 0;
        fire.state = FireState::Waiting { due_at: now };
        match &fire.key {
            Some(key) if self.keys.contains_key(key) => fire.key = None,
            Some(key) => drop(self.keys.insert(key.clone(), fire.id.clone())),
            None => {}
        }
        let ops = vec![op(ScheduleOp::PutFire(Box::new(fire.clone())))];
        self.insert_waiting(fire, now);
        self.revision += 1;
        Ok((true, ops))
    }

    /// Forgets a fire that was given up; says whether there was one.
    ///
    /// # Errors
    ///
    /// `schedule/invalid_schedule_row`.
    pub fn dead_delete(&mut self, id: &str) -> Result<Changed<bool>, ScheduleError> {
        self.readable()?;
        if self.unbury(id).is_none() {
            return Ok((false, Vec::new()));
        }
        self.revision += 1;
        Ok((true, vec![op(ScheduleOp::DeleteFire(id.to_owned()))]))
    }

    /// Gives a fire up. Its key is free for another. Returns which older ones had to
    /// make room.
    pub(super) fn bury(
        &mut self,
        fire: FireRow,
        error: FaultRow,
        now: i64,
        ops: &mut Vec<RowOp>,
    ) -> Vec<String> {
        self.free_key(fire.key.as_ref(), &fire.id);
        let fire = FireRow { state: FireState::Dead { died_at: now, error }, ..fire };
        ops.push(op(ScheduleOp::PutFire(Box::new(fire.clone()))));
        self.insert_dead(fire, now);
        let mut forgotten = Vec::new();
        while self.dead.len() > MAX_DEAD {
            let Some((_, oldest)) = self.dead.pop_first() else { break };
            self.fires.remove(&oldest);
            ops.push(op(ScheduleOp::DeleteFire(oldest.clone())));
            forgotten.push(oldest);
        }
        forgotten
    }

    pub(super) fn insert_dead(&mut self, fire: FireRow, died_at: i64) {
        self.dead.insert((died_at, fire.id.clone()));
        self.fires.insert(fire.id.clone(), fire);
    }

    fn unbury(&mut self, id: &str) -> Option<FireRow> {
        let FireState::Dead { died_at, .. } = self.fires.get(id)?.state else { return None };
        self.dead.remove(&(died_at, id.to_owned()));
        self.fires.remove(id)
    }
}

fn letter(fire: &FireRow) -> Option<DeadLetter> {
    let FireState::Dead { died_at, error } = &fire.state else { return None };
    Some(DeadLetter {
        id: fire.id.clone(),
        kind: fire.kind,
        name: name_of(&fire.schedule_id).map(str::to_owned),
        action: fire.action.clone(),
        args: fire.args.clone().unwrap_or_default(),
        scheduled_at: fire.scheduled_at,
        fired_at: fire.fired_at,
        died_at: *died_at,
        attempts: fire.attempt,
        error: read_fault(error.clone()),
    })
}
