//! Where what is sent to an actor goes.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use super::Files;
use super::alarm::Books;
use super::pool::Job;
use super::slot::{Holder, Slot};
use super::task::Task;
use crate::ids::Generation;
use crate::store::connection::Database;
use crate::store::job::{Reply, Write};
use crate::store::place::FileName;
use crate::store::{ActorNumber, ActorRow, StoreError, WriteBatch};

/// Actors that do not live in the shared store, as far as anybody asked for them.
#[derive(Default)]
pub(super) struct Routes {
    pub(super) map: HashMap<ActorNumber, Route>,
    /// Actors whose alarm the directory did not know when the store was opened.
    pub(super) open_alarms: HashSet<ActorNumber>,
    pub(super) is_closed: bool,
}

/// Where an actor is.
pub(super) enum Route {
    /// In this file, which nobody has used yet.
    At(FileName),
    /// In the file of this slot, or on its way there.
    Open(Arc<Slot>),
    /// About to leave the shared store, where one of its batches would be in everybody's
    /// way. What was sent since, in order.
    Leaving(Mutex<VecDeque<Task>>),
    /// Nowhere: it had a file and was destroyed. A row that was read before must not
    /// bring it back.
    Gone,
}

/// What became of something that was sent.
pub(in crate::store) enum Sent {
    /// It is on its way.
    Taken,
    /// It is refused.
    Refused(Task, StoreError),
    /// The actor is in the shared store.
    ToStore(Task),
}

/// An actor that is about to leave the shared store. If the promotion came to an end
/// before it took over what waits, the actor stays.
struct Leaving {
    files: Arc<Files>,
    number: ActorNumber,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.files.stay_in_store(self.number);
    }
}

impl Files {
    /// Remembers the place of an actor whose row was read.
    pub(in crate::store) fn note(&self, row: &ActorRow) {
        let Some(name) = FileName::of(row) else { return };
        if self.routes.read().map.contains_key(&row.number) {
            return;
        }
        self.routes.write().map.entry(row.number).or_insert(Route::At(name));
    }

    /// Whether the actor is in a file, or on its way there.
    pub(in crate::store) fn has(&self, number: ActorNumber) -> bool {
        self.routes.read().map.contains_key(&number)
    }

    /// The slot of an actor that has a file; `None` while it is in the shared store.
    pub(in crate::store) fn slot(
        self: &Arc<Self>,
        number: ActorNumber,
    ) -> Result<Option<Arc<Slot>>, StoreError> {
        {
            let routes = self.routes.read();
            match routes.map.get(&number) {
                _ if routes.is_closed => return Err(StoreError::Closed),
                None | Some(Route::Leaving(_)) => return Ok(None),
                Some(Route::Gone) => return Err(StoreError::NotFound),
                Some(Route::Open(slot)) => return Ok(Some(Arc::clone(slot))),
                Some(Route::At(_)) => {}
            }
        }
        self.start_threads()?;
        let mut routes = self.routes.write();
        let is_open = routes.open_alarms.contains(&number);
        let Some(route) = routes.map.get_mut(&number) else { return Ok(None) };
        let name = match route {
            Route::At(name) => *name,
            Route::Open(slot) => return Ok(Some(Arc::clone(slot))),
            Route::Leaving(_) => return Ok(None),
            Route::Gone => return Err(StoreError::NotFound),
        };
        let books = if is_open { Books::Open } else { Books::Exact };
        let slot = Slot::new(self, number, name, Holder::Closed, books);
        *route = Route::Open(Arc::clone(&slot));
        Ok(Some(slot))
    }

    /// Sends a task to the actor's file, or gives it back for the shared store.
    pub(in crate::store) fn send(self: &Arc<Self>, number: ActorNumber, task: Task) -> Sent {
        if let Err(error) = self.slot(number) {
            return Sent::Refused(task, error);
        }
        let routes = self.routes.read();
        self.enqueue(&routes, number, task)
    }

    /// The database of an actor that has a file.
    pub(in crate::store) fn database_of(&self, number: ActorNumber) -> Database {
        match self.routes.read().map.get(&number) {
            Some(Route::Open(slot)) => slot.database.clone(),
            Some(Route::At(name)) => self.database(*name),
            Some(Route::Leaving(_) | Route::Gone) | None => Database::clone(&self.store),
        }
    }

    /// Closes an actor's file as soon as nobody uses it any more.
    pub(in crate::store) fn let_rest(&self, number: ActorNumber) {
        let slot = match self.routes.read().map.get(&number) {
            Some(Route::Open(slot)) => Arc::clone(slot),
            _ => return,
        };
        let mut state = slot.lock();
        state.wants_close = true;
        slot.schedule(state);
    }

    /// Takes a batch of an actor, wherever it is.
    pub(in crate::store) fn commit(
        self: &Arc<Self>,
        number: ActorNumber,
        batch: WriteBatch,
        reply: Reply<()>,
    ) {
        if batch.weight() > self.limits.shared_batch_bytes {
            self.leave_store(number, batch.generation);
        }
        let task = Task::Commit { batch, reply };
        let refused = match self.slot(number) {
            // The queue has its own word for a store that is closed or down.
            Err(error) if error != StoreError::Closed => Some((task, error)),
            _ => {
                // Under the lock, so that it comes before or after a promotion, not between.
                let routes = self.routes.read();
                match self.enqueue(&routes, number, task) {
                    Sent::Taken => None,
                    Sent::Refused(task, error) => Some((task, error)),
                    Sent::ToStore(task) => self.push(number, task),
                }
            }
        };
        if let Some((task, error)) = refused {
            self.refuse(number, task, error);
        }
    }

