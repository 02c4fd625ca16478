//! The handle on a shared store: the directory, generations, actors, closing.
//!
//! # Invariants
//!
//! 1. A call begins when it is made, not when its future is polled; dropping the
//!    future stops nothing.
//! 2. A thread of a store never waits for a thread of a store to end, other than
//!    the writer for its readers.

use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use super::actor::Actor;
use super::connection::Database;
use super::copy::Copies;
use super::fence::Fence;
use super::file::{self, ActorsFolder, Files, Surroundings};
use super::folder::Folder;
use super::job::{Created, Read, Reply, Write};
use super::options::{StoreLocation, StoreOptions};
use super::queue::Queue;
use super::readers::Readers;
use super::stats::{Counters, StoreStats};
use super::threads::is_store_thread;
pub(super) use super::threads::{as_store_thread, store_thread};
use super::writer::Writer;
use super::{
    ActorNumber, ActorRow, ActorStoreRef, AlarmRow, ListFilter, NewActor, StoreError, directory,
    place, rows, schema,
};
use crate::ids::{ActorId, ActorKey, ActorName, Generation, IdSource};

/// How many rows one read transaction of a listing takes: a few milliseconds.
const LIST_SLICE: u32 = 1_000;

/// An open store. It is closed by [`SharedStore::close`] or with its last
/// handle; every [`ActorStoreRef`] counts as one.
pub struct SharedStore {
    pub(super) shared: Arc<Shared>,
    /// Taken by the drop that waits for it.
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// What handles and threads share.
pub(super) struct Shared {
    pub(super) database: Arc<Database>,
    pub(super) queue: Arc<Queue>,
    pub(super) fence: Arc<Fence>,
    pub(super) files: Arc<Files>,
    pub(super) counters: Counters,
    /// See [`SharedStore::secret`].
    secret: [u8; 32],
    /// Copies of the shared database that are being made. Changed, and locked, by the writer.
    pub(super) copies: Mutex<Copies>,
    /// `None` in memory, where the writer reads.
    pub(super) readers: Option<Arc<Readers>>,
    /// Whether the folder has been freed; set by the writer.
    pub(super) closed: watch::Sender<bool>,
}

impl SharedStore {
    /// Opens a store. Blocks on the disk, so it is called off the JavaScript thread.
    ///
    /// A folder that has an owner is refused at once with [`StoreError::Locked`].
    /// Whoever wants to wait for it calls again later, on its own clock.
    pub fn open(location: StoreLocation, options: StoreOptions) -> Result<Arc<Self>, StoreError> {
        file::configure();
        let (folder, database) = match &location {
            StoreLocation::Memory => (None, Database::Memory),
            StoreLocation::Kept(memory) => (None, Database::Kept(memory.clone())),
            StoreLocation::Folder(path) => {
                let folder = Folder::acquire(path, options.clock.unix_ms())?;
                folder.refuse_orphaned_log()?;
                let database = Database::File(folder.database());
                (Some(folder), database)
            }
        };
        let connection = database.open_writer()?;
        schema::migrate(&connection.sqlite, &database, schema::MIGRATIONS)?;
        let epoch = schema::raise_epoch(&connection.sqlite, &database)?;
        let make = || IdSource::from_os().secret();
        let secret = schema::secret(&connection.sqlite, &database, make)?;
        let mut actors = None;
        if let Some(folder) = &folder {
            folder.sync()?;
            let folder = ActorsFolder::new(folder.actors());
            folder.sweep(&connection.sqlite, &database)?;
            actors = Some(folder);
        }
        let open_alarms =
            place::open_alarms(&connection.sqlite).map_err(|error| database.fault(&error))?;

        let has_garbage =
            rows::has_garbage(&connection.sqlite).map_err(|error| database.fault(&error))?;

        let no_thread = |error: std::io::Error| StoreError::Io {
            path: database.label(),
            reason: format!("no thread: {error}"),
        };
        let (readers, reader_threads) = match &folder {
            None => (None, Vec::new()),
            Some(_) => {
                let (readers, threads) =
                    Readers::start(database.clone(), options.readers).map_err(no_thread)?;
                (Some(readers), threads)
            }
        };
        let store = Arc::new(database.clone());
        let queue =
            Arc::new(Queue::new(options.limits.queue_bytes, options.waits_for_turn.clone()));
        let fence = Arc::new(Fence::new(epoch));
        let files = Files::new(
            &options,
            Surroundings {
                folder: actors,
                store: Arc::clone(&store),
                queue: Arc::clone(&queue),
                fence: Arc::clone(&fence),
                readers: readers.clone(),
                open_alarms,
            },
        );
        let shared = Arc::new(Shared {
            database: store,
            queue,
            fence,
            files,
            counters: Counters::default(),
            secret,
            copies: Mutex::default(),
            readers,
            closed: watch::Sender::new(false),
        });
        let own = Arc::clone(&shared);
        let by_turns = options.waits_for_turn.is_some();
        let writer = Writer::new(own, options, connection, reader_threads, folder, has_garbage);
        let serves: Box<dyn FnOnce() + Send> =
            if by_turns { Box::new(writer.lend()) } else { Box::new(move || writer.run()) };
        let writer =
            store_thread("greenroom-store-writer".to_owned(), serves).map_err(|error| {
                if let Some(readers) = &shared.readers {
                    readers.close(Vec::new());
                }
                no_thread(error)
            })?;
        Ok(Arc::new(Self { shared, writer: Mutex::new(Some(writer)) }))
    }

