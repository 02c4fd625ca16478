//! What follows when a step has run, when time has passed, and at the close.

use super::request::{Effect, Ran, Step, Ticket};
use super::{Coordinator, Inside, Outside, Phase, Transaction, Work, terminal};
use crate::store::sql::error::{Ending, SqlError, millis};
use crate::time::Instant;

impl Coordinator {
    /// Hears how the step of an [`Effect::Run`] went.
    pub fn finished(&mut self, now: Instant, ticket: Ticket, ran: Ran) {
        // A step that is reported twice changes nothing.
        let Some((_, work)) = self.running.take_if(|(running, _)| *running == ticket) else {
            return;
        };
        match ran {
            Ran::Broken(error) => self.break_down(ticket, work, error),
            Ran::Whole { result, autocommit } => {
                self.autocommit = autocommit;
                match work {
                    Work::Outside(what) => self.finish_outside(now, ticket, what, result),
                    Work::Inside(Inside::Statement { ends_as }) => {
                        self.finish_inside(ticket, ends_as, result);
                    }
                    Work::Inside(Inside::Commit) => self.finish_commit(ticket, result),
                    Work::Inside(Inside::RollBack) => {
                        if self.rolled_back(&result) {
                            self.end(Ending::RolledBack);
                            self.answer(ticket, Ok(()));
                        } else {
                            self.break_down_after(ticket, result);
                        }
                    }
                    Work::FailedCommit(error) => {
                        if self.rolled_back(&result) {
                            self.end(Ending::RolledBack);
                            self.answer(ticket, Err(error));
                        } else {
                            self.answer(ticket, Err(error));
                            self.fail(result);
                        }
                    }
                    Work::Expire if self.rolled_back(&result) => self.finish_expiry(),
                    Work::Close if self.rolled_back(&result) => self.end(Ending::RolledBack),
                    Work::Expire | Work::Close => self.fail(result),
                }
            }
        }
        self.let_in_from_behind_manual();
        self.pump(now);
    }

    /// Ends what is overdue at `now`.
    pub fn tick(&mut self, now: Instant) {
        if self.deadline_of_transaction().is_some_and(|deadline| deadline <= now) {
            self.begin_expiry();
        }
        for (ticket, what, until) in std::mem::take(&mut self.behind_manual) {
            if until <= now {
                let timeout_ms = millis(what.timeout());
                self.refuse(ticket, SqlError::ManualTransactionOpen { timeout_ms });
            } else {
                self.behind_manual.push_back((ticket, what, until));
            }
        }
        self.pump(now);
    }

    /// When [`Coordinator::tick`] has to be called next, unless something else
    /// happens before.
    pub fn next_deadline(&self) -> Option<Instant> {
        let manual = self.behind_manual.iter().map(|(.., until)| *until);
        manual.chain(self.deadline_of_transaction()).min()
    }

    /// The deadline, unless it has no effect any more (invariant 5).
    fn deadline_of_transaction(&self) -> Option<Instant> {
        let transaction = self.transaction.as_ref()?;
        let is_ending = match &self.running {
            Some((_, Work::Inside(what))) => !matches!(what, Inside::Statement { .. }),
            Some((_, Work::FailedCommit(_) | Work::Expire | Work::Close)) => true,
            Some((_, Work::Outside(_))) | None => false,
        };
        (!is_ending && !transaction.is_expiring && self.phase == Phase::Open)
            .then_some(transaction.deadline)
    }

    pub(super) fn expire(&mut self, key: &str) -> Result<Ticket, SqlError> {
        self.active(key)?;
        let ticket = self.ticket();
        self.active(key)?.expirers.push(ticket);
        if self.deadline_of_transaction().is_some() {
            self.begin_expiry();
        }
        Ok(ticket)
    }

    pub(super) fn close(&mut self, now: Instant) -> Ticket {
        let ticket = self.ticket();
        if self.phase == Phase::Closed {
            self.answer(ticket, Ok(()));
            return ticket;
        }
        self.closers.push(ticket);
        if self.phase == Phase::Open {
            self.phase = Phase::Closing;
            self.refuse_waiting(&SqlError::TransactionClosed);
            self.refuse_handle(&SqlError::TransactionClosed);
        }
        self.pump(now);
        ticket
    }

    fn finish_outside(
        &mut self,
        now: Instant,
        ticket: Ticket,
        what: Outside,
        result: Result<(), SqlError>,
    ) {
        self.admitted -= 1;
        let Outside::Begin { key, timeout } = what else { return self.answer(ticket, result) };
        if result.is_err() {
            return self.answer(ticket, result);
        }
        self.transaction = Some(Transaction {
            key,
            timeout,
            deadline: now + timeout,
            is_expiring: false,
            ended_by_statement: None,
            queue: Default::default(),
            expirers: Vec::new(),
        });
        let open = self.phase == Phase::Open;
        self.answer(ticket, if open { Ok(()) } else { Err(SqlError::TransactionClosed) });
    }

