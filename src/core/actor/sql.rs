//! An actor's SQL: when it gets a file, whom its statements reach there, and their end.
//!
//! # Invariants
//!
//! 1. The actor moves to a file of its own when its first real statement is asked for,
//!    or while it starts if its type declares a database; what is asked for meanwhile
//!    waits and keeps its order.
//! 2. A move that failed is answered to all that waited for it, and tried again with the
//!    next statement.
//! 3. Once the generation has ended its statements, nothing is run and no file made.
//! 4. An output waits for what was asked for before it and may commit, awaited or not, unless
//!    it is known that the output of who asked does: then others wait for what has been
//!    committed. That a statement fails is the affair of who asked; that the store cannot commit it
//!    is a commit that failed (`commits.rs`, invariant 3).
//! 5. Before the host hears that a generation with a file is over, no transaction of it
//!    is open and the directory knows its alarm.
//!
//! Under the lock of the machine the database may be asked for its deadline, so nothing
//! here takes the machine's lock while it holds that of the desk.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Actor;
use super::effect::Effect;
use super::gate::StatementNumber;
use super::machine::Machine;
use crate::core::config::Durability;
use crate::error::{Error, Result};
use crate::store::{ActorFile, CommitEnd, SqlDatabase, SqlError, SqlHost, SqlWork, StoreError};
use crate::time::Instant;

/// The SQL of one generation.
#[derive(Debug, Default)]
pub(super) struct SqlDesk(Mutex<Desk>);

#[derive(Debug, Default)]
enum Desk {
    /// Nothing was asked for yet.
    #[default]
    Unused,
    /// In use.
    Open(SqlDatabase),
    /// Over (invariant 3).
    Ended,
}

impl SqlDesk {
    /// The database, if it was used.
    fn used(&self) -> Option<SqlDatabase> {
        match &*self.0.lock() {
            Desk::Open(database) => Some(database.clone()),
            Desk::Unused | Desk::Ended => None,
        }
    }

    /// Ends it; returns the database, if it was used.
    fn end(&self) -> Option<SqlDatabase> {
        match std::mem::replace(&mut *self.0.lock(), Desk::Ended) {
            Desk::Open(database) => Some(database),
            Desk::Unused | Desk::Ended => None,
        }
    }
}

impl Actor {
    /// The database of this generation.
    ///
    /// # Errors
    ///
    /// [`SqlError::TransactionClosed`] once the generation has ended its statements.
    pub(crate) fn database(self: &Arc<Self>) -> Result<SqlDatabase, SqlError> {
        let mut desk = self.sql.0.lock();
        match &*desk {
            Desk::Open(database) => return Ok(database.clone()),
            Desk::Ended => return Err(SqlError::TransactionClosed),
            Desk::Unused => {}
        }
        let place = Arc::new(Place { actor: Arc::downgrade(self), way: Arc::default() });
        let database = SqlDatabase::new(
            place,
            self.runtime.clock().clone(),
            self.runtime.shared_ids(),
            self.config.warns_of_manual_transactions,
        );
        *desk = Desk::Open(database.clone());
        Ok(database)
    }

    /// Gives the actor its file, for a type that declares a database (invariant 1).
    pub(super) async fn prepare_file(self: &Arc<Self>) -> Result<()> {
        self.or_over(self.store.own_file(self.identity.generation)).await??;
        Ok(())
    }

    /// Ends what is open at the end of a generation, and answers the rest with the
    /// error for a closed database.
    pub(super) async fn close_sql(&self) {
        if let Some(database) = self.sql.end()
            && let Err(error) = database.close().await
        {
            tracing::warn!(actor_id = %self.identity.id, %error, "the database did not close well");
        }
    }

    /// Lets the store put its books in order (invariant 5).
    pub(super) async fn rest(&self) {
        if self.store.file().is_none() {
            return;
        }
        if let Err(error) = self.store.rest().await {
            // The alarm stays marked as unknown, and the next start reads it in the file.
            tracing::error!(actor_id = %self.identity.id, %error, "an actor's file did not come to rest");
        }
    }

    /// Ends the database because the generation is void: what is open is not waited for.
    pub(super) fn drop_sql(&self) {
        if let Some(database) = self.sql.end() {
            drop(database.close());
        }
    }

    /// Ends what is overdue.
    pub(super) fn tick_sql(self: &Arc<Self>) {
        if let Some(database) = self.sql.used() {
            database.tick();
            self.note_sql_deadline();
        }
    }

