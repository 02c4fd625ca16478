//! Actors that have a file of their own: which they are, what works on them, and how
//! they come and go.
//!
//! # Invariants
//!
//! 1. An actor's rows are in the shared store or in its file, and the directory says
//!    where. What is sent to an actor goes there in the order in which it came, over a
//!    promotion too.
//! 2. A batch is durable before its callback hears `Ok`: COMMIT makes it atomic, a sync
//!    thread makes it durable.
//! 3. Threads are started with the first actor that has a file.
//! 4. In a store that waits for its turn there are none: whoever gives it its turn does
//!    their work, one thing at a time. It has no logs to copy and no disk to sync.
//!
//! The lock of the routes comes before those of the queue and of a slot; under it
//! something is only put into a line.

mod actor;
mod adopt;
mod alarm;
mod export;
mod faults;
mod folder;
mod gate;
mod guests;
mod image;
mod import;
mod keep;
mod lease;
mod limits;
mod line;
mod manual;
mod open;
mod pool;
mod promote;
mod routes;
mod schema;
mod serve;
mod slot;
mod source;
mod sync;
mod task;
mod turn;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex, RwLock};

pub use self::actor::{ActorFile, FileStats};
pub use self::faults::{FileFaults, FileStep, ImportStep, PromotionStep};
pub(super) use self::folder::{ActorsFolder, beside};
use self::guests::Guests;
pub use self::limits::FileLimits;
use self::line::Line;
pub(super) use self::open::configure;
use self::pool::Job;
pub(super) use self::routes::Sent;
use self::routes::{Route, Routes};
use self::slot::Slot;
use self::sync::SyncJob;
pub(super) use self::task::Task;
pub use self::turn::Turn;
use super::connection::Database;
use super::fence::Fence;
use super::kept::KeptFile;
use super::options::{StoreObserver, StoreOptions};
use super::place::FileName;
use super::queue::Queue;
use super::readers::Readers;
use super::shared::store_thread;
use super::{ActorNumber, StoreError};
use crate::time::{Clock, Instant, Sleep};

/// The files of a store.
pub(super) struct Files {
    clock: Clock,
    observer: Option<Arc<dyn StoreObserver>>,
    limits: FileLimits,
    faults: FileFaults,
    /// `None` in memory, where each actor that has "a file" has a database of its own.
    folder: Option<ActorsFolder>,
    /// Whether what is to be done waits for [`Files::serve_one`] (invariant 4).
    by_turns: bool,
    /// As in the options of the store.
    waits_for_turn: Option<Arc<dyn Fn() + Send + Sync>>,
    store: Arc<Database>,
    queue: Arc<Queue>,
    fence: Arc<Fence>,
    readers: Option<Arc<Readers>>,
    /// Bytes that wait for a thread, and how many may.
    waiting_bytes: AtomicUsize,
    limit_bytes: usize,
    /// Changed by callers (first use), promotions, the writer (ends) and the closing.
    routes: RwLock<Routes>,
    ready: Line<Job>,
    syncs: Line<SyncJob>,
    /// Files that are open. Changed by whoever opens or closes one.
    open: Mutex<Vec<Arc<Slot>>>,
    may_have_room: Condvar,
    /// Whether something may wait for a transaction begun by hand.
    is_held_up: AtomicBool,
    /// When the next of that has waited for too long, where no thread looks. Changed by
    /// whoever gives the turns.
    turn_at: Mutex<Option<Sleep>>,
    /// Whether files want looking after, and when that was done last.
    has_rest: AtomicBool,
    kept_at: Mutex<Option<Instant>>,
    checkpoints: AtomicU64,
    guests: Guests,
    /// `None` before the first actor that has a file.
    threads: Mutex<Option<Threads>>,
}

struct Threads {
    pool: Vec<JoinHandle<()>>,
    syncing: Vec<JoinHandle<()>>,
}

/// What the files need of the store.
pub(super) struct Surroundings {
    pub(super) folder: Option<ActorsFolder>,
    pub(super) store: Arc<Database>,
    pub(super) queue: Arc<Queue>,
    pub(super) fence: Arc<Fence>,
    pub(super) readers: Option<Arc<Readers>>,
    /// Actors whose alarm the directory does not know.
    pub(super) open_alarms: Vec<(ActorNumber, FileName)>,
}

