//! The statements of a state transaction.
//!
//! # Invariants
//!
//! 1. They begin with the first one, which gives the actor a file if it has none.
//! 2. What is asked for at once waits for no other transaction: that would need this
//!    thread for its end.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};

use super::error::{MAX_BYTES, MAX_STATEMENTS};
use super::{Inner, StateTransaction, TransactionError};
use crate::core::actor::WorkRegion;
use crate::core::actor::activity::WorkKind;
use crate::error::{Error, Result};
use crate::store::{
    BeginOptions, Bindings, SqlCursor, SqlError, SqlOutcome, SqlTransaction, ends_transaction,
    is_blank,
};

/// The beginning of the statements, for all who wait for it.
pub(super) type Begun = Shared<BoxFuture<'static, Result<SqlTransaction>>>;

impl StateTransaction {
    /// Runs one statement.
    ///
    /// # Errors
    ///
    /// What SQLite said, as `internal`; `sqlite/*`; `storage/*`; why it takes nothing;
    /// [`TransactionError::Control`].
    pub fn execute(
        &self,
        sql: String,
        bindings: Bindings,
    ) -> BoxFuture<'static, Result<SqlOutcome>> {
        match self.admit(&sql) {
            Ok(true) => self.run(|begun| begun.execute(sql, bindings)),
            Ok(false) => std::future::ready(Ok(SqlOutcome::default())).boxed(),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }

    /// Runs all statements of a text.
    ///
    /// # Errors
    ///
    /// Those of [`StateTransaction::execute`].
    pub fn exec(&self, sql: String) -> BoxFuture<'static, Result<SqlOutcome>> {
        match self.admit(&sql) {
            Ok(true) => self.run(|begun| begun.exec(sql)),
            Ok(false) => std::future::ready(Ok(SqlOutcome::default())).boxed(),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }

    /// Runs one statement that counts against the budget.
    ///
    /// # Errors
    ///
    /// Those of [`StateTransaction::execute`], and [`TransactionError::TooLarge`].
    pub fn execute_budgeted(
        &self,
        sql: String,
        bindings: Bindings,
    ) -> BoxFuture<'static, Result<SqlOutcome>> {
        let bytes = bindings.bytes().unwrap_or(sql.len());
        let counted = self.admit(&sql).and_then(|_| self.count(1, bytes));
        match counted {
            Ok(()) => self.execute(sql, bindings),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }

    /// Runs one statement, or without bindings a text of several, on this thread.
    ///
    /// # Errors
    ///
    /// Those of [`StateTransaction::execute`]; `sqlite/transaction_open` while another
    /// transaction is open (invariant 2).
    pub fn execute_now(&self, sql: &str, bindings: &Bindings) -> Result<SqlCursor> {
        if !self.admit(sql)? {
            return Ok(SqlCursor::empty());
        }
        let actor = &self.0.actor;
        let named = |error: SqlError| Error::from(error).with_actor(actor.identity().specifier());
        let is_begun = self.0.begun.lock().as_ref().is_some_and(|begun| begun.peek().is_some());
        if !is_begun && !actor.database().map_err(named)?.begins_by_itself(&self.0.key) {
            return Err(named(SqlError::TransactionOpen));
        }
        actor.make_file().map_err(named)?;
        let begun = futures::executor::block_on(self.begin())?;
        actor.run_within(&begun, sql, bindings).map_err(named)
    }

    /// Begins the statements, once.
    pub fn begin_statements(&self) -> BoxFuture<'static, Result<()>> {
        self.run_ready(|_| std::future::ready(Ok(())))
    }

    fn run<F>(
        &self,
        ask: impl FnOnce(SqlTransaction) -> F + Send + 'static,
    ) -> BoxFuture<'static, Result<SqlOutcome>>
    where
        F: Future<Output = Result<SqlOutcome, SqlError>> + Send + 'static,
    {
        self.run_ready(ask)
    }

    fn run_ready<T: Send + 'static, F>(
        &self,
        ask: impl FnOnce(SqlTransaction) -> F + Send + 'static,
    ) -> BoxFuture<'static, Result<T>>
    where
        F: Future<Output = Result<T, SqlError>> + Send + 'static,
    {
        if let Err(error) = self.check() {
            return std::future::ready(Err(error)).boxed();
        }
        let actor = &self.0.actor;
        let region = WorkRegion::new(actor, WorkKind::InternalKeepAwake);
        let specifier = actor.identity().specifier();
        let begun = self.begin();
        // Asked now where that can be, so that statements keep the order of their calls.
        if let Some(Ok(begun)) = begun.peek() {
            let answer = ask(begun.clone());
            return async move {
                let answer = answer.await;
                drop(region);
                answer.map_err(|error| Error::from(error).with_actor(specifier))
            }
            .boxed();
        }
        async move {
            let answer = ask(begun.await?).await;
            drop(region);
            answer.map_err(|error| Error::from(error).with_actor(specifier))
        }
        .boxed()
    }

    /// Whether a text has anything to run; refuses what would end the transaction.
    fn admit(&self, sql: &str) -> Result<bool> {
        self.check()?;
        if ends_transaction(sql) {
            return Err(TransactionError::Control.into());
        }
        Ok(!is_blank(sql))
    }

    /// See invariant 1.
    fn begin(&self) -> Begun {
        let mut begun = self.0.begun.lock();
        if let Some(begun) = &*begun {
            return begun.clone();
        }
        let beginning = begin(Arc::clone(&self.0)).shared();
        *begun = Some(beginning.clone());
        drop(begun);
        // After the unlock, and at once: statements keep the order of their calls.
        drop(beginning.clone().now_or_never());
        // Whoever asked may give up, and it must still be known when it has begun.
        let waits = beginning.clone();
        self.0.actor.spawn("state_transaction", async move { drop(waits.await) });
        beginning
    }

    /// Counts against the budget.
    pub(super) fn count(&self, statements: usize, bytes: usize) -> Result<()> {
        let mut spent = self.0.spent.lock();
        spent.0 += statements;
        spent.1 += bytes;
        let (statements, bytes) = *spent;
        if statements > MAX_STATEMENTS || bytes > MAX_BYTES {
            return Err(TransactionError::TooLarge { statements, bytes }.into());
        }
        Ok(())
    }
}

/// Asks for the beginning when it is first polled.
fn begin(inner: Arc<Inner>) -> BoxFuture<'static, Result<SqlTransaction>> {
    async move {
        let Inner { actor, id, timeout, key, .. } = &*inner;
        let named = |error: SqlError| Error::from(error).with_actor(actor.identity().specifier());
        actor.leave_connection();
        // The deadline of the transaction itself comes first.
        let (key, timeout) = (Some(key.clone()), Some(*timeout));
        let options = BeginOptions { key, timeout, ..BeginOptions::default() };
        let begun = actor.database().map_err(named)?.begin(options).await.map_err(named)?;
        actor.transaction_uses_sql(*id, inner.timeout, &begun)?;
        Ok(begun)
    }
    .boxed()
}
