//! Where what was acknowledged is kept: one shared SQLite database for the
//! directory and all small actors, and a file for each actor that needs one.
//!
//! The rest of the crate sees this module's public face only: the trait
//! [`ActorStore`] for one actor, [`SharedStore`] for the directory, and the types
//! of the rows.
//!
//! # Invariants
//!
//! 1. A batch is durable before its callback hears `Ok`.
//! 2. Batches of one actor are applied in the order in which they were committed.
//! 3. A batch is applied whole or not at all, and never because of or in spite of
//!    another actor's batch.
//! 4. A batch of a generation that is not the actor's current one is refused
//!    with [`StoreError::Stale`], one of an actor without a directory row with
//!    [`StoreError::NotFound`].
//! 5. [`StoreError::Full`], [`StoreError::Busy`] and [`StoreError::Stale`] mean
//!    "certainly not committed"; [`StoreError::OutcomeUnknown`] means that only
//!    recovery can tell.

mod actor;
mod backup;
mod checkpoint;
mod connection;
mod copy;
mod directory;
mod error;
pub mod faults;
mod fence;
mod file;
mod folder;
mod group;
mod hibernated;
mod job;
mod kept;
mod kv;
mod messages;
mod mishandled;
mod mishaps;
mod options;
mod place;
mod queue;
mod readers;
mod rows;
mod schedule;
mod schema;
mod shared;
mod shared_files;
mod sql;
mod stats;
mod target;
mod threads;
mod transfer;
mod writer;
mod yardstick;

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

pub use self::backup::Backup;
pub use self::error::StoreError;
pub use self::faults::Faults;
pub use self::file::{
    ActorFile, FileFaults, FileLimits, FileStats, FileStep, ImportStep, PromotionStep, Turn,
};
pub use self::hibernated::{ConnectionOp, SOCKET_ID_BYTES, SocketId, StoredConnection};
pub use self::job::Created;
pub use self::kept::KeptMemory;
pub use self::kv::{KeyRange, KvQuery};
pub use self::messages::{
    DeadLetter, DeadRow, MessageId, MessageRow, QueueOp, QueueRows, SentKeyRow,
};
pub use self::mishaps::{CrashPoint, Mishaps};
pub use self::options::{StoreLimits, StoreLocation, StoreObserver, StoreOptions};
pub use self::schedule::{
    FaultRow, FireKind, FireRow, FireState, HistoryResult, HistoryRow, InvalidRow, RetryRow,
    ScheduleKind, ScheduleOp, ScheduleRow, StoredSchedules,
};
#[cfg(feature = "faults")]
pub use self::shared::HeldWriter;
pub use self::shared::SharedStore;
pub use self::sql::look;
pub use self::sql::{
    AlsoCommitted, BeginOptions, Bindings, CommitEnd, Ending, SqlCursor, SqlDatabase, SqlError,
    SqlHost, SqlOutcome, SqlRan, SqlReply, SqlRows, SqlSession, SqlTransaction, SqlTurn, SqlValue,
    SqlWay, SqlWork, TurnConnection, UserSql, controls, ends_transaction, is_blank, touches_data,
};
pub use self::stats::StoreStats;
pub use self::target::Existing;
pub use self::yardstick::plain_commits;
use crate::ids::{ActorId, ActorKey, ActorName, Generation};

/// The row number of an actor in the directory, the leading key of all its rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ActorNumber(pub i64);

/// Which database holds an actor's rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The shared store.
    Shared,
    /// The actor's own file, `actors/<id>.<n>.db`. Names are never used twice.
    File {
        /// The number in the file's name.
        n: u32,
    },
}

/// One row of the directory.
#[derive(Clone, Debug, PartialEq)]
pub struct ActorRow {
    /// The row's number.
    pub number: ActorNumber,
    /// The id that callers see.
    pub id: ActorId,
    /// The actor's type.
    pub name: ActorName,
    /// What tells it from the others of its type.
    pub key: ActorKey,
    /// Which database holds its rows.
    pub place: Place,
    /// When it was created, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
}

/// The alarm of an actor, in the directory's order of alarms: by time, then number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlarmRow {
    /// The actor's number.
    pub number: ActorNumber,
    /// Its id.
    pub id: ActorId,
    /// Its type.
    pub name: ActorName,
    /// When, in milliseconds since the Unix epoch.
    pub at: i64,
}

