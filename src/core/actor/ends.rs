//! Who is told of the end of a commit, of all saving, and of the generation's memory.

use super::effect::{Effect, Output};
use super::gate::CommitNumber;
use super::machine::Machine;
use crate::core::behavior::{ActorEvent, Reply};
use crate::error::{Error, Result};

impl Machine {
    /// Tells `reply` how a commit ends, which must not have ended. It may not have begun
    /// either, if rows wait for it.
    pub(super) fn watch_commit(&mut self, number: CommitNumber, reply: Reply<()>) {
        self.commit_waiters.push((number, reply));
    }

    /// Tells those who wait for this commit, and for no other, how it ended.
    pub(super) fn tell_commit(&mut self, number: CommitNumber, result: &Result<()>) {
        let done = self.commit_waiters.extract_if(.., |(wanted, _)| *wanted == number);
        for (_, reply) in done {
            self.effects.push_back(Effect::Release(Output::Flushed(reply, result.clone())));
        }
    }

    /// Tells `reply` when this commit, which has begun or was before, is durable.
    pub(super) fn when_begun_durable(&mut self, number: CommitNumber, reply: Reply<()>) {
        if number <= self.gate.durable_number() {
            self.effects.push_back(Effect::Release(Output::Flushed(reply, Ok(()))));
        } else {
            self.watch_commit(number, reply);
        }
    }

    /// Those who would read behind a commit that will not begin hear why.
    pub(super) fn refuse_readers(&mut self, error: &Error) {
        for reader in std::mem::take(&mut self.rows).readers {
            let output = Output::Flushed(reader, Err(error.clone()));
            self.effects.push_back(Effect::Release(output));
        }
    }

    /// Lets no further commit of the state begin: what waits for one fails.
    pub(super) fn close_gate(&mut self, error: &Error) {
        self.refuse_readers(error);
        self.refuse_flushes(error);
        self.close_queue(error);
        for output in self.gate.close() {
            self.effects.push_back(Effect::Release(output.fail(error.clone())));
        }
        let begun = self.gate.begun();
        for (_, waiter) in self.commit_waiters.extract_if(.., |(wanted, _)| *wanted > begun) {
            let output = Output::Flushed(waiter, Err(error.clone()));
            self.effects.push_back(Effect::Release(output));
        }
        for waiter in self.saves.close() {
            let output = Output::Flushed(waiter, Err(error.clone()));
            self.effects.push_back(Effect::Release(output));
        }
    }

    /// Voids the memory of this generation: everything that waits hears `error`.
    /// The host and the author's side are told by the caller.
    pub(super) fn void(&mut self, error: &Error) {
        for (call, reply) in self.calls.answer_all() {
            if let Some(reply) = reply {
                let output = Output::Answer(reply, Err(error.clone()));
                self.effects.push_back(Effect::Release(output));
            } else {
                self.deliver(ActorEvent::CancelCall { call, timed_out: false, error: None });
            }
        }
        for output in self.gate.fail() {
            self.effects.push_back(Effect::Release(output.fail(error.clone())));
        }
        for waiter in self.saves.close() {
            let output = Output::Flushed(waiter, Err(error.clone()));
            self.effects.push_back(Effect::Release(output));
        }
        self.drop_connections(error, None);
        self.sql_wrote = false;
        self.sql_in_use = false;
        self.effects.extend(self.sql_turn.take().map(Effect::EndTurn));
        self.drop_transactions(error);
        self.refuse_readers(error);
        self.refuse_flushes(error);
        self.close_queue(error);
        for (_, waiter) in std::mem::take(&mut self.commit_waiters) {
            let output = Output::Flushed(waiter, Err(error.clone()));
            self.effects.push_back(Effect::Release(output));
        }
    }
}
