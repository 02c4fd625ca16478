//! An actor out of the copy of one.
//!
//! # Invariants
//!
//! 1. The actor's file is complete and durable before the directory names it. Until then
//!    nobody knows the actor, and a start sweeps what was made for it.
//! 2. The number that the file has is durably taken before, so no other actor gets it.
//! 3. When the last commit is in doubt, the directory decides once the store is open again.

use std::path::Path;
use std::sync::{Arc, mpsc};

use rusqlite::{Connection, OpenFlags};

use super::alarm::Books;
use super::faults::ImportStep;
use super::lease::Lease;
use super::slot::{Holder, Slot};
use super::source::Source;
use super::{Files, Route, adopt, open};
use crate::store::connection::Database;
use crate::store::job::{Adopted, Created, Reply, Write};
use crate::store::place::{self, FileName};
use crate::store::target::fault;
use crate::store::{ActorNumber, ActorRow, NewActor, Place, StoreError, directory};

impl Files {
    /// Makes an actor from a file, on this thread of the pool. Its input is that of the
    /// file. One that has the name and key is returned as it is.
    pub(in crate::store) fn import(
        self: &Arc<Self>,
        source: &Path,
        actor: NewActor,
    ) -> Result<Created, StoreError> {
        let (name, key) = (actor.name.clone(), actor.key.encode());
        let existing =
            self.ask(move |sqlite, database| directory::find(sqlite, database, &name, &key))?;
        if let Some(row) = existing {
            return Ok(Created { row, created: false });
        }
        let number = self.reserve_number()?;
        let file = FileName { id: actor.id, n: 1 };
        let result = self.make_file(source, file, number).and_then(|(connection, alarm)| {
            let row = ActorRow {
                number,
                id: actor.id,
                name: actor.name,
                key: actor.key,
                place: Place::File { n: file.n },
                created_at_ms: actor.created_at_ms,
            };
            self.enter_directory(row, alarm, connection)
        });
        match result {
            Ok(created) if created.created => Ok(created),
            Err(error @ StoreError::OutcomeUnknown { .. }) => Err(error),
            other => {
                self.remove(file);
                other
            }
        }
    }

    fn reserve_number(&self) -> Result<ActorNumber, StoreError> {
        let (answer, answered) = mpsc::channel();
        let reply = Reply::new(Box::new(move |result| drop(answer.send(result))));
        self.queue.push(Write::Reserve { number: None, reply });
        answered.recv().unwrap_or(Err(StoreError::Closed))
    }

    /// Writes the file of an actor; in memory the connection is all there is.
    fn make_file(
        &self,
        source: &Path,
        name: FileName,
        number: ActorNumber,
    ) -> Result<(Option<Connection>, Option<i64>), StoreError> {
        self.pass_import(source, ImportStep::Reserved)?;
        let Some(folder) = &self.folder else {
            let memory = Connection::open_in_memory().map_err(|error| self.memory_fault(&error))?;
            let (copied, alarm) = copy_whole(source, memory, number)?;
            return Ok((Some(copied), alarm));
        };
        let path = folder.path(name);
        folder.claim(name).map_err(|error| fault(&path, &error))?;
        self.pass_import(source, ImportStep::Claimed)?;
        let in_file = |error: rusqlite::Error| Database::File(path.clone()).fault(&error);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let file = Connection::open_with_flags(&path, flags).map_err(in_file)?;
        // The whole file is synced below, and swept after a crash before that.
        file.execute_batch("PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY;")
            .map_err(in_file)?;
        let (file, alarm) = copy_whole(source, file, number)?;
        self.pass_import(source, ImportStep::Adopted)?;
        let mode: String = file
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
            .map_err(in_file)?;
        if mode != "wal" {
            return Err(open::corrupt(
                &Database::File(path),
                &format!("its journal mode stays {mode}"),
            ));
        }
        file.close().map_err(|(_, error)| in_file(error))?;
        folder.make_durable(name).map_err(|error| fault(&path, &error))?;
        self.pass_import(source, ImportStep::Synced)?;
        Ok((None, alarm))
    }

    fn memory_fault(&self, error: &rusqlite::Error) -> StoreError {
        Database::Memory.fault(error)
    }

    fn pass_import(&self, source: &Path, step: ImportStep) -> Result<(), StoreError> {
        self.faults.import(step).map_err(|error| fault(source, &error))
    }

    /// The last step: from here on the actor exists.
    fn enter_directory(
        self: &Arc<Self>,
        row: ActorRow,
        alarm: Option<i64>,
        connection: Option<Connection>,
    ) -> Result<Created, StoreError> {
        let name = FileName { id: row.id, n: 1 };
        // Before anybody can find the row, for there is nothing to open again.
        let in_memory = connection
            .map(|connection| self.open_in_memory(row.number, name, connection))
            .transpose()?;
        let result = self.try_enter(row.clone(), alarm);
        match &result {
            Ok(created) if created.created => {
                self.note(&created.row);
                if let Err(error) = self.faults.import(ImportStep::Entered) {
                    tracing::debug!(%error, "an import cannot fail after its last step");
                }
                return result;
            }
            Err(StoreError::OutcomeUnknown { .. }) => match self.ask(move |sqlite, database| {
                place::has_file(sqlite, name).map_err(|error| database.fault(&error))
            }) {
                Ok(true) => {
                    self.note(&row);
                    return Ok(Created { row, created: true });
                }
                Ok(false) => self.remove(name),
                // The store is down or closed; the next start sweeps.
                Err(_) => {}
            },
            _ => {}
        }
        if let Some(slot) = in_memory {
            self.routes.write().map.remove(&slot.number);
            let gone = StoreError::NotFound;
            slot.end(&gone, &Err(gone.clone()), true);
        }
        result
    }

    fn try_enter(&self, row: ActorRow, alarm: Option<i64>) -> Result<Created, StoreError> {
        let (answer, answered) = mpsc::channel();
        let reply = Reply::new(Box::new(move |result| drop(answer.send(result))));
        self.queue.push(Write::Adopt(Box::new(Adopted { row, alarm, made: None, reply })));
        answered.recv().unwrap_or(Err(StoreError::Closed))
    }

    fn open_in_memory(
        self: &Arc<Self>,
        number: ActorNumber,
        name: FileName,
        connection: Connection,
    ) -> Result<Arc<Slot>, StoreError> {
        let connection = open::of_memory(connection).map_err(|error| self.memory_fault(&error))?;
        let slot = Slot::new(self, number, name, Holder::Pool, Books::Exact);
        {
            let mut routes = self.routes.write();
            if routes.is_closed {
                return Err(StoreError::Closed);
            }
            routes.map.insert(number, Route::Open(Arc::clone(&slot)));
        }
        self.open.lock().push(Arc::clone(&slot));
        drop(Lease::new(Arc::clone(&slot), Some(connection)));
        Ok(slot)
    }
}

/// Copies a file into `to` and makes it the file of the actor `number`.
fn copy_whole(
    source: &Path,
    to: Connection,
    number: ActorNumber,
) -> Result<(Connection, Option<i64>), StoreError> {
    let copied = Source::open(source)?.copy_into(to)?;
    let alarm = adopt::adopt(&copied, &Database::File(source.to_owned()), number)?;
    Ok((copied, alarm))
}
