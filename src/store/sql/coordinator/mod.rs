//! Who may use an actor's one connection, and in which order.
//!
//! Pure bookkeeping: no connection, no task, no clock. It is told what is wanted
//! and what has happened, and says what to do next in [`Effect`]s.
//!
//! # Invariants
//!
//! 1. At most one step runs at a time, and every ticket is answered exactly once.
//! 2. Statements, batches and beginnings start in the order in which they were
//!    admitted, except for a beginning that lets others pass while a transaction
//!    begun by hand is open.
//! 3. From a beginning to its end nothing else is run but what its handle asks for,
//!    in the order in which it asks.
//! 4. What was waiting when a transaction had to be ended by its deadline fails and
//!    is never run: most likely the transaction waited for it.
//! 5. A commit or a rollback that has begun wins over the deadline and over a close.
//! 6. Once closed or broken, everything is refused.

mod finish;
mod remembered;
mod request;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use self::remembered::Remembered;
pub use self::request::{Effect, Ran, Request, Step, Ticket, Warning};
use super::error::{Ending, SqlError};
use crate::time::{Duration, Instant};

/// How many operations may wait or run outside of transactions.
pub(super) const ADMITTED: usize = 128;
/// How long a transaction may take when nothing is said.
pub(in crate::store) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug)]
pub struct Coordinator {
    phase: Phase,
    next_ticket: u64,
    /// Admitted and not started; without those in `behind_manual`.
    waiting: VecDeque<(Ticket, Outside)>,
    /// Beginnings that wait for the end of a transaction begun by hand, and until when.
    behind_manual: VecDeque<(Ticket, Outside, Instant)>,
    running: Option<(Ticket, Work)>,
    transaction: Option<Transaction>,
    /// As the last step left it.
    autocommit: bool,
    /// Permits in use: an operation's until it is answered, a beginning's until its
    /// transaction is active.
    admitted: usize,
    ended: Remembered<Ending>,
    expired: Remembered<Duration>,
    closers: Vec<Ticket>,
    /// Whether to warn of the next transaction begun by hand.
    warns_of_manual: bool,
    warns_of_waiting: bool,
    effects: Vec<Effect>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// No more is admitted; what runs is waited for.
    Closing,
    Closed,
}

/// What was admitted.
#[derive(Clone, Debug)]
enum Outside {
    Statement,
    Batch,
    Begin { key: String, timeout: Duration },
}

/// What a handle asked for.
#[derive(Clone, Copy, Debug)]
enum Inside {
    Statement { ends_as: Ending },
    Commit,
    RollBack,
}

/// Why a step runs.
#[derive(Clone, Debug)]
enum Work {
    Outside(Outside),
    Inside(Inside),
    /// The rollback after a commit that failed so.
    FailedCommit(SqlError),
    /// The rollback at the deadline.
    Expire,
    /// The rollback at the close, of whatever transaction is open.
    Close,
}

#[derive(Debug)]
struct Transaction {
    key: String,
    timeout: Duration,
    deadline: Instant,
    /// Whether its time is up: nothing of its handle is run any more.
    is_expiring: bool,
    /// How a statement ended it, such as `INSERT OR ROLLBACK`. The handle still has to
    /// commit or roll back.
    ended_by_statement: Option<Ending>,
    queue: VecDeque<(Ticket, Inside)>,
    /// Who asked for its end by [`Request::Expire`].
    expirers: Vec<Ticket>,
}

impl Coordinator {
    /// A coordinator of a connection without an open transaction. It warns of the
    /// first transaction begun by hand if it is told to.
    pub fn new(warns_of_manual: bool) -> Self {
        Self {
            phase: Phase::Open,
            next_ticket: 0,
            waiting: VecDeque::new(),
            behind_manual: VecDeque::new(),
            running: None,
            transaction: None,
            autocommit: true,
            admitted: 0,
            ended: Remembered::default(),
            expired: Remembered::default(),
            closers: Vec::new(),
            warns_of_manual,
            warns_of_waiting: true,
            effects: Vec::new(),
        }
    }

