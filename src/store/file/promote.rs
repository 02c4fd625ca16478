//! How an actor leaves the shared store for a file of its own.
//!
//! # Invariants
//!
//! 1. The rows in the shared store are the truth until the switch is durable; from then
//!    on the file is, which is complete and durable before.
//! 2. From the moment at which the last batch in the shared store is answered until the
//!    switch, nothing is written anywhere: what comes waits in the slot.
//! 3. A promotion that certainly failed leaves the actor where it was; what waited goes
//!    there in its order. When the switch is in doubt, the directory decides once the
//!    store is open again.

use std::sync::{Arc, mpsc};

use rusqlite::{Connection, params_from_iter, types::Value};

use super::alarm::Books;
use super::faults::PromotionStep;
use super::lease::Lease;
use super::open::FileConnection;
use super::slot::{Holder, Slot, Waiting};
use super::task::Task;
use super::{Files, Route, open, schema, sync};
use crate::ids::Generation;
use crate::store::connection::Database;
use crate::store::job::{Read, Reply, Write, guarded};
use crate::store::place::{self, FileName, PlaceChange};
use crate::store::{ActorNumber, Place, StoreError, directory};

/// Names that are tried before a promotion gives up: each was left by a failure.
const NAMES: u32 = 1_000;

impl Files {
    /// Moves an actor into a file for a turn, on its own thread: the pool may be busy with
    /// statements of other actors.
    pub(in crate::store) fn promote_here(
        self: &Arc<Self>,
        number: ActorNumber,
        generation: Generation,
    ) -> Result<Arc<Slot>, StoreError> {
        let _guest = self.guests.enter()?;
        self.start_threads()?;
        let mut promoted = Err(StoreError::Closed);
        guarded("a promotion", || promoted = self.promote(number, generation));
        promoted
    }

    /// Moves an actor into a file, on this thread, which waits for the shared store.
    pub(in crate::store) fn promote(
        self: &Arc<Self>,
        number: ActorNumber,
        generation: Generation,
    ) -> Result<Arc<Slot>, StoreError> {
        if let Some(slot) = self.slot(number)? {
            return Ok(slot);
        }
        let row = self
            .ask(move |sqlite, database| directory::find_by_number(sqlite, database, number))?
            .ok_or(StoreError::NotFound)?;
        if let Place::File { .. } = row.place {
            self.note(&row);
            return self.slot(number)?.ok_or(StoreError::NotFound);
        }
        let name = self.create_file(FileName { id: row.id, n: 1 })?;
        let database = self.database(name);
        let opened = open::open_any(&database);
        let connection = opened.inspect_err(|_| self.remove(name))?;
        let slot = Slot::new(self, number, name, Holder::Pool, Books::Exact);
        if let Err(existing) = self.stop_admission(&slot) {
            drop(connection);
            self.remove(name);
            return existing;
        }
        match self.fill_and_switch(&slot, connection, generation) {
            Ok(connection) => {
                self.take_room(&slot);
                drop(Lease::new(Arc::clone(&slot), Some(connection)));
                Ok(slot)
            }
            Err(error) => {
                self.take_back(&slot, &error);
                Err(error)
            }
        }
    }

    /// A file without rows under a name that nothing has.
    fn create_file(&self, mut name: FileName) -> Result<FileName, StoreError> {
        if let Database::Kept(memory) = &*self.store {
            return memory.create_file(name).map(|()| name);
        }
        let Some(folder) = &self.folder else { return Ok(name) };
        let failed = |name: FileName, error: std::io::Error| {
            let path = folder.path(name).display().to_string();
            match error.kind() {
                std::io::ErrorKind::StorageFull => StoreError::Full { path },
                _ => StoreError::Io { path, reason: error.to_string() },
            }
        };
        for _ in 0..NAMES {
            match folder.create(name, &self.faults) {
                Ok(Some(())) => return Ok(name),
                Ok(None) => name.n += 1,
                Err(error) => return Err(failed(name, error)),
            }
        }
        Err(failed(name, std::io::Error::other("every name is taken")))
    }

    /// From here on everything for this actor waits in the slot.
    fn stop_admission(&self, slot: &Arc<Slot>) -> Result<(), Result<Arc<Slot>, StoreError>> {
        let mut routes = self.routes.write();
        if routes.is_closed {
            return Err(Err(StoreError::Closed));
        }
        match routes.map.get(&slot.number) {
            Some(Route::Gone) => Err(Err(StoreError::NotFound)),
            // Another promotion of the same actor was faster.
            Some(Route::Open(existing)) => Err(Ok(Arc::clone(existing))),
            Some(Route::At(_) | Route::Leaving(_)) | None => {
                let before = routes.map.insert(slot.number, Route::Open(Arc::clone(slot)));
                if let Some(Route::Leaving(waiting)) = before {
                    let since = self.clock.now();
                    let tasks = waiting.into_inner().into_iter();
                    slot.lock().tasks = tasks.map(|task| Waiting { task, since }).collect();
                }
                Ok(())
            }
        }
    }

