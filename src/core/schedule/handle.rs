//! What an author's side calls: the schedules of one generation.
//!
//! # Invariants
//!
//! 1. A call begins when it is made, not when its future is polled: a later call sees
//!    what an earlier one changed, awaited or not.
//! 2. A future resolves when what its call changed is durable. Reading waits for
//!    nothing but what is read from the store.
//! 3. Within a transaction a call changes what the transaction will change, and resolves
//!    at once.

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
use crate::core::transaction::StateTransaction;
use crate::error::Result;

/// A handle on what one generation is to do later. Cheap to clone. Besides what each call
/// names, all fail with `schedule/invalid_schedule_row` when what is stored breaks its
/// rules, and with what ended the generation.
#[derive(Clone, Debug)]
pub struct ActorSchedule(Arc<Actor>, Option<StateTransaction>);

impl ActorSchedule {
    pub(in crate::core) fn new(actor: Arc<Actor>) -> Self {
        Self(actor, None)
    }

    /// A handle through which a transaction changes them.
    pub(in crate::core) fn within(actor: Arc<Actor>, transaction: StateTransaction) -> Self {
        Self(actor, Some(transaction))
    }

    /// Makes a one-shot that is due after `delay_ms`, in place of its `trigger_at`; see
    /// [`limits::after`] and [`ActorSchedule::at`].
    ///
    /// # Errors
    ///
    /// `schedule/invalid_time`, and those of [`ActorSchedule::at`].
    pub fn after(&self, delay_ms: f64, shot: OneShot) -> BoxFuture<'static, Result<String>> {
        let id = self.0.new_id();
        self.change(move |schedules, now| {
            let trigger_at = limits::after(now, delay_ms)?;
            schedules.at_as(OneShot { trigger_at, ..shot.clone() }, &id)
        })
    }

    /// Makes a one-shot and returns its id; see [`Schedules::at`].
    ///
    /// # Errors
    ///
    /// `schedule/invalid_key`, `invalid_retry` or `max_schedules_exceeded`.
    pub fn at(&self, shot: OneShot) -> BoxFuture<'static, Result<String>> {
        let id = self.0.new_id();
        self.change(move |schedules, _| schedules.at_as(shot.clone(), &id))
    }

    /// Cancels a one-shot; says whether there was one to cancel.
    pub fn cancel(&self, id: &str) -> BoxFuture<'static, Result<bool>> {
        let id = id.to_owned();
        self.change(move |schedules, _| schedules.cancel(&id))
    }

    /// A one-shot that is pending, or waits to be tried again.
    pub fn get(&self, id: &str) -> Result<Option<ScheduledEvent>> {
        self.read(|schedules| schedules.get(id))
    }

    /// Those one-shots, by deadline, then id.
    pub fn list(&self) -> Result<Vec<ScheduledEvent>> {
        self.read(Schedules::list)
    }

    /// Sets a cron job; see [`Schedules::cron_set`], its errors too.
    pub fn cron_set(&self, spec: CronSpec) -> BoxFuture<'static, Result<()>> {
        self.change(move |schedules, now| schedules.cron_set(spec.clone(), now))
    }

    /// Sets an interval; see [`Schedules::cron_every`], its errors too.
    pub fn cron_every(&self, spec: EverySpec) -> BoxFuture<'static, Result<()>> {
        self.change(move |schedules, now| schedules.cron_every(spec.clone(), now))
    }

    /// The job of a name.
    ///
    /// # Errors
    ///
    /// `schedule/invalid_name`.
    pub fn cron_get(&self, name: &str) -> Result<Option<CronJob>> {
        self.read(|schedules| schedules.cron_get(name))
    }

    /// The jobs, by deadline, then name.
    pub fn cron_list(&self) -> Result<Vec<CronJob>> {
        self.read(Schedules::cron_list)
    }

    /// Deletes a job and its history; says whether there was one.
    ///
    /// # Errors
    ///
    /// `schedule/invalid_name`.
    pub fn cron_delete(&self, name: &str) -> BoxFuture<'static, Result<bool>> {
        let name = name.to_owned();
        self.change(move |schedules, _| schedules.cron_delete(&name))
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
        let asked = self.read(|schedules| schedules.cron_history(name, limit));
        let readable = match &self.1 {
            Some(_) => self.0.stored_rows().boxed(),
            None => self.0.readable_rows().boxed(),
        };
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
        self.read(Schedules::dead)
    }

    /// Has a fire that was given up tried again; says whether there was one.
    ///
    /// # Errors
    ///
    /// `schedule/max_schedules_exceeded`.
    pub fn dead_retry(&self, id: &str) -> BoxFuture<'static, Result<bool>> {
        let id = id.to_owned();
        self.change(move |schedules, now| schedules.dead_retry(&id, now))
    }

    /// Forgets a fire that was given up; says whether there was one.
    pub fn dead_delete(&self, id: &str) -> BoxFuture<'static, Result<bool>> {
        let id = id.to_owned();
        self.change(move |schedules, _| schedules.dead_delete(&id))
    }

    /// Sets or clears the moment at which the author's `run` is to be active again, in
    /// milliseconds since the Unix epoch.
    pub fn set_run_wake(&self, at: Option<i64>) -> BoxFuture<'static, Result<()>> {
        self.change(move |schedules, _| Ok(schedules.set_run_wake(at)))
    }

    /// Raised with each change that an inspector would see.
    pub fn revision(&self) -> Result<u64> {
        self.read(|schedules| Ok(schedules.revision()))
    }

    /// Within a transaction its own changes are seen.
    fn read<T>(&self, read: impl FnOnce(&Schedules) -> Result<T, ScheduleError>) -> Result<T> {
        match &self.1 {
            Some(transaction) => transaction.read_schedules(read),
            None => self.0.read_schedules(read),
        }
    }

    fn change<T: Send + 'static>(
        &self,
        change: impl Fn(&mut Schedules, i64) -> Result<Changed<T>, ScheduleError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T>> {
        if let Some(transaction) = &self.1 {
            return std::future::ready(transaction.change_schedules(change)).boxed();
        }
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
