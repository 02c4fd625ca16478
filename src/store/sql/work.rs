//! One step of the coordinator on the file's connection.
//!
//! # Invariants
//!
//! 1. Every step is reported exactly once. One that is dropped on its way, or that
//!    panics, breaks the database: nobody knows what it did.
//! 2. Nothing is answered before the connection is given back or can be, and nothing
//!    that was committed before it is durable.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rusqlite::Connection;

use super::authorizer::SqlWay;
use super::coordinator::{Ran, Request, Step, Ticket};
use super::database::Shared;
use super::error::SqlError;
use super::rows::SqlOutcome;
use super::session::SqlSession;
use super::short::Run;
use super::text;
use super::value::Bindings;
use crate::store::{CommitDone, StoreError};

/// What a request brings along.
pub(super) enum Payload {
    /// Nothing but itself.
    None,
    /// One statement.
    Execute { sql: String, bindings: Bindings },
    /// A text of several.
    Exec { sql: String },
    /// Several statements in one transaction.
    Batch(Vec<(String, Bindings)>),
    /// What is written right before the commit of a transaction.
    Commit(AlsoCommitted),
}

impl Payload {
    /// Whether it may commit something by itself. What is written within a transaction is
    /// committed by the end of that.
    pub(super) fn may_commit(&self, request: &Request) -> bool {
        match (request, self) {
            (Request::Statement { .. }, Self::Execute { sql, .. } | Self::Exec { sql }) => {
                !text::only_reads(sql)
            }
            (Request::Inside { .. }, Self::Execute { sql, .. } | Self::Exec { sql }) => {
                text::has_control(sql)
            }
            (Request::Batch | Request::Commit { .. }, _) => true,
            _ => false,
        }
    }
}

/// What the runtime writes into a transaction at its end, on its connection. It neither
/// begins nor ends one; when it fails, the transaction is rolled back.
pub type AlsoCommitted = Box<dyn FnOnce(&Connection) -> Result<(), SqlError> + Send>;

/// What came of a step that succeeded.
#[derive(Debug)]
pub(super) enum Answer {
    None,
    One(SqlOutcome),
    Each(Vec<SqlOutcome>),
}

/// A step to be run while nobody else has the connection.
#[must_use = "a step that is dropped breaks the database"]
pub struct SqlWork {
    report: Report,
    step: Step,
    payload: Payload,
}

/// A step that has run and is not reported yet.
#[must_use = "a step that is dropped breaks the database"]
pub struct SqlRan {
    report: Report,
    ran: Ran,
    answer: Answer,
    commits: bool,
    began_by_hand: bool,
}

/// The duty to report (invariant 1).
struct Report {
    shared: Arc<Shared>,
    ticket: Ticket,
    is_due: bool,
}

impl SqlWork {
    pub(super) fn new(shared: Arc<Shared>, ticket: Ticket, step: Step, payload: Payload) -> Self {
        Self { report: Report { shared, ticket, is_due: true }, step, payload }
    }

    /// Runs the step on the connection, or takes the reason why there is none. A panic
    /// within does not unwind into the caller.
    pub fn perform(mut self, session: Result<SqlSession<'_>, StoreError>) -> SqlRan {
        let session = match session {
            Ok(session) => session,
            Err(error) => {
                // Without a connection there is no transaction either.
                let ran = Ran::Whole { result: Err(error.into()), autocommit: true };
                let answer = Answer::None;
                let report = self.report;
                return SqlRan { report, ran, answer, commits: false, began_by_hand: false };
            }
        };
        let was_open = !session.is_autocommit();
        let ran = self.run(session);
        self.into_ran(session, was_open, ran)
    }

    /// Whether [`SqlWork::perform_here`] would run it.
    pub fn is_short(&self) -> bool {
        match &self.payload {
            Payload::Execute { sql, .. } => {
                self.step == Step::Own && self.report.shared.short.has(sql)
            }
            _ => false,
        }
    }

