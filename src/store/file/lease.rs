//! The connection of a file in one pair of hands, and what may be done with it.
//!
//! # Invariants
//!
//! 1. A lease that is dropped gives the connection back, by a panic too.
//! 2. What was committed under it has a number of the gate before it is given back.
//! 3. A commit whose outcome is unknown closes the file without a checkpoint and ends
//!    the generation; the next lease lets recovery decide. The second one in a row ends
//!    the file until the process starts anew.

use std::sync::Arc;

use rusqlite::{Connection, ErrorCode};

use super::faults::FileStep;
use super::open::FileConnection;
use super::slot::{Holder, Slot};
use super::{open, schema, task};
use crate::store::connection::is_certain;
use crate::store::job::Reply;
use crate::store::sql::SqlSession;
use crate::store::{StoreError, WriteBatch, rows};

/// The connection of an actor's file, held.
pub(in crate::store) struct Lease {
    slot: Arc<Slot>,
    /// `None` before it is opened, and after it was closed for good.
    connection: Option<FileConnection>,
}

/// Why something was not committed.
enum Failed {
    /// It certainly was not.
    Certain(StoreError),
    /// Nobody knows.
    Unknown(String),
}

impl Lease {
    pub(super) fn new(slot: Arc<Slot>, connection: Option<FileConnection>) -> Self {
        Self { slot, connection }
    }

    /// Opens the file unless it is open.
    pub(super) fn open(&mut self) -> Result<(), StoreError> {
        if self.connection.is_some() {
            return Ok(());
        }
        let connection = open::open(&self.slot.database, self.slot.number)?;
        if self.slot.lock().doubt.is_some() {
            open::make_certain(&connection, &self.slot.database)?;
        }
        if let Some(on) = self.slot.lock().foreign_keys {
            connection.user.set_foreign_keys(on);
        }
        self.connection = Some(connection);
        Ok(())
    }

    /// What a generation begins with: no transaction, and nothing of what the author set
    /// or made for the connection of the one before.
    pub(super) fn begin_generation(&mut self) -> Result<(), StoreError> {
        task::undo(self.sqlite()).map_err(|error| self.slot.database.fault(&error))?;
        let user = &self.connection().user;
        if !user.has_temporary() && user.foreign_keys().is_none() {
            return Ok(());
        }
        self.slot.lock().foreign_keys = None;
        if self.slot.files.is_memory() {
            // The rows are in the connection.
            return Ok(());
        }
        self.committed();
        self.close_connection();
        self.open()
    }

