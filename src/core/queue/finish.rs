//! How messages end: completed, released, given up, thrown away; and dead ones.

use std::sync::Arc;

use bytes::Bytes;

use super::index::{Entry, Place};
use super::{Change, Moment, Queue, QueueError, Wake};
use crate::store::{MessageId, QueueOp};
use crate::time::Duration;

/// How much of an error is stored, in bytes.
const MAX_ERROR_LEN: usize = 2_048;

impl Queue {
    /// Completes a delivery. One of a message that was thrown away meanwhile is fine.
    ///
    /// # Errors
    ///
    /// `queue/already_completed` when this delivery is over: it was released, and
    /// another consumer may have the message.
    pub fn complete(
        &mut self,
        id: MessageId,
        delivery: u32,
        response: Option<Bytes>,
        at: Moment,
    ) -> Result<Change, QueueError> {
        let mut change = Change::default();
        if self.check_delivery(id, delivery)? {
            self.remove(id, at.unix_ms, &mut change);
            self.tell_completed(id, response, &mut change);
        }
        Ok(change)
    }

    /// Completes a message by its id and name, whoever has it; says whether it was
    /// there. A dead one is not.
    ///
    /// # Errors
    ///
    /// `queue/message_identity_mismatch` when it has another name; it stays then.
    pub fn complete_by_id(
        &mut self,
        id: MessageId,
        expected_name: &str,
        response: Option<Bytes>,
        at: Moment,
    ) -> Result<(bool, Change), QueueError> {
        let mut change = Change::default();
        if !self.check_identity(id, expected_name)? {
            return Ok((false, change));
        }
        self.remove(id, at.unix_ms, &mut change);
        self.tell_completed(id, response, &mut change);
        Ok((true, change))
    }

    /// Whether a message is there, under this name.
    ///
    /// # Errors
    ///
    /// `queue/message_identity_mismatch` when it has another name.
    pub fn check_identity(&self, id: MessageId, expected_name: &str) -> Result<bool, QueueError> {
        let Some(entry) = self.messages.get(id) else { return Ok(false) };
        if *entry.name == *expected_name {
            return Ok(true);
        }
        Err(QueueError::MessageIdentityMismatch {
            message_id: id.0,
            expected_name: expected_name.to_owned(),
            actual_name: entry.name.to_string(),
        })
    }

    /// Gives a delivery back, so that the message waits again: for `delay`, or else as
    /// its policy says. Its last delivery gives it up. `error` is kept for the list of
    /// dead messages, cut at 2,048 bytes.
    ///
    /// # Errors
    ///
    /// `queue/already_completed` when this delivery is over.
    pub fn release(
        &mut self,
        id: MessageId,
        delivery: u32,
        delay: Option<Duration>,
        error: Option<&str>,
        at: Moment,
    ) -> Result<Change, QueueError> {
        let mut change = Change::default();
        if !self.check_delivery(id, delivery)? {
            return Ok(change);
        }
        let Some(entry) = self.messages.get(id) else { return Ok(change) };
        if self.is_exhausted(entry) {
            self.bury(id, error, at.unix_ms, &mut change);
            return Ok(change);
        }
        let pause = match delay {
            Some(delay) => i64::try_from(delay.as_millis()).unwrap_or(i64::MAX),
            None => self.policy(&entry.name).pause_ms(delivery),
        };
        let available_at_ms = at.unix_ms.saturating_add(pause);
        let error = error.map(cut);
        change.ops.push(QueueOp::Release { id, available_at_ms, error });
        self.messages.release(id, available_at_ms, at.unix_ms);
        self.serve(at, &mut change);
        Ok(change)
    }

    /// Throws away everything that waits, and the keys. Dead messages stay.
    pub fn reset(&mut self) -> Change {
        let mut change = Change { ops: vec![QueueOp::Clear], wakes: Vec::new() };
        self.keys = super::SentKeys::default();
        for id in self.messages.clear().into_keys() {
            let error = QueueError::CompletionWaiterDropped { message_id: id.0 };
            self.fail_waits(id, &error, &mut change);
        }
        change
    }