    /// Runs a short statement on the thread of whoever asked for it. One that turns out not
    /// to be short is given back undone.
    pub fn perform_here(mut self, session: SqlSession<'_>) -> Result<SqlRan, Self> {
        if !session.is_autocommit() {
            return Err(self);
        }
        let limited = session.limit();
        let ran = self.run(session);
        drop(limited);
        // Whatever the error is called.
        if matches!(ran, (Err(Failed::Known(_)), false)) && session.meter().has_cut_off() {
            return Err(self);
        }
        Ok(self.into_ran(session, false, ran))
    }

    /// Returns what came of it, and whether it may have written.
    fn run(&mut self, session: SqlSession<'_>) -> (Result<Answer, Failed>, bool) {
        let mut wrote = false;
        let shared = &self.report.shared;
        let began = shared.clock.now();
        session.meter().begin();
        let run = || run(session, self.step, &mut self.payload, &mut wrote);
        let result = catch_unwind(AssertUnwindSafe(run))
            .unwrap_or_else(|_| Err(Failed::Unknown("the thread panicked".to_owned())));
        if let Payload::Execute { sql, .. } = &self.payload {
            let took = shared.clock.now().since(began);
            shared.short.note(sql, Run { took, looks: session.meter().looks() });
        }
        (result, wrote)
    }

    fn into_ran(
        self,
        session: SqlSession<'_>,
        was_open: bool,
        (result, wrote): (Result<Answer, Failed>, bool),
    ) -> SqlRan {
        let Self { report, step, .. } = self;
        let autocommit = session.is_autocommit();
        let (ran, answer) = match result {
            Ok(answer) => (Ran::Whole { result: Ok(()), autocommit }, answer),
            Err(Failed::Known(error)) => {
                (Ran::Whole { result: Err(error), autocommit }, Answer::None)
            }
            Err(Failed::Unknown(reason)) => {
                let path = report.shared.host.label();
                let error = StoreError::OutcomeUnknown { path, reason };
                (Ran::Broken(error.into()), Answer::None)
            }
        };
        let commits = autocommit && step != Step::RollBack && (was_open || wrote);
        let began_by_hand = !autocommit && !was_open && step == Step::Own;
        SqlRan { report, ran, answer, commits, began_by_hand }
    }
}

impl SqlRan {
    /// Whether nobody knows what is in the database: the connection must be closed
    /// without a checkpoint.
    pub fn is_broken(&self) -> bool {
        matches!(self.ran, Ran::Broken(_))
    }

    /// Whether an author's statement began a transaction that is open.
    pub fn began_by_hand(&self) -> bool {
        self.began_by_hand
    }

    /// The same step, as failed with `error` if it did.
    pub fn failed_with(mut self, error: StoreError) -> Self {
        if let Ran::Whole { result: result @ Err(_), .. } = &mut self.ran {
            *result = Err(error.into());
        }
        self
    }

    /// Reports the step. `when_durable` is called once if somebody waits for what the
    /// connection has committed so far; what it is given is to be called when that is on
    /// the disk, on any thread.
    pub fn finish(self, when_durable: impl FnOnce(CommitDone)) {
        let Self { mut report, ran, answer, commits, .. } = self;
        report.is_due = false;
        let waits = commits && matches!(ran, Ran::Whole { result: Ok(()), .. });
        report.shared.finished(report.ticket, ran, answer, waits.then_some(when_durable));
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if self.is_due {
            let path = self.shared.host.label();
            let reason = "a statement was given up on its way".to_owned();
            let ran = Ran::Broken(StoreError::OutcomeUnknown { path, reason }.into());
            self.shared.finished(self.ticket, ran, Answer::None, None::<fn(CommitDone)>);
        }
    }
}

enum Failed {
    Known(SqlError),
    Unknown(String),
}

