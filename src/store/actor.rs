//! One actor's rows, wherever they are.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::connection::Database;
use super::file::{ActorFile, Sent, Task};
use super::job::{Read, Reply};
use super::rows::Home;
use super::shared::SharedStore;
use super::{
    ActorNumber, ActorRecord, ActorStore, CommitDone, DeadLetter, HistoryRow, KvQuery, MessageId,
    SqlTransaction, StoreError, WriteBatch, kv, messages, rows, schedule,
};
use crate::ids::Generation;

/// One actor. What it is sent goes to the shared store or to its own file, and follows
/// the actor from the one to the other.
pub(super) struct Actor {
    pub(super) store: Arc<SharedStore>,
    pub(super) number: ActorNumber,
}

/// A reading that can be made again in another place.
type Query<T> = Arc<dyn Fn(&Connection, &Database, Home) -> Result<T, StoreError> + Send + Sync>;

/// Whether a reading is the one that a generation begins with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Load,
    Read,
}

impl Actor {
    /// Reads rows of this actor, behind every batch of it that was taken before: one
    /// may be on its way, of the generation before too. The fence refuses those of
    /// that one which come later.
    fn read<T: Send + 'static>(
        &self,
        kind: Kind,
        query: impl Fn(&Connection, &Database, Home) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let query: Query<T> = Arc::new(query);
        // Begun here, not when the future is polled.
        let first = self.begin(kind, &query);
        let again = Self { store: Arc::clone(&self.store), number: self.number };
        async move {
            match first.await {
                // The actor left while the reading waited: what it found may be what the
                // move left behind.
                (Home::Store, _) if again.store.shared.files.has(again.number) => {
                    again.begin(kind, &query).await.1
                }
                // It was to leave and did not.
                (Home::File, Err(_)) if !again.store.shared.files.has(again.number) => {
                    again.begin(kind, &query).await.1
                }
                (_, found) => found,
            }
        }
        .boxed()
    }

    fn begin<T: Send + 'static>(
        &self,
        kind: Kind,
        query: &Query<T>,
    ) -> BoxFuture<'static, (Home, Result<T, StoreError>)> {
        let shared = &self.store.shared;
        let own = Arc::clone(query);
        if !shared.files.has(self.number) {
            let read =
                move |sqlite: &Connection, database: &Database| own(sqlite, database, Home::Store);
            let answer = shared.read_behind(self.number, read);
            return async move { (Home::Store, answer.await) }.boxed();
        }
        let (answer, answered) = oneshot::channel();
        let database = shared.files.database_of(self.number);
        let read: Read = Box::new(move |sqlite| {
            let result = sqlite.and_then(|sqlite| own(sqlite, &database, Home::File));
            // Nobody waits any more: nothing is lost.
            drop(answer.send(result));
        });
        let task = if kind == Kind::Load { Task::Load(read) } else { Task::Read(read) };
        match shared.files.send(self.number, task) {
            Sent::Taken => {}
            Sent::Refused(task, error) => task.refuse(error),
            // It was on its way into a file and is not any more.
            Sent::ToStore(_) => return self.begin(kind, query),
        }
        async move { (Home::File, answered.await.unwrap_or(Err(StoreError::Closed))) }.boxed()
    }
}

impl Actor {
    /// Tells the directory the alarm of an actor that has a file, and closes the file as
    /// soon as nobody uses it.
    pub(super) fn settle(&self) -> BoxFuture<'static, Result<(), StoreError>> {
        let (answer, answered) = oneshot::channel();
        let files = Arc::clone(&self.store.shared.files);
        let number = self.number;
        if files.is_at_rest(number) {
            return async { Ok(()) }.boxed();
        }
        let reply = Reply::new(Box::new(move |result| drop(answer.send(result))));
        match files.send(number, Task::Settle { reply }) {
            Sent::Taken => {}
            Sent::Refused(task, error) => task.refuse(error),
            // Its batches carried the alarm.
            Sent::ToStore(_) => return async { Ok(()) }.boxed(),
        }
        async move {
            let result = answered.await.unwrap_or(Err(StoreError::Closed));
            files.let_rest(number);
            result
        }
        .boxed()
    }
}

