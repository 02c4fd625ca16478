//! What the rest of the crate sees of an actor's own file.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::Files;
use super::lease::Lease;
use super::routes::Sent;
use super::slot::Slot;
use super::task::Task;
use super::turn::Turn;
use crate::ids::Generation;
use crate::store::job::Reply;
use crate::store::{SharedStore, StoreError};

/// The file of one actor. A handle: it counts as one on the store, and the file opens
/// and closes behind it as the limit of open files wants.
#[derive(Clone)]
pub struct ActorFile {
    slot: Arc<Slot>,
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

/// What a use of the connection gave, and the commit that its answer waits for.
#[cfg_attr(not(feature = "faults"), allow(dead_code, reason = "for the statements of authors"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Ran<T> {
    pub(in crate::store) value: T,
    /// The last commit of the file as it stood then; see [`ActorFile::durable`].
    pub(in crate::store) commit: u64,
}

impl ActorFile {
    pub(in crate::store) fn new(store: Arc<SharedStore>, slot: Arc<Slot>) -> Self {
        Self { slot, _store: store }
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
        self.slot.begin_turn(generation)
    }

    /// Uses the connection on a thread of the store, after everything that the actor sent
    /// before. A transaction that `run` leaves open spans turns: until a later `run` ends
    /// it, batches and readings of the actor wait. A generation that has ended is
    /// [`StoreError::Stale`].
    #[cfg_attr(not(feature = "faults"), allow(dead_code, reason = "for the statements of authors"))]
    pub(in crate::store) fn run<T: Send + 'static>(
        &self,
        generation: Generation,
        run: impl FnOnce(&mut Lease) -> T + Send + 'static,
    ) -> BoxFuture<'static, Result<Ran<T>, StoreError>> {
        let (answer, answered) = oneshot::channel();
        let slot = Arc::clone(&self.slot);
        let task = Task::Run(Box::new(move |lease| {
            let ran = lease.and_then(|lease| {
                if !slot.files.fence.is_current(slot.number, generation) {
                    return Err(StoreError::Stale);
                }
                let value = run(lease);
                let commit = if lease.is_open() { lease.committed() } else { 0 };
                Ok(Ran { value, commit })
            });
            // Nobody waits any more: what was done is done.
            drop(answer.send(ran));
        }));
        match self.slot.files.send(self.slot.number, task) {
            Sent::Taken => {}
            Sent::Refused(task, error) => task.refuse(error),
            Sent::ToStore(task) => task.refuse(StoreError::NotFound),
        }
        async move { answered.await.unwrap_or(Err(StoreError::Closed)) }.boxed()
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

    /// Runs something with the connection and waits, for tests.
    #[cfg(feature = "faults")]
    pub fn execute(
        &self,
        generation: Generation,
        sql: &'static str,
    ) -> BoxFuture<'static, Result<Result<(), String>, StoreError>> {
        let ran = self.run(generation, move |lease| {
            lease.sqlite().execute_batch(sql).map_err(|error| error.to_string())
        });
        async move { Ok(ran.await?.value) }.boxed()
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
