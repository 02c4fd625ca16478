//! What is to be done later, and doing it when it is due.
//!
//! # Invariants
//!
//! 1. What was taken runs once its record is durable, and not before: a crash finds
//!    either the schedule or the record, and never neither.
//! 2. From the step in which something is taken until its call has begun, a region
//!    keeps the actor awake and holds its grace period.
//! 3. How a fire ended is written with what its action changed, where the author's
//!    side is about to commit that.
//! 4. Nothing is taken unless the actor is started and does not stop. What runs at the
//!    end of a generation stays on record as running, and is interrupted then.
//! 5. The directory's alarm changes in the batch that changed what is due.

use std::collections::HashMap;
use std::sync::Arc;

use super::Actor;
use super::activity::WorkKind;
use super::effect::{Effect, Output};
use super::gate::CommitNumber;
use super::lifecycle::Phase;
use super::machine::Machine;
use super::rows::Rows;
use crate::core::behavior::{ActorEvent, CallId, Caller, Reply};
use crate::core::schedule::{Changed, Consumed, Dispatch, RunId, ScheduleError, Schedules};
use crate::error::{Error, Result};
use crate::store::{RowOp, StoredSchedules};
use crate::time::{Duration, Instant};

/// How long a tick is armed at most: the wall clock, by which alarms go, can be set.
const LOOK_AGAIN: Duration = Duration::from_secs(60 * 60);

/// What is to be done later, and what of it is done now.
#[derive(Debug)]
pub(super) struct Later {
    pub(super) schedules: Schedules,
    /// The calls that are attempts of fires.
    calls: HashMap<CallId, RunId>,
    /// The deadline that the current attempt of `run` was woken for.
    pub(super) woken: Option<Consumed>,
    /// The alarm that the next tick is for, and when that comes.
    armed: Option<(i64, Instant)>,
}

impl Later {
    /// Nothing, for an actor that may have `maximum` schedules.
    pub(super) fn new(maximum: usize) -> Self {
        let (schedules, _) = Schedules::load(StoredSchedules::default(), maximum, 0);
        Self { schedules, calls: HashMap::new(), woken: None, armed: None }
    }

    /// When the next tick is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.armed.map(|(_, due)| due)
    }
}

impl Machine {
    /// The moment at which the actor must be awake again, in milliseconds since the
    /// Unix epoch; it may have passed.
    pub(super) fn next_alarm(&self) -> Option<i64> {
        self.alarm.or(self.schedule_alarm())
    }

    /// What the directory is to say for the schedules.
    pub(super) fn schedule_alarm(&self) -> Option<i64> {
        self.later.made().and_then(|later| later.schedules.wake_at())
    }

    /// When something of the schedules is due next.
    pub(super) fn next_schedule(&self) -> Option<i64> {
        self.later.made().and_then(|later| later.schedules.next_alarm())
    }

    /// Whether what is due is taken (invariant 4).
    fn takes_due(&self) -> bool {
        self.lifecycle.phase() == Phase::Started && self.grace.is_none() && !self.is_over()
    }

    /// Looks again when the next tick is due.
    pub(super) fn arm_alarm(&mut self, now: Instant, unix_ms: impl FnOnce() -> i64) {
        if self.later.made().is_none() {
            return;
        }
        let alarm = self.next_schedule().filter(|_| self.takes_due());
        if alarm == self.later.armed.map(|(alarm, _)| alarm) {
            return;
        }
        self.later.armed = alarm.map(|alarm| {
            let ms = u64::try_from(alarm.saturating_sub(unix_ms())).unwrap_or(0);
            (alarm, now + Duration::from_millis(ms).min(LOOK_AGAIN))
        });
    }

    /// Writes rows that memory has changed, with what the author's side is about to
    /// commit, if it is.
    pub(super) fn write_soon(&mut self, ops: Vec<RowOp>) {
        let rows = Rows { ops, in_memory: true };
        if self.pushes_pending {
            self.rows.add(rows);
        } else if !rows.ops.is_empty() {
            self.write_own_rows(rows);
        }
    }

    /// Writes rows that memory has changed, and says which commit carries them.
    fn write_taken(&mut self, ops: Vec<RowOp>) -> CommitNumber {
        self.write_own_rows(Rows { ops, in_memory: true });
        if self.rows.is_empty() { self.gate.begun() } else { self.gate.begun().next() }
    }
}

impl Actor {
    /// Takes over what is stored; returns what became of what the last generation left
    /// unfinished.
    pub(super) fn install_schedules(
        &self,
        machine: &mut Machine,
        stored: StoredSchedules,
    ) -> Vec<RowOp> {
        if stored == StoredSchedules::default() {
            return Vec::new();
        }
        let maximum = self.config.max_schedules as usize;
        let (schedules, ops) = Schedules::load(stored, maximum, self.unix_ms());
        machine.later.schedules = schedules;
        ops
    }

