//! Runs an author's statements on a connection.
//!
//! # Invariants
//!
//! 1. A statement of an author and one of the runtime never share a place in the
//!    connection's cache, however alike their texts are, and neither do statements
//!    of two ways: SQLite asks the authorizer when it prepares, not when it finds a
//!    statement prepared.
//! 2. When a call returns, no statement is left open.

use std::cell::RefCell;
use std::sync::Arc;

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::{Batch, CachedStatement, Connection, Statement};

use super::authorizer::{Authority, SqlWay, is_reserved};
use super::bind::bind;
use super::error::SqlError;
use super::rows::{SqlOutcome, SqlRows};
use super::short::{Limited, Meter};
use super::text::{self, StatementKind};
use super::value::{Bindings, SqlValue};

/// The most memory that the rows of a statement that only reads may take, in bytes:
/// 512 MiB, in tests 1 MiB. One that writes has written when its rows come.
const MAX_RESULT: usize = if cfg!(test) { 1 << 20 } else { 512 << 20 };
/// A longer text is prepared anew each time, so that the cache stays small, in bytes.
const MAX_CACHED_TEXT: usize = 16 * 1024;

/// What a connection needs beside itself to run an author's statements.
#[derive(Debug)]
pub struct UserSql {
    authority: Arc<Authority>,
    meter: Arc<Meter>,
    /// The text of the statement in work, with the mark of its way before it.
    text: RefCell<String>,
}

/// A connection with its [`UserSql`], for whoever holds it at the moment.
#[derive(Clone, Copy, Debug)]
pub struct SqlSession<'c> {
    sqlite: &'c Connection,
    user: &'c UserSql,
}

