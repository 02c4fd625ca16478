//! One generation of one actor: a machine behind one lock, and whoever brings an
//! event runs it.
//!
//! ```text
//! event ──▶ step: lock, change the parts, queue effects, unlock ──▶ perform
//! ```
//!
//! There is no task per actor. A task exists only while something is really
//! awaited: the start (the host's), and the grace period.
//!
//! # Invariants
//!
//! 1. Nothing is called out to while the lock is held.
//! 2. Effects are performed in the order in which they were queued, by one thread
//!    at a time: a second one that finds `performing` set leaves its effects to
//!    the first. So events reach the author's side, and batches the store, in the
//!    order in which the machine decided on them.
//! 3. A panic in an effect breaks this generation and nothing else.

pub mod activity;
mod alarm;
mod calls;
mod commits;
pub(crate) mod connections;
mod effect;
mod ends;
pub mod gate;
pub mod inspection;
pub mod lifecycle;
mod machine;
mod on_demand;
pub mod queue;
mod requests;
pub mod rows;
mod run;
pub mod run_handler;
pub mod save_queue;
mod schedules;
mod shutdown;
mod signal;
mod sql;
mod startup;
mod transaction_commits;
mod transactions;
mod turn_sql;
pub mod waits;
mod work;
mod workflow;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

use self::effect::{Effect, With};
use self::machine::Machine;
pub use self::requests::InPlace;
pub(crate) use self::requests::callback_timed_out;
use self::signal::{LazySignal, Over};
pub(crate) use self::transaction_commits::Covers;
pub(crate) use self::transactions::TransactionId;
pub use self::turn_sql::RanInTurn;
pub use self::work::WorkRegion;
use super::behavior::{ActorEvent, Behavior, Hooks, StopOutcome};
use super::config::ActorConfig;
use super::context::{ActorContext, ActorParts};
use super::host::Host;
use super::identity::Identity;
use super::runtime::Runtime;
use super::spawner::panic_text;
use super::timers::Timed;
use crate::error::Error;
use crate::metrics::ActorMetrics;
use crate::store::ActorStoreRef;
use crate::time::Instant;

/// What all handles on one generation share.
pub(crate) struct Actor {
    identity: Identity,
    config: Arc<ActorConfig>,
    hooks: Hooks,
    store: ActorStoreRef,
    host: Arc<dyn Host>,
    runtime: Arc<Runtime>,
    /// Set once, before anybody else holds a handle.
    behavior: OnceLock<Arc<dyn Behavior>>,
    machine: Mutex<Machine>,
    tokens: Tokens,
    /// Wakes those who wait for a change of activity.
    changed: Notify,
    tasks: work::Tasks,
    /// What the author's statements reach.
    sql: sql::SqlDesk,
    metrics: ActorMetrics,
}

/// The signals of one generation.
#[derive(Debug, Default)]
struct Tokens {
    /// "Wrap up": fires when the actor begins to stop.
    abort: LazySignal,
    /// "Stop now": fires when the grace period is used up.
    deadline: LazySignal,
    /// The generation is over, however it ended.
    over: Over,
}

