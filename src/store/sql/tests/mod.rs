//! The engine on real connections.

mod databases;
mod fences;
mod histories;
mod lives;
mod place;
mod statements;
mod threads;
mod turns;

use rusqlite::Connection;

use super::*;

/// A connection as the owner of an actor's file opens it, in memory.
pub(super) struct Fixture {
    pub(super) sqlite: Connection,
    pub(super) user: UserSql,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let mut sqlite = Connection::open_in_memory().unwrap();
        sqlite
            .execute_batch(
                "PRAGMA foreign_keys=OFF;
                 CREATE TABLE _gr_kv (num INTEGER, key BLOB, value BLOB, PRIMARY KEY (num, key));
                 INSERT INTO _gr_kv VALUES (1, 'a', 'b');
                 CREATE VIEW _rivet_user_kv AS SELECT key, value FROM _gr_kv;
                 CREATE TABLE _rivet_wf_kv (key BLOB PRIMARY KEY, value BLOB NOT NULL);",
            )
            .unwrap();
        let user = UserSql::install(&mut sqlite).unwrap();
        Self { sqlite, user }
    }

    pub(super) fn session(&self) -> SqlSession<'_> {
        self.user.on(&self.sqlite)
    }

    pub(super) fn execute(&self, sql: &str) -> Result<SqlOutcome, SqlError> {
        self.bound(sql, &Bindings::None)
    }

    pub(super) fn bound(&self, sql: &str, bindings: &Bindings) -> Result<SqlOutcome, SqlError> {
        self.session().execute(SqlWay::Queue, sql, bindings)
    }

    pub(super) fn exec(&self, sql: &str) -> Result<SqlOutcome, SqlError> {
        self.session().exec(SqlWay::Queue, sql)
    }

    /// The first value of the first row.
    pub(super) fn one(&self, sql: &str) -> SqlValue {
        let outcome = self.execute(sql).unwrap();
        outcome.rows.iter().next().expect("one row")[0].clone()
    }
}

/// Code, index and message of a failed statement.
pub(super) fn fault<T: std::fmt::Debug>(result: Result<T, SqlError>) -> (i32, usize, String) {
    match result {
        Err(SqlError::Statement { code, index, message }) => (code, index, message),
        other => panic!("{other:?}"),
    }
}