impl ActorStore for Actor {
    fn load(&self) -> BoxFuture<'static, Result<ActorRecord, StoreError>> {
        let number = self.number;
        self.read(Kind::Load, move |sqlite, database, home| {
            rows::load(sqlite, database, number, home)
        })
    }

    fn kv_get(
        &self,
        keys: Vec<Bytes>,
    ) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        let number = self.number;
        self.read(Kind::Read, move |sqlite, database, _| {
            kv::get(sqlite, number, &keys).map_err(|error| database.fault(&error))
        })
    }

    fn kv_list(
        &self,
        query: KvQuery,
    ) -> BoxFuture<'static, Result<Vec<(Bytes, Bytes)>, StoreError>> {
        let number = self.number;
        self.read(Kind::Read, move |sqlite, database, _| {
            kv::list(sqlite, number, &query).map_err(|error| database.fault(&error))
        })
    }

    fn message_bodies(
        &self,
        ids: Vec<MessageId>,
    ) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        let number = self.number;
        self.read(Kind::Read, move |sqlite, database, _| {
            messages::bodies(sqlite, number, &ids).map_err(|error| database.fault(&error))
        })
    }

    fn dead_letters(
        &self,
        after: MessageId,
        limit: u32,
    ) -> BoxFuture<'static, Result<Vec<DeadLetter>, StoreError>> {
        let number = self.number;
        self.read(Kind::Read, move |sqlite, database, _| {
            messages::dead(sqlite, number, after, limit).map_err(|error| database.fault(&error))
        })
    }

    fn schedule_history(
        &self,
        schedule_id: String,
        limit: u32,
    ) -> BoxFuture<'static, Result<Vec<HistoryRow>, StoreError>> {
        let number = self.number;
        self.read(Kind::Read, move |sqlite, database, _| {
            schedule::history(sqlite, number, &schedule_id, limit)
                .map_err(|error| database.fault(&error))
        })
    }

    fn commit(&self, batch: WriteBatch, done: CommitDone) {
        self.store.shared.files.commit(self.number, batch, Reply::new(done));
    }

    fn commit_with(
        &self,
        statements: SqlTransaction,
        batch: WriteBatch,
        done: CommitDone,
    ) -> BoxFuture<'static, ()> {
        match self.file() {
            Some(file) => file.commit_with(statements, batch).map(done).boxed(),
            None => {
                done(Err(StoreError::Closed));
                futures::future::ready(()).boxed()
            }
        }
    }

    fn rest(&self) -> BoxFuture<'static, Result<(), StoreError>> {
        let files = &self.store.shared.files;
        if !files.is_at_rest(self.number) {
            // A transaction that nobody will end any more would let the books wait for
            // ever. Whether this is refused is heard below.
            drop(files.send(self.number, Task::Load(Box::new(|_| ()))));
        }
        self.settle()
    }

    fn own_file(
        &self,
        generation: Generation,
    ) -> BoxFuture<'static, Result<ActorFile, StoreError>> {
        match self.file() {
            Some(file) => futures::future::ready(Ok(file)).boxed(),
            None => self.store.promote(self.number, generation),
        }
    }

    fn own_file_now(&self, generation: Generation) -> Result<ActorFile, StoreError> {
        match self.file() {
            Some(file) => Ok(file),
            None => self.store.promote_now(self.number, generation),
        }
    }

    fn secret(&self) -> Option<[u8; 32]> {
        Some(self.store.secret())
    }

    fn file(&self) -> Option<ActorFile> {
        let slot = self.store.shared.files.slot(self.number).ok().flatten()?;
        Some(ActorFile::new(Arc::clone(&self.store), slot))
    }
}