/// An actor that is to be created.
#[derive(Clone, Debug)]
pub struct NewActor {
    /// Its id, used only if no actor of this name and key exists.
    pub id: ActorId,
    /// Its type.
    pub name: ActorName,
    /// What tells it from the others of its type.
    pub key: ActorKey,
    /// What its creator passes to its first start.
    pub input: Option<Bytes>,
    /// When, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
}

/// Which actors [`SharedStore::list`] returns: at most `limit`, in the order of
/// their creation.
#[derive(Clone, Debug)]
pub struct ListFilter {
    /// Only those of this type.
    pub name: Option<ActorName>,
    /// Only those whose key begins with these parts.
    pub key_prefix: ActorKey,
    /// Only those created after this one.
    pub after: Option<ActorNumber>,
    /// How many at most.
    pub limit: u32,
}

/// What is stored of one actor, as its next generation finds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActorRecord {
    /// What its creator passed.
    pub input: Option<Bytes>,
    /// Whether a start has ever got to the end of its initialisation.
    pub has_initialized: bool,
    /// Its state as it was last saved; absent before the first save.
    pub state: Option<Bytes>,
    /// Its alarm as the directory has it, in milliseconds since the Unix epoch.
    pub alarm: Option<i64>,
    /// Its queue, without bodies.
    pub queue: QueueRows,
    /// What it is to do later.
    pub schedules: StoredSchedules,
    /// The connections that outlive its sleep, in the order of their ids.
    pub connections: Vec<StoredConnection>,
}

/// One change of one actor's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowOp {
    /// Replaces the state.
    PutState(Bytes),
    /// Marks the actor as initialised, or not.
    PutInitialized(bool),
    /// Replaces the input.
    PutInput(Option<Bytes>),
    /// Sets the value of a user key.
    PutKv {
        /// The key; any bytes, none too.
        key: Bytes,
        /// The value; any bytes, none too.
        value: Bytes,
    },
    /// Deletes a user key, if it is there.
    DeleteKv(Bytes),
    /// Deletes all user keys of a range.
    DeleteKvRange(KeyRange),
    /// Sets a row of the actor's workflow, which it has in its own file only.
    PutWorkflow {
        /// The key as it is stored.
        key: Bytes,
        /// The value.
        value: Bytes,
    },
    /// Changes the queue.
    Queue(QueueOp),
    /// Changes what it is to do later.
    Schedule(ScheduleOp),
    /// Changes the connections that outlive a sleep.
    Connection(ConnectionOp),
}

impl RowOp {
    /// The bytes that it carries.
    fn payload(&self) -> usize {
        match self {
            Self::PutState(state) => state.len(),
            Self::PutInput(input) => input.as_ref().map_or(0, Bytes::len),
            Self::PutInitialized(_) => 0,
            Self::PutKv { key, value } | Self::PutWorkflow { key, value } => {
                key.len() + value.len()
            }
            Self::DeleteKv(key) => key.len(),
            Self::DeleteKvRange(range) => range.weight(),
            Self::Queue(op) => op.payload(),
            Self::Schedule(op) => op.payload(),
            Self::Connection(op) => op.payload(),
        }
    }
}

/// Changes of one actor that are committed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteBatch {
    /// The generation that makes them; a stale one is refused (invariant 4).
    pub generation: Generation,
    /// The changes, in order.
    pub ops: Vec<RowOp>,
    /// The time of the next alarm in milliseconds since the Unix epoch, `None`
    /// for none; absent when the alarm does not change.
    pub alarm: Option<Option<i64>>,
    /// Whether a failure of this batch ends the generation's writing: then no later
    /// batch of it is applied, also none that is queued already. So an error that
    /// says "not committed" stays true.
    pub fails_generation: bool,
}

impl WriteBatch {
    /// How much the batch weighs in the store's queue, in bytes.
    pub fn weight(&self) -> usize {
        const PER_OP: usize = 64;
        let payload: usize = self.ops.iter().map(RowOp::payload).sum();
        payload + PER_OP * (1 + self.ops.len())
    }

    /// Whether there is anything to write.
    fn has_work(&self) -> bool {
        !self.ops.is_empty() || self.alarm.is_some()
    }
}

