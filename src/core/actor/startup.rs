//! The start of a generation: load the record, run the hooks, take work.
//!
//! # Invariants
//!
//! 1. The hooks run in this order: migrate, create state and create (only for a
//!    new actor), create vars, wake, before start; then `run` is launched.
//! 2. A new actor is marked as initialised in the same commit as its first state,
//!    and not before: a start that fails earlier leaves nothing behind, and the
//!    next one is again the first, with the same input.
//! 3. A stored input wins over any other.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;

use super::Actor;
use super::effect::{Effect, Output, SaveOf};
use super::lifecycle::LifecycleError;
use super::requests::callback_timed_out;
use super::rows::Rows;
use crate::core::behavior::{
    ActorEvent, Hook, Reply, SerializeReason, StateDelta, StopOutcome, dropped_reply,
};
use crate::core::connections::Conn;
use crate::core::spawner::panic_text;
use crate::error::{Error, ErrorCode, Result};
use crate::metrics::StartupPhase;
use crate::store::{ActorRecord, RowOp, StoredConnection};
use crate::time::Duration;

/// The step of a start that is going on, for the error of one that fails.
type Phase = &'static str;

impl Actor {
    /// See [`ActorContext::start`](crate::core::context::ActorContext::start).
    pub(crate) async fn start(self: &Arc<Self>) -> Result<()> {
        let mut phase = "load_persisted";
        let began = std::panic::AssertUnwindSafe(self.run_start(&mut phase)).catch_unwind().await;
        let result = began.unwrap_or_else(|panic| {
            Err(Error::internal(format_args!("panic: {}", panic_text(panic.as_ref()))))
        });
        result.map_err(|error| self.start_failed(error, phase))
    }

    async fn run_start(self: &Arc<Self>, phase: &mut Phase) -> Result<()> {
        let mut timer = self.metrics.begin_startup(self.runtime.clock().clone());
        let record = self.or_over(self.store.load()).await??;
        let is_new = !record.has_initialized;
        timer.set_is_new(is_new);
        timer.end_phase(StartupPhase::LoadPersisted);
        let input = self.install(record);
        timer.end_phase(StartupPhase::CoreInit);

        if self.config.opens_database {
            *phase = "open_database";
            self.prepare_file().await?;
        }
        *phase = "on_migrate";
        if self.hooks.migrate {
            self.hook(Hook::Migrate { is_new }, self.config.on_migrate_timeout).await?;
        }
        self.initialize(is_new, input, phase).await?;
        *phase = "create_vars";
        if self.hooks.create_vars {
            let began = self.runtime.clock().now();
            self.hook(Hook::CreateVars, self.config.create_vars_timeout).await?;
            self.metrics.create_vars(self.runtime.clock().now().since(began));
        }
        *phase = "on_wake";
        if self.hooks.wake {
            self.hook(Hook::Wake, self.config.on_wake_timeout).await?;
        }
        *phase = "on_before_actor_start";
        if self.hooks.before_start {
            self.hook(Hook::BeforeStart, self.config.on_before_actor_start_timeout).await?;
        }
        *phase = "ready";
        timer.end_phase(StartupPhase::RuntimePreamble);
        self.become_ready()?;
        timer.finish();
        Ok(())
    }

    /// Takes over what is stored; returns the input.
    fn install(self: &Arc<Self>, record: ActorRecord) -> Option<Bytes> {
        let connections = self.find_peers(record.connections);
        self.step(|machine, now| {
            // State of an actor that was never initialised is that of a start
            // that died: the next one begins from nothing.
            machine.state.initialized = record.has_initialized;
            machine.state.current =
                record.state.filter(|_| record.has_initialized).unwrap_or_default();
            machine.alarm.loaded(record.alarm);
            let mut ops = machine.install_queue(record.queue, self.moment(now));
            ops.extend(self.install_schedules(machine, record.schedules));
            self.install_connections(machine, connections);
            machine.alarm.set_schedules(machine.schedule_alarm());
            machine.alarm.find_own(self.unix_ms());
            // Only now: the commit tells the directory when both must be woken.
            if !ops.is_empty() {
                machine.write_own_rows(Rows { ops, in_memory: true });
            }
        });
        record.input
    }

    /// Asks the host which stored connections still have a socket.
    fn find_peers(
        self: &Arc<Self>,
        stored: Vec<StoredConnection>,
    ) -> Vec<(StoredConnection, Arc<Conn>, bool)> {
        let context = self.context();
        let settle = |stored: StoredConnection| {
            let peer = self.host.peer(&context, stored.socket);
            let is_live = peer.is_some();
            let conn = Arc::new(Conn::restored(&stored, peer));
            (stored, conn, is_live)
        };
        stored.into_iter().map(settle).collect()
    }

