//! The author's SQL: statements on the actor's own file, from a generation's handle.
//!
//! # Invariants
//!
//! 1. While something that was asked for here is not answered, the actor stays awake and
//!    its grace period lasts.
//! 2. What neither reads nor writes gives the actor no file.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::actor::activity::WorkKind;
use super::actor::{Actor, RanInTurn, WorkRegion};
use super::behavior::Reply;
use super::context::ActorContext;
use crate::error::{Error, Result};
use crate::store::{
    BeginOptions, Bindings, SqlDatabase, SqlError, SqlOutcome, SqlTransaction, is_blank,
};

/// A handle on the SQL of one generation. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ActorSql {
    actor: Arc<Actor>,
    /// See [`ActorSql::for_who_waits`].
    caller_waits: bool,
}

/// A transaction that spans turns, begun by [`ActorSql::begin`].
#[derive(Clone, Debug)]
pub struct ActorTransaction {
    actor: Arc<Actor>,
    inner: SqlTransaction,
}

impl ActorContext {
    /// The author's SQL.
    pub fn sql(&self) -> ActorSql {
        ActorSql { actor: Arc::clone(&self.0), caller_waits: false }
    }
}

impl ActorSql {
    /// The same for a call of the author's whose output is not made before its statements
    /// have ended, awaited or not: then no other output waits for those that have not begun.
    #[must_use]
    pub fn for_who_waits(&self) -> Self {
        Self { actor: Arc::clone(&self.actor), caller_waits: true }
    }

    /// Runs one statement; blank text answers nothing.
    ///
    /// # Errors
    ///
    /// What SQLite said, as `internal`; `sqlite/*`; `storage/*`.
    pub fn execute(
        &self,
        sql: String,
        bindings: Bindings,
    ) -> BoxFuture<'static, Result<SqlOutcome>> {
        if is_blank(&sql) {
            return futures::future::ready(Ok(SqlOutcome::default())).boxed();
        }
        self.ask(|database| database.execute(sql, bindings))
    }

    /// [`ActorSql::execute`] for whoever is told the outcome instead of waiting for it in a
    /// future: nothing is spawned or polled for it.
    pub fn execute_told(&self, sql: String, bindings: Bindings, reply: Reply<SqlOutcome>) {
        if is_blank(&sql) {
            return reply.send(Ok(SqlOutcome::default()));
        }
        let database = match self.database() {
            Ok(database) => database,
            Err(error) => return reply.send(Err(error.into())),
        };
        let region = WorkRegion::new(&self.actor, WorkKind::InternalKeepAwake);
        let specifier = self.actor.identity().specifier();
        database.execute_told(sql, bindings, move |answer| {
            drop(region);
            reply.send(answer.map_err(|error| Error::from(error).with_actor(specifier)));
        });
    }

    /// Runs all statements of a text in order; answers the rows of the last one that has
    /// columns. Not atomic: one that fails ends the run, and those before it stay.
    ///
    /// # Errors
    ///
    /// Those of [`ActorSql::execute`].
    pub fn exec(&self, sql: String) -> BoxFuture<'static, Result<SqlOutcome>> {
        if is_blank(&sql) {
            return futures::future::ready(Ok(SqlOutcome::default())).boxed();
        }
        self.ask(|database| database.exec(sql))
    }

    /// Runs statements in one transaction, all or none; answers each.
    ///
    /// # Errors
    ///
    /// Those of [`ActorSql::execute`], of the first statement that failed.
    pub fn execute_batch(
        &self,
        statements: Vec<(String, Bindings)>,
    ) -> BoxFuture<'static, Result<Vec<SqlOutcome>>> {
        self.ask(|database| database.execute_batch(statements))
    }

    /// Runs one statement, or without bindings a text of several, on this thread, in the
    /// turn that is going on: what the turn changes is committed together at its end. The
    /// first one of an actor without a file waits until it has one.
    ///
    /// # Errors
    ///
    /// What SQLite said, as `internal`; `sqlite/transaction_open` while a transaction
    /// that spans turns is open; `sqlite/turn_lost`, with which the generation ends.
    pub fn run_in_turn(&self, sql: &str, bindings: &Bindings) -> Result<RanInTurn> {
        self.actor.run_in_turn(sql, bindings)
    }

    /// The turn has ended: whatever its statements still hold is committed or given back.
    pub fn end_turn(&self) {
        self.actor.end_sql_turn();
    }

    /// Begins a transaction that keeps everybody else out until it ends.
    ///
    /// # Errors
    ///
    /// `sqlite/transaction_invalid_argument` for a name or a timeout that none may have,
    /// else those of [`ActorSql::execute`].
    pub fn begin(&self, options: BeginOptions) -> BoxFuture<'static, Result<ActorTransaction>> {
        let actor = Arc::clone(&self.actor);
        let begun = self.ask(|database| database.begin(options));
        async move { begun.await.map(|inner| ActorTransaction { actor, inner }) }.boxed()
    }

    /// The transaction of a key, whatever became of it.
    ///
    /// # Errors
    ///
    /// `sqlite/transaction_closed` once the database is closed.
    pub fn transaction(&self, key: String) -> Result<ActorTransaction> {
        let inner = self.actor.database()?.transaction(key);
        Ok(ActorTransaction { actor: Arc::clone(&self.actor), inner })
    }

    /// Takes nothing more for the rest of this generation, rolls back what is open, and
    /// resolves once nothing runs.
    ///
    /// # Errors
    ///
    /// What made the rollback fail.
    pub fn close(&self) -> BoxFuture<'static, Result<()>> {
        match self.actor.database() {
            Err(SqlError::TransactionClosed) => futures::future::ready(Ok(())).boxed(),
            Err(error) => futures::future::ready(Err(error.into())).boxed(),
            Ok(database) => answered(&self.actor, database.close()),
        }
    }

    /// As [`ActorSql::close`], for all that is stored beside the state: keys and values,
    /// messages and schedules are neither changed nor read by the author in the rest of this
    /// generation, and answer `sqlite/transaction_closed`. The state is stored as ever.
    ///
    /// # Errors
    ///
    /// Those of [`ActorSql::close`].
    pub fn close_rows_too(&self) -> BoxFuture<'static, Result<()>> {
        self.actor.close_rows();
        self.close()
    }

    fn ask<T, F>(&self, call: impl FnOnce(SqlDatabase) -> F) -> BoxFuture<'static, Result<T>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, SqlError>> + Send + 'static,
    {
        match self.database() {
            Ok(database) => answered(&self.actor, call(database)),
            Err(error) => futures::future::ready(Err(error.into())).boxed(),
        }
    }

    fn database(&self) -> Result<SqlDatabase, SqlError> {
        let database = self.actor.database()?;
        Ok(if self.caller_waits { database.for_who_waits() } else { database })
    }
}

