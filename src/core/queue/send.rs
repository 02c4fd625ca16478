//! Messages come in.

use std::sync::Arc;

use bytes::Bytes;

use super::index::Entry;
use super::sent_keys::{self, MAX_KEY_LEN};
use super::waiters::WaiterId;
use super::{Change, Moment, Patience, Queue, QueueError, Wake};
use crate::error::InvalidArgument;
use crate::store::{MessageId, QueueOp};
use crate::time::Duration;

/// A message that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// The name to send it under.
    pub name: Arc<str>,
    /// Its body.
    pub body: Bytes,
    /// How long it waits before it may be handed out.
    pub delay: Duration,
    /// A key of 1 to [`MAX_KEY_LEN`] bytes: of all messages of the name that are sent
    /// under it only the first one counts, as long as the key is remembered.
    pub dedupe_key: Option<Arc<str>>,
}

/// What became of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The message, or the first one of the same key.
    pub id: MessageId,
    /// When that one was sent, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// Whether it had been sent before.
    pub is_duplicate: bool,
}

impl Queue {
    /// Sends a message. It is sent for certain when the rows of the change, and of all
    /// before it, are durable.
    ///
    /// # Errors
    ///
    /// `queue/message_too_large`, `queue/full`, or `actor/invalid_argument` for a key out
    /// of range.
    pub fn send(&mut self, message: NewMessage, at: Moment) -> Result<(Sent, Change), QueueError> {
        let mut change = Change::default();
        let sent = self.enqueue(message, at, &mut change)?;
        self.serve(at, &mut change);
        Ok((sent, change))
    }

    /// Sends a message and begins a wait for its completion. With a key it may be that
    /// of a message sent before, which may be over: then the wait ends with no response.
    ///
    /// # Errors
    ///
    /// Those of [`Queue::send`].
    pub fn send_and_wait(
        &mut self,
        message: NewMessage,
        patience: Patience,
        at: Moment,
    ) -> Result<(Sent, WaiterId, Change), QueueError> {
        let mut change = Change::default();
        let sent = self.enqueue(message, at, &mut change)?;
        let waiter = self.waiters.number();
        // Before anybody is served, or a fast consumer would complete it unheard.
        if self.messages.get(sent.id).is_none() {
            change.wakes.push(Wake::Completed { waiter, response: None });
        } else if patience.is_cancelled {
            change.wakes.push(Wake::Aborted(waiter));
        } else {
            let deadline = patience.timeout.map(|timeout| at.now + timeout);
            self.waiters.wait_for_completion(waiter, sent.id, deadline);
        }
        self.serve(at, &mut change);
        Ok((sent, waiter, change))
    }

    /// Checks a message that is to be sent later, with what a transaction changes, and
    /// keeps an id for it. `planned` messages of the transaction come before it.
    ///
    /// # Errors
    ///
    /// Those of [`Queue::send`].
    pub fn reserve(
        &mut self,
        message: &NewMessage,
        planned: usize,
        at: Moment,
    ) -> Result<Sent, QueueError> {
        if let Some(first) = self.check(message, at)? {
            return Ok(first);
        }
        let limit = self.settings.max_size;
        if self.messages.len() + planned >= limit {
            return Err(QueueError::Full { limit });
        }
        let id = MessageId(self.next_id);
        self.next_id += 1;
        Ok(Sent { id, created_at_ms: at.unix_ms, is_duplicate: false })
    }

    /// Sends a message under the id that was kept for it.
    ///
    /// # Errors
    ///
    /// Those of [`Queue::send`].
    pub fn send_reserved(
        &mut self,
        message: NewMessage,
        id: MessageId,
        at: Moment,
    ) -> Result<Change, QueueError> {
        let mut change = Change::default();
        if self.check(&message, at)?.is_none() {
            self.check_room()?;
            self.insert(message, id, at, &mut change);
        }
        self.serve(at, &mut change);
        Ok(change)
    }

