//! All that only an actor's one lock may change, and the pure steps over it.
//!
//! A step changes the parts and queues [`Effect`]s; they are done after the
//! unlock, in order, by whoever unlocks (`mod.rs`).
//!
//! # Invariants
//!
//! 1. Effects are queued in the order of the changes that caused them.
//! 2. After every step a tick is on its way that is no later than the next thing
//!    that is due, and no two are on their way for the same moment.
//! 3. `idle_since` is set exactly while nothing keeps a started actor awake.
//! 4. Once the generation is over, its author's side hears of nothing more.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Notify;

use super::activity::{Activity, CanSleep};
use super::alarm::Alarm;
use super::calls::Calls;
use super::connections::ConnDesk;
use super::effect::{CommitOrigin, Effect, LogLine, Output, SaveOf, With};
use super::gate::{CommitNumber, Gate, Held, Required, StatementNumber};
use super::inspection::Inspection;
use super::lifecycle::{Lifecycle, LifecycleError, Phase, StopReason};
use super::on_demand::OnDemand;
use super::queue::QueueDesk;
use super::rows::TurnRows;
use super::run_handler::RunHandler;
use super::save_queue::SaveQueue;
use super::schedules::Later;
use super::transactions::Transactions;
use super::waits::Waits;
use super::workflow::Flushes;
use crate::core::behavior::{ActorEvent, Reply, StateDelta};
use crate::core::config::{ActorConfig, Durability};
use crate::core::warnings::WarningWindows;
use crate::error::Error;
use crate::ids::Generation;
use crate::store::{RowOp, WriteBatch};
use crate::time::{Duration, Instant};

/// How long a snapshot may take.
pub(super) const SNAPSHOT_LIMIT: Duration = Duration::from_secs(15);

/// What is kept of the stored record, and how snapshots are told apart.
#[derive(Debug, Default)]
pub(super) struct StateCell {
    /// The state as it was loaded or last written successfully; empty for none.
    pub(super) current: Bytes,
    /// Whether the record is marked as initialised, durably.
    pub(super) initialized: bool,
    /// Raised wherever a serialised snapshot becomes outdated; one that was
    /// asked for under an older epoch is thrown away.
    pub(super) epoch: u64,
}

/// A snapshot that is on its way.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// The save request that it covers, by which its answer is known.
    pub(super) revision: u64,
    /// When it counts as failed.
    pub(super) deadline: Instant,
}

/// The window between a stop command and the last save.
#[derive(Debug)]
pub(super) struct Grace {
    /// Why the actor stops.
    pub(super) reason: StopReason,
    /// When it ends at the latest.
    pub(super) deadline: Instant,
    /// What calls that still run are answered with, where somebody ended it early.
    pub(super) cut_short: Option<Error>,
    /// Woken when the last work that holds it ends.
    pub(super) drained: Arc<Notify>,
}