/// Hears how a commit ended, exactly once. It must not block and must not wait
/// for the store. It is called on a thread of the store, except for a batch
/// that is refused at once ([`StoreError::Overloaded`], [`StoreError::Down`],
/// [`StoreError::Closed`]) and for some of an actor's own file: those are heard on
/// the calling thread, before [`ActorStore::commit`] returns.
pub type CommitDone = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// What the core sees of the place that keeps one actor. The shared store and an
/// actor's own file are its embedded forms; a remote one may follow, so nothing
/// here assumes a local connection.
pub trait ActorStore: Send + Sync + 'static {
    /// Reads what is stored, every batch included that was taken before the call
    /// and succeeds. A row that is gone is [`StoreError::NotFound`].
    fn load(&self) -> BoxFuture<'static, Result<ActorRecord, StoreError>>;

    /// The values of user keys, in the order of `keys`, `None` for those that are
    /// not there. Sees what [`ActorStore::load`] sees.
    fn kv_get(
        &self,
        keys: Vec<Bytes>,
    ) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>>;

    /// User keys of a range and their values, in the order of the bytes of the keys.
    /// Sees what [`ActorStore::load`] sees.
    fn kv_list(
        &self,
        query: KvQuery,
    ) -> BoxFuture<'static, Result<Vec<(Bytes, Bytes)>, StoreError>>;

    /// The bodies of messages that wait in the queue, in the order of `ids`, `None` for
    /// those that do not wait. Sees what [`ActorStore::load`] sees.
    fn message_bodies(
        &self,
        ids: Vec<MessageId>,
    ) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>>;

    /// At most `limit` dead messages with an id behind `after`, by id. Sees what
    /// [`ActorStore::load`] sees.
    fn dead_letters(
        &self,
        after: MessageId,
        limit: u32,
    ) -> BoxFuture<'static, Result<Vec<DeadLetter>, StoreError>>;
    /// The newest attempts of a recurring schedule, the newest first, at most `limit`.
    /// Sees what [`ActorStore::load`] sees.
    fn schedule_history(
        &self,
        schedule_id: String,
        limit: u32,
    ) -> BoxFuture<'static, Result<Vec<HistoryRow>, StoreError>>;

    /// Takes a batch for the next commit. Never blocks; when too much waits,
    /// `done` hears [`StoreError::Overloaded`].
    ///
    /// A batch that fails stops none behind it: whoever must not write past a
    /// failure waits for each answer, or revokes the generation.
    fn commit(&self, batch: WriteBatch, done: CommitDone);

    /// Makes the changes of a batch together with the open transaction of the author's
    /// statements, in the actor's file. What is returned has to be driven to its end;
    /// otherwise as [`ActorStore::commit`].
    fn commit_with(
        &self,
        statements: SqlTransaction,
        batch: WriteBatch,
        done: CommitDone,
    ) -> BoxFuture<'static, ()> {
        drop((statements, batch));
        done(Err(StoreError::Closed));
        futures::future::ready(()).boxed()
    }

    /// Called when a generation has committed its last batch and heard its end: the place
    /// puts its books in order, so that whoever wakes the actor knows its alarm, and lets
    /// go of what it holds for it. The actor has not gone to sleep before this resolves.
    fn rest(&self) -> BoxFuture<'static, Result<(), StoreError>> {
        futures::future::ready(Ok(())).boxed()
    }

    /// Gives the actor a file of its own, durably, unless it has one. What is sent to it
    /// meanwhile waits.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] for another generation than the current one,
    /// [`StoreError::NotFound`] for an actor that is gone or a place without files, else
    /// what the disk said; then the actor stays where it is.
    fn own_file(
        &self,
        generation: Generation,
    ) -> BoxFuture<'static, Result<ActorFile, StoreError>> {
        let _ = generation;
        futures::future::ready(Err(StoreError::NotFound)).boxed()
    }

    /// [`ActorStore::own_file`], for the JavaScript thread in the middle of a turn: waits.
    ///
    /// # Errors
    ///
    /// As there.
    fn own_file_now(&self, generation: Generation) -> Result<ActorFile, StoreError> {
        futures::executor::block_on(self.own_file(generation))
    }

    /// What the tokens of this place are made of; `None` of a place that has none.
    fn secret(&self) -> Option<[u8; 32]> {
        None
    }

    /// The actor's own file, where it has one.
    fn file(&self) -> Option<ActorFile> {
        None
    }
}

/// Commits and waits for the answer.
pub async fn commit(store: &dyn ActorStore, batch: WriteBatch) -> Result<(), StoreError> {
    let (answer, answered) = tokio::sync::oneshot::channel();
    store.commit(batch, Box::new(move |result| drop(answer.send(result))));
    answered.await.unwrap_or(Err(StoreError::Closed))
}

/// A shared handle on one actor's place.
pub type ActorStoreRef = Arc<dyn ActorStore>;