    /// Refuses what may not be sent; gives the first message of the same key.
    fn check(&self, message: &NewMessage, at: Moment) -> Result<Option<Sent>, QueueError> {
        let NewMessage { name, body, dedupe_key, .. } = message;
        let (size, limit) = (encoded_len(name, body), self.settings.max_message_len);
        if size > limit {
            return Err(QueueError::MessageTooLarge { size, limit });
        }
        let Some(key) = dedupe_key else { return Ok(None) };
        check_key(key)?;
        let known = self.keys.find(&(Arc::clone(name), Arc::clone(key)), at.unix_ms);
        Ok(known.map(|first| Sent { id: first.id, created_at_ms: first.at_ms, is_duplicate: true }))
    }

    fn enqueue(
        &mut self,
        message: NewMessage,
        at: Moment,
        change: &mut Change,
    ) -> Result<Sent, QueueError> {
        if let Some(first) = self.check(&message, at)? {
            return Ok(first);
        }
        self.check_room()?;
        let id = MessageId(self.next_id);
        self.next_id += 1;
        self.insert(message, id, at, change);
        Ok(Sent { id, created_at_ms: at.unix_ms, is_duplicate: false })
    }

    fn insert(&mut self, message: NewMessage, id: MessageId, at: Moment, change: &mut Change) {
        let NewMessage { name, body, delay, dedupe_key } = message;
        let created_at_ms = at.unix_ms;
        let delay_ms = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
        let available_at_ms = created_at_ms.saturating_add(delay_ms);
        change.ops.push(QueueOp::Send {
            id,
            name: Arc::clone(&name),
            body: body.clone(),
            created_at_ms,
            available_at_ms,
        });
        let mut entry = Entry::new(Arc::clone(&name), created_at_ms, available_at_ms);
        entry.sent_key = dedupe_key.clone();
        self.messages.insert(id, entry, Some(body), at.unix_ms);
        if let Some(key) = dedupe_key {
            let sent = sent_keys::Sent { id, at_ms: created_at_ms };
            change.ops.push(self.keys.remember((name, key), sent));
            change.ops.extend(self.keys.forget(at.unix_ms));
        }
    }

    /// Refuses one more message when as many wait as may.
    pub(super) fn check_room(&self) -> Result<(), QueueError> {
        let limit = self.settings.max_size;
        if self.messages.len() >= limit {
            return Err(QueueError::Full { limit });
        }
        Ok(())
    }
}

fn check_key(key: &str) -> Result<(), InvalidArgument> {
    let reason = match key.len() {
        0 => "it is empty".to_owned(),
        1..=MAX_KEY_LEN => return Ok(()),
        len => format!("it has {len} bytes, the limit is {MAX_KEY_LEN}"),
    };
    let value = format!("`{}`", key.chars().take(40).collect::<String>());
    Err(InvalidArgument { what: "dedupeKey", value, reason })
}

/// The length of a new message in the encoding that its limit is about: a version of
/// two bytes, then in BARE the name, the body, the time of sending and four optional
/// fields, all absent. Options of a send do not count.
fn encoded_len(name: &str, body: &[u8]) -> usize {
    const VERSION: usize = 2;
    const CREATED_AT: usize = 8;
    const ABSENT_FIELDS: usize = 4;
    let prefixed = |len: usize| uint_len(len) + len;
    VERSION + prefixed(name.len()) + prefixed(body.len()) + CREATED_AT + ABSENT_FIELDS
}

/// The length of an unsigned number in BARE, which has seven bits in each byte.
fn uint_len(number: usize) -> usize {
    let bits = usize::BITS - number.leading_zeros();
    bits.div_ceil(7).max(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_that_of_the_known_encoding() {
        let encoded = "0400036a6f6205a16178182ac80100000000000000000000";

        assert_eq!(encoded_len("job", &[0xa1, 0x61, 0x78, 0x18, 0x2a]), encoded.len() / 2);
    }

    #[test]
    fn a_length_takes_another_byte_from_128_on() {
        assert_eq!([0, 127, 128, 16_383, 16_384].map(uint_len), [1, 1, 2, 2, 3]);
    }

    #[test]
    fn a_key_has_1_to_128_bytes() {
        assert!(check_key("").is_err());
        assert!(check_key(&"k".repeat(MAX_KEY_LEN)).is_ok());
        assert!(check_key(&"k".repeat(MAX_KEY_LEN + 1)).is_err());
    }
}
