//! The rules of schedules, on a disk that is a few lists.

mod disk;
mod jobs;
mod retries;
mod shots;

use bytes::Bytes;

use self::disk::Disk;
use super::*;
use crate::error::{Error, ErrorCode};
use crate::ids::IdSource;

/// When these tests begin.
const T: i64 = 1_700_000_000_000;

/// An actor's schedules, and what would be stored of them.
struct Desk {
    now: i64,
    schedules: Schedules,
    disk: Disk,
    ids: IdSource,
    maximum: usize,
}

impl Desk {
    fn new() -> Self {
        Self::of(Disk::default(), 1_000)
    }

    fn of(disk: Disk, maximum: usize) -> Self {
        let (schedules, ops) = Schedules::load(disk.stored(), maximum, T);
        let mut desk = Self { now: T, schedules, disk, ids: IdSource::seeded(1), maximum };
        desk.disk.apply(ops);
        desk
    }

    /// The process dies, and the actor starts again.
    fn crash(&mut self) {
        let (schedules, ops) = Schedules::load(self.disk.stored(), self.maximum, self.now);
        self.schedules = schedules;
        self.disk.apply(ops);
    }

    fn write<A>(&mut self, (answer, ops): Changed<A>) -> A {
        self.disk.apply(ops);
        answer
    }

    fn at(&mut self, trigger_at: i64, action: &str) -> Result<String, ScheduleError> {
        self.shot(OneShot { trigger_at, ..shot(action) })
    }

    fn shot(&mut self, shot: OneShot) -> Result<String, ScheduleError> {
        let made = self.schedules.at(shot, &self.ids)?;
        Ok(self.write(made))
    }

    fn every(&mut self, spec: EverySpec) -> Result<(), ScheduleError> {
        let set = self.schedules.cron_every(spec, self.now)?;
        self.write(set);
        Ok(())
    }

    fn cron(&mut self, spec: CronSpec) -> Result<(), ScheduleError> {
        let set = self.schedules.cron_set(spec, self.now)?;
        self.write(set);
        Ok(())
    }

    /// Takes what is due at `now`.
    fn take(&mut self, now: i64) -> Vec<Dispatch> {
        self.now = now;
        let taken = self.schedules.take_due(now, &self.ids);
        self.write(taken)
    }

    fn finish(&mut self, run: RunId, result: Result<(), Error>) -> Finished {
        let finished = self.schedules.finish(run, result.as_ref().map(|_| ()), self.now);
        self.disk.apply(finished.ops.clone());
        finished
    }

    /// Takes the one thing that is due at `now`.
    fn take_one(&mut self, now: i64) -> Dispatch {
        let mut taken = self.take(now);
        assert_eq!(taken.len(), 1, "{taken:?}");
        taken.remove(0)
    }

    /// How the attempts of a job ended, the newest first.
    fn results(&self, name: &str) -> Vec<&'static str> {
        self.history(name).iter().map(|fire| label(&fire.result)).collect()
    }

    fn history(&self, name: &str) -> Vec<CronFire> {
        let (id, limit) = self.schedules.cron_history(name, Some(1_000)).unwrap();
        history_of(self.disk.history(&id, limit))
    }

    fn job(&self, name: &str) -> CronJob {
        self.schedules.cron_get(name).unwrap().unwrap()
    }
}

fn label(result: &FireResult) -> &'static str {
    match result {
        FireResult::Running => "running",
        FireResult::Ok => "ok",
        FireResult::Error(_) => "error",
        FireResult::Skipped => "skipped",
    }
}

fn shot(action: &str) -> OneShot {
    let args = Bytes::from_static(b"args");
    OneShot { trigger_at: T, action: action.to_owned(), args, retry: None, key: None }
}

fn every(name: &str, interval_ms: i64, action: &str) -> EverySpec {
    EverySpec {
        name: name.to_owned(),
        interval_ms,
        action: action.to_owned(),
        args: Bytes::new(),
        max_history: None,
        retry: None,
    }
}

fn cron(name: &str, expression: &str) -> CronSpec {
    CronSpec {
        name: name.to_owned(),
        expression: expression.to_owned(),
        timezone: None,
        action: "tick".to_owned(),
        args: Bytes::new(),
        max_history: None,
        retry: None,
    }
}

fn retry(max_attempts: i64) -> Option<Retry> {
    Some(Retry { max_attempts, initial_ms: Some(100), max_ms: Some(1_000) })
}

fn failed() -> Result<(), Error> {
    Err(Error::new(ErrorCode::new("user", "failed"), "it failed"))
}

fn unknown() -> Result<(), Error> {
    Err(Error::new(ErrorCode::new("actor", "action_not_found"), "no such action"))
}