fn run(
    session: SqlSession<'_>,
    step: Step,
    payload: &mut Payload,
    wrote: &mut bool,
) -> Result<Answer, Failed> {
    if session.is_autocommit() {
        session.settle()?;
    }
    match step {
        Step::Begin => control(session, "BEGIN"),
        Step::Commit => {
            if let Payload::Commit(also) = std::mem::replace(payload, Payload::None) {
                // A statement has rolled it back: what goes with it must not be written
                // by itself.
                if session.is_autocommit() {
                    let message = "cannot commit: a statement rolled the transaction back";
                    return Err(SqlError::refused(0, message).into());
                }
                session.write_for_runtime(also)?;
            }
            control(session, "COMMIT")
        }
        Step::RollBack if session.is_autocommit() => Ok(Answer::None),
        Step::RollBack => control(session, "ROLLBACK"),
        Step::Own => own(session, payload, wrote),
    }
}

/// A statement stays in its payload: it may have to run once more.
fn own(session: SqlSession<'_>, payload: &mut Payload, wrote: &mut bool) -> Result<Answer, Failed> {
    if let Payload::Batch(statements) = payload {
        return batch(session, std::mem::take(statements), wrote);
    }
    let mut note = |statement: &rusqlite::Statement<'_>| {
        if !statement.readonly() {
            *wrote = true;
            session.meter().lift();
        }
        Ok(())
    };
    let (ran, sql) = match payload {
        Payload::None | Payload::Commit(_) | Payload::Batch(_) => return Ok(Answer::None),
        Payload::Execute { sql, bindings } => {
            (session.execute_with(SqlWay::Queue, sql, bindings, &mut note), sql)
        }
        Payload::Exec { sql } => (session.exec_with(SqlWay::Queue, sql, &mut note), sql),
    };
    let has_control = || text::has_control(sql);
    ran.map(Answer::One).map_err(|error| {
        if error.leaves_statement_unknown() && (*wrote || has_control()) {
            Failed::Unknown(error.to_string())
        } else {
            Failed::Known(error)
        }
    })
}

fn control(session: SqlSession<'_>, sql: &str) -> Result<Answer, Failed> {
    session.control(sql).map(|()| Answer::None).map_err(|error| {
        if error.leaves_commit_unknown() {
            Failed::Unknown(error.to_string())
        } else {
            Failed::Known(error)
        }
    })
}

fn batch(
    session: SqlSession<'_>,
    statements: Vec<(String, Bindings)>,
    wrote: &mut bool,
) -> Result<Answer, Failed> {
    control(session, "BEGIN")?;
    let failed = match each(session, statements) {
        Ok(outcomes) => match control(session, "COMMIT") {
            Ok(_) => {
                *wrote = true;
                return Ok(Answer::Each(outcomes));
            }
            Err(Failed::Unknown(reason)) => return Err(Failed::Unknown(reason)),
            Err(failed) => failed,
        },
        Err(failed) => failed,
    };
    if !session.is_autocommit()
        && let Err(error) = session.control("ROLLBACK")
    {
        return Err(Failed::Unknown(error.to_string()));
    }
    Err(failed)
}

fn each(
    session: SqlSession<'_>,
    statements: Vec<(String, Bindings)>,
) -> Result<Vec<SqlOutcome>, Failed> {
    let mut outcomes = Vec::with_capacity(statements.len());
    for (index, (sql, bindings)) in statements.into_iter().enumerate() {
        match session.execute(SqlWay::Queue, &sql, &bindings) {
            Ok(outcome) => outcomes.push(outcome),
            Err(error) => return Err(error.at(index).into()),
        }
        if session.is_autocommit() {
            let message = "the statement ended the transaction of its batch";
            return Err(Failed::Known(SqlError::refused(index, message)));
        }
    }
    Ok(outcomes)
}

impl From<SqlError> for Failed {
    fn from(error: SqlError) -> Self {
        Self::Known(error)
    }
}