impl Files {
    pub(super) fn new(options: &StoreOptions, around: Surroundings) -> Arc<Self> {
        limits::raise_descriptors();
        let Surroundings { folder, store, queue, fence, readers, open_alarms } = around;
        let mut routes = Routes::default();
        for (number, name) in open_alarms {
            routes.map.insert(number, Route::At(name));
            routes.open_alarms.insert(number);
        }
        Arc::new(Self {
            clock: options.clock.clone(),
            observer: options.observer.clone(),
            limits: options.files.clone(),
            faults: options.file_faults.clone(),
            folder,
            by_turns: options.waits_for_turn.is_some(),
            waits_for_turn: options.waits_for_turn.clone(),
            store,
            queue,
            fence,
            readers,
            waiting_bytes: AtomicUsize::new(0),
            limit_bytes: options.limits.queue_bytes,
            routes: RwLock::new(routes),
            ready: Line::new(options.waits_for_turn.clone()),
            syncs: Line::new(options.waits_for_turn.clone()),
            open: Mutex::default(),
            may_have_room: Condvar::new(),
            is_held_up: AtomicBool::new(false),
            turn_at: Mutex::default(),
            has_rest: AtomicBool::new(false),
            kept_at: Mutex::default(),
            checkpoints: AtomicU64::new(0),
            guests: Guests::default(),
            threads: Mutex::default(),
        })
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether the rows of a file are gone with its connection.
    pub(super) fn is_memory(&self) -> bool {
        *self.store == Database::Memory
    }

    fn database(&self, name: FileName) -> Database {
        match (&self.folder, &*self.store) {
            (Some(folder), _) => Database::File(folder.path(name)),
            (None, Database::Kept(of)) => Database::KeptFile(KeptFile { of: of.clone(), name }),
            (None, _) => Database::Memory,
        }
    }

    fn remove(&self, name: FileName) {
        match (&self.folder, &*self.store) {
            (Some(folder), _) => folder.remove(name),
            (None, Database::Kept(memory)) => memory.remove_file(name),
            (None, _) => {}
        }
    }

    /// Takes so many bytes into what waits, or says that it is too much.
    fn weigh(&self, bytes: usize) -> Result<(), StoreError> {
        let before = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let waiting_bytes = before.saturating_add(bytes);
        if bytes > 0 && before > 0 && waiting_bytes > self.limit_bytes {
            self.unweigh(bytes);
            return Err(StoreError::Overloaded { waiting_bytes, limit_bytes: self.limit_bytes });
        }
        Ok(())
    }

    fn unweigh(&self, bytes: usize) {
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Starts the threads unless they run (invariant 3).
    fn start_threads(self: &Arc<Self>) -> Result<(), StoreError> {
        if self.by_turns {
            return Ok(());
        }
        let mut threads = self.threads.lock();
        if threads.is_some() {
            return Ok(());
        }
        let mut started = Threads { pool: Vec::new(), syncing: Vec::new() };
        let result = self.start_into(&mut started);
        if started.pool.is_empty() || started.syncing.is_empty() {
            return result.map_err(|error| StoreError::Io {
                path: self.store.label(),
                reason: format!("no thread: {error}"),
            });
        }
        // A few are enough.
        *threads = Some(started);
        Ok(())
    }

    fn start_into(self: &Arc<Self>, threads: &mut Threads) -> std::io::Result<()> {
        let (pool, syncing) = (self.limits.pool_threads.max(1), self.limits.sync_threads.max(1));
        for index in 0..pool.max(syncing) {
            if index < pool {
                let own = Arc::clone(self);
                let name = format!("greenroom-file-{index}");
                threads.pool.push(store_thread(name, move || own.work())?);
            }
            if index < syncing {
                let own = Arc::clone(self);
                let name = format!("greenroom-sync-{index}");
                threads.syncing.push(store_thread(name, move || own.sync_files())?);
            }
        }
        Ok(())
    }

    /// Takes nothing more; what waits is still served.
    pub(super) fn refuse_more(&self) {
        self.routes.write().is_closed = true;
    }

    /// Serves what waits, makes it durable, closes every file and ends the threads. The
    /// writer calls it when its own queue is closed and empty.
    pub(super) fn close(&self) {
        self.refuse_more();
        // Where there are no threads, a guest may be who gives the turn for this.
        if !self.by_turns {
            self.guests.close();
        }
        let threads = self.threads.lock().take();
        while self.serve_one() {}
        self.ready.close();
        if let Some(threads) = threads {
            join(threads.pool);
            self.syncs.close();
            join(threads.syncing);
        }
        let routes = std::mem::take(&mut self.routes.write().map);
        for route in routes.into_values() {
            match route {
                // A turn that is not over yet keeps the connection; it is abandoned then,
                // and the next start finds everything in the log.
                Route::Open(slot) => {
                    slot.end(&StoreError::Closed, &Err(StoreError::Closed), false);
                }
                Route::Leaving(waiting) => {
                    for task in waiting.into_inner() {
                        task.refuse(StoreError::Closed);
                    }
                }
                Route::At(_) | Route::Gone => {}
            }
        }
    }
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        if thread.join().is_err() {
            tracing::error!("a thread of the files panicked");
        }
    }
}