    /// Lets a dead message wait again, as one that was never handed out, under its
    /// id; says whether it was there.
    ///
    /// # Errors
    ///
    /// `queue/full` when there is no room for it; it stays dead then.
    pub fn revive(&mut self, id: MessageId, at: Moment) -> Result<(bool, Change), QueueError> {
        let mut change = Change::default();
        if !self.dead.contains_key(&id) {
            return Ok((false, change));
        }
        self.check_room()?;
        if let Some((name, created_at_ms)) = self.dead.remove(&id) {
            let mut entry = Entry::new(name, created_at_ms, at.unix_ms);
            entry.sent_key = self.keys.returns(id);
            self.messages.insert(id, entry, None, at.unix_ms);
            change.ops.push(QueueOp::Revive { id, available_at_ms: at.unix_ms });
        }
        self.serve(at, &mut change);
        Ok((true, change))
    }

    /// Throws away a dead message; says whether it was there.
    pub fn delete_dead(&mut self, id: MessageId) -> (bool, Change) {
        let was_there = self.dead.remove(&id).is_some();
        let ops = was_there.then_some(QueueOp::DeleteDead(id)).into_iter().collect();
        (was_there, Change { ops, wakes: Vec::new() })
    }

    /// Refuses a delivery that is over, or whose message is gone.
    ///
    /// # Errors
    ///
    /// `queue/already_completed`.
    pub fn check_open(&self, id: MessageId, delivery: u32) -> Result<(), QueueError> {
        if self.check_delivery(id, delivery)? { Ok(()) } else { Err(QueueError::AlreadyCompleted) }
    }

    /// Whether a message is there, in the hands of this delivery.
    fn check_delivery(&self, id: MessageId, delivery: u32) -> Result<bool, QueueError> {
        let Some(entry) = self.messages.get(id) else { return Ok(false) };
        if entry.place() != Place::InFlight || entry.deliveries != delivery {
            return Err(QueueError::AlreadyCompleted);
        }
        Ok(true)
    }

    /// Takes a message out for good.
    pub(super) fn remove(&mut self, id: MessageId, unix_ms: i64, change: &mut Change) {
        if let Some(entry) = self.messages.remove(id) {
            change.ops.push(QueueOp::Remove(id));
            self.note_gone(entry, unix_ms, change);
        }
    }

    /// Gives a message up.
    pub(super) fn bury(
        &mut self,
        id: MessageId,
        error: Option<&str>,
        unix_ms: i64,
        change: &mut Change,
    ) {
        let Some(entry) = self.messages.remove(id) else { return };
        let error = error.map(cut);
        change.ops.push(QueueOp::Bury { id, died_at_ms: unix_ms, error });
        self.dead.insert(id, (Arc::clone(&entry.name), entry.created_at_ms));
        self.fail_waits(id, &QueueError::dead(id, entry.deliveries), change);
        self.note_gone(entry, unix_ms, change);
    }

    /// Tells those who wait for the completion of a message.
    pub(super) fn tell_completed(
        &mut self,
        id: MessageId,
        response: Option<Bytes>,
        change: &mut Change,
    ) {
        for waiter in self.waiters.take_completions(id) {
            change.wakes.push(Wake::Completed { waiter, response: response.clone() });
        }
    }

    fn fail_waits(&mut self, id: MessageId, error: &QueueError, change: &mut Change) {
        for waiter in self.waiters.take_completions(id) {
            change.wakes.push(Wake::Failed { waiter, error: error.clone() });
        }
    }

    fn note_gone(&mut self, entry: Entry, unix_ms: i64, change: &mut Change) {
        if let Some(key) = entry.sent_key {
            self.keys.is_gone((entry.name, key));
            change.ops.extend(self.keys.forget(unix_ms));
        }
    }
}

/// The beginning of an error, no longer than what is stored.
fn cut(error: &str) -> Arc<str> {
    let end = (0..=error.len().min(MAX_ERROR_LEN)).rfind(|end| error.is_char_boundary(*end));
    error[..end.unwrap_or_default()].into()
}
