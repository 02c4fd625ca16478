//! What the rest of the crate sees of an actor's own file.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::Files;
use super::alarm::Books;
use super::lease::Lease;
use super::routes::Sent;
use super::schema;
use super::slot::Slot;
use super::task::Task;
use super::turn::Turn;
use crate::ids::Generation;
use crate::store::job::Reply;
use crate::store::mishaps::{Ordeal, Outcome};
use crate::store::sql::{
    AlsoCommitted, Bindings, SqlCursor, SqlError, SqlRan, SqlTransaction, SqlWork,
};
use crate::store::{SharedStore, StoreError, WriteBatch, rows};

/// The file of one actor. A handle: it counts as one on the store, and the file opens
/// and closes behind it as the limit of open files wants.
#[derive(Clone)]
pub struct ActorFile {
    slot: Arc<Slot>,
    /// What its commits go through, in tests.
    ordeal: Option<Ordeal>,
    /// Held, so that the store stays open.
    _store: Arc<SharedStore>,
}

/// What the files of a store have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileStats {
    /// Files that are open.
    pub open: usize,
    /// Checkpoints of files that stayed open.
    pub checkpoints: u64,
}

impl ActorFile {
    pub(in crate::store) fn new(store: Arc<SharedStore>, slot: Arc<Slot>) -> Self {
        Self { slot, ordeal: None, _store: store }
    }

    /// The same, whose commits meet what a test has planned.
    pub(in crate::store) fn through(self, ordeal: Ordeal) -> Self {
        Self { ordeal: Some(ordeal), ..self }
    }

    /// Takes the connection for a turn of this generation, on the JavaScript thread. What
    /// the actor has committed before is in the file then. Waits while another turn, or
    /// for one statement or checkpoint a thread of the store, has it; opens the file if it
    /// is closed.
    ///
    /// # Errors
    ///
    /// [`StoreError::TransactionOpen`] while a transaction that spans turns is open,
    /// [`StoreError::Stale`] for another generation than the current one,
    /// [`StoreError::Busy`] when this thread has a turn of this actor already,
    /// [`StoreError::FileMissing`], [`StoreError::Down`] and [`StoreError::OutcomeUnknown`]
    /// when the file cannot be used.
    pub fn turn(&self, generation: Generation) -> Result<Turn, StoreError> {
        self.slot.begin_turn(generation, false).map(|turn| turn.through(self.ordeal.clone()))
    }

    /// The same right after the commit of a transaction that spans turns was asked for: it
    /// waits for that.
    ///
    /// # Errors
    ///
    /// Those of [`ActorFile::turn`] but [`StoreError::TransactionOpen`].
    pub fn turn_behind(&self, generation: Generation) -> Result<Turn, StoreError> {
        self.slot.begin_turn(generation, true).map(|turn| turn.through(self.ordeal.clone()))
    }

    /// Runs a synchronous statement of the open transaction that spans turns, on this
    /// thread.
    ///
    /// # Errors
    ///
    /// Those of [`SqlTransaction::run_now`], and why the connection cannot be had.
    pub fn run_within(
        &self,
        generation: Generation,
        transaction: &SqlTransaction,
        sql: &str,
        bindings: &Bindings,
    ) -> Result<SqlCursor, SqlError> {
        let lease = self.slot.lend(generation)?;
        transaction.run_now(lease.session(), sql, bindings)
    }

    /// Performs a step of an author's asynchronous statements after everything that the
    /// actor sent before, and reports it: on a thread of the store, or on this one if it is
    /// short and nobody has the connection. While a transaction of
    /// theirs is open, batches and readings of the actor wait. For a generation that has
    /// ended it is reported as [`StoreError::Stale`].
    pub fn perform(&self, generation: Generation, work: SqlWork) {
        let Some(work) = self.perform_here(generation, work) else { return };
        let (slot, ordeal) = (Arc::clone(&self.slot), self.ordeal.clone());
        self.send(Task::Run(Box::new(move |lease| {
            let lease = match lease {
                Ok(lease) if slot.files.fence.is_current(slot.number, generation) => lease,
                Ok(_) => return work.perform(Err(StoreError::Stale)).finish(drop),
                Err(error) => return work.perform(Err(error)).finish(drop),
            };
            match ordeal {
                None => finish(&slot, lease, work.perform(Ok(lease.session()))),
                Some(ordeal) => perform_through(&ordeal, &slot, lease, work),
            }
        })));
    }

    /// Performs a short statement on this thread, or gives it back.
    fn perform_here(&self, generation: Generation, work: SqlWork) -> Option<SqlWork> {
        let slot = &self.slot;
        if self.ordeal.is_some() || !work.is_short() {
            return Some(work);
        }
        let Some((_guest, mut lease)) = slot.lease_here() else { return Some(work) };
        // With the connection in hand: whoever had it may have ended the generation.
        if !slot.files.fence.is_current(slot.number, generation) {
            return Some(work);
        }
        match work.perform_here(lease.session()) {
            Ok(ran) => {
                finish(slot, &mut lease, ran);
                None
            }
            Err(work) => Some(work),
        }
    }