    /// What an output may wait for has ended (invariant 4).
    fn statement_ended(self: &Arc<Self>, number: StatementNumber, fault: Option<StoreError>) {
        let broken = self.step(|machine, _| {
            let Some(fault) = fault else {
                for output in machine.gate.end_statement(number) {
                    machine.effects.push_back(Effect::Release(output));
                }
                return None;
            };
            let error = Error::from(fault).with_actor(self.identity.specifier());
            if self.config.durability == Durability::Reply {
                return Some(error);
            }
            for output in machine.gate.give_up_statement(number) {
                machine.effects.push_back(Effect::Release(output.fail(error.clone())));
            }
            None
        });
        if let Some(error) = broken {
            self.break_generation(error);
        }
    }

    fn note_sql_deadline(self: &Arc<Self>) {
        let Some(database) = self.sql.used() else { return };
        // Asked within the step, so that of two changes the later one counts.
        self.step(|machine, _| machine.sql_due = database.next_deadline());
    }
}

impl Machine {
    /// Whether something of the database is overdue; it is so once.
    pub(super) fn sql_is_due(&mut self, now: Instant) -> bool {
        self.sql_due.take_if(|due| *due <= now).is_some()
    }
}

/// Where the statements of a generation go.
struct Place {
    actor: Weak<Actor>,
    way: Arc<Mutex<Way>>,
}

#[derive(Default)]
enum Way {
    /// Nobody has asked.
    #[default]
    Unknown,
    /// The actor moves; what waits for it.
    Moving(VecDeque<SqlWork>),
    /// Into this file.
    File(ActorFile),
}

impl SqlHost for Place {
    fn run(&self, work: SqlWork) {
        let Some(actor) = self.actor.upgrade() else {
            return refuse(work, &StoreError::Closed);
        };
        let file = {
            let mut way = self.way.lock();
            if matches!(*way, Way::Unknown)
                && let Some(file) = actor.store.file()
            {
                *way = Way::File(file);
            }
            match &mut *way {
                Way::File(file) => file.clone(),
                Way::Moving(waiting) => return waiting.push_back(work),
                Way::Unknown => {
                    *way = Way::Moving(VecDeque::from([work]));
                    drop(way);
                    return begin_move(&actor, Arc::clone(&self.way));
                }
            }
        };
        file.perform(actor.identity.generation, work);
    }

    fn commits(&self) -> Option<CommitEnd> {
        let number = self.actor.upgrade()?.step(|machine, _| machine.gate.begin_statement());
        let place = Self { actor: Weak::clone(&self.actor), way: Arc::clone(&self.way) };
        Some(Box::new(move |result| {
            let fault = result.err().and_then(|error| error.fault_of_store(place.label()));
            if let Some(actor) = place.actor.upgrade() {
                actor.statement_ended(number, fault);
            }
        }))
    }

    fn deadline_changed(&self) {
        if let Some(actor) = self.actor.upgrade() {
            actor.note_sql_deadline();
        }
    }

    fn failed(&self, error: &SqlError) {
        if let Some(actor) = self.actor.upgrade() {
            actor.break_generation(Error::from(error.clone()));
        }
    }

    fn label(&self) -> String {
        match &*self.way.lock() {
            Way::File(file) => file.path(),
            Way::Unknown | Way::Moving(_) => "the shared store".to_owned(),
        }
    }
}

/// Moves the actor into a file and performs what waits for that (invariant 1).
fn begin_move(actor: &Arc<Actor>, way: Arc<Mutex<Way>>) {
    let generation = actor.identity.generation;
    let moving = actor.store.own_file(generation);
    actor.runtime.spawner().spawn("promotion", async move {
        let moved = moving.await;
        loop {
            let work = {
                let mut way = way.lock();
                let Way::Moving(waiting) = &mut *way else { return };
                let Some(work) = waiting.pop_front() else {
                    // In the same lock as the look, so that nothing overtakes what waits.
                    *way = match moved {
                        Ok(file) => Way::File(file),
                        Err(_) => Way::Unknown,
                    };
                    return;
                };
                work
            };
            match &moved {
                Ok(file) => file.perform(generation, work),
                Err(error) => refuse(work, error),
            }
        }
    });
}

/// Answers work for which there is no file.
fn refuse(work: SqlWork, error: &StoreError) {
    work.perform(Err(error.clone())).finish(drop);
}