    fn fill_and_switch(
        self: &Arc<Self>,
        slot: &Arc<Slot>,
        connection: FileConnection,
        generation: Generation,
    ) -> Result<FileConnection, StoreError> {
        let number = slot.number;
        self.wait_for_the_last_batch()?;
        self.pass(slot, PromotionStep::Drained)?;
        let database = slot.database.clone();
        let (connection, copied) = self.ask(move |sqlite, store| {
            let copied = copy(sqlite, store, &connection.sqlite, &database, number);
            Ok((connection, copied))
        })?;
        copied?;
        self.pass(slot, PromotionStep::Copied)?;
        if self.folder.is_some() {
            let log = sync::open_log(&slot.database)
                .and_then(|log| sync::sync_log(slot, Some(log)))
                .map_err(|error| StoreError::Io {
                    path: slot.database.label(),
                    reason: error.to_string(),
                })?;
            slot.lock().log = Some(log);
        }
        // What was just synced needs no sync of its own.
        connection.grown_to();
        self.pass(slot, PromotionStep::Synced)?;
        let (answer, answered) = mpsc::channel();
        self.queue.push(Write::Place {
            number,
            change: PlaceChange::MoveToFile { generation, n: slot.name.n },
            reply: Reply::new(Box::new(move |result| drop(answer.send(result)))),
        });
        self.hear(&answered)?;
        // It happened: nothing after it may take it back.
        if let Err(error) = self.pass(slot, PromotionStep::Switched) {
            tracing::debug!(%error, "a promotion cannot fail after its switch");
        }
        Ok(connection)
    }

    /// Returns once every batch that was taken before is answered.
    pub(super) fn wait_for_the_last_batch(&self) -> Result<(), StoreError> {
        let (answer, answered) = mpsc::channel();
        self.queue.push_read(Box::new(move |sqlite| drop(answer.send(sqlite.map(drop)))));
        self.hear(&answered)
    }

    fn pass(&self, slot: &Slot, step: PromotionStep) -> Result<(), StoreError> {
        self.faults.promotion(step).map_err(|error| StoreError::Io {
            path: slot.database.label(),
            reason: error.to_string(),
        })
    }

    /// Undoes a promotion that failed (invariant 3).
    fn take_back(self: &Arc<Self>, slot: &Arc<Slot>, error: &StoreError) {
        if let StoreError::OutcomeUnknown { .. } = error {
            slot.end(error, &Err(error.clone()), true);
            let (number, name) = (slot.number, slot.name);
            match self.ask(move |sqlite, database| {
                place::has_file(sqlite, name).map_err(|error| database.fault(&error))
            }) {
                Ok(true) => self.reroute(number, Some(Route::At(name))),
                Ok(false) => {
                    self.reroute(number, None);
                    self.remove(name);
                }
                // The store is down or closed; the next start sweeps.
                Err(_) => {}
            }
            return;
        }
        let refused = {
            let mut routes = self.routes.write();
            // Not where the actor was destroyed meanwhile.
            if matches!(routes.map.get(&slot.number), Some(Route::Open(_))) {
                routes.map.remove(&slot.number);
            }
            self.hand_back(slot, error)
        };
        slot.wake();
        for (task, error) in refused {
            self.refuse(slot.number, task, error);
        }
        self.remove(slot.name);
    }

    fn reroute(&self, number: ActorNumber, route: Option<Route>) {
        let mut routes = self.routes.write();
        if matches!(routes.map.get(&number), Some(Route::Gone)) {
            return;
        }
        match route {
            Some(route) => routes.map.insert(number, route),
            None => routes.map.remove(&number),
        };
    }

    /// Gives the shared store what waited, in its order; returns what it does not take.
    /// Under the lock of the routes, so that nothing overtakes.
    fn hand_back(&self, slot: &Slot, error: &StoreError) -> Vec<(Task, StoreError)> {
        let tasks = {
            let mut state = slot.lock();
            state.gone = Some(error.clone());
            state.holder = Holder::Closed;
            state.take_tasks()
        };
        let hand_over = |task: Task| {
            let (task, refusal) = self.hand_over(slot.number, task)?;
            // What is not written hears why the actor did not move.
            let is_write = matches!(task, Task::Commit { .. });
            Some((task, if is_write { refusal } else { error.clone() }))
        };
        tasks.into_iter().filter_map(hand_over).collect()
    }

    /// Reads the shared store from this thread, which is not the writer's.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection, &Database) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = mpsc::channel();
        let store = Arc::clone(&self.store);
        let read: Read = Box::new(move |sqlite| {
            drop(answer.send(sqlite.and_then(|sqlite| query(sqlite, &store))));
        });
        match &self.readers {
            Some(readers) => readers.read(read),
            None => self.queue.push_read(read),
        }
        self.hear(&answered)
    }
}

/// Copies an actor's rows into its file and commits them there.
pub(super) fn copy(
    store: &Connection,
    store_database: &Database,
    file: &Connection,
    file_database: &Database,
    number: ActorNumber,
) -> Result<(), StoreError> {
    let in_store = |error: rusqlite::Error| store_database.fault(&error);
    let in_file = |error: rusqlite::Error| file_database.fault(&error);
    // One moment of the store, one transaction of the file.
    let moment = store.unchecked_transaction().map_err(in_store)?;
    let transaction = file.unchecked_transaction().map_err(in_file)?;
    for table in schema::actor_tables(&transaction).map_err(in_file)? {
        let select = format!("SELECT * FROM {table} WHERE num = ?1");
        let mut query = moment.prepare(&select).map_err(in_store)?;
        let columns = query.column_count();
        let marks = vec!["?"; columns].join(", ");
        let mut insert = transaction
            .prepare(&format!("INSERT INTO {table} VALUES ({marks})"))
            .map_err(in_file)?;
        let mut rows = query.query([number.0]).map_err(in_store)?;
        while let Some(row) = rows.next().map_err(in_store)? {
            let values = (0..columns)
                .map(|column| row.get::<_, Value>(column))
                .collect::<rusqlite::Result<Vec<_>>>()
                .map_err(in_store)?;
            insert.execute(params_from_iter(values)).map_err(in_file)?;
        }
    }
    let alarm = directory::alarm_of(&moment, number).map_err(in_store)?;
    schema::sign(&transaction, number, alarm).map_err(in_file)?;
    transaction.commit().map_err(in_file)?;
    moment.finish().map_err(in_store)
}