/// The parts of one generation.
#[derive(Debug)]
pub(super) struct Machine {
    config: Arc<ActorConfig>,
    generation: Generation,
    pub(super) lifecycle: Lifecycle,
    pub(super) activity: Activity,
    pub(super) calls: Calls,
    pub(super) saves: SaveQueue<Reply<()>>,
    pub(super) gate: Gate<Output>,
    pub(super) run: RunHandler,
    pub(super) waits: Waits<Reply<()>>,
    pub(super) state: StateCell,
    pub(super) grace: Option<Grace>,
    /// Attempts of `run` that were replaced and have not ended; they hold the actor
    /// as the current one does.
    pub(super) replaced_runs: usize,
    /// What the gauges were last told.
    pub(super) shown: [usize; 3],
    /// A stop that came before the start was over.
    pub(super) parked_stop: Option<StopReason>,
    /// Why the memory of this generation is void.
    pub(super) broken: Option<Error>,
    /// The author's side has changed the state and will push a commit.
    pub(super) pushes_pending: bool,
    /// Changes of rows that no commit carries yet.
    pub(super) rows: TurnRows,
    /// The queue, and who waits for it.
    pub(super) desk: OnDemand<QueueDesk>,
    /// Who is connected.
    pub(super) connections: OnDemand<ConnDesk>,
    /// When the host must wake the actor.
    pub(super) alarm: Alarm,
    /// What is to be done later.
    pub(super) later: OnDemand<Later>,
    /// The snapshot that the author's side was asked for and has not answered.
    pub(super) snapshot: Option<Snapshot>,
    /// Who waits for one certain commit. Apart from the gate, since the core's own
    /// steps wait here and must not queue behind outputs.
    pub(super) commit_waiters: Vec<(CommitNumber, Reply<()>)>,
    /// State transactions; made for the first one.
    pub(super) transactions: Option<Box<Transactions>>,
    /// The author's side has closed its rows for the rest of the generation.
    pub(super) rows_closed: bool,
    /// The last save was taken: nothing can be stored any more.
    pub(super) last_saved: bool,
    /// Flushes of a workflow; made for the first one.
    pub(super) flushes: Option<Box<Flushes>>,
    /// When something of the author's statements is overdue.
    pub(super) sql_due: Option<Instant>,
    /// The turn that uses SQL, unless a statement runs in it.
    pub(super) sql_turn: Option<super::turn_sql::OpenTurn>,
    /// Whether a turn uses SQL: from before its first statement to its end or commit.
    pub(super) sql_in_use: bool,
    /// Whether its statements have written.
    pub(super) sql_wrote: bool,
    /// Commits that the store has not answered.
    pub(super) writes_in_flight: usize,
    /// Since when nothing keeps the actor awake (invariant 3).
    idle_since: Option<Instant>,
    /// The earliest tick that is on its way. One is armed only when it is earlier than
    /// all, so there are few (invariant 2), and mostly this one alone.
    armed: Option<Instant>,
    /// The later ones, the earliest last.
    armed_later: Vec<Instant>,
    /// What is to be done after the unlock.
    pub(super) effects: VecDeque<Effect>,
    /// Which warnings this actor has had lately.
    pub(super) warnings: WarningWindows,
    /// Somebody does the effects at this moment.
    pub(super) performing: bool,
    /// How many wait for a change of activity.
    pub(super) watchers: usize,
    /// What is counted for those who look.
    pub(super) inspection: Inspection,
}

impl Machine {
    pub(super) fn new(config: Arc<ActorConfig>, generation: Generation) -> Self {
        Self {
            generation,
            lifecycle: Lifecycle::default(),
            activity: Activity::default(),
            calls: Calls::new(config.action_timeout),
            saves: SaveQueue::new(config.state_save_interval),
            gate: Gate::new(config.durability),
            run: RunHandler::new(config.restarts_run),
            waits: Waits::new(),
            state: StateCell::default(),
            grace: None,
            replaced_runs: 0,
            shown: [0; 3],
            parked_stop: None,
            broken: None,
            pushes_pending: false,
            rows: TurnRows::default(),
            desk: OnDemand::new(&config, QueueDesk::new),
            connections: OnDemand::new(&config, |_| ConnDesk::default()),
            alarm: Alarm::default(),
            later: OnDemand::new(&config, |config| Later::new(config.max_schedules as usize)),
            snapshot: None,
            commit_waiters: Vec::new(),
            transactions: None,
            rows_closed: false,
            last_saved: false,
            flushes: None,
            sql_due: None,
            sql_turn: None,
            sql_in_use: false,
            sql_wrote: false,
            writes_in_flight: 0,
            idle_since: None,
            armed: None,
            armed_later: Vec::new(),
            effects: VecDeque::new(),
            warnings: WarningWindows::default(),
            performing: false,
            watchers: 0,
            inspection: Inspection::default(),
            config,
        }
    }

    pub(super) fn config(&self) -> &ActorConfig {
        &self.config
    }

    /// Whether the generation is over, or as good as over.
    pub(super) fn is_over(&self) -> bool {
        self.broken.is_some() || self.lifecycle.phase() == Phase::Terminated
    }

    /// Queues an event for the author's side (invariant 4).
    pub(super) fn deliver(&mut self, event: ActorEvent) {
        // Dropping an event answers its reply, which calls out: not under the lock.
        let over = self.is_over();
        self.effects.push_back(if over { Effect::Discard(event) } else { Effect::Deliver(event) });
    }

    /// Whether anything in memory may differ from what the store was last given.
    pub(super) fn is_dirty(&self) -> bool {
        self.state_is_dirty() || self.has_rows()
    }

    /// Whether rows wait for a commit, those of statements and urgent ones of connections
    /// included.
    pub(super) fn has_rows(&self) -> bool {
        !self.rows.is_empty() || self.sql_wrote || self.has_connection_rows()
    }

    pub(super) fn generation(&self) -> Generation {
        self.generation
    }