impl Actor {
    /// Makes a generation that is not started.
    pub(super) fn new(parts: ActorParts) -> Arc<Self> {
        let config = Arc::clone(parts.factory.config());
        let machine = Machine::new(Arc::clone(&config), parts.identity.generation);
        let actor = Arc::new(Self {
            metrics: parts.runtime.metrics().actor(parts.identity.name.as_str()),
            identity: parts.identity,
            hooks: parts.factory.hooks(),
            store: parts.store,
            host: parts.host,
            runtime: parts.runtime,
            behavior: OnceLock::new(),
            machine: Mutex::new(machine),
            tokens: Tokens::default(),
            changed: Notify::new(),
            tasks: work::Tasks::default(),
            sql: sql::SqlDesk::default(),
            config,
        });
        let behavior = parts.factory.attach(ActorContext::from_actor(Arc::clone(&actor)));
        drop(actor.behavior.set(behavior));
        actor
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn config(&self) -> &Arc<ActorConfig> {
        &self.config
    }

    /// Locks, takes one step, unlocks, and performs what became necessary.
    fn step<R>(self: &Arc<Self>, step: impl FnOnce(&mut Machine, Instant) -> R) -> R {
        let (result, perform, drained, watched) = {
            let mut machine = self.machine.lock();
            let now = self.runtime.clock().now();
            let result = step(&mut machine, now);
            self.begin_flush(&mut machine, now);
            machine.start_due_save(now, |revision, epoch| self.ask_for_snapshot(revision, epoch));
            machine.settle(now, || self.runtime.clock().unix_ms());
            self.show_counts(&mut machine);
            self.show_queue(&mut machine);
            let perform = !machine.effects.is_empty() && !machine.performing;
            machine.performing |= perform;
            let drained = match machine.grace_drained() {
                Some(true) => machine.grace.as_ref().map(|grace| Arc::clone(&grace.drained)),
                _ => None,
            };
            (result, perform, drained, machine.watchers > 0)
        };
        if perform {
            self.perform();
        }
        if let Some(drained) = drained {
            drained.notify_one();
        }
        if watched {
            self.changed.notify_waiters();
        }
        result
    }

    /// Does all queued effects, those included that are queued meanwhile.
    fn perform(self: &Arc<Self>) {
        loop {
            let effects = {
                let mut machine = self.machine.lock();
                if machine.effects.is_empty() {
                    machine.performing = false;
                    return;
                }
                std::mem::take(&mut machine.effects)
            };
            for effect in effects {
                let done = std::panic::catch_unwind(AssertUnwindSafe(|| self.perform_one(effect)));
                if let Err(panic) = done {
                    self.panicked(&panic_text(panic.as_ref()));
                }
            }
        }
    }

    fn perform_one(self: &Arc<Self>, effect: Effect) {
        match effect {
            Effect::Deliver(event) => self.deliver(event),
            Effect::Discard(event) => drop(event),
            Effect::Commit { number, batch, origin, with } => {
                let actor = Arc::clone(self);
                let done = Box::new(move |result| actor.committed(number, origin, result));
                match with {
                    With::Nothing => self.store.commit(batch, done),
                    With::Turn(turn) => turn.into_file().commit(batch, done),
                    With::Transaction(sql) => self.commit_transaction(sql, batch, done),
                }
            }
            Effect::Arm(at) => {
                let target: Weak<dyn Timed> = Arc::downgrade(self) as Weak<dyn Timed>;
                self.runtime.timers().arm(at, target);
            }
            Effect::SendIntent => {
                let intent = self.machine.lock().lifecycle.take_intent();
                if let Some(intent) = intent {
                    self.host.intent(&self.context(), intent);
                }
            }
            Effect::Release(output) => output.leave(),
            Effect::Begun(waiting) => {
                for reply in waiting {
                    reply.send(Ok(()));
                }
            }
            Effect::ReadMessages { waiter, ids } => self.read_messages(waiter, ids),
            Effect::EndWait(reply) => reply.send(Ok(())),
            Effect::Log(line) => (line.0)(),
            Effect::BeginGrace(reason) => self.begin_grace(reason),
            Effect::EndTurn(turn) => drop(turn),
            // Nobody waits for it: what it holds up goes on behind it.
            Effect::EndTransaction { sql, expired: true } => drop(sql.expire()),
            Effect::EndTransaction { sql, expired: false } => drop(sql.roll_back()),
            Effect::TickSql => self.tick_sql(),
            Effect::Break(error) => self.break_generation(error),
            Effect::Stopped(outcome) => self.perform_stopped(outcome),
        }
    }

    /// The generation is over. Whatever the author's side makes of it, the host
    /// hears of it, or it would wait for ever.
    fn perform_stopped(self: &Arc<Self>, outcome: StopOutcome) {
        let told = std::panic::catch_unwind(AssertUnwindSafe(|| {
            self.deliver(ActorEvent::Stopped(outcome.clone()));
        }));
        if let Err(panic) = told {
            let text = panic_text(panic.as_ref());
            tracing::error!(actor_id = %self.identity.id, panic = text, "the author's side panicked as it was told of the end");
        }
        self.tokens.abort.fire();
        if matches!(outcome, StopOutcome::Broken(_) | StopOutcome::StartFailed(_)) {
            self.tokens.deadline.fire();
        }
        self.tokens.over.tell();
        self.end_waits();
        self.metrics.stop();
        self.drop_sql();
        let rested = matches!(outcome, StopOutcome::Slept | StopOutcome::Destroyed);
        if rested || self.store.file().is_none() {
            return self.host.stopped(&self.context(), outcome);
        }
        let actor = Arc::clone(self);
        self.runtime.spawner().spawn("rest", async move {
            actor.rest().await;
            actor.host.stopped(&actor.context(), outcome);
        });
    }

    fn deliver(&self, event: ActorEvent) {
        tracing::debug!(actor_id = %self.identity.id, event = event.label(), "actor event");
        if let Some(behavior) = self.behavior.get() {
            behavior.deliver(event);
        }
    }

    /// See [`Behavior::number`].
    pub(super) fn behavior_number(&self) -> u64 {
        self.behavior.get().map_or(0, |behavior| behavior.number())
    }

    fn context(self: &Arc<Self>) -> ActorContext {
        ActorContext::from_actor(Arc::clone(self))
    }

    /// A panic in our own code or in a callback: what the generation holds in
    /// memory can no longer be trusted.
    fn panicked(self: &Arc<Self>, text: &str) {
        tracing::error!(actor_id = %self.identity.id, panic = text, "an actor's step panicked");
        self.break_generation(Error::internal(format_args!("panic: {text}")));
    }

    /// Voids the memory of this generation: what is open is answered with `error`,
    /// no hook runs, nothing more is stored.
    pub(super) fn break_generation(self: &Arc<Self>, error: Error) {
        self.step(|machine, _| self.break_within(machine, error));
        self.abort_tasks();
    }

    /// The same within a step, for what must not be seen by another one before. Whoever
    /// calls it aborts the tasks behind the step.
    fn break_within(&self, machine: &mut Machine, error: Error) {
        if machine.is_over() {
            return;
        }
        let error = error.with_actor(self.identity.specifier());
        machine.void(&error);
        machine.lifecycle.terminate();
        machine.broken = Some(error.clone());
        machine.effects.push_back(Effect::Stopped(StopOutcome::Broken(error)));
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.runtime.timers().left();
    }
}

impl Timed for Actor {
    fn tick(self: Arc<Self>) {
        self.step(|machine, now| {
            machine.disarm(now);
            if machine.is_over() {
                return;
            }
            self.time_out_calls(machine, now);
            self.time_out_snapshot(machine, now);
            self.time_out_closings(machine, now);
            self.restart_due_run(machine, now);
            machine.tick_queue(self.moment(now));
            if machine.later.made().and_then(schedules::Later::due).is_some_and(|due| due <= now) {
                self.fire_alarms(machine);
            }
            machine.expire_transaction(now);
            waits::end_due_waits(machine, now);
            if machine.sql_is_due(now) {
                machine.effects.push_back(Effect::TickSql);
            }
            if machine.idle_elapsed(now) {
                machine.restart_idle();
                self.idle_sleep(machine);
            }
        });
    }
}

impl std::fmt::Debug for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Actor")
            .field("actor_id", &self.identity.id)
            .field("name", &self.identity.name)
            .field("key", &self.identity.key)
            .field("region", &self.identity.region)
            .finish()
    }
}
