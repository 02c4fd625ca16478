//! The output gate: what an actor tells the outside waits here until the changes
//! it may reveal are durable.
//!
//! An output is a reply, an event, a message, a chunk of a response, a call to
//! another actor. The gate knows three numbers: the commit begun last, the commit
//! durable last, and for each output that waits the commit it waits for. Beside these
//! it knows which of the author's asynchronous statements have not ended: those commit
//! by themselves, in their own time, and end in any order.
//!
//! # Invariants
//!
//! 1. In mode [`Durability::Reply`] no output leaves before every change made
//!    before it is durable.
//! 2. Outputs leave in the order in which they were offered: while one waits,
//!    none offered later passes.
//! 3. Once all commits are durable and the state is clean, nothing waits.
//! 4. Once broken, the gate lets nothing out: what waited was handed to whoever
//!    turns it into errors, and what comes later is given back.
//! 5. In mode [`Durability::Reply`] an output that is offered while statements are open
//!    that may commit leaves once all of those have ended.

mod statements;

use std::collections::VecDeque;

pub use self::statements::StatementNumber;
use self::statements::Statements;
use crate::core::config::Durability;

/// The place of a commit among the commits of one generation, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitNumber(u64);

impl CommitNumber {
    /// The number; 0 before the first commit.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of the commit that follows.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// What an output has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Required {
    /// Nothing.
    Pass,
    /// This commit.
    Commit(CommitNumber),
    /// The next commit that carries the state, which has not begun.
    Next,
}

/// What became of an output that was offered.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an output that is given back must leave or fail"]
pub enum Held<T> {
    /// The gate keeps it and hands it out when its turn comes.
    Waits,
    /// It has nothing to wait for: let it leave now.
    Leaves(T),
    /// The gate is broken: it must fail.
    Broken(T),
}

/// An output that waits.
#[derive(Debug)]
struct Waiting<T> {
    commit: Required,
    statement: StatementNumber,
    output: T,
}

/// The gate of one generation.
#[derive(Debug)]
pub struct Gate<T> {
    mode: Durability,
    /// Grows in `begin`.
    begun: CommitNumber,
    /// Grows in `durable` and `give_up`.
    durable: CommitNumber,
    statements: Statements,
    /// In the order of leaving. What they wait for never falls from front to back,
    /// so all that wait for [`Required::Next`] are at the back (invariant 2).
    waiting: VecDeque<Waiting<T>>,
    /// Set by `close`, never cleared: no commit will carry the state any more.
    closed: bool,
    /// Set by `fail`, never cleared.
    broken: bool,
}

impl<T> Gate<T> {
    /// An open gate with no commit begun.
    pub const fn new(mode: Durability) -> Self {
        Self {
            mode,
            begun: CommitNumber(0),
            durable: CommitNumber(0),
            statements: Statements::new(),
            waiting: VecDeque::new(),
            closed: false,
            broken: false,
        }
    }

    /// Numbers a commit that begins now. If it carries the state, the outputs that
    /// waited for such a commit wait for this one.
    pub fn begin(&mut self, carries_state: bool) -> CommitNumber {
        self.begun.0 += 1;
        if carries_state {
            self.bind_next();
        }
        self.begun
    }

    /// What an output that is ready now has to wait for. `dirty` says whether
    /// there are changes that no commit carries yet.
    pub fn required(&self, dirty: bool) -> Required {
        match self.mode {
            Durability::Interval => Required::Pass,
            Durability::Reply => self.fence(dirty),
        }
    }

    /// What somebody has to wait for who asked for "durable up to here", in either
    /// mode.
    pub fn fence(&self, dirty: bool) -> Required {
        let own = if dirty || self.broken {
            Required::Next
        } else if self.begun > self.durable {
            Required::Commit(self.begun)
        } else {
            Required::Pass
        };
        // Not ahead of the last one that waits (invariant 2).
        self.waiting.back().map_or(own, |last| own.max(last.commit))
    }

    /// Notes that the author asks for a statement that may commit.
    pub fn begin_statement(&mut self) -> StatementNumber {
        self.statements.begin()
    }

    /// Notes that a statement has ended and what it committed is durable; returns what
    /// may leave.
    #[must_use = "what is returned must leave"]
    pub fn end_statement(&mut self, number: StatementNumber) -> Vec<T> {
        self.statements.end(number);
        self.release()
    }

    /// Notes, where the generation survives it, that a statement could not be committed;
    /// returns everything that waited, which now must fail.
    #[must_use = "what is returned must fail"]
    pub fn give_up_statement(&mut self, number: StatementNumber) -> Vec<T> {
        self.statements.end(number);
        self.drain()
    }