    /// Whether the state may.
    pub(super) fn state_is_dirty(&self) -> bool {
        self.pushes_pending || self.snapshot.is_some() || self.saves.is_open()
    }

    /// What an output must wait for that is made now.
    pub(super) fn required(&self) -> Required {
        self.gate.required(self.is_dirty())
    }

    /// Lets an output leave, or holds it until what it must wait for is durable.
    pub(super) fn emit(&mut self, output: Output) {
        if let Some(error) = &self.broken {
            let output = output.fail(error.clone());
            self.effects.push_back(Effect::Release(output));
            return;
        }
        let statement = self.gate.required_statement();
        self.hold_behind(self.required(), statement, output);
    }

    /// Holds an output until `required`.
    pub(super) fn hold(&mut self, required: Required, output: Output) {
        self.hold_behind(required, StatementNumber::NONE, output);
    }

    /// Holds an output until `required`, and until all statements up to `statement` have
    /// ended.
    pub(super) fn hold_behind(
        &mut self,
        required: Required,
        statement: StatementNumber,
        output: Output,
    ) {
        match self.gate.hold_behind(required, statement, output) {
            Held::Waits => {}
            Held::Leaves(output) => self.effects.push_back(Effect::Release(output)),
            Held::Broken(output) => {
                let error = self.broken.clone();
                let error = error.unwrap_or_else(|| LifecycleError::Stopping.into());
                self.effects.push_back(Effect::Release(output.fail(error)));
            }
        }
    }

    /// Begins a commit of what the author's side has serialised, and of all rows
    /// that wait for one. The state is absent when nothing of it changed.
    pub(super) fn begin_commit(
        &mut self,
        deltas: Vec<StateDelta>,
        extra: Vec<RowOp>,
        save: SaveOf,
    ) -> CommitNumber {
        self.begin_commit_with(deltas, extra, save, None)
    }

    /// The same with the statements of a state transaction, or else of the turn.
    pub(super) fn begin_commit_with(
        &mut self,
        deltas: Vec<StateDelta>,
        extra: Vec<RowOp>,
        save: SaveOf,
        with: Option<With>,
    ) -> CommitNumber {
        let mut state = None;
        let rows = std::mem::take(&mut self.rows);
        let mut ops = rows.ops;
        ops.extend(extra);
        for delta in deltas {
            match delta {
                StateDelta::ActorState(bytes) => {
                    ops.push(RowOp::PutState(bytes.clone()));
                    state = Some(bytes);
                }
                StateDelta::ConnectionState { id, state } => self.hand_connection_over(&id, state),
                StateDelta::ConnectionRemoved { id } => self.connections.table.forget(id),
            }
        }
        let (connection_ops, connections) = self.take_connection_rows();
        ops.extend(connection_ops);
        let carries_all = match save {
            // What was asked for while a snapshot was on its way is not in it, so what
            // may reveal it waits for the next.
            SaveOf::Pulled(_) => !self.saves.is_open(),
            SaveOf::Pushed(_) => true,
            SaveOf::Rows => !self.state_is_dirty(),
        };
        let number = self.gate.begin(carries_all);
        self.alarm.set_schedules(self.schedule_alarm());
        self.writes_in_flight += 1;
        let with = with.unwrap_or_else(|| {
            let turn = self.sql_turn.take();
            self.sql_in_use &= turn.is_none();
            turn.map_or(With::Nothing, With::Turn)
        });
        // What an author's statements wrote cannot be tried again.
        let in_memory = std::mem::take(&mut self.sql_wrote) || rows.in_memory;
        let origin = CommitOrigin { save, state, in_memory, connections };
        let batch = WriteBatch {
            generation: self.generation,
            ops,
            alarm: self.alarm.take(),
            fails_generation: in_memory || self.config.durability == Durability::Reply,
        };
        self.effects.push_back(Effect::Commit { number, batch, origin, with });
        if !rows.readers.is_empty() {
            self.effects.push_back(Effect::Begun(rows.readers));
        }
        number
    }

    /// Whether a save may begin: a hook or an action that waits for one must not
    /// wait in vain. Before the first save there is nothing to save yet, and the
    /// last one is no other's.
    pub(super) fn saves_now(&self) -> bool {
        match self.lifecycle.phase() {
            Phase::Loading => self.state.initialized,
            Phase::Started | Phase::SleepGrace | Phase::DestroyGrace => true,
            Phase::SleepFinalize | Phase::Destroying | Phase::Terminated => false,
        }
    }