    /// Takes a request at `now`, or refuses it at once.
    pub fn submit(&mut self, now: Instant, request: Request) -> Result<Ticket, SqlError> {
        if request == Request::Close {
            return Ok(self.close(now));
        }
        if self.phase != Phase::Open {
            return Err(SqlError::TransactionClosed);
        }
        let ticket = match request {
            Request::Statement { by_hand } => {
                let ticket = self.admit(Outside::Statement)?;
                if by_hand && std::mem::take(&mut self.warns_of_manual) {
                    self.effects.push(Effect::Warn(Warning::Manual));
                }
                ticket
            }
            Request::Batch => self.admit(Outside::Batch)?,
            Request::Begin { key, timeout } => self.admit_begin(key, timeout)?,
            Request::Inside { key, ends_as } => self.queue(&key, Inside::Statement { ends_as })?,
            Request::Commit { key } => self.queue(&key, Inside::Commit)?,
            Request::RollBack { key } => self.queue(&key, Inside::RollBack)?,
            Request::Expire { key } => self.expire(&key)?,
            Request::Close => unreachable!("taken above"),
        };
        self.pump(now);
        Ok(ticket)
    }

    /// Forgets a statement that nobody waits for any more, if it has not begun. All
    /// else that was asked for is carried out whoever waits.
    pub fn cancel(&mut self, ticket: Ticket) {
        let of = |(other, what): &(Ticket, Outside)| {
            *other == ticket && matches!(what, Outside::Statement | Outside::Batch)
        };
        if let Some(at) = self.waiting.iter().position(of) {
            self.waiting.remove(at);
            self.refuse(ticket, SqlError::TransactionClosed);
        } else if let Some(transaction) = &mut self.transaction {
            let of = |(other, what): &(Ticket, Inside)| {
                *other == ticket && matches!(what, Inside::Statement { .. })
            };
            if let Some(at) = transaction.queue.iter().position(of) {
                transaction.queue.remove(at);
                self.answer(ticket, Err(SqlError::TransactionClosed));
            }
        }
    }

    /// Whether a synchronous statement of this handle may be run now, by whoever has the
    /// connection; the reason why not.
    pub fn check_inside(&mut self, key: &str) -> Result<(), SqlError> {
        if self.phase != Phase::Open {
            return Err(SqlError::TransactionClosed);
        }
        let transaction = self.active(key)?;
        match transaction.ended_by_statement {
            Some(ending) => Err(terminal(key, ending)),
            None => Ok(()),
        }
    }

    /// The transaction is about to commit: until `deadline` nothing but that ends it.
    pub fn prolong(&mut self, key: &str, deadline: Instant) -> Result<(), SqlError> {
        self.check_inside(key)?;
        let transaction = self.active(key)?;
        transaction.deadline = transaction.deadline.max(deadline);
        Ok(())
    }

    /// Hears that a synchronous statement of the open transaction has ended it.
    pub fn rolled_back_inside(&mut self) {
        self.autocommit = true;
        if let Some(transaction) = &mut self.transaction {
            transaction.ended_by_statement.get_or_insert(Ending::RolledBack);
        }
    }

    /// What is to be done since the last call, in order.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Whether the transaction of this key is open, or begins without the end of another
    /// one: only steps are before it, which nobody has to wait for an author for.
    pub fn begins_by_itself(&self, key: &str) -> bool {
        if let Some(transaction) = &self.transaction {
            return transaction.key == key;
        }
        if !self.autocommit || !self.behind_manual.is_empty() {
            return false;
        }
        let running = self.running.iter().filter_map(|(_, work)| match work {
            Work::Outside(what) => Some(what),
            _ => None,
        });
        let mut begins = running.chain(self.waiting.iter().map(|(_, what)| what));
        let first = begins.find_map(|what| match what {
            Outside::Begin { key, .. } => Some(key),
            Outside::Statement | Outside::Batch => None,
        });
        first.is_none_or(|first| first == key)
    }

    /// Whether a transaction is open that spans turns, of either kind.
    pub fn is_transaction_open(&self) -> bool {
        self.transaction.is_some() || !self.autocommit
    }

    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    fn answer(&mut self, ticket: Ticket, result: Result<(), SqlError>) {
        self.effects.push(Effect::Answer(ticket, result));
    }

    /// Answers what was admitted and will not be run.
    fn refuse(&mut self, ticket: Ticket, error: SqlError) {
        self.admitted -= 1;
        self.answer(ticket, Err(error));
    }

    fn admit(&mut self, what: Outside) -> Result<Ticket, SqlError> {
        if self.admitted == ADMITTED {
            return Err(SqlError::TransactionQueueFull { limit: ADMITTED });
        }
        self.admitted += 1;
        let ticket = self.ticket();
        self.waiting.push_back((ticket, what));
        Ok(ticket)
    }

    fn admit_begin(&mut self, key: String, timeout: Duration) -> Result<Ticket, SqlError> {
        let refuse = |what, value: String, reason| {
            Err(SqlError::TransactionInvalidArgument { what, value, reason })
        };
        if timeout.is_zero() {
            return refuse("timeout", format!("{timeout:?}"), "it is zero");
        }
        if key.is_empty() {
            return refuse("key", format!("{key:?}"), "it is empty");
        }
        match self.past(&key) {
            Some(error) => Err(error),
            None => self.admit(Outside::Begin { key, timeout }),
        }
    }