    /// The connection with what an author's statements need.
    pub(in crate::store) fn session(&self) -> SqlSession<'_> {
        let connection = self.connection();
        connection.user.on(&connection.sqlite)
    }

    pub(super) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// Asks `hook` at each commit whether that fails; `None` asks nobody.
    pub(super) fn watch_commits(
        &mut self,
        hook: Option<Box<dyn FnMut() -> bool + Send>>,
    ) -> rusqlite::Result<()> {
        self.connection.as_mut().map_or(Ok(()), |connection| connection.watch_commits(hook))
    }

    /// The connection.
    pub(in crate::store) fn sqlite(&self) -> &Connection {
        &self.connection().sqlite
    }

    pub(super) fn connection(&self) -> &FileConnection {
        self.connection.as_ref().expect("a lease is handed out with an open connection")
    }

    /// Whether the connection is still there: a commit of unknown outcome closes it.
    pub(super) fn is_open(&self) -> bool {
        self.connection.is_some()
    }

    /// Notes what was committed since the last call; returns the number to wait for.
    pub(super) fn committed(&self) -> u64 {
        // In memory nothing grows, and nothing is to be synced.
        let grown = self.connection().grown_to().is_some();
        self.slot.note_commit(grown)
    }

    /// Begins a transaction unless one is open.
    pub(super) fn begin(&self) -> Result<(), StoreError> {
        if !self.sqlite().is_autocommit() {
            return Ok(());
        }
        self.run("BEGIN IMMEDIATE").map_err(|error| self.slot.database.fault(&error))
    }

    /// Commits a batch, together with the transaction that is open, and answers once it
    /// is durable.
    pub(super) fn commit(&mut self, batch: &WriteBatch, reply: Reply<()>) {
        if let Some(gone) = self.slot.lock().gone.clone() {
            return reply.send(Err(gone));
        }
        let current = self.slot.files.fence.is_current(self.slot.number, batch.generation);
        let result = if current { self.try_commit(batch) } else { Err(self.stale()) };
        match result {
            Ok(()) => {
                let number = self.committed();
                self.slot.files.faults.step(FileStep::Committed);
                self.slot.wait_durable(number, reply);
            }
            Err(Failed::Certain(error)) => {
                if batch.fails_generation {
                    self.slot.files.fence.revoke(self.slot.number, batch.generation);
                }
                reply.send(Err(error));
            }
            Err(Failed::Unknown(reason)) => self.fail(reason, Some(reply)),
        }
    }

    fn stale(&self) -> Failed {
        match task::undo(self.sqlite()) {
            Ok(()) => Failed::Certain(StoreError::Stale),
            Err(error) => Failed::Unknown(error.to_string()),
        }
    }

    fn try_commit(&self, batch: &WriteBatch) -> Result<(), Failed> {
        if self.sqlite().is_autocommit() && !batch.has_work() {
            return Ok(());
        }
        let applied = self
            .begin()
            .and_then(|()| self.apply(batch).map_err(|error| self.slot.database.fault(&error)));
        if let Err(error) = applied {
            return Err(self.undone(error));
        }
        if self.sqlite().is_autocommit() {
            let reason = "the transaction ended by itself".to_owned();
            return Err(Failed::Certain(StoreError::Sqlite { reason }));
        }
        self.slot.files.faults.step(FileStep::Applied);
        match self.slot.files.faults.commit(|| self.run("COMMIT")) {
            Ok(()) => Ok(()),
            Err(error) if is_certain(&error) => Err(self.undone(self.refusal(&error))),
            Err(error) => Err(Failed::Unknown(error.to_string())),
        }
    }

    /// Why a COMMIT certainly failed.
    fn refusal(&self, error: &rusqlite::Error) -> StoreError {
        match error.sqlite_error_code() {
            Some(ErrorCode::ConstraintViolation) => {
                StoreError::TurnLost { reason: error.to_string() }
            }
            _ => self.slot.database.fault(error),
        }
    }

    /// Ends a transaction that is not to be, unless SQLite has ended it.
    fn undone(&self, error: StoreError) -> Failed {
        match task::undo(self.sqlite()) {
            Ok(()) => Failed::Certain(error),
            Err(error) => Failed::Unknown(error.to_string()),
        }
    }

    fn apply(&self, batch: &WriteBatch) -> rusqlite::Result<()> {
        for op in &batch.ops {
            rows::apply(self.sqlite(), self.slot.number, op)?;
        }
        match batch.alarm {
            Some(alarm) => schema::put_alarm(self.sqlite(), alarm),
            None => Ok(()),
        }
    }

    pub(super) fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.sqlite().prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    /// A commit ended in the unknown (invariant 3).
    pub(super) fn fail(&mut self, reason: String, reply: Option<Reply<()>>) {
        if self.slot.files.is_memory() {
            // What the only connection shows is all there is.
            if let Err(error) = task::undo(self.sqlite()) {
                tracing::error!(%error, "a transaction in memory could not be undone");
            }
        } else {
            self.abandon_connection();
        }
        self.slot.fail_unknown(reason, reply);
    }

    /// Closes without a checkpoint, for good.
    pub(super) fn abandon(mut self) {
        self.abandon_connection();
    }

    /// Closes.
    pub(super) fn close(mut self) {
        self.close_connection();
    }

    fn abandon_connection(&mut self) {
        self.slot.copies.lock().end();
        if let Some(connection) = self.connection.take() {
            connection.abandon();
        }
    }

    fn close_connection(&mut self) {
        self.slot.copies.lock().end();
        if let Some(connection) = self.connection.take() {
            open::close(connection, &self.slot.database);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let connection = self.connection.take();
        if let Some(connection) = &connection {
            let grown = connection.grown_to().is_some();
            self.slot.note_commit(grown);
        }
        self.slot.give_back(connection);
    }
}

impl Slot {
    /// Takes the connection back from a lease, `None` when the lease has closed it.
    fn give_back(self: &Arc<Self>, connection: Option<FileConnection>) {
        let is_open = connection.is_some();
        if !is_open {
            // Before anybody can open it again and count it again.
            self.files.closed(self);
        }
        let is_copied = self.copies.lock().are_running();
        let mut state = self.lock();
        state.is_copied = is_copied;
        state.last_used = self.files.clock.now();
        state.is_trimmed = false;
        let in_transaction = connection.as_ref().is_some_and(|open| !open.sqlite.is_autocommit());
        state.in_transaction = in_transaction;
        // The next one has its own end.
        state.is_ending &= in_transaction;
        if !in_transaction {
            state.by_hand = None;
        }
        let is_held_up = state.is_held_up();
        state.frames = connection.as_ref().map_or(0, |open| open.frames());
        match &connection {
            Some(open) => {
                state.foreign_keys = open.user.foreign_keys();
                state.has_temporary = open.user.has_temporary();
            }
            None => {
                state.log = None;
                state.has_temporary = false;
            }
        }
        let orphan = match (connection, &state.gone) {
            (Some(connection), None) => {
                state.holder = Holder::Free(connection);
                None
            }
            (orphan, _) => {
                state.holder = Holder::Closed;
                orphan
            }
        };
        self.schedule(state);
        self.wake();
        if is_held_up {
            self.files.note_held_up();
        }
        if let Some(orphan) = orphan {
            self.copies.lock().end();
            orphan.abandon();
            self.files.closed(self);
        } else if is_open {
            self.files.eased();
        }
    }
}
