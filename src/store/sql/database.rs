//! The asynchronous way to an actor's database: the coordinator, driven over the one
//! connection of the file.
//!
//! # Invariants
//!
//! 1. What is asked for is taken when it is asked for, not when somebody first waits
//!    for it, so calls keep their order.
//! 2. Nobody has to wait: what has begun is carried out whoever waits. Only a
//!    statement that has not begun is given up with its caller.
//! 3. The lock covers bookkeeping; steps are handed over and answers sent after the
//!    unlock.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::coordinator::{
    Coordinator, DEFAULT_TIMEOUT, Effect, Ran, Request, Step, Ticket, Warning,
};
use super::error::SqlError;
use super::reply::SqlReply;
use super::rows::SqlOutcome;
use super::short::ShortStatements;
use super::text::{self, StatementKind};
use super::transaction::SqlTransaction;
use super::value::Bindings;
use super::work::{Answer, Payload, SqlWork};
use crate::ids::IdSource;
use crate::store::CommitDone;
use crate::time::{Clock, Duration, Instant};

/// The longest name of a transaction, in bytes of UTF-8.
const MAX_NAME: usize = 128;

/// The place that has the connection of an actor's file.
pub trait SqlHost: Send + Sync + 'static {
    /// Something is asked for that may commit, and is about to be taken; or, for a caller
    /// that waits, something has committed and nobody can have seen it. What this returns is
    /// called once, when it is on the disk or known to have failed.
    fn commits(&self) -> Option<CommitEnd> {
        None
    }

    /// Performs the work on a thread that may wait for a disk, as soon as no turn has
    /// the connection; here and now if it is short and may be. Called from any thread.
    fn run(&self, work: SqlWork);

    /// [`SqlDatabase::next_deadline`] has changed: [`SqlDatabase::tick`] is to be called
    /// then.
    fn deadline_changed(&self);

    /// The database failed and takes nothing more. Called once at most.
    fn failed(&self, error: &SqlError);

    /// The name of the file, for messages.
    fn label(&self) -> String;
}

/// Hears how something ended that may have committed: with what it committed on the disk,
/// or with an error.
pub type CommitEnd = Box<dyn FnOnce(Result<(), &SqlError>) + Send>;

/// What a transaction may be given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BeginOptions {
    /// What its handle names it by; a random one when absent.
    pub key: Option<String>,
    /// A name for people, of 1 to 128 bytes.
    pub name: Option<String>,
    /// How long it may take; 60 s when absent.
    pub timeout: Option<Duration>,
}

/// One actor's database in one generation. Clones are the same.
#[derive(Clone)]
pub struct SqlDatabase {
    pub(super) shared: Arc<Shared>,
    /// See [`SqlDatabase::for_who_waits`].
    caller_waits: bool,
}

pub(super) struct Shared {
    pub(super) host: Arc<dyn SqlHost>,
    pub(super) clock: Clock,
    ids: Arc<IdSource>,
    pub(super) short: ShortStatements,
    /// Changed by callers, by whoever ran a step, and by the timer.
    state: Mutex<State>,
}

struct State {
    coordinator: Coordinator,
    /// What is not answered yet.
    pending: HashMap<Ticket, Pending>,
    /// As the host was last told.
    deadline: Option<Instant>,
}

struct Pending {
    /// Taken by the step that runs it.
    payload: Payload,
    answer: Answer,
    /// Whether what was committed must be durable before the answer.
    waits: bool,
    told: Told,
}

/// Who hears the answer.
struct Told {
    reply: Tell,
    commit: Option<CommitEnd>,
}

/// Called with the answer.
type Tell = Box<dyn FnOnce(Result<Answer, SqlError>) + Send>;

impl Told {
    fn tell(self, result: Result<Answer, SqlError>) {
        let end = self.commit.map(|commit| (commit, result.as_ref().err().cloned()));
        (self.reply)(result);
        if let Some((commit, error)) = end {
            commit(error.as_ref().map_or(Ok(()), Err));
        }
    }
}

