//! An actor's queue: what waits in it, who waits for it, and what follows from each
//! send, receive, completion and moment.
//!
//! Pure: no I/O, no clock, no lock. Each step returns a [`Change`]: the rows to write
//! and the waits that end. The rows of a change commit together, and in the order of
//! the steps; memory goes ahead of them, so a generation whose commit failed is over.
//!
//! # Invariants
//!
//! 1. Ids grow by one and are never used again.
//! 2. A message has at most one consumer at a time. One that is not to be completed
//!    leaves with its delivery; another one stays until it is completed, released,
//!    given up or thrown away, or until the generation ends.
//! 3. A delivery is counted in the rows before it is told: at least once, and at most
//!    as often as the policy of its name says.
//! 4. Messages of one name are handed out in the order of their ids, but for those
//!    that were delayed, released or revived; waits are served in the order in which
//!    they began.
//! 5. A message that is there goes before a timeout and an abort, and a wait to which
//!    messages are on their way can no longer be cancelled: none is lost that way.

mod error;
mod finish;
mod index;
mod policy;
mod receive;
mod send;
mod sent_keys;
#[cfg(test)]
mod tests;
pub mod unstored;
mod waiters;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;

pub use self::error::QueueError;
pub use self::index::Names;
use self::index::{Entry, Messages};
pub use self::policy::{Backoff, QueuePolicy};
pub use self::receive::{MissingBody, Patience};
pub use self::send::{NewMessage, Sent};
use self::sent_keys::SentKeys;
pub use self::sent_keys::{MAX_KEY_LEN, REMEMBERED, REMEMBERED_FOR};
use self::waiters::Waiters;
pub use self::waiters::{WaiterId, Want, Wanted};
use crate::store::{MessageId, QueueOp, QueueRows};
use crate::time::{Duration, Instant};

/// A moment on both clocks: deadlines of waits are on the first, which never jumps,
/// what is stored is on the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// On the clock of the process.
    pub now: Instant,
    /// In milliseconds since the Unix epoch.
    pub unix_ms: i64,
}

/// The limits of a queue and the policies of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// How many messages may wait.
    pub max_size: usize,
    /// How long an encoded message may be, in bytes.
    pub max_message_len: usize,
    /// The policies of names that have one.
    pub policies: Arc<HashMap<String, QueuePolicy>>,
}

/// A message on its way to a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its id.
    pub id: MessageId,
    /// The name that it was sent under.
    pub name: Arc<str>,
    /// Its body.
    pub body: Bytes,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// How often it has been handed out, this time included. Together with the id it
    /// is what its consumer completes.
    pub deliveries: u32,
    /// Whether it stays until it is completed.
    pub completable: bool,
}

/// What follows from a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "rows and waits are lost otherwise"]
pub struct Change {
    /// The rows to write.
    pub ops: Vec<QueueOp>,
    /// The waits that go on or end, in order.
    pub wakes: Vec<Wake>,
}

/// What becomes of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wake {
    /// It has messages, to be told when the rows of the change are durable.
    Messages {
        /// The wait.
        waiter: WaiterId,
        /// At least one, by id.
        messages: Vec<Delivery>,
    },
    /// Bodies must be read for it, then [`Queue::supply`] or [`Queue::unread`] is called.
    Read {
        /// The wait.
        waiter: WaiterId,
        /// The messages.
        ids: Vec<MessageId>,
    },
    /// A message that it looks out for is there.
    Notice(WaiterId),
    /// Its message is done, to be told when the rows of the change are durable.
    Completed {
        /// The wait.
        waiter: WaiterId,
        /// What the consumer answered.
        response: Option<Bytes>,
    },
    /// Its message will not be done, to be told when the rows are durable.
    Failed {
        /// The wait.
        waiter: WaiterId,
        /// Why.
        error: QueueError,
    },
    /// Nothing came in time.
    TimedOut(WaiterId),
    /// It was cancelled, or the actor stops.
    Aborted(WaiterId),
}

/// The queue of one generation.
#[derive(Clone, Debug)]
pub struct Queue {
    settings: QueueSettings,
    next_id: i64,
    messages: Messages,
    keys: SentKeys,
    /// Names and times of sending of dead messages.
    dead: BTreeMap<MessageId, (Arc<str>, i64)>,
    waiters: Waiters,
    /// Since when the actor stops, in milliseconds since the Unix epoch: nobody waits for
    /// messages any more.
    stopped_at_ms: Option<i64>,
    /// Whether anybody waited for messages then.
    sent_away: bool,
}