    /// Makes the first state of a new actor, or of one whose earlier start died
    /// before it had any, and commits it.
    async fn initialize(
        self: &Arc<Self>,
        is_new: bool,
        input: Option<Bytes>,
        phase: &mut Phase,
    ) -> Result<()> {
        let has_snapshot = !self.state().is_empty();
        if !is_new && (has_snapshot || !self.config.has_state) {
            return Ok(());
        }
        *phase = "create_state";
        let mut created = None;
        if self.hooks.create_state {
            let hook = Hook::CreateState { input: input.clone() };
            let began = self.runtime.clock().now();
            created = self.hook(hook, self.config.create_state_timeout).await?;
            self.step(|machine, _| machine.state.current = created.clone().unwrap_or_default());
            self.metrics.create_state(self.runtime.clock().now().since(began));
        } else if !is_new {
            return Err(Error::new(
                ErrorCode::new("actor", "missing_state"),
                "the actor has no stored state and its type does not create one",
            ));
        }
        *phase = "on_create";
        if is_new && self.hooks.create {
            self.hook(Hook::Create { input }, self.config.on_create_timeout).await?;
        }
        *phase = "initial_save";
        self.commit_initial(created).await
    }

    /// Commits the first snapshot; without one, what `create_state` made. It begins
    /// in the step in which the snapshot arrives, so that it holds all it claims to.
    async fn commit_initial(self: &Arc<Self>, created: Option<Bytes>) -> Result<()> {
        let (done, outcome) = Reply::channel();
        let actor = Arc::clone(self);
        let reply = Reply::new(move |deltas| actor.begin_initial(created, deltas, done));
        if self.hooks.serialize_state {
            let reason = SerializeReason::Save;
            self.step(|machine, _| machine.deliver(ActorEvent::SerializeState { reason, reply }));
        } else {
            reply.send(Ok(Vec::new()));
        }
        self.or_over(outcome).await?
    }

    fn begin_initial(
        self: &Arc<Self>,
        created: Option<Bytes>,
        deltas: Result<Vec<StateDelta>>,
        done: Reply<()>,
    ) {
        let mut deltas = match deltas {
            Ok(deltas) => deltas,
            Err(error) => return done.send(Err(error)),
        };
        if deltas.is_empty() {
            deltas.extend(created.map(StateDelta::ActorState));
        }
        self.step(|machine, _| {
            if machine.is_over() {
                machine.effects.push_back(Effect::Release(Output::Flushed(done, Ok(()))));
                return;
            }
            machine.state.initialized = true;
            machine.pushes_pending = false;
            let revision = machine.saves.begin_directly();
            let extra = vec![RowOp::PutInitialized(true)];
            let number = machine.begin_commit(deltas, extra, SaveOf::Pushed(revision));
            machine.watch_commit(number, done);
        });
    }

    fn become_ready(self: &Arc<Self>) -> Result<()> {
        let started = self.step(|machine, now| {
            if machine.is_over() || machine.lifecycle.become_started().is_none() {
                return false;
            }
            self.log_phase(machine);
            self.bury_dead(machine, now);
            if self.hooks.run {
                self.start_run(machine);
            }
            if let Some(reason) = machine.parked_stop.take() {
                self.enter_grace(machine, reason, now);
            }
            self.fire_alarms(machine);
            true
        });
        if started { Ok(()) } else { Err(self.over_error()) }
    }

    /// Hands a hook over and waits for its end, at most `timeout`.
    pub(super) async fn hook(
        self: &Arc<Self>,
        hook: Hook,
        timeout: Duration,
    ) -> Result<Option<Bytes>> {
        let label = hook.label();
        let (reply, outcome) = Reply::channel();
        self.step(|machine, _| machine.deliver(ActorEvent::Hook { hook, reply }));
        let waited = self.or_over(async {
            tokio::select! {
                outcome = outcome => outcome,
                () = self.runtime.clock().sleep(timeout) => Err(callback_timed_out(label, timeout)),
            }
        });
        waited.await?
    }

    /// Waits for `future`, or for the end of the generation.
    pub(super) async fn or_over<F: Future>(self: &Arc<Self>, future: F) -> Result<F::Output> {
        tokio::select! {
            biased;
            () = self.tokens.over.reached() => Err(self.over_error()),
            output = future => Ok(output),
        }
    }

    /// Why the generation is over.
    fn over_error(&self) -> Error {
        let broken = self.machine.lock().broken.clone();
        broken.unwrap_or_else(|| LifecycleError::Stopping.into())
    }

    /// Ends a generation whose start failed. Unless somebody broke it meanwhile,
    /// the host is told here.
    fn start_failed(self: &Arc<Self>, error: Error, phase: Phase) -> Error {
        let dropped = dropped_reply();
        let broken = self.machine.lock().broken.clone();
        let error = match broken {
            Some(broken) if error.is(&dropped.group, &dropped.code) => broken,
            _ => error,
        };
        let error = error.with_actor(self.identity.specifier()).with_phase(phase);
        self.step(|machine, _| {
            if machine.is_over() {
                return;
            }
            machine.void(&error);
            machine.lifecycle.terminate();
            machine.broken = Some(error.clone());
            machine.effects.push_back(Effect::Stopped(StopOutcome::StartFailed(error.clone())));
        });
        self.abort_tasks();
        error
    }
}