impl SqlDatabase {
    /// The database on the connection of `host`. It warns of the first transaction begun
    /// by hand if it is told to. `host` must not own this, or neither is ever dropped.
    pub fn new(
        host: Arc<dyn SqlHost>,
        clock: Clock,
        ids: Arc<IdSource>,
        warns_of_manual: bool,
    ) -> Self {
        let state = Mutex::new(State {
            coordinator: Coordinator::new(warns_of_manual),
            pending: HashMap::new(),
            deadline: None,
        });
        Self {
            shared: Arc::new(Shared { host, clock, ids, short: ShortStatements::default(), state }),
            caller_waits: false,
        }
    }

    /// The same for a caller that lets nothing out before it has its answer: only what is
    /// really committed is told to [`SqlHost::commits`], since others may have seen it.
    #[must_use]
    pub fn for_who_waits(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), caller_waits: true }
    }

    /// Runs one statement.
    pub fn execute(&self, sql: impl Into<String>, bindings: Bindings) -> SqlReply<SqlOutcome> {
        let sql = sql.into();
        self.ask(statement(&sql), Payload::Execute { sql, bindings }, outcome)
    }

    /// The same for whoever is told the outcome instead of waiting for it in a future.
    /// `tell` is called on any thread.
    pub fn execute_told(
        &self,
        sql: impl Into<String>,
        bindings: Bindings,
        tell: impl FnOnce(Result<SqlOutcome, SqlError>) + Send + 'static,
    ) {
        let sql = sql.into();
        let tell = Box::new(|result: Result<_, _>| tell(result.map(outcome)));
        // One that is refused is told, too.
        drop(self.submit(statement(&sql), Payload::Execute { sql, bindings }, tell));
    }

    /// Runs all statements of a text; see [`super::SqlSession::exec`].
    pub fn exec(&self, sql: impl Into<String>) -> SqlReply<SqlOutcome> {
        let sql = sql.into();
        let by_hand = text::has_control(&sql);
        self.ask(Request::Statement { by_hand }, Payload::Exec { sql }, outcome)
    }

    /// Runs statements in one transaction, all or none; answers each.
    pub fn execute_batch(&self, statements: Vec<(String, Bindings)>) -> SqlReply<Vec<SqlOutcome>> {
        self.ask(Request::Batch, Payload::Batch(statements), |answer| match answer {
            Answer::Each(outcomes) => outcomes,
            Answer::None | Answer::One(_) => Vec::new(),
        })
    }

    /// Begins a transaction that keeps everybody else out until it ends.
    pub fn begin(
        &self,
        options: BeginOptions,
    ) -> impl Future<Output = Result<SqlTransaction, SqlError>> + Send + use<> {
        let key = options.key.unwrap_or_else(|| self.shared.ids.uuid());
        let transaction = SqlTransaction::new(self.clone(), key.clone());
        let timeout = options.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let begun = match options.name.as_deref().map(check_name) {
            Some(Err(error)) => SqlReply::refused(error),
            Some(Ok(())) | None => self.ask(Request::Begin { key, timeout }, Payload::None, |_| ()),
        };
        async move { begun.await.map(|()| transaction) }
    }

    /// The handle of the transaction of this key, whatever became of it.
    pub fn transaction(&self, key: impl Into<String>) -> SqlTransaction {
        SqlTransaction::new(self.clone(), key.into())
    }

    /// Whether a transaction is open that spans turns.
    pub fn is_transaction_open(&self) -> bool {
        self.coordinate(|coordinator| coordinator.is_transaction_open())
    }

    /// Whether the transaction of this key is open, or is or would be the next to begin: then
    /// whoever waits for that waits for no author.
    pub fn begins_by_itself(&self, key: &str) -> bool {
        self.coordinate(|coordinator| coordinator.begins_by_itself(key))
    }

    /// Takes nothing more, rolls back what is open, and answers once nothing runs.
    pub fn close(&self) -> SqlReply<()> {
        self.ask(Request::Close, Payload::None, |_| ())
    }

    /// When [`SqlDatabase::tick`] has to be called.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.coordinate(|coordinator| coordinator.next_deadline())
    }

    /// Ends what is overdue.
    pub fn tick(&self) {
        let now = self.shared.clock.now();
        self.shared.update(|state| state.coordinator.tick(now), None::<fn(CommitDone)>);
    }

    /// See [`SqlTransaction::prolong`].
    pub(super) fn prolong(&self, key: &str) -> Result<(), SqlError> {
        let deadline = self.shared.clock.now() + DEFAULT_TIMEOUT;
        let prolong = |state: &mut State| state.coordinator.prolong(key, deadline);
        self.shared.update(prolong, None::<fn(CommitDone)>)
    }

    /// Reads or corrects the books; starts nothing.
    pub(super) fn coordinate<T>(&self, act: impl FnOnce(&mut Coordinator) -> T) -> T {
        act(&mut self.shared.state.lock().coordinator)
    }

    pub(super) fn ask<T>(
        &self,
        request: Request,
        payload: Payload,
        read: fn(Answer) -> T,
    ) -> SqlReply<T> {
        let (reply, replied) = oneshot::channel();
        let reply = Box::new(move |result| drop(reply.send(result)));
        match self.submit(request, payload, reply) {
            Ok(ticket) => SqlReply::new(replied, Arc::clone(&self.shared), ticket, read),
            Err(error) => SqlReply::refused(error),
        }
    }

    /// Takes a request. One that is refused is answered, too.
    fn submit(&self, request: Request, payload: Payload, reply: Tell) -> Result<Ticket, SqlError> {
        let now = self.shared.clock.now();
        // Before it is taken, so that it cannot end before anybody knows of it.
        let may_commit = !self.caller_waits && payload.may_commit(&request);
        let commit = if may_commit { self.shared.host.commits() } else { None };
        let told = Told { reply, commit };
        // Taken within, so that what is refused is dropped after the unlock.
        let mut pending = Some(Pending { payload, answer: Answer::None, waits: false, told });
        let taken = self.shared.update(
            |state| {
                let ticket = state.coordinator.submit(now, request)?;
                state.pending.extend(pending.take().map(|pending| (ticket, pending)));
                Ok(ticket)
            },
            None::<fn(CommitDone)>,
        );
        if let (Err(error), Some(pending)) = (&taken, pending) {
            pending.told.tell(Err(SqlError::clone(error)));
        }
        taken
    }
}

