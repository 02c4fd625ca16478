//! A copy of an actor as a database file of its own, while it lives.
//!
//! # Invariants
//!
//! 1. It holds one moment, everything that was sent before the copy was asked for, and
//!    nothing that is not durable where it comes from.
//! 2. An actor that has a file is copied in steps, each a lease of its own: turns and
//!    commits go on between them.
//! 3. A copy whose source was closed begins anew. That is a new generation's doing, or a
//!    failure of the file; either is seldom.

use std::sync::Arc;

use rusqlite::Connection;

use super::Files;
use super::image::image;
use super::pool::Job;
use super::promote;
use super::routes::Sent;
use super::schema;
use super::slot::Slot;
use super::task::Task;
use crate::store::copy::{self, Copied, PageCopy};
use crate::store::job::Reply;
use crate::store::target::Target;
use crate::store::{ActorNumber, Place, StoreError, directory};

/// How often a copy begins anew before it gives up.
const ATTEMPTS: u32 = 16;

/// Who hears of the end, and the alarm that the copy has.
pub(in crate::store) type Exported = Reply<Option<i64>>;

impl Files {
    /// Copies an actor to a target, on this thread of the pool or from here on.
    pub(in crate::store) fn export(
        self: &Arc<Self>,
        number: ActorNumber,
        target: Target,
        done: Exported,
    ) {
        let was_at_rest = self.is_at_rest(number);
        match self.slot(number) {
            Err(error) => done.send(target.end(Err(error))),
            Ok(None) => match self.export_small(number, &target) {
                // It left while it was copied, and its rows may have been swept.
                Ok(Exit::Moved) => self.export(number, target, done),
                Ok(Exit::Copied(alarm)) => done.send(target.end(Ok(alarm))),
                Err(error) => done.send(target.end(Err(error))),
            },
            Ok(Some(slot)) => {
                let copying = Copying { slot, target, was_at_rest, attempts: 0, copy: None, done };
                copying.go_on();
            }
        }
    }

    fn export_small(&self, number: ActorNumber, target: &Target) -> Result<Exit, StoreError> {
        if self.queue.is_pending(number) {
            self.wait_for_the_last_batch()?;
        }
        let (copied, database) = (target.open_with(image()?)?, target.database());
        let (copied, row) = self.ask(move |sqlite, store| {
            let find = || {
                let row = directory::find_by_number(sqlite, store, number)?;
                row.ok_or(StoreError::NotFound)
            };
            find()?;
            promote::copy(sqlite, store, &copied, &database, number)?;
            Ok((copied, find()?))
        })?;
        self.note(&row);
        if row.place != Place::Shared {
            target.clear()?;
            return Ok(Exit::Moved);
        }
        let alarm = schema::alarm(&copied).map_err(|error| target.fault(&error))?;
        target.finish(copied)?;
        Ok(Exit::Copied(alarm))
    }
}

/// How the copy of rows of the shared store ended.
enum Exit {
    Copied(Option<i64>),
    /// The actor has a file.
    Moved,
}

/// A copy of a file that is being made.
struct Copying {
    slot: Arc<Slot>,
    target: Target,
    /// Whether the file was closed before, and is to be again.
    was_at_rest: bool,
    attempts: u32,
    /// `None` before a first step, which has the connection that is copied.
    copy: Option<Arc<PageCopy>>,
    done: Exported,
}

impl Copying {
    /// Has the next step made, behind what waits for the file. A reading, for it must not
    /// be made in the middle of a transaction, whose changes this connection sees.
    fn go_on(self) {
        let slot = Arc::clone(&self.slot);
        let step = Task::Copy(Box::new(move |sqlite| match sqlite {
            Err(error) => self.give_up(error),
            Ok(sqlite) => self.step(sqlite),
        }));
        match slot.files.send(slot.number, step) {
            Sent::Taken => {}
            Sent::Refused(task, error) => task.refuse(error),
            Sent::ToStore(task) => task.refuse(StoreError::NotFound),
        }
    }

    fn step(mut self, from: &Connection) {
        match self.try_step(from) {
            Ok(Copied::Part) => self.go_on(),
            Ok(Copied::Ended) => {
                self.copy = None;
                self.attempts += 1;
                if self.attempts < ATTEMPTS {
                    return self.go_on();
                }
                let path = self.slot.database.label();
                self.give_up(StoreError::Busy { path });
            }
            Ok(Copied::Whole) => match self.copy.take().and_then(|copy| copy.take()) {
                Some(copied) => self.finish(copied),
                None => self.give_up(StoreError::Closed),
            },
            Err(error) => {
                // By whoever has the source.
                drop(self.copy.take().and_then(|copy| copy.take()));
                self.give_up(error);
            }
        }
    }

    fn try_step(&mut self, from: &Connection) -> Result<Copied, StoreError> {
        let (source, copied) = (&self.slot.database, self.target.database());
        let fault = |error: rusqlite::Error| copy::fault(&error, source, &copied);
        let copy = match &self.copy {
            Some(copy) => copy,
            None => {
                self.target.clear()?;
                let copy = PageCopy::begin(from, self.target.open()?).map_err(fault)?;
                self.slot.copies.lock().add(&copy);
                self.copy.insert(copy)
            }
        };
        copy.step().map_err(fault)
    }

    fn give_up(self, error: StoreError) {
        self.rest();
        let Self { target, done, .. } = self;
        done.send(target.end(Err(error)));
    }

    /// Everything is copied; waits until it is durable in the file, too (invariant 1).
    fn finish(self, copied: Connection) {
        let slot = Arc::clone(&self.slot);
        let number = slot.note_commit(false);
        let durable = move |result: Result<(), StoreError>| {
            let files = Arc::clone(&self.slot.files);
            // Syncing and renaming is nothing for a sync thread, nor under a lease.
            files.ready.push(Job::Run(Box::new(move || {
                self.rest();
                let result = result.and_then(|()| {
                    let alarm =
                        schema::alarm(&copied).map_err(|error| self.target.fault(&error))?;
                    self.target.finish(copied)?;
                    Ok(alarm)
                });
                self.done.send(self.target.end(result));
            })));
        };
        slot.wait_durable(number, Reply::new(Box::new(durable)));
    }

    /// Closes a file that was opened for this alone.
    fn rest(&self) {
        if self.was_at_rest {
            self.slot.files.let_rest(self.slot.number);
        }
    }
}