    /// What became of a transaction that has ended.
    fn past(&self, key: &str) -> Option<SqlError> {
        let ended = self.ended.get(key).map(|&state| terminal(key, state));
        ended.or_else(|| self.expired.get(key).map(|&timeout| SqlError::expired(timeout)))
    }

    /// The transaction of a handle, if it takes anything.
    fn active(&mut self, key: &str) -> Result<&mut Transaction, SqlError> {
        let past = self.past(key);
        match self.transaction.as_mut().filter(|transaction| transaction.key == key) {
            Some(transaction) if transaction.is_expiring => {
                Err(SqlError::expired(transaction.timeout))
            }
            Some(transaction) => Ok(transaction),
            None => {
                Err(past.unwrap_or_else(|| SqlError::TransactionUnknown { key: key.to_owned() }))
            }
        }
    }

    fn queue(&mut self, key: &str, what: Inside) -> Result<Ticket, SqlError> {
        self.active(key)?;
        let ticket = self.ticket();
        self.active(key)?.queue.push_back((ticket, what));
        Ok(ticket)
    }

    /// Starts what is next, unless a step runs.
    fn pump(&mut self, now: Instant) {
        while self.running.is_none() && self.start(now) {}
    }

    /// Starts or refuses one thing; says whether there was one.
    fn start(&mut self, now: Instant) -> bool {
        if self.phase == Phase::Closed {
            return false;
        }
        if self.transaction.is_some() {
            return self.start_inside();
        }
        if self.phase == Phase::Closing && !self.autocommit {
            self.effects.push(Effect::Warn(Warning::RolledBackAtClose));
            let ticket = self.ticket();
            self.run(ticket, Work::Close, Step::RollBack);
            return true;
        }
        let Some((ticket, what)) = self.waiting.pop_front() else {
            self.end_close();
            return false;
        };
        match &what {
            Outside::Statement => self.run(ticket, Work::Outside(what), Step::Own),
            _ if !self.autocommit => self.wait_for_manual(now, ticket, what),
            Outside::Batch => self.run(ticket, Work::Outside(what), Step::Own),
            Outside::Begin { key, .. } => match self.past(key) {
                Some(error) => self.refuse(ticket, error),
                None => self.run(ticket, Work::Outside(what), Step::Begin),
            },
        }
        true
    }

    fn start_inside(&mut self) -> bool {
        let closing = self.phase == Phase::Closing;
        let Some(transaction) = &mut self.transaction else { return false };
        if closing || transaction.is_expiring {
            let work = if closing { Work::Close } else { Work::Expire };
            let ticket = self.ticket();
            self.run(ticket, work, Step::RollBack);
            return true;
        }
        let Some((ticket, what)) = transaction.queue.pop_front() else { return false };
        let step = match (what, transaction.ended_by_statement) {
            (Inside::Statement { .. }, Some(ending)) => {
                let error = terminal(&transaction.key, ending);
                self.answer(ticket, Err(error));
                return true;
            }
            (Inside::Statement { .. }, None) => Step::Own,
            (Inside::Commit, _) => Step::Commit,
            (Inside::RollBack, _) => Step::RollBack,
        };
        self.run(ticket, Work::Inside(what), step);
        true
    }

    fn end_close(&mut self) {
        if self.phase == Phase::Closing {
            self.phase = Phase::Closed;
            for ticket in std::mem::take(&mut self.closers) {
                self.answer(ticket, Ok(()));
            }
        }
    }

    fn run(&mut self, ticket: Ticket, work: Work, step: Step) {
        self.running = Some((ticket, work));
        self.effects.push(Effect::Run(ticket, step));
    }

    fn wait_for_manual(&mut self, now: Instant, ticket: Ticket, what: Outside) {
        if std::mem::take(&mut self.warns_of_waiting) {
            self.effects.push(Effect::Warn(Warning::WaitsForManual));
        }
        let until = now + what.timeout();
        self.behind_manual.push_back((ticket, what, until));
    }
}

impl Outside {
    /// How long it may wait for the end of a transaction begun by hand.
    fn timeout(&self) -> Duration {
        match self {
            Self::Begin { timeout, .. } => *timeout,
            Self::Statement | Self::Batch => DEFAULT_TIMEOUT,
        }
    }
}

fn terminal(key: &str, state: Ending) -> SqlError {
    SqlError::TransactionTerminal { key: key.to_owned(), state }
}
