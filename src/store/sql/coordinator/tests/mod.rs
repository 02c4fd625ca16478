//! The coordinator over a connection that is only imagined.

mod any;
mod closes;
mod deadlines;
mod order;

use std::collections::BTreeMap;

use super::*;
use crate::error::Coded;

pub(super) const SECOND: Duration = Duration::from_secs(1);

/// A coordinator, a moment, and what came of the effects so far.
pub(super) struct Desk {
    pub(super) coordinator: Coordinator,
    pub(super) now: Instant,
    /// What the imagined connection is in.
    pub(super) autocommit: bool,
    pub(super) running: Option<(Ticket, Step)>,
    pub(super) started: Vec<(Ticket, Step)>,
    pub(super) answers: BTreeMap<Ticket, Result<(), SqlError>>,
    pub(super) warnings: Vec<Warning>,
    pub(super) failures: Vec<SqlError>,
}

impl Desk {
    pub(super) fn new() -> Self {
        Self {
            coordinator: Coordinator::new(true),
            now: Instant::START,
            autocommit: true,
            running: None,
            started: Vec::new(),
            answers: BTreeMap::new(),
            warnings: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// A desk with an open transaction `a` that may take a second.
    pub(super) fn in_transaction() -> Self {
        let mut desk = Self::new();
        desk.begin("a", SECOND).unwrap();
        desk.finish();
        desk
    }

    fn heed(&mut self) {
        for effect in self.coordinator.take_effects() {
            match effect {
                Effect::Run(ticket, step) => {
                    assert_eq!(self.running.replace((ticket, step)), None, "one at a time");
                    self.started.push((ticket, step));
                }
                Effect::Answer(ticket, result) => {
                    let before = self.answers.insert(ticket, result);
                    assert_eq!(before, None, "{ticket:?} was answered twice");
                }
                Effect::Warn(warning) => self.warnings.push(warning),
                Effect::Fail(error) => self.failures.push(error),
            }
        }
    }

    pub(super) fn submit(&mut self, request: Request) -> Result<Ticket, SqlError> {
        let submitted = self.coordinator.submit(self.now, request);
        self.heed();
        submitted
    }

    pub(super) fn statement(&mut self) -> Ticket {
        self.submit(Request::Statement { by_hand: false }).unwrap()
    }

    pub(super) fn by_hand(&mut self) -> Ticket {
        self.submit(Request::Statement { by_hand: true }).unwrap()
    }

    pub(super) fn begin(&mut self, key: &str, timeout: Duration) -> Result<Ticket, SqlError> {
        self.submit(Request::Begin { key: key.to_owned(), timeout })
    }

    pub(super) fn inside(&mut self, key: &str) -> Result<Ticket, SqlError> {
        self.submit(Request::Inside { key: key.to_owned(), ends_as: Ending::RolledBack })
    }

    pub(super) fn commit(&mut self, key: &str) -> Result<Ticket, SqlError> {
        self.submit(Request::Commit { key: key.to_owned() })
    }

    pub(super) fn roll_back(&mut self, key: &str) -> Result<Ticket, SqlError> {
        self.submit(Request::RollBack { key: key.to_owned() })
    }

    pub(super) fn cancel(&mut self, ticket: Ticket) {
        self.coordinator.cancel(ticket);
        self.heed();
    }

    /// The running step succeeds.
    pub(super) fn finish(&mut self) {
        match self.running.expect("a step runs").1 {
            Step::Own => {}
            Step::Begin => self.autocommit = false,
            Step::Commit | Step::RollBack => self.autocommit = true,
        }
        self.report(Ok(()));
    }

    /// The running step ends so, and leaves the connection in `self.autocommit`.
    pub(super) fn report(&mut self, result: Result<(), SqlError>) {
        let autocommit = self.autocommit;
        self.report_as(Ran::Whole { result, autocommit });
    }

    pub(super) fn report_as(&mut self, ran: Ran) {
        let (ticket, _) = self.running.take().expect("a step runs");
        self.coordinator.finished(self.now, ticket, ran);
        self.heed();
    }

    /// All that can run runs and succeeds.
    pub(super) fn finish_all(&mut self) {
        while self.running.is_some() {
            self.finish();
        }
    }

    pub(super) fn pass(&mut self, duration: Duration) {
        self.now = self.now + duration;
        self.coordinator.tick(self.now);
        self.heed();
    }

    pub(super) fn answer(&self, ticket: Ticket) -> &Result<(), SqlError> {
        self.answers.get(&ticket).expect("an answer")
    }

    /// The code of a failed ticket.
    pub(super) fn code(&self, ticket: Ticket) -> &'static str {
        code(self.answer(ticket))
    }

    pub(super) fn has_started(&self, ticket: Ticket) -> bool {
        self.started.iter().any(|(started, _)| *started == ticket)
    }
}

pub(super) fn code<T: std::fmt::Debug>(result: &Result<T, SqlError>) -> &'static str {
    result.as_ref().expect_err("a failure").code().code
}

pub(super) fn failure() -> SqlError {
    SqlError::refused(0, "on purpose")
}