    fn finish_inside(&mut self, ticket: Ticket, ends_as: Ending, result: Result<(), SqlError>) {
        if self.autocommit
            && let Some(transaction) = &mut self.transaction
        {
            let ending = if result.is_ok() { ends_as } else { Ending::RolledBack };
            transaction.ended_by_statement.get_or_insert(ending);
        }
        self.answer(ticket, result);
    }

    fn finish_commit(&mut self, ticket: Ticket, result: Result<(), SqlError>) {
        match result {
            Ok(()) => {
                self.end(Ending::Committed);
                self.answer(ticket, Ok(()));
            }
            Err(error) if self.autocommit => {
                self.end(Ending::RolledBack);
                self.answer(ticket, Err(error));
            }
            Err(error) => self.run(ticket, Work::FailedCommit(error), Step::RollBack),
        }
    }

    /// Whether nothing is left of a transaction. That SQLite had rolled it back before
    /// is as good as having done it.
    fn rolled_back(&self, result: &Result<(), SqlError>) -> bool {
        result.is_ok() || self.autocommit
    }

    /// Ends the transaction; what its handle still waits for hears how.
    fn end(&mut self, ending: Ending) {
        let Some(transaction) = self.transaction.take() else { return };
        let waiting = transaction.queue.into_iter().map(|(ticket, _)| ticket);
        for ticket in waiting.chain(transaction.expirers) {
            self.answer(ticket, Err(terminal(&transaction.key, ending)));
        }
        self.ended.insert(transaction.key, ending);
    }

    fn begin_expiry(&mut self) {
        let Some(transaction) = &mut self.transaction else { return };
        transaction.is_expiring = true;
        let error = SqlError::expired(transaction.timeout);
        self.refuse_handle(&error);
    }

    /// Invariant 4.
    fn finish_expiry(&mut self) {
        let Some(transaction) = self.transaction.take() else { return };
        for ticket in transaction.expirers {
            self.answer(ticket, Ok(()));
        }
        self.refuse_waiting(&SqlError::expired(transaction.timeout));
        self.expired.insert(transaction.key, transaction.timeout);
    }

    fn refuse_waiting(&mut self, error: &SqlError) {
        let behind = std::mem::take(&mut self.behind_manual).into_iter();
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        for ticket in behind.map(|(ticket, ..)| ticket).chain(waiting.map(|(ticket, _)| ticket)) {
            self.refuse(ticket, error.clone());
        }
    }

    fn refuse_handle(&mut self, error: &SqlError) {
        let Some(transaction) = &mut self.transaction else { return };
        for (ticket, _) in std::mem::take(&mut transaction.queue) {
            self.answer(ticket, Err(error.clone()));
        }
    }

    /// Beginnings that let others pass come first again, in their order.
    fn let_in_from_behind_manual(&mut self) {
        if self.autocommit {
            while let Some((ticket, what, _)) = self.behind_manual.pop_back() {
                self.waiting.push_front((ticket, what));
            }
        }
    }

    fn break_down(&mut self, ticket: Ticket, work: Work, error: SqlError) {
        match work {
            Work::Outside(_) => self.refuse(ticket, error.clone()),
            Work::Inside(_) | Work::FailedCommit(_) => self.answer(ticket, Err(error.clone())),
            // Nobody waits for these steps themselves.
            Work::Expire | Work::Close => {}
        }
        self.fail(Err(error));
    }

    fn break_down_after(&mut self, ticket: Ticket, result: Result<(), SqlError>) {
        self.answer(ticket, result.clone());
        self.fail(result);
    }

    /// Invariant 6.
    fn fail(&mut self, result: Result<(), SqlError>) {
        self.phase = Phase::Closed;
        self.refuse_waiting(&SqlError::TransactionClosed);
        self.refuse_handle(&SqlError::TransactionClosed);
        let expirers = self.transaction.take().map(|transaction| transaction.expirers);
        for ticket in expirers.into_iter().flatten() {
            self.answer(ticket, Err(SqlError::TransactionClosed));
        }
        // The database is as closed as it can be.
        for ticket in std::mem::take(&mut self.closers) {
            self.answer(ticket, Ok(()));
        }
        if let Err(error) = result {
            self.effects.push(Effect::Fail(error));
        }
    }
}