impl Queue {
    /// Takes in what is stored, at `unix_ms`. A message whose last delivery was its
    /// last chance, and which nobody completed, is given up.
    pub fn load(rows: QueueRows, settings: QueueSettings, unix_ms: i64) -> (Self, Vec<QueueOp>) {
        let last = [rows.messages.last().map(|row| row.id), rows.dead.last().map(|row| row.id)];
        let last = last.into_iter().flatten().max().map_or(0, |id| id.0);
        let mut messages = Messages::default();
        for row in rows.messages {
            let mut entry = Entry::new(row.name, row.created_at_ms, row.available_at_ms);
            entry.deliveries = row.deliveries;
            messages.insert(row.id, entry, None, unix_ms);
        }
        for row in &rows.sent_keys {
            messages.set_key(row.id, &row.name, &row.key);
        }
        let keys = SentKeys::load(rows.sent_keys, |id| messages.get(id).is_some());
        let dead = rows.dead.into_iter().map(|row| (row.id, (row.name, row.created_at_ms)));
        let mut queue = Self {
            settings,
            next_id: rows.next_id.max(last + 1),
            messages,
            keys,
            dead: dead.collect(),
            waiters: Waiters::default(),
            stopped_at_ms: None,
            sent_away: false,
        };
        let mut change = Change::default();
        let exhausted: Vec<_> = queue
            .messages
            .iter()
            .filter(|(_, entry)| queue.is_exhausted(entry))
            .map(|(id, _)| id)
            .collect();
        for id in exhausted {
            queue.bury(id, Some("the actor ended before it was completed"), unix_ms, &mut change);
        }
        change.ops.extend(queue.keys.forget(unix_ms));
        (queue, change.ops)
    }

    /// How many messages wait, those in flight included.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many messages may wait.
    pub fn max_size(&self) -> usize {
        self.settings.max_size
    }

    /// How many are dead.
    pub fn dead_len(&self) -> usize {
        self.dead.len()
    }

    /// Ids, names and times of sending of what waits, by id.
    pub fn inspect(&self) -> impl Iterator<Item = (MessageId, &Arc<str>, i64)> {
        self.messages.iter().map(|(id, entry)| (id, &entry.name, entry.created_at_ms))
    }

    /// How many waits for messages are parked. Those for a completion do not count.
    pub fn active_waits(&self) -> usize {
        self.waiters.receivers_len()
    }

    /// When something is due by itself for somebody who waits: [`Queue::tick`] is to be
    /// called then.
    pub fn next_due(&self, at: Moment) -> Option<Instant> {
        let ready = self.messages.next_ready_ms().filter(|_| self.active_waits() > 0);
        let ready = ready.map(|ready| {
            let ahead = u64::try_from(ready.saturating_sub(at.unix_ms)).unwrap_or_default();
            at.now + Duration::from_millis(ahead)
        });
        [ready, self.waiters.next_deadline()].into_iter().flatten().min()
    }

    /// When an actor that sleeps must be woken for its queue, in milliseconds since the
    /// Unix epoch: the first moment after `unix_ms` from which on a message may be handed
    /// out that may not yet. What may be handed out already wakes nobody, unless its time
    /// came after [`Queue::stop`]: whoever waited for it had been sent away. One that had
    /// no time to wait for counts only if somebody was.
    pub fn alarm_ms(&self, unix_ms: i64) -> Option<i64> {
        match self.stopped_at_ms {
            None => self.messages.next_available_ms(unix_ms),
            Some(stopped) => self.messages.first_since_ms(stopped, self.sent_away),
        }
    }

    /// Whether any consumer has a message that it is to complete.
    pub fn has_in_flight(&self) -> bool {
        self.messages.has_in_flight()
    }

    /// Does what is due.
    pub fn tick(&mut self, at: Moment) -> Change {
        let mut change = Change::default();
        // First, since what is there goes before a timeout.
        self.serve(at, &mut change);
        let overdue = self.waiters.take_overdue(at.now);
        change.wakes.extend(overdue.into_iter().map(Wake::TimedOut));
        change
    }

    /// Ends a wait because its caller gave up. One to which messages are on their way
    /// goes on.
    pub fn cancel(&mut self, waiter: WaiterId) -> Change {
        let cancelled = self.waiters.cancel(waiter);
        let wakes = cancelled.then_some(Wake::Aborted(waiter)).into_iter().collect();
        Change { ops: Vec::new(), wakes }
    }

    /// The actor begins to stop: waits for messages end, and no more begin. Messages
    /// are still sent, taken and completed.
    pub fn stop(&mut self, at: Moment) -> Change {
        self.stopped_at_ms.get_or_insert(at.unix_ms);
        let wakes: Vec<_> = self.waiters.unpark_all().into_iter().map(Wake::Aborted).collect();
        self.sent_away |= !wakes.is_empty();
        Change { ops: Vec::new(), wakes }
    }

    /// The generation is over: everybody who waits is returned, for an answer by the
    /// caller.
    pub fn abandon(&mut self) -> Vec<WaiterId> {
        self.waiters.take_all()
    }

    fn policy(&self, name: &str) -> QueuePolicy {
        self.settings.policies.get(name).copied().unwrap_or_default()
    }

    /// Whether a message has been handed out as often as its policy allows.
    fn is_exhausted(&self, entry: &Entry) -> bool {
        let limit = self.policy(&entry.name).max_deliveries;
        limit.is_some_and(|limit| entry.deliveries >= limit.get())
    }
}
