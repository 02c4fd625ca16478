//! What would be stored, in a few lists: each change as the store makes it.

use std::collections::BTreeMap;

use crate::store::{
    FireRow, HistoryResult, HistoryRow, RowOp, ScheduleOp, ScheduleRow, StoredSchedules,
};

#[derive(Clone, Debug, Default)]
pub struct Disk {
    pub pending: BTreeMap<String, ScheduleRow>,
    pub fires: BTreeMap<String, FireRow>,
    pub history: BTreeMap<i64, HistoryRow>,
    pub run_wake_at: Option<i64>,
}

impl Disk {
    pub fn apply(&mut self, ops: Vec<RowOp>) {
        for op in ops {
            let RowOp::Schedule(op) = op else { panic!("not of a schedule: {op:?}") };
            self.apply_one(op);
        }
    }

    fn apply_one(&mut self, op: ScheduleOp) {
        match op {
            ScheduleOp::Put(row) => drop(self.pending.insert(row.event_id.clone(), *row)),
            ScheduleOp::Move { event_id, trigger_at, started_at } => {
                let row = self.pending.get_mut(&event_id).expect("a job that moves is stored");
                row.trigger_at = trigger_at;
                row.last_started_at = started_at.or(row.last_started_at);
            }
            ScheduleOp::Delete(id) => {
                assert!(self.pending.remove(&id).is_some(), "{id} is deleted and not stored");
            }
            ScheduleOp::PutFire(row) => drop(self.fires.insert(row.id.clone(), *row)),
            ScheduleOp::DeleteFire(id) => {
                assert!(self.fires.remove(&id).is_some(), "{id} is deleted and not stored");
            }
            ScheduleOp::AddHistory(row) => {
                assert!(self.history.insert(row.id, *row).is_none(), "a number is used twice");
            }
            ScheduleOp::FinishHistory { id, finished_at, error } => {
                let running = |row: &&mut HistoryRow| row.result == HistoryResult::Running;
                if let Some(row) = self.history.get_mut(&id).filter(running) {
                    row.finished_at = Some(finished_at);
                    row.result = error.map_or(HistoryResult::Ok, HistoryResult::Error);
                }
            }
            ScheduleOp::PruneHistory { schedule_id, keep } => {
                let kept: Vec<_> =
                    self.history(&schedule_id, keep).into_iter().map(|row| row.id).collect();
                self.history.retain(|id, row| row.schedule_id != schedule_id || kept.contains(id));
            }
            ScheduleOp::PruneAllHistory { keep } => {
                while self.history.len() > keep as usize {
                    self.history.pop_first();
                }
            }
            ScheduleOp::PutRunWake(at) => self.run_wake_at = at,
        }
    }

    /// The newest rows of a schedule, the newest first.
    pub fn history(&self, schedule_id: &str, limit: u32) -> Vec<HistoryRow> {
        let of_it = self.history.values().filter(|row| row.schedule_id == schedule_id);
        let mut rows: Vec<_> = of_it.cloned().collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.fired_at, row.id)));
        rows.truncate(limit as usize);
        rows
    }

    pub fn stored(&self) -> StoredSchedules {
        let running = self.history.values().filter(|row| row.result == HistoryResult::Running);
        StoredSchedules {
            pending: self.pending.values().cloned().collect(),
            fires: self.fires.values().cloned().collect(),
            running: running.map(|row| row.id).collect(),
            last_history: self.history.keys().next_back().copied().unwrap_or(0),
            run_wake_at: self.run_wake_at,
            invalid: None,
        }
    }
}