impl ActorTransaction {
    /// What names it.
    pub fn key(&self) -> &str {
        self.inner.key()
    }

    /// Runs one statement within it.
    ///
    /// # Errors
    ///
    /// Those of [`ActorSql::execute`], `sqlite/transaction_*` once it has ended.
    pub fn execute(
        &self,
        sql: String,
        bindings: Bindings,
    ) -> BoxFuture<'static, Result<SqlOutcome>> {
        answered(&self.actor, self.inner.execute(sql, bindings))
    }

    /// Runs all statements of a text within it.
    ///
    /// # Errors
    ///
    /// Those of [`ActorTransaction::execute`].
    pub fn exec(&self, sql: String) -> BoxFuture<'static, Result<SqlOutcome>> {
        answered(&self.actor, self.inner.exec(sql))
    }

    /// Ends it with its changes; resolves once they are durable.
    ///
    /// # Errors
    ///
    /// Those of [`ActorTransaction::execute`]; then nothing of it was committed, unless
    /// it says `storage/outcome_unknown`.
    pub fn commit(&self) -> BoxFuture<'static, Result<()>> {
        answered(&self.actor, self.inner.commit())
    }

    /// Ends it without its changes.
    ///
    /// # Errors
    ///
    /// `sqlite/transaction_*` once it has ended.
    pub fn roll_back(&self) -> BoxFuture<'static, Result<()>> {
        answered(&self.actor, self.inner.roll_back())
    }
}

/// Waits for an answer within a region of work (invariant 1).
fn answered<T: Send + 'static>(
    actor: &Arc<Actor>,
    answer: impl Future<Output = Result<T, SqlError>> + Send + 'static,
) -> BoxFuture<'static, Result<T>> {
    let region = WorkRegion::new(actor, WorkKind::InternalKeepAwake);
    let specifier = actor.identity().specifier();
    async move {
        let answer = answer.await;
        drop(region);
        answer.map_err(|error| Error::from(error).with_actor(specifier))
    }
    .boxed()
}
