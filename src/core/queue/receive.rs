//! Messages go out: who gets which, and what is written before.

use std::collections::HashMap;

use bytes::Bytes;

use super::waiters::{Reading, Receiver, WaiterId, Want, Wanted};
use super::{Change, Delivery, Moment, Queue, Wake};
use crate::store::{MessageId, QueueOp};
use crate::time::Duration;

/// How long somebody waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience {
    /// For how long; `None` for ever, zero for one look.
    pub timeout: Option<Duration>,
    /// Whether the caller has given up already. One look is taken all the same.
    pub is_cancelled: bool,
}

/// A message waits in memory and not in the store: neither can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("queue message {} has no row", .0.0)]
pub struct MissingBody(pub MessageId);

impl Queue {
    /// Begins a wait, which may end within this change.
    pub fn receive(
        &mut self,
        wanted: Wanted,
        patience: Patience,
        at: Moment,
    ) -> (WaiterId, Change) {
        let mut change = Change::default();
        // Those who wait already come first.
        self.serve(at, &mut change);
        let waiter = self.waiters.number();
        let deadline = patience.timeout.map(|timeout| at.now + timeout);
        let receiver = Receiver { wanted, deadline };
        let Some(receiver) = self.offer(waiter, receiver, at, &mut change) else {
            return (waiter, change);
        };
        if patience.is_cancelled {
            change.wakes.push(Wake::Aborted(waiter));
        } else {
            self.park(waiter, receiver, at, &mut change);
        }
        (waiter, change)
    }

    /// Hands out what was read for a wait, in the order in which it was asked for.
    ///
    /// # Errors
    ///
    /// A message that waits has no row: the generation is void.
    pub fn supply(
        &mut self,
        waiter: WaiterId,
        read: Vec<(MessageId, Option<Bytes>)>,
        at: Moment,
    ) -> Result<Change, MissingBody> {
        let mut change = Change::default();
        let Some(Reading { receiver, ids, is_cancelled }) = self.waiters.take_reading(waiter)
        else {
            return Ok(change);
        };
        let mut read: HashMap<_, _> = read.into_iter().collect();
        let mut found = Vec::new();
        for id in ids {
            // Completed by its id, or thrown away, while it was read.
            let Some(entry) = self.messages.get(id) else { continue };
            let body = entry.body().cloned().or_else(|| read.remove(&id).flatten());
            found.push((id, body.ok_or(MissingBody(id))?));
        }
        if !found.is_empty() {
            self.hand_out(waiter, &receiver, found, at, &mut change);
            return Ok(change);
        }
        if is_cancelled {
            change.wakes.push(Wake::Aborted(waiter));
        } else if let Some(receiver) = self.offer(waiter, receiver, at, &mut change) {
            self.park(waiter, receiver, at, &mut change);
        }
        Ok(change)
    }

    /// The bodies for a wait could not be read: it is over, its messages wait again.
    pub fn unread(&mut self, waiter: WaiterId, at: Moment) -> Change {
        let mut change = Change::default();
        if let Some(reading) = self.waiters.take_reading(waiter) {
            for id in reading.ids {
                self.messages.release(id, at.unix_ms, at.unix_ms);
            }
            self.serve(at, &mut change);
        }
        change
    }

    /// Gives what is ready to those who wait, the first first.
    pub(super) fn serve(&mut self, at: Moment, change: &mut Change) {
        self.messages.mature(at.unix_ms);
        if !self.messages.has_ready() {
            return;
        }
        for waiter in self.waiters.receivers() {
            if !self.messages.has_ready() {
                return;
            }
            let Some(receiver) = self.waiters.unpark(waiter) else { continue };
            if let Some(receiver) = self.offer(waiter, receiver, at, change) {
                self.waiters.park(waiter, receiver);
            }
        }
    }

    /// Gives one wait what is ready for it, or the wait back when there is nothing.
    fn offer(
        &mut self,
        waiter: WaiterId,
        receiver: Receiver,
        at: Moment,
        change: &mut Change,
    ) -> Option<Receiver> {
        let Wanted { names, want } = &receiver.wanted;
        let count = match want {
            Want::Messages { count, .. } => (*count).max(1),
            Want::Notice => 1,
        };
        let ids = self.messages.pick(names, count);
        if ids.is_empty() {
            return Some(receiver);
        }
        if *want == Want::Notice {
            change.wakes.push(Wake::Notice(waiter));
            return None;
        }
        let mut found = Vec::new();
        let mut missing = Vec::new();
        for id in &ids {
            self.messages.reserve(*id);
            match self.messages.get(*id).and_then(|entry| entry.body()) {
                Some(body) => found.push((*id, body.clone())),
                None => missing.push(*id),
            }
        }
        if missing.is_empty() {
            self.hand_out(waiter, &receiver, found, at, change);
        } else {
            self.waiters.read(waiter, Reading { receiver, ids, is_cancelled: false });
            change.wakes.push(Wake::Read { waiter, ids: missing });
        }
        None
    }

    /// Lets a wait for which nothing is there begin, if it may.
    fn park(&mut self, waiter: WaiterId, receiver: Receiver, at: Moment, change: &mut Change) {
        if receiver.deadline.is_some_and(|deadline| deadline <= at.now) {
            change.wakes.push(Wake::TimedOut(waiter));
        } else if self.stopped_at_ms.is_some() {
            change.wakes.push(Wake::Aborted(waiter));
        } else {
            self.waiters.park(waiter, receiver);
        }
    }

    /// Hands out reserved messages.
    fn hand_out(
        &mut self,
        waiter: WaiterId,
        receiver: &Receiver,
        found: Vec<(MessageId, Bytes)>,
        at: Moment,
        change: &mut Change,
    ) {
        let completable = matches!(receiver.wanted.want, Want::Messages { completable: true, .. });
        let mut messages = Vec::with_capacity(found.len());
        for (id, body) in found {
            let Some(entry) = self.messages.get(id) else { continue };
            let delivery = Delivery {
                id,
                name: entry.name.clone(),
                body,
                created_at_ms: entry.created_at_ms,
                deliveries: entry.deliveries.saturating_add(1),
                completable,
            };
            if completable {
                let pause = self.policy(&delivery.name).pause_ms(delivery.deliveries);
                let available_at_ms = match pause {
                    0 => entry.available_at_ms,
                    pause => at.unix_ms.saturating_add(pause),
                };
                self.messages.count_delivery(id, available_at_ms);
                let deliveries = delivery.deliveries;
                change.ops.push(QueueOp::Deliver { id, deliveries, available_at_ms });
            } else {
                self.remove(id, at.unix_ms, change);
                self.tell_completed(id, None, change);
            }
            messages.push(delivery);
        }
        change.wakes.push(Wake::Messages { waiter, messages });
    }
}
