//! What an author's side calls: the schedules of one generation.
//!
//! # Invariants
//!
//! 1. A call begins when it is made, not when its future is polled: a later call sees
//!    what an earlier one changed, awaited or not.
//! 2. A future resolves when what its call changed is durable. Reading waits for
//!    nothing but what is read from the store.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::{
    Changed, CronFire, CronJob, CronSpec, DeadLetter, EverySpec, OneShot, ScheduleError,
    ScheduledEvent, Schedules, history_of, limits,
};
use crate::core::actor::Actor;
use crate::core::actor::rows::Readable;
use crate::core::behavior::Reply;
use crate::error::Result;
use crate::ids::IdSource;

/// A handle on what one generation is to do later. Cheap to clone. Besides what each call
/// names, all fail with `schedule/invalid_schedule_row` when what is stored breaks its
/// rules, and with what ended the generation.
#[derive(Clone, Debug)]
pub struct ActorSchedule(Arc<Actor>);

impl ActorSchedule {
    pub(in crate::core) fn new(actor: Arc<Actor>) -> Self {
        Self(actor)
    }

    /// Makes a one-shot that is due after `delay_ms`, in place of its `trigger_at`; see
    /// [`limits::after`] and [`ActorSchedule::at`].
    ///
    /// # Errors
    ///
    /// `schedule/invalid_time`, and those of [`ActorSchedule::at`].
    pub fn after(&self, delay_ms: f64, shot: OneShot) -> BoxFuture<'static, Result<String>> {
        self.change(move |schedules, now, ids| {
            let trigger_at = limits::after(now, delay_ms)?;
            schedules.at(OneShot { trigger_at, ..shot }, ids)
        })
    }

    /// Makes a one-shot and returns its id; see [`Schedules::at`].
    ///
    /// # Errors
    ///
    /// `schedule/invalid_key`, `invalid_retry` or `max_schedules_exceeded`.
    pub fn at(&self, shot: OneShot) -> BoxFuture<'static, Result<String>> {
        self.change(move |schedules, _, ids| schedules.at(shot, ids))
    }

    /// Cancels a one-shot; says whether there was one to cancel.
    pub fn cancel(&self, id: &str) -> BoxFuture<'static, Result<bool>> {
        self.change(|schedules, _, _| schedules.cancel(id))
    }

    /// A one-shot that is pending, or waits to be tried again.
    pub fn get(&self, id: &str) -> Result<Option<ScheduledEvent>> {
        self.0.read_schedules(|schedules| schedules.get(id))
    }

    /// Those one-shots, by deadline, then id.
    pub fn list(&self) -> Result<Vec<ScheduledEvent>> {
        self.0.read_schedules(Schedules::list)
    }

    /// Sets a cron job; see [`Schedules::cron_set`], its errors too.
    pub fn cron_set(&self, spec: CronSpec) -> BoxFuture<'static, Result<()>> {
        self.change(move |schedules, now, _| schedules.cron_set(spec, now))
    }

    /// Sets an interval; see [`Schedules::cron_every`], its errors too.
    pub fn cron_every(&self, spec: EverySpec) -> BoxFuture<'static, Result<()>> {
        self.change(move |schedules, now, _| schedules.cron_every(spec, now))
    }

    /// The job of a name.
    ///
    /// # Errors
    ///
    /// `schedule/invalid_name`.
    pub fn cron_get(&self, name: &str) -> Result<Option<CronJob>> {
        self.0.read_schedules(|schedules| schedules.cron_get(name))
    }

    /// The jobs, by deadline, then name.
    pub fn cron_list(&self) -> Result<Vec<CronJob>> {
        self.0.read_schedules(Schedules::cron_list)
    }

    /// Deletes a job and its history; says whether there was one.
    ///
    /// # Errors
    ///
    /// `schedule/invalid_name`.
    pub fn cron_delete(&self, name: &str) -> BoxFuture<'static, Result<bool>> {
        self.change(|schedules, _, _| schedules.cron_delete(name))
    }

    /// The history of a job, the newest first, at most `limit`: 1 to 1,000, 20 if absent.
    ///
    /// # Errors
    ///
    /// `schedule/invalid_name`, `schedule/invalid_max_history` for the limit, `storage/*`.
    pub fn cron_history(
        &self,
        name: &str,
        limit: Option<i64>,
    ) -> BoxFuture<'static, Result<Vec<CronFire>>> {
        let asked = self.0.read_schedules(|schedules| schedules.cron_history(name, limit));
        let readable = self.0.readable_rows();
        async move {
            let (schedule_id, limit) = asked?;
            match readable.await? {
                Readable::Store(store) => {
                    Ok(history_of(store.schedule_history(schedule_id, limit).await?))
                }
                // Nothing fires before an actor is stored.
                Readable::Unstored(_) => Ok(Vec::new()),
            }
        }
        .boxed()
    }

    /// The fires that were given up, the newest first.
    pub fn dead(&self) -> Result<Vec<DeadLetter>> {
        self.0.read_schedules(Schedules::dead)
    }

    /// Has a fire that was given up tried again; says whether there was one.
    ///
    /// # Errors
    ///
    /// `schedule/max_schedules_exceeded`.
    pub fn dead_retry(&self, id: &str) -> BoxFuture<'static, Result<bool>> {
        self.change(|schedules, now, _| schedules.dead_retry(id, now))
    }

    /// Forgets a fire that was given up; says whether there was one.
    pub fn dead_delete(&self, id: &str) -> BoxFuture<'static, Result<bool>> {
        self.change(|schedules, _, _| schedules.dead_delete(id))
    }

    /// Sets or clears the moment at which the author's `run` is to be active again, in
    /// milliseconds since the Unix epoch.
    pub fn set_run_wake(&self, at: Option<i64>) -> BoxFuture<'static, Result<()>> {
        self.change(move |schedules, _, _| Ok(schedules.set_run_wake(at)))
    }

    /// Raised with each change that an inspector would see.
    pub fn revision(&self) -> Result<u64> {
        self.0.read_schedules(|schedules| Ok(schedules.revision()))
    }

    fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Schedules, i64, &IdSource) -> Result<Changed<T>, ScheduleError>,
    ) -> BoxFuture<'static, Result<T>> {
        let (reply, durable) = Reply::channel();
        let answer = self.0.change_schedules(change, reply);
        async move {
            let answer = answer?;
            durable.await?;
            Ok(answer)
        }
        .boxed()
    }
}