    /// The statement that an output has to wait for which is ready now.
    pub fn required_statement(&self) -> StatementNumber {
        match self.mode {
            Durability::Interval => StatementNumber::NONE,
            Durability::Reply => self.last_statement(),
        }
    }

    /// The statement that somebody has to wait for who asked for "durable up to here", in
    /// either mode.
    pub fn last_statement(&self) -> StatementNumber {
        self.statements.last_open()
    }

    /// Offers an output that has to wait for `required`.
    pub fn hold(&mut self, required: Required, output: T) -> Held<T> {
        self.hold_behind(required, StatementNumber::NONE, output)
    }

    /// Offers an output that has to wait for `required` and for all statements up to
    /// `statement`.
    pub fn hold_behind(
        &mut self,
        required: Required,
        statement: StatementNumber,
        output: T,
    ) -> Held<T> {
        if self.broken || (self.closed && required == Required::Next) {
            return Held::Broken(output);
        }
        if self.statements.are_over(statement) {
            match required {
                Required::Pass => return Held::Leaves(output),
                Required::Commit(n) if n <= self.durable && self.waiting.is_empty() => {
                    return Held::Leaves(output);
                }
                Required::Commit(_) | Required::Next => {}
            }
        }
        let (mut commit, mut statement) = (required, statement);
        if let Some(last) = self.waiting.back() {
            commit = commit.max(last.commit);
            statement = statement.max(last.statement);
        }
        self.waiting.push_back(Waiting { commit, statement, output });
        Held::Waits
    }

    /// Notes that all commits up to `n` are durable; returns what may leave, in
    /// order. A number that is not higher than the last one changes nothing.
    #[must_use = "what is returned must leave"]
    pub fn durable(&mut self, n: CommitNumber) -> Vec<T> {
        self.durable = self.durable.max(n.min(self.begun));
        self.release()
    }

    /// Notes that the state turned out clean with nothing to commit; returns what
    /// may leave. What waited for the next commit of the state waits for those
    /// begun so far (invariant 3).
    #[must_use = "what is returned must leave"]
    pub fn settle(&mut self) -> Vec<T> {
        self.bind_next();
        self.release()
    }

    /// Notes that no further commit will carry the state. Returns what waited for
    /// one, which now must fail; so must whatever would wait for one later. What
    /// waits for a commit that has begun waits on.
    #[must_use = "what is returned must fail"]
    pub fn close(&mut self) -> Vec<T> {
        self.closed = true;
        let bound = self.waiting.partition_point(|waiting| waiting.commit != Required::Next);
        self.waiting.drain(bound..).map(|waiting| waiting.output).collect()
    }

    /// Breaks the gate because a commit failed; returns everything that waited, in
    /// order, which now must fail (invariant 4).
    #[must_use = "what is returned must fail"]
    pub fn fail(&mut self) -> Vec<T> {
        self.broken = true;
        self.drain()
    }

    /// Notes, where the generation survives it (mode [`Durability::Interval`]),
    /// that commit `n` certainly failed; returns everything that waited, which now
    /// must fail. Nobody waits for `n` from here on; the gate stays open.
    #[must_use = "what is returned must fail"]
    pub fn give_up(&mut self, n: CommitNumber) -> Vec<T> {
        self.durable = self.durable.max(n.min(self.begun));
        self.drain()
    }

    /// The commit begun last.
    pub fn begun(&self) -> CommitNumber {
        self.begun
    }

    /// The commit durable last.
    pub fn durable_number(&self) -> CommitNumber {
        self.durable
    }

    /// How many outputs wait.
    pub fn waiting_len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no commit is on its way.
    pub fn all_durable(&self) -> bool {
        self.durable == self.begun
    }

    /// Whether a commit has failed and with it the generation.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    fn bind_next(&mut self) {
        let begun = self.begun;
        let unbound = self.waiting.iter_mut().rev();
        for waiting in unbound.take_while(|waiting| waiting.commit == Required::Next) {
            waiting.commit = Required::Commit(begun);
        }
    }

    fn release(&mut self) -> Vec<T> {
        let limit = Required::Commit(self.durable);
        let statements = &self.statements;
        let may_leave = |waiting: &Waiting<T>| {
            waiting.commit <= limit && statements.are_over(waiting.statement)
        };
        let ready = self.waiting.partition_point(may_leave);
        self.waiting.drain(..ready).map(|waiting| waiting.output).collect()
    }

    fn drain(&mut self) -> Vec<T> {
        std::mem::take(&mut self.waiting).into_iter().map(|waiting| waiting.output).collect()
    }
}

#[cfg(test)]
mod tests;