    /// How often this store has been opened, this time included.
    pub fn epoch(&self) -> u32 {
        self.shared.fence.epoch()
    }

    /// What the store has done so far.
    pub fn stats(&self) -> StoreStats {
        self.shared.counters.snapshot()
    }

    /// The actor of this name and key.
    pub fn find(
        &self,
        name: &ActorName,
        key: &ActorKey,
    ) -> BoxFuture<'static, Result<Option<ActorRow>, StoreError>> {
        let (name, key) = (name.clone(), key.encode());
        self.shared.find(move |sqlite, database| directory::find(sqlite, database, &name, &key))
    }

    /// The actor of this id.
    pub fn find_by_id(
        &self,
        id: ActorId,
    ) -> BoxFuture<'static, Result<Option<ActorRow>, StoreError>> {
        self.shared.find(move |sqlite, database| directory::find_by_id(sqlite, database, id))
    }

    /// The actors of a name, the newest first: at most `limit` of those created before
    /// `before`, and never more than a thousand.
    pub fn list_newest(
        &self,
        name: ActorName,
        before: Option<ActorNumber>,
        limit: u32,
    ) -> BoxFuture<'static, Result<Vec<ActorRow>, StoreError>> {
        let shared = Arc::clone(&self.shared);
        async move {
            let limit = limit.min(LIST_SLICE);
            let found = shared
                .read(move |sqlite, database| {
                    directory::list_newest(sqlite, database, &name, before, limit)
                })
                .await?;
            found.iter().for_each(|row| shared.files.note(row));
            Ok(found)
        }
        .boxed()
    }

    /// The actors that the filter asks for, in the order of their creation. Long
    /// lists are read in slices, each of which sees its own moment.
    pub fn list(
        &self,
        mut filter: ListFilter,
    ) -> BoxFuture<'static, Result<Vec<ActorRow>, StoreError>> {
        let shared = Arc::clone(&self.shared);
        let mut left = filter.limit;
        async move {
            let mut rows = Vec::new();
            while left > 0 {
                filter.limit = left.min(LIST_SLICE);
                let slice = filter.clone();
                let found = shared
                    .read(move |sqlite, database| directory::list(sqlite, database, &slice))
                    .await?;
                found.iter().for_each(|row| shared.files.note(row));
                let is_last = found.len() < filter.limit as usize;
                left -= filter.limit;
                filter.after = found.last().map(|row| row.number).or(filter.after);
                rows.extend(found);
                if is_last {
                    break;
                }
            }
            Ok(rows)
        }
        .boxed()
    }

    /// The earliest alarms of all actors, in milliseconds since the Unix epoch,
    /// at most `limit`, the earliest first.
    pub fn earliest_alarms(
        &self,
        limit: u32,
    ) -> BoxFuture<'static, Result<Vec<(ActorNumber, i64)>, StoreError>> {
        self.shared.read(move |sqlite, database| {
            directory::earliest_alarms(sqlite, limit).map_err(|error| database.fault(&error))
        })
    }

    /// The alarms of all actors that come after a place in their order, at most `limit`.
    pub fn alarms(
        &self,
        after: Option<(i64, ActorNumber)>,
        limit: u32,
    ) -> BoxFuture<'static, Result<Vec<AlarmRow>, StoreError>> {
        self.shared.read(move |sqlite, database| directory::alarms(sqlite, database, after, limit))
    }

    /// The alarm of one actor, in milliseconds since the Unix epoch, every batch of it
    /// included that was taken before the call and succeeds.
    pub fn alarm_of(
        &self,
        number: ActorNumber,
    ) -> BoxFuture<'static, Result<Option<i64>, StoreError>> {
        self.shared.read_behind(number, move |sqlite, database| {
            directory::alarm_of(sqlite, number).map_err(|error| database.fault(&error))
        })
    }

    /// Makes an actor, durably, unless one of its name and key exists.
    pub fn create(&self, actor: NewActor) -> BoxFuture<'static, Result<Created, StoreError>> {
        let created = self.shared.write(|reply| Write::Create { actor, made: None, reply });
        let files = Arc::clone(&self.shared.files);
        async move { created.await.inspect(|created| files.note(&created.row)) }.boxed()
    }

    /// Removes an actor from the directory, durably; says whether it was there.
    /// Its generation ends with it: later batches are [`StoreError::NotFound`].
    /// Its rows are swept afterwards.
    pub fn destroy(&self, number: ActorNumber) -> BoxFuture<'static, Result<bool, StoreError>> {
        let (existed, file) = (false, None);
        self.shared.write(|reply| Write::Destroy { number, existed, file, reply })
    }

    /// Begins a generation of an actor and ends the one before: what that one
    /// has queued and is not being applied yet will be refused. Whoever opens it
    /// revokes it when the actor stops.
    pub fn open_generation(&self, number: ActorNumber) -> Generation {
        self.shared.fence.open(number)
    }

    /// What the tokens are made of that let dashboards look into actors. It stays with the
    /// folder, and with every copy of it.
    pub fn secret(&self) -> [u8; 32] {
        self.shared.secret
    }

    /// Ends a generation if it is the current one; says whether it was.
    pub fn revoke(&self, number: ActorNumber, generation: Generation) -> bool {
        self.shared.fence.revoke(number, generation)
    }

    /// The place that keeps this actor, which must have been found or made through this
    /// store. The handle follows the actor into its own file.
    pub fn actor(self: &Arc<Self>, number: ActorNumber) -> ActorStoreRef {
        Arc::new(Actor { store: Arc::clone(self), number })
    }

    /// In a store that waits for its turn: does one thing that waits, and blocks until that
    /// is done. False when there is none. Not for a thread that the answers wait for.
    pub fn serve_one(&self) -> bool {
        self.shared.files.help()
    }

    /// Commits what was queued before, closes every connection and frees the
    /// folder. Every later call is [`StoreError::Closed`]. May be called twice.
    pub fn close(&self) -> BoxFuture<'static, ()> {
        self.shared.files.refuse_more();
        self.shared.queue.close();
        let mut closed = self.shared.closed.subscribe();
        async move {
            // The sender lives as long as the writer thread, which sends before it ends.
            drop(closed.wait_for(|&closed| closed).await);
        }
        .boxed()
    }

    /// Keeps the writer from taking anything, so that a test can pile up a group.
    #[cfg(feature = "faults")]
    pub fn hold_writer(self: &Arc<Self>) -> HeldWriter {
        self.shared.queue.hold(true);
        HeldWriter(Arc::clone(self))
    }
}