impl fmt::Debug for SqlDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlDatabase")
            .field("file", &self.shared.host.label())
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn cancel(self: &Arc<Self>, ticket: Ticket) {
        self.update(|state| state.coordinator.cancel(ticket), None::<fn(CommitDone)>);
    }

    /// A step has run. With `when_durable` its answer waits for the disk.
    pub(super) fn finished(
        self: &Arc<Self>,
        ticket: Ticket,
        ran: Ran,
        answer: Answer,
        when_durable: Option<impl FnOnce(CommitDone)>,
    ) {
        let now = self.clock.now();
        let waits = when_durable.is_some();
        let is_told = |pending: &Pending| pending.told.commit.is_some();
        let untold = waits && !self.state.lock().pending.get(&ticket).is_some_and(is_told);
        // Before anything else can see what was committed.
        let mut commit = if untold { self.host.commits() } else { None };
        let finish = |state: &mut State| {
            if let Some(pending) = state.pending.get_mut(&ticket) {
                (pending.answer, pending.waits) = (answer, waits);
                pending.told.commit = pending.told.commit.take().or_else(|| commit.take());
            }
            state.coordinator.finished(now, ticket, ran);
        };
        self.update(finish, when_durable);
        if let Some(commit) = commit {
            commit(Ok(()));
        }
    }

    /// Changes the state and does what follows from it.
    fn update<T>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut State) -> T,
        when_durable: Option<impl FnOnce(CommitDone)>,
    ) -> T {
        let (changed, deeds, is_deadline_new) = {
            let mut state = self.state.lock();
            let changed = change(&mut state);
            let effects = state.coordinator.take_effects();
            let deeds: Vec<_> =
                effects.into_iter().filter_map(|effect| self.deed(&mut state, effect)).collect();
            let deadline = state.coordinator.next_deadline();
            let is_deadline_new = std::mem::replace(&mut state.deadline, deadline) != deadline;
            (changed, deeds, is_deadline_new)
        };
        // First, so that whoever hears that a transaction has begun finds its deadline set.
        if is_deadline_new {
            self.host.deadline_changed();
        }
        let mut when_durable = when_durable;
        for deed in deeds {
            deed.perform(self, &mut when_durable);
        }
        changed
    }

    /// What an effect asks for, with all that it needs of the state.
    fn deed(self: &Arc<Self>, state: &mut State, effect: Effect) -> Option<Deed> {
        match effect {
            Effect::Run(ticket, step) => {
                let pending = state.pending.get_mut(&ticket);
                let payload = match (step, pending) {
                    (Step::Own | Step::Commit, Some(pending)) => {
                        std::mem::replace(&mut pending.payload, Payload::None)
                    }
                    _ => Payload::None,
                };
                Some(Deed::Run(SqlWork::new(Arc::clone(self), ticket, step, payload)))
            }
            Effect::Answer(ticket, result) => {
                let pending = state.pending.remove(&ticket)?;
                Some(Deed::Answer(pending, result))
            }
            Effect::Warn(warning) => Some(Deed::Warn(warning)),
            Effect::Fail(error) => Some(Deed::Fail(error)),
        }
    }
}