    /// Changes the schedules for the author's side. `reply` hears when that is durable;
    /// it is dropped when nothing is changed.
    pub(crate) fn change_schedules<T>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Schedules, i64) -> Result<Changed<T>, ScheduleError>,
        reply: Reply<()>,
    ) -> Result<T> {
        let now = self.unix_ms();
        let (answer, unused) = self.step(|machine, _| {
            if let Some(error) = self.no_rows(machine) {
                return (Err(error), Some(reply));
            }
            match change(&mut machine.later.schedules, now) {
                Ok((answer, ops)) => {
                    machine.take_rows(Rows { ops, in_memory: true }, reply);
                    (Ok(answer), None)
                }
                Err(error) => (Err(error.into()), Some(reply)),
            }
        });
        // Dropping it answers it, which calls out: not under the lock.
        drop(unused);
        answer
    }

    /// A new id of something that the actor has.
    pub(crate) fn new_id(&self) -> String {
        self.runtime.ids().event_id()
    }

    /// Reads the schedules.
    pub(crate) fn read_schedules<T>(
        &self,
        read: impl FnOnce(&Schedules) -> Result<T, ScheduleError>,
    ) -> Result<T> {
        let machine = self.machine.lock();
        if let Some(error) = self.no_reading(&machine) {
            return Err(error);
        }
        Ok(read(&machine.later.schedules)?)
    }

    /// Has the author's side woken at a moment of its own, beside all else; `None` for never.
    /// The next commit carries it, which is asked for here.
    pub(crate) fn set_alarm(self: &Arc<Self>, at: Option<i64>) {
        self.step(|machine, _| {
            machine.alarm.set_own(at);
            machine.alarm.set_schedules(machine.schedule_alarm());
            // Before the first commit there is nothing to wake, and the last one has begun.
            if machine.state.initialized && machine.may_save() && machine.alarm.is_changed() {
                // No commit begins without a row: this one changes nothing.
                machine.write_own_rows(Rows {
                    ops: vec![RowOp::PutInitialized(true)],
                    in_memory: true,
                });
            }
        });
    }

    /// See [`Machine::next_alarm`].
    pub(crate) fn next_alarm(&self) -> Option<i64> {
        self.machine.lock().next_alarm()
    }

    /// Takes what is due, and has it run once that is durable.
    pub(super) fn fire_alarms(self: &Arc<Self>, machine: &mut Machine) {
        if !machine.takes_due() || machine.next_schedule().is_none() {
            return;
        }
        // The wall clock may have been set back since the tick was armed.
        machine.later.armed = None;
        let now = self.unix_ms();
        let (woken, mut ops) = machine.later.schedules.consume_run_wake(now);
        let (dispatches, taken) = machine.later.schedules.take_due(now, self.runtime.ids());
        ops.extend(taken);
        if ops.is_empty() {
            return;
        }
        let number = machine.write_taken(ops);
        if let Some(consumed) = woken.filter(|_| self.hooks.run) {
            machine.run_woken(consumed);
            if !machine.run.is_active() {
                self.start_run(machine);
            }
        }
        if dispatches.is_empty() {
            return;
        }
        machine.activity.begin(WorkKind::InternalKeepAwake);
        let actor = Arc::clone(self);
        // A commit that fails has ended the generation.
        let dispatch = move |durable: Result<()>| actor.dispatch(dispatches, durable.is_ok());
        machine.watch_commit(number, Reply::new(dispatch));
    }

    /// Hands over what was taken (invariant 1).
    fn dispatch(self: &Arc<Self>, dispatches: Vec<Dispatch>, is_durable: bool) {
        self.step(|machine, now| {
            let ended = machine.activity.end(WorkKind::InternalKeepAwake);
            debug_assert!(ended, "begun when this was taken");
            let runs = matches!(
                machine.lifecycle.phase(),
                Phase::Started | Phase::SleepGrace | Phase::DestroyGrace
            );
            if !is_durable || machine.is_over() || !runs {
                return;
            }
            for Dispatch { run, action, args, fire } in dispatches {
                let call = machine.calls.queue(Reply::new(|_| {}), now);
                self.begin_action(machine);
                machine.later.calls.insert(call, run);
                machine.deliver(ActorEvent::Action {
                    call,
                    name: action,
                    args,
                    caller: Caller::Schedule,
                    connection: None,
                    origin: 0,
                    fire: Some(fire),
                });
            }
        });
    }

    /// A call ended, or nobody waits for it any more. If it is an attempt of a fire, its
    /// end is noted.
    pub(super) fn attempt_ended(
        &self,
        machine: &mut Machine,
        call: CallId,
        result: Result<(), &Error>,
    ) {
        let later = machine.later.made_mut();
        let Some(run) = later.and_then(|later| later.calls.remove(&call)) else { return };
        if !machine.may_save() {
            return;
        }
        let finished = machine.later.schedules.finish(run, result, self.unix_ms());
        let (actor_id, error) = (self.identity.id, result.err().cloned());
        if let Some(error) = error {
            let (retry_at, died) = (finished.retry_at, finished.died);
            let (forgotten, deleted) = (finished.forgotten, finished.deleted);
            machine.log(move || {
                tracing::error!(
                    %actor_id, %error, retry_at, died, ?forgotten, deleted,
                    "a scheduled action failed"
                );
            });
        }
        machine.write_soon(finished.ops);
    }
}

impl Machine {
    /// Adds changes of the author's side; see [`Actor::write_rows`]. `reply` hears when
    /// they, and what was changed before them, are durable.
    pub(super) fn take_rows(&mut self, rows: Rows, reply: Reply<()>) {
        self.rows.add(rows);
        if self.is_being_created() {
            self.effects.push_back(Effect::Release(Output::Flushed(reply, Ok(()))));
            return;
        }
        let required = self.gate.fence(!self.rows.is_empty());
        self.hold(required, Output::Flushed(reply, Ok(())));
    }
}
