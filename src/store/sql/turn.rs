//! The synchronous statements of one turn, and the transaction around them.
//!
//! # Invariants
//!
//! 1. All that the statements of a turn write is in one transaction, which begins
//!    before the first statement that is not read-only; whoever has the connection
//!    for the turn begins and ends it.
//! 2. When a statement ends the transaction (`INSERT OR ROLLBACK`,
//!    `RAISE(ROLLBACK)`, a full disk), the turn is lost: nothing else of it is run,
//!    and it must not be committed.
//! 3. A statement from outside never slips into a transaction that spans turns.

use super::authorizer::SqlWay;
use super::error::SqlError;
use super::rows::{SqlCursor, SqlOutcome};
use super::session::SqlSession;
use super::text::StatementKind;
use super::value::Bindings;

/// The connection of an actor's file, held for one turn.
pub trait TurnConnection {
    /// The connection.
    fn session(&self) -> SqlSession<'_>;

    /// Begins the turn's transaction, which is not open yet.
    fn begin(&self) -> Result<(), SqlError>;
}

/// A turn, as seen by its synchronous statements; made anew for each turn.
#[derive(Debug, Default)]
pub struct SqlTurn {
    state: State,
}

#[derive(Debug, Default, PartialEq)]
enum State {
    /// Nothing was written yet.
    #[default]
    Reading,
    /// The transaction is open.
    Writing,
    /// The transaction is gone; why.
    Lost(String),
}

impl SqlTurn {
    /// Whether the turn's transaction is open.
    pub fn is_writing(&self) -> bool {
        self.state == State::Writing
    }

    /// Whether a statement ended the turn's transaction: then the turn must be given
    /// up, not committed.
    pub fn is_lost(&self) -> bool {
        matches!(self.state, State::Lost(_))
    }

    /// Begins the transaction unless it is open: for what the runtime itself writes
    /// in this turn before any statement does.
    pub fn begin(&mut self, connection: &impl TurnConnection) -> Result<(), SqlError> {
        match &self.state {
            State::Writing => Ok(()),
            State::Lost(reason) => Err(SqlError::TurnLost { reason: reason.clone() }),
            State::Reading => {
                connection.begin()?;
                self.state = State::Writing;
                Ok(())
            }
        }
    }

    /// Runs one statement, or without bindings a text of several, and gives the rows
    /// of the last one that has columns.
    ///
    /// Fails with [`SqlError::TransactionOpen`] while a transaction of another
    /// kind is open (invariant 3), and with [`SqlError::TurnLost`] once invariant 2
    /// has struck.
    pub fn run(
        &mut self,
        connection: &impl TurnConnection,
        sql: &str,
        bindings: &Bindings,
    ) -> Result<SqlCursor, SqlError> {
        let session = connection.session();
        match &self.state {
            State::Lost(reason) => return Err(SqlError::TurnLost { reason: reason.clone() }),
            State::Reading if !session.is_autocommit() => return Err(SqlError::TransactionOpen),
            State::Reading => session.settle()?,
            State::Writing => {}
        }
        refuse_control(sql)?;
        let ran = run(session, sql, bindings, &mut || self.begin(connection));
        ran.map(SqlCursor::over).map_err(|error| self.after_failure(session, error))
    }

    /// Invariant 2.
    fn after_failure(&mut self, session: SqlSession<'_>, error: SqlError) -> SqlError {
        if self.state == State::Writing && session.is_autocommit() {
            let reason = error.to_string();
            self.state = State::Lost(reason.clone());
            return SqlError::TurnLost { reason };
        }
        error
    }
}

/// A connection that belongs to nobody else.
impl TurnConnection for SqlSession<'_> {
    fn session(&self) -> SqlSession<'_> {
        *self
    }

    fn begin(&self) -> Result<(), SqlError> {
        self.control("BEGIN")
    }
}

/// Runs a synchronous statement of the handle of a transaction that spans turns:
/// within that transaction, which it neither begins nor ends.
///
/// Whether the transaction is still there afterwards is told by
/// [`SqlSession::is_autocommit`].
pub(super) fn run_in_transaction(
    session: SqlSession<'_>,
    sql: &str,
    bindings: &Bindings,
) -> Result<SqlCursor, SqlError> {
    refuse_control(sql)?;
    run(session, sql, bindings, &mut || Ok(())).map(SqlCursor::over)
}

fn run(
    session: SqlSession<'_>,
    sql: &str,
    bindings: &Bindings,
    before_write: &mut dyn FnMut() -> Result<(), SqlError>,
) -> Result<SqlOutcome, SqlError> {
    let mut before = |statement: &rusqlite::Statement<'_>| {
        if statement.readonly() { Ok(()) } else { before_write() }
    };
    let single = session.execute_with(SqlWay::Turn, sql, bindings, &mut before);
    match single {
        Err(error) if error.is_several_statements() && *bindings == Bindings::None => {
            session.exec_with(SqlWay::Turn, sql, &mut before)
        }
        other => other,
    }
}

/// The authorizer would refuse it too, in fewer words.
fn refuse_control(sql: &str) -> Result<(), SqlError> {
    if !matches!(StatementKind::of(sql), StatementKind::Control { .. }) {
        return Ok(());
    }
    Err(SqlError::denied("the turn is a transaction already"))
}