    /// Resolves once the directory durably says that the alarm is open. Asked for before
    /// [`ActorFile::rows`] of a batch that changes it; otherwise whoever commits does.
    pub fn open_alarm(&self) -> BoxFuture<'static, Result<(), StoreError>> {
        let (answer, answered) = oneshot::channel();
        let reply = Reply::new(Box::new(move |result| drop(answer.send(result))));
        self.send(Task::OpenAlarm { reply });
        async move { answered.await.unwrap_or(Err(StoreError::Closed)) }.boxed()
    }

    /// The rows and the alarm of a batch, for the commit of a transaction of the author's
    /// asynchronous statements: they are written with it or not at all. One that changes
    /// the alarm is refused unless [`ActorFile::open_alarm`] came before in this
    /// generation.
    pub fn rows(&self, batch: WriteBatch) -> AlsoCommitted {
        let slot = Arc::clone(&self.slot);
        Box::new(move |sqlite| {
            if !slot.files.fence.is_current(slot.number, batch.generation) {
                return Err(StoreError::Stale.into());
            }
            for op in &batch.ops {
                rows::apply(sqlite, slot.number, op)
                    .map_err(|error| slot.database.fault(&error))?;
            }
            let Some(alarm) = batch.alarm else { return Ok(()) };
            if slot.lock().books != Books::Open {
                let reason = "the directory does not know that the alarm changes".to_owned();
                return Err(StoreError::Sqlite { reason }.into());
            }
            Ok(schema::put_alarm(sqlite, alarm).map_err(|error| slot.database.fault(&error))?)
        })
    }

    /// Commits a transaction of the author's asynchronous statements with a batch; resolves
    /// once that is durable.
    pub fn commit_with(
        &self,
        statements: SqlTransaction,
        batch: WriteBatch,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        self.slot.lock().is_ending = true;
        if batch.alarm.is_none() {
            // Asked for here and now: a synchronous statement may wait for it on the only
            // thread that there is.
            let committed = statements.commit_with(self.rows(batch));
            return async move { committed.await.map_err(StoreError::from) }.boxed();
        }
        let (open, file) = (self.open_alarm(), self.clone());
        async move {
            // Before it commits: the directory must not miss an alarm.
            if let Err(error) = open.await {
                drop(statements.roll_back());
                return Err(error);
            }
            Ok(statements.commit_with(file.rows(batch)).await?)
        }
        .boxed()
    }

    fn send(&self, task: Task) {
        match self.slot.files.send(self.slot.number, task) {
            Sent::Taken => {}
            Sent::Refused(task, error) => task.refuse(error),
            Sent::ToStore(task) => task.refuse(StoreError::NotFound),
        }
    }

    /// The number of the last commit of the file. An output that shows what the file holds
    /// at this moment waits for it.
    pub fn begun(&self) -> u64 {
        self.slot.lock().gate.begun()
    }

    /// Resolves once the commit of this number is durable.
    ///
    /// # Errors
    ///
    /// [`StoreError::OutcomeUnknown`] when its sync failed.
    pub fn durable(&self, commit: u64) -> BoxFuture<'static, Result<(), StoreError>> {
        let (answer, answered) = oneshot::channel();
        let reply = Reply::new(Box::new(move |result| drop(answer.send(result))));
        self.slot.wait_durable(commit, reply);
        async move { answered.await.unwrap_or(Err(StoreError::Closed)) }.boxed()
    }

    /// The file's path, or `:memory:`. Look at an export of it, never at the live file:
    /// whoever opens and closes that in this process drops SQLite's locks.
    pub fn path(&self) -> String {
        self.slot.database.label()
    }

    /// Runs statements as they are, for tests.
    #[cfg(feature = "faults")]
    pub fn execute(
        &self,
        generation: Generation,
        sql: &'static str,
    ) -> BoxFuture<'static, Result<Result<(), String>, StoreError>> {
        let (answer, answered) = oneshot::channel();
        let slot = Arc::clone(&self.slot);
        self.send(Task::Run(Box::new(move |lease| {
            let ran = lease.and_then(|lease| {
                if !slot.files.fence.is_current(slot.number, generation) {
                    return Err(StoreError::Stale);
                }
                Ok(lease.sqlite().execute_batch(sql).map_err(|error| error.to_string()))
            });
            drop(answer.send(ran));
        })));
        async move { answered.await.unwrap_or(Err(StoreError::Closed)) }.boxed()
    }
}

/// Reports a step that ran.
fn finish(slot: &Arc<Slot>, lease: &mut Lease, ran: SqlRan) {
    if ran.is_broken() {
        lease.fail("a statement ended in the unknown".to_owned(), None);
        return ran.finish(drop);
    }
    if ran.began_by_hand() {
        slot.begun_by_hand();
    }
    let commit = lease.committed();
    ran.finish(|done| slot.wait_durable(commit, Reply::new(done)));
}

/// Runs a step whose commits meet what a test has planned.
fn perform_through(ordeal: &Ordeal, slot: &Arc<Slot>, lease: &mut Lease, work: SqlWork) {
    let watch = ordeal.watch();
    let asked = watch.clone();
    if let Err(error) = lease.watch_commits(Some(Box::new(move || asked.refuses()))) {
        return work.perform(Err(slot.database.fault(&error))).finish(drop);
    }
    let ran = work.perform(Ok(lease.session()));
    if let Err(error) = lease.watch_commits(None) {
        tracing::error!(%error, "a connection is watched for longer than its step");
    }
    match watch.end() {
        Outcome::Plain => finish(slot, lease, ran),
        Outcome::Failed(error) => finish(slot, lease, ran.failed_with(error)),
        Outcome::Unheard(unheard) => unheard.keep(Box::new(move |_| {
            ran.failed_with(StoreError::Closed).finish(drop);
        })),
    }
}

impl fmt::Debug for ActorFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActorFile").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Files {
    pub(in crate::store) fn stats(&self) -> FileStats {
        FileStats { open: self.open_count(), checkpoints: self.checkpoints.load(Ordering::Relaxed) }
    }
}