    /// Whether what changes now can still be saved.
    pub(super) fn may_save(&self) -> bool {
        !self.is_over() && self.saves_now()
    }

    /// Whether the only commit that may still come is the one at the end.
    pub(super) fn last_save_comes(&self) -> bool {
        let phase = self.lifecycle.phase();
        let ends = matches!(phase, Phase::SleepFinalize | Phase::Destroying);
        ends && !self.is_over() && !self.last_saved
    }

    /// Whether a commit may begin: while a state transaction is open none does.
    pub(super) fn may_push(&self) -> bool {
        self.may_save() && !self.is_in_transaction()
    }

    /// Asks the author's side for a snapshot when a save is due.
    pub(super) fn start_due_save(
        &mut self,
        now: Instant,
        ask: impl FnOnce(u64, u64) -> ActorEvent,
    ) {
        let due = self.saves.due().is_some_and(|due| due <= now);
        if !due || self.saves.is_saving() || !self.may_push() {
            return;
        }
        let revision = self.saves.begin(now);
        self.snapshot = Some(Snapshot { revision, deadline: now + SNAPSHOT_LIMIT });
        let event = ask(revision, self.state.epoch);
        self.deliver(event);
    }

    /// Whether the actor may sleep now, and if not, the first reason.
    pub(super) fn can_sleep(&mut self) -> CanSleep {
        self.activity.dirty = self.is_dirty() || self.writes_in_flight > 0;
        self.activity.can_sleep(self.lifecycle.started(), self.config.no_sleep)
    }

    /// To be called at the end of every step: looks again at whether the actor
    /// may sleep or has drained, and keeps invariants 2 and 3.
    pub(super) fn settle(&mut self, now: Instant, unix_ms: impl FnOnce() -> i64) {
        if self.is_over() {
            self.idle_since = None;
            return;
        }
        self.arm_alarm(now, unix_ms);
        // Nothing waits for a commit that nobody has a reason to begin.
        if self.gate.waiting_len() > 0 && !self.is_dirty() {
            let free = self.gate.settle();
            self.effects.extend(free.into_iter().map(Effect::Release));
        }
        if self.lifecycle.phase() == Phase::Started && !self.lifecycle.sleep_requested() {
            if self.can_sleep() == CanSleep::Yes {
                self.idle_since.get_or_insert(now);
            } else {
                self.idle_since = None;
            }
        } else {
            self.idle_since = None;
        }
        if let Some(due) = self.next_due()
            && self.armed.is_none_or(|armed| due < armed)
        {
            self.armed_later.extend(self.armed.replace(due));
            self.effects.push_back(Effect::Arm(due));
        }
    }

    /// Notes that the ticks up to `now` have come.
    pub(super) fn disarm(&mut self, now: Instant) {
        while self.armed.is_some_and(|armed| armed <= now) {
            self.armed = self.armed_later.pop();
        }
    }

    /// Writes to the log after the unlock.
    pub(super) fn log(&mut self, line: impl FnOnce() + Send + 'static) {
        self.effects.push_back(Effect::Log(LogLine(Box::new(line))));
    }

    /// Whether the idle time is over.
    pub(super) fn idle_elapsed(&self, now: Instant) -> bool {
        self.idle_since.is_some_and(|since| since + self.config.sleep_timeout <= now)
    }

    /// Starts the idle time anew.
    pub(super) fn restart_idle(&mut self) {
        self.idle_since = None;
    }

    /// The next moment at which something is due by itself.
    fn next_due(&mut self) -> Option<Instant> {
        let saves_now = self.may_push() && !self.saves.is_saving();
        [
            self.idle_since.map(|since| since + self.config.sleep_timeout),
            self.saves.due().filter(|_| saves_now),
            self.calls.next_deadline(),
            self.run.restart_due(),
            self.desk.made().and_then(QueueDesk::due).filter(|_| self.takes_rows()),
            self.later.made().and_then(Later::due),
            self.waits.next_due(),
            self.sql_due,
            self.transaction_due(),
            self.connections.made().and_then(|desk| desk.closings.next_due()),
            self.snapshot.as_ref().map(|snapshot| snapshot.deadline),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Whether the grace period has nothing left to wait for.
    pub(super) fn grace_drained(&self) -> Option<bool> {
        let grace = self.grace.as_ref()?;
        Some(self.activity.grace_drained(grace.reason) && !self.saves.is_saving())
    }
}