    /// Ends a task undone, and with it the generation's writing if it says so: before
    /// anybody hears, or a batch behind it could pass. None does once the store is closed
    /// or down, and what was taken before that is still to be written.
    pub(super) fn refuse(&self, number: ActorNumber, task: Task, error: StoreError) {
        let is_last = matches!(error, StoreError::Closed | StoreError::Down { .. });
        if let Task::Commit { batch, .. } = &task
            && batch.fails_generation
            && !is_last
        {
            self.fence.revoke(number, batch.generation);
        }
        task.refuse(error);
    }

    fn push(&self, number: ActorNumber, task: Task) -> Option<(Task, StoreError)> {
        let Task::Commit { batch, reply } = task else { return Some((task, StoreError::Closed)) };
        let refused = self.queue.try_push(Write::Commit { number, batch, reply }).err()?;
        let (write, error) = *refused;
        match write {
            Write::Commit { batch, reply, .. } => Some((Task::Commit { batch, reply }, error)),
            _ => None,
        }
    }

    fn enqueue(self: &Arc<Self>, routes: &Routes, number: ActorNumber, task: Task) -> Sent {
        match routes.map.get(&number) {
            None => Sent::ToStore(task),
            Some(_) if routes.is_closed => Sent::Refused(task, StoreError::Closed),
            Some(Route::Open(slot)) => match slot.enqueue(task) {
                Ok(()) => Sent::Taken,
                Err(refused) => {
                    let (task, error) = *refused;
                    Sent::Refused(task, error)
                }
            },
            Some(Route::Leaving(waiting)) => match self.weigh(task.weight()) {
                Ok(()) => {
                    waiting.lock().push_back(task);
                    Sent::Taken
                }
                Err(error) => Sent::Refused(task, error),
            },
            Some(Route::Gone | Route::At(_)) => Sent::Refused(task, StoreError::NotFound),
        }
    }

    /// Has an actor moved into a file, on a thread of the pool. What comes for it from here
    /// on waits, unless it is there already.
    fn leave_store(self: &Arc<Self>, number: ActorNumber, generation: Generation) {
        // In memory nobody waits for a disk, and the generation before moves nothing.
        if self.is_memory() || self.has(number) || !self.fence.is_current(number, generation) {
            return;
        }
        if let Err(error) = self.start_threads() {
            return tracing::warn!(%error, "a large actor stays in the shared store");
        }
        {
            let mut routes = self.routes.write();
            if routes.is_closed || routes.map.contains_key(&number) {
                return;
            }
            routes.map.insert(number, Route::Leaving(Mutex::default()));
        }
        let leaving = Leaving { files: Arc::clone(self), number };
        self.ready.push(Job::Run(Box::new(move || {
            if let Err(error) = leaving.files.promote(number, generation) {
                tracing::warn!(%error, "a large actor stays in the shared store");
            }
        })));
    }

    /// Gives the shared store what waited for a move that will not be.
    fn stay_in_store(&self, number: ActorNumber) {
        let refused: Vec<_> = {
            let mut routes = self.routes.write();
            if !matches!(routes.map.get(&number), Some(Route::Leaving(_))) {
                return;
            }
            let Some(Route::Leaving(waiting)) = routes.map.remove(&number) else { return };
            // Under the lock, so that nothing overtakes.
            waiting
                .into_inner()
                .into_iter()
                .filter_map(|task| self.hand_over(number, task))
                .collect()
        };
        for (task, error) in refused {
            task.refuse(error);
        }
    }

    /// Gives the shared store a task that waited here; returns what it does not take.
    pub(super) fn hand_over(&self, number: ActorNumber, task: Task) -> Option<(Task, StoreError)> {
        self.unweigh(task.weight());
        match task {
            Task::Commit { .. } => self.push(number, task),
            // A reading knows which tables it was made for: whoever made it makes it again.
            task => Some((task, StoreError::Stale)),
        }
    }

    /// The actor was destroyed, durably; its file goes.
    pub(in crate::store) fn forget(self: &Arc<Self>, number: ActorNumber, file: Option<FileName>) {
        let Some(name) = file else { return };
        let route = self.routes.write().map.insert(number, Route::Gone);
        if self.start_threads().is_err() {
            // The next start sweeps.
            return;
        }
        let files = Arc::clone(self);
        self.ready.push(Job::Run(Box::new(move || {
            if let Some(Route::Open(slot)) = route {
                slot.end(&StoreError::NotFound, &Err(StoreError::NotFound), true);
            }
            files.remove(name);
        })));
    }

    /// Runs a promotion on a thread of the pool.
    pub(in crate::store) fn on_pool(
        self: &Arc<Self>,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), StoreError> {
        if self.routes.read().is_closed {
            return Err(StoreError::Closed);
        }
        self.start_threads()?;
        self.ready.push(Job::Run(Box::new(run)));
        Ok(())
    }
}
