//! The handle of a transaction that spans turns.

use super::coordinator::{Coordinator, Request};
use super::database::{SqlDatabase, outcome};
use super::error::{Ending, SqlError};
use super::reply::SqlReply;
use super::rows::{SqlCursor, SqlOutcome};
use super::session::SqlSession;
use super::text::StatementKind;
use super::turn::run_in_transaction;
use super::value::Bindings;
use super::work::{AlsoCommitted, Payload};

/// A transaction, open or not. Clones are the same one; its statements run one after
/// another in the order of the calls. Dropping it ends nothing: the deadline does.
#[derive(Clone, Debug)]
pub struct SqlTransaction {
    database: SqlDatabase,
    key: String,
}

impl SqlTransaction {
    pub(super) fn new(database: SqlDatabase, key: String) -> Self {
        Self { database, key }
    }

    /// What names it.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Runs one statement within it.
    pub fn execute(&self, sql: impl Into<String>, bindings: Bindings) -> SqlReply<SqlOutcome> {
        let sql = sql.into();
        let ends_as = match StatementKind::of(&sql) {
            StatementKind::Control { ends_as } => ends_as,
            _ => Ending::RolledBack,
        };
        let key = self.key.clone();
        let payload = Payload::Execute { sql, bindings };
        self.database.ask(Request::Inside { key, ends_as }, payload, outcome)
    }

    /// Runs all statements of a text within it.
    pub fn exec(&self, sql: impl Into<String>) -> SqlReply<SqlOutcome> {
        let key = self.key.clone();
        let request = Request::Inside { key, ends_as: Ending::RolledBack };
        self.database.ask(request, Payload::Exec { sql: sql.into() }, outcome)
    }

    /// Runs a synchronous statement within it, on the connection that the caller has for
    /// the moment; before what its handle has waiting. See
    /// [`super::SqlTurn::run`] for what it may be.
    pub fn run_now(
        &self,
        session: SqlSession<'_>,
        sql: &str,
        bindings: &Bindings,
    ) -> Result<SqlCursor, SqlError> {
        self.check()?;
        let ran = run_in_transaction(session, sql, bindings);
        if session.is_autocommit() {
            self.database.coordinate(Coordinator::rolled_back_inside);
        }
        ran
    }

    /// Whether it takes statements; the reason why not.
    pub fn check(&self) -> Result<(), SqlError> {
        self.database.coordinate(|coordinator| coordinator.check_inside(&self.key))
    }

    /// The same for one that is about to commit: its deadline is put off, so that it has
    /// the time for that.
    pub fn prolong(&self) -> Result<(), SqlError> {
        self.database.prolong(&self.key)
    }

    /// Ends it with its changes; answers once they are durable.
    pub fn commit(&self) -> SqlReply<()> {
        self.end(Request::Commit { key: self.key.clone() })
    }

    /// As [`SqlTransaction::commit`], with what the runtime has to keep together with it.
    pub fn commit_with(&self, also: AlsoCommitted) -> SqlReply<()> {
        let request = Request::Commit { key: self.key.clone() };
        self.database.ask(request, Payload::Commit(also), |_| ())
    }

    /// Ends it without its changes. That SQLite did so before is as good.
    pub fn roll_back(&self) -> SqlReply<()> {
        self.end(Request::RollBack { key: self.key.clone() })
    }

    /// Ends it as its deadline would.
    pub fn expire(&self) -> SqlReply<()> {
        self.end(Request::Expire { key: self.key.clone() })
    }

    fn end(&self, request: Request) -> SqlReply<()> {
        self.database.ask(request, Payload::None, |_| ())
    }
}

// A handle goes wherever an author's code takes it.
const _: fn() = || {
    fn is_shareable<T: Send + Sync>() {}
    is_shareable::<SqlTransaction>();
};