/// What is done after the unlock.
enum Deed {
    Run(SqlWork),
    Answer(Pending, Result<(), SqlError>),
    Warn(Warning),
    Fail(SqlError),
}

impl Deed {
    fn perform(self, shared: &Shared, when_durable: &mut Option<impl FnOnce(CommitDone)>) {
        match self {
            Self::Run(work) => shared.host.run(work),
            Self::Answer(pending, result) => {
                let Pending { answer, waits, told, .. } = pending;
                match (result, when_durable.take_if(|_| waits)) {
                    (Ok(()), Some(when_durable)) => when_durable(Box::new(move |durable| {
                        told.tell(durable.map(|()| answer).map_err(SqlError::from));
                    })),
                    (result, _) => told.tell(result.map(|()| answer)),
                }
            }
            Self::Warn(warning) => warn(warning, &shared.host.label()),
            Self::Fail(error) => {
                tracing::error!(%error, file = %shared.host.label(), "an actor's database failed");
                shared.host.failed(&error);
            }
        }
    }
}

fn warn(warning: Warning, file: &str) {
    match warning {
        Warning::Manual => tracing::warn!(
            file,
            "Manual cross-call SQLite transactions can interleave with other statements of the \
             actor; use db.transaction(), or set warnOnManualTransactions: false"
        ),
        Warning::WaitsForManual => {
            tracing::warn!(file, "a transaction waits for one that was begun by hand");
        }
        Warning::RolledBackAtClose => {
            tracing::warn!(file, "a transaction begun by hand was open at the end: rolled back");
        }
    }
}

fn statement(sql: &str) -> Request {
    let by_hand = matches!(StatementKind::of(sql), StatementKind::Control { .. });
    Request::Statement { by_hand }
}

pub(super) fn outcome(answer: Answer) -> SqlOutcome {
    match answer {
        Answer::One(outcome) => outcome,
        Answer::None | Answer::Each(_) => SqlOutcome::default(),
    }
}

fn check_name(name: &str) -> Result<(), SqlError> {
    let reason = match name.len() {
        0 => "it is empty",
        1..=MAX_NAME => return Ok(()),
        _ => "it is longer than 128 bytes",
    };
    let shown: String = name.chars().take(MAX_NAME).collect();
    Err(SqlError::TransactionInvalidArgument { what: "name", value: format!("{shown:?}"), reason })
}