/// Called with each statement before its first step; an error stops it.
type BeforeStep<'f> = &'f mut dyn FnMut(&Statement<'_>) -> Result<(), SqlError>;

impl UserSql {
    /// Prepares a connection that was just opened. From here on its authorizer must
    /// not be replaced.
    pub fn install(sqlite: &mut Connection) -> rusqlite::Result<Self> {
        let authority = Authority::install(sqlite)?;
        let meter = Meter::install(sqlite)?;
        Ok(Self { authority, meter, text: RefCell::default() })
    }

    /// Puts it beside the connection that it was installed on.
    pub fn on<'c>(&'c self, sqlite: &'c Connection) -> SqlSession<'c> {
        SqlSession { sqlite, user: self }
    }

    /// What an author last said of foreign keys, if anything. Whoever opens the
    /// database again within a generation gives it back to the new connection.
    pub fn foreign_keys(&self) -> Option<bool> {
        self.authority.foreign_keys()
    }

    /// Whether an author may have made something temporary, which is lost when the
    /// connection closes: it stays open as long as the generation lives.
    pub fn has_temporary(&self) -> bool {
        self.authority.has_temporary()
    }

    /// Says it on behalf of an author; it holds from the next
    /// [`SqlSession::settle`] on.
    pub fn set_foreign_keys(&self, on: bool) {
        self.authority.set_foreign_keys(on);
    }
}

impl<'c> SqlSession<'c> {
    /// Whether no transaction is open.
    pub fn is_autocommit(self) -> bool {
        self.sqlite.is_autocommit()
    }

    /// Has what runs until the guard is dropped cut off when it is not short.
    pub(super) fn limit(self) -> Limited<'c> {
        self.user.meter.limit()
    }

    /// How far the statement in work has come.
    pub(super) fn meter(self) -> &'c Meter {
        &self.user.meter
    }

    /// Applies what authors set for the connection while a transaction was open. Called
    /// before the first statement of a turn and of whatever else follows one.
    pub fn settle(self) -> Result<(), SqlError> {
        self.user.authority.settle(self.sqlite).map_err(|error| SqlError::of(0, &error))
    }

    /// Runs one statement. Blank text answers nothing.
    pub fn execute(
        self,
        way: SqlWay,
        sql: &str,
        bindings: &Bindings,
    ) -> Result<SqlOutcome, SqlError> {
        self.execute_with(way, sql, bindings, &mut |_| Ok(()))
    }

    /// Runs all statements of a text in order; answers the rows of the last one that
    /// has columns. One that fails ends the run, and those before it stay.
    pub fn exec(self, way: SqlWay, sql: &str) -> Result<SqlOutcome, SqlError> {
        self.exec_with(way, sql, &mut |_| Ok(()))
    }

    /// Begins or ends a transaction on behalf of the runtime.
    pub(super) fn control(self, sql: &str) -> Result<(), SqlError> {
        let run = |sqlite: &Connection| sqlite.prepare_cached(sql)?.raw_execute();
        self.write_for_runtime(run).map(drop).map_err(|error| SqlError::of(0, &error))
    }

    /// Lets the runtime write on the connection.
    pub(super) fn write_for_runtime<T>(self, write: impl FnOnce(&Connection) -> T) -> T {
        let _withdrawn = self.user.authority.withdraw();
        write(self.sqlite)
    }

    pub(super) fn execute_with(
        self,
        way: SqlWay,
        sql: &str,
        bindings: &Bindings,
        before: BeforeStep<'_>,
    ) -> Result<SqlOutcome, SqlError> {
        let kind = self.check(sql)?;
        let _lent = self.user.authority.lend(way);
        let Some(mut statement) = self.prepare(way, sql)? else { return Ok(SqlOutcome::default()) };
        let ran = bind(&mut statement, bindings, 0)
            .and_then(|()| before(&statement))
            .and_then(|()| self.run(&mut statement, 0));
        // Others seldom come again, and pragmas act as they are prepared.
        if kind != StatementKind::Data || sql.len() > MAX_CACHED_TEXT {
            statement.discard();
        }
        ran
    }

    pub(super) fn exec_with(
        self,
        way: SqlWay,
        sql: &str,
        before: BeforeStep<'_>,
    ) -> Result<SqlOutcome, SqlError> {
        self.check(sql)?;
        let _lent = self.user.authority.lend(way);
        let mut last = SqlOutcome::default();
        let mut written = 0;
        let mut batch = Batch::new(self.sqlite, sql);
        for index in 0.. {
            let next = batch.next().map_err(|error| SqlError::of(index, &error))?;
            let Some(mut statement) = next else { break };
            before(&statement)?;
            let outcome = self.run(&mut statement, index)?;
            written += outcome.rows_written;
            if statement.column_count() > 0 {
                last = outcome;
            }
        }
        last.rows_written = written;
        Ok(last)
    }

    /// Refuses what SQLite would not see: what follows a NUL, and a name that
    /// its authorizer is not told.
    fn check(self, sql: &str) -> Result<StatementKind, SqlError> {
        if sql.contains('\0') {
            return Err(SqlError::refused(0, "the sql text contains a nul character"));
        }
        let kind = StatementKind::of(sql);
        // A table of the runtime is neither shadowed by a temporary one of its name nor
        // held back from deleting its rows.
        if (kind != StatementKind::Data || sql.contains(';'))
            && let Some(name) = text::hidden_names(sql).find(|name| is_reserved(name))
        {
            return Err(SqlError::denied(&format!("{name} is a reserved name")));
        }
        Ok(kind)
    }

    /// The one statement of a text; `None` for blank text.
    fn prepare(self, way: SqlWay, sql: &str) -> Result<Option<CachedStatement<'c>>, SqlError> {
        // Preparing what follows would let a pragma in it act, which acts as it is prepared.
        if text::has_several(sql) {
            return Err(SqlError::several_statements());
        }
        let mut text = self.user.text.borrow_mut();
        text.clear();
        text.shrink_to(MAX_CACHED_TEXT);
        // Invariant 1: no statement of the runtime begins with a comment.
        text.push_str(match way {
            SqlWay::Turn => "/*t*/",
            SqlWay::Queue => "/*q*/",
        });
        text.push_str(sql);
        // The cache would cut off what is a space elsewhere and not in SQL.
        if sql.ends_with(|last: char| last.is_whitespace() && !last.is_ascii_whitespace()) {
            text.push_str("/**/");
        }
        match self.sqlite.prepare_cached(&text) {
            Ok(_) if text::has_trailing_text(sql) => Err(SqlError::several_statements()),
            Ok(statement) => Ok(Some(statement)),
            Err(rusqlite::Error::Empty) => Ok(None),
            Err(rusqlite::Error::MultipleStatement) => Err(SqlError::several_statements()),
            // What follows may be at fault, such as an INSERT behind its CREATE TABLE.
            Err(_) if self.begins_well(sql) => Err(SqlError::several_statements()),
            Err(error) => Err(SqlError::of(0, &error)),
        }
    }

    /// Whether the first statement of a text is sound.
    fn begins_well(self, sql: &str) -> bool {
        matches!(Batch::new(self.sqlite, sql).next(), Ok(Some(_)))
    }

    /// Steps a statement to its end.
    fn run(self, statement: &mut Statement<'_>, index: usize) -> Result<SqlOutcome, SqlError> {
        let failed = |error: rusqlite::Error| SqlError::of(index, &error);
        let written_before = self.sqlite.total_changes();
        let mut rows = SqlRows::default();
        let mut width = 0;
        let mut weight = 0;
        let limit = if statement.readonly() { MAX_RESULT } else { usize::MAX };
        let mut stepped = statement.raw_query();
        while let Some(row) = stepped.next().map_err(failed)? {
            if width == 0 {
                // Not before the first step, which may prepare the statement again.
                rows = SqlRows::with(columns(row.as_ref()));
                width = rows.columns().len();
            }
            for column in 0..width {
                let value = SqlValue::read(row.get_ref(column).map_err(failed)?);
                weight += value.weight();
                rows.push(value);
            }
            if weight > limit {
                let message = format!("the rows take more than {MAX_RESULT} bytes");
                let code = rusqlite::ffi::SQLITE_TOOBIG;
                return Err(SqlError::Statement { code, index, message });
            }
        }
        drop(stepped);
        if width == 0 {
            rows = SqlRows::with(columns(statement));
        }
        // SQLite's own count stays as it was for what writes no rows.
        let rows_written = self.sqlite.total_changes() - written_before;
        let changes = if rows_written == 0 { 0 } else { self.sqlite.changes() };
        let last_insert_row_id = (changes > 0).then(|| self.sqlite.last_insert_rowid());
        Ok(SqlOutcome { rows, changes, last_insert_row_id, rows_written })
    }
}

fn columns(statement: &Statement<'_>) -> Vec<String> {
    statement.column_names().map(str::to_owned).collect()
}