/// Lets the writer go on when it is dropped.
#[cfg(feature = "faults")]
#[must_use = "the writer goes on as soon as this is dropped"]
pub struct HeldWriter(Arc<SharedStore>);

#[cfg(feature = "faults")]
impl Drop for HeldWriter {
    fn drop(&mut self) {
        self.0.shared.queue.hold(false);
    }
}

impl fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedStore")
            .field("database", &self.shared.database)
            .field("epoch", &self.epoch())
            .finish_non_exhaustive()
    }
}

impl Drop for SharedStore {
    fn drop(&mut self) {
        self.shared.files.refuse_more();
        self.shared.queue.close();
        self.shared.queue.give_up();
        let writer = self.writer.lock().take();
        // Invariant 2: the last handle may be dropped by a callback.
        if let Some(writer) = writer
            && !is_store_thread()
            && writer.join().is_err()
        {
            tracing::error!("the writer of the store panicked");
        }
    }
}

impl Shared {
    /// Reads through the pool, or in memory through the writer.
    pub(super) fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection, &Database) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (read, answer) = self.reading(query);
        match &self.readers {
            Some(readers) => readers.read(read),
            None => self.queue.push_read(read),
        }
        answer
    }

    /// Reads behind every batch of an actor that was taken before.
    pub(super) fn read_behind<T: Send + 'static>(
        &self,
        number: ActorNumber,
        query: impl FnOnce(&Connection, &Database) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        if !self.queue.is_pending(number) {
            return self.read(query);
        }
        let (read, answer) = self.reading(query);
        self.queue.push_read(read);
        answer
    }

    /// Reads the row of an actor and remembers its place.
    fn find(
        &self,
        query: impl FnOnce(&Connection, &Database) -> Result<Option<ActorRow>, StoreError>
        + Send
        + 'static,
    ) -> BoxFuture<'static, Result<Option<ActorRow>, StoreError>> {
        let files = Arc::clone(&self.files);
        let found = self.read(query);
        async move {
            found.await.inspect(|row| {
                if let Some(row) = row {
                    files.note(row);
                }
            })
        }
        .boxed()
    }

    pub(super) fn reading<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection, &Database) -> Result<T, StoreError> + Send + 'static,
    ) -> (Read, BoxFuture<'static, Result<T, StoreError>>) {
        let database = Arc::clone(&self.database);
        let (answer, answered) = oneshot::channel();
        let read: Read = Box::new(move |sqlite| {
            let result = sqlite.and_then(|sqlite| query(sqlite, &database));
            // Nobody waits any more: nothing is lost.
            drop(answer.send(result));
        });
        (read, received(answered))
    }

    fn write<T: Send + 'static>(
        &self,
        make: impl FnOnce(Reply<T>) -> Write,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (answer, answered) = oneshot::channel();
        self.queue.push(make(Reply::new(Box::new(move |result| drop(answer.send(result))))));
        received(answered)
    }
}

pub(super) fn received<T: Send + 'static>(
    answered: oneshot::Receiver<Result<T, StoreError>>,
) -> BoxFuture<'static, Result<T, StoreError>> {
    async move { answered.await.unwrap_or(Err(StoreError::Closed)) }.boxed()
}
