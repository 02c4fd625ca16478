//! The calls of a queue for whoever is told their outcome instead of waiting for it in a
//! future: nothing is spawned or polled for them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::{ActorQueue, ReceivedMessage, Waiting};
use crate::core::behavior::Reply;
use crate::core::queue::{
    Change, Delivery, Moment, Names, NewMessage, Patience, Queue, QueueError, Sent, Want, Wanted,
};
use crate::error;
use crate::time::Duration;

impl ActorQueue {
    /// [`ActorQueue::send`].
    pub fn send_told(&self, message: NewMessage, reply: Reply<Sent>) {
        match &self.1 {
            Some(transaction) => reply.send(transaction.send(message)),
            None => self.0.change_queue(reply, |queue, at| queue.send(message, at)),
        }
    }

    /// [`ActorQueue::receive`] without a signal; at most `count` messages, 0 counts as 1.
    pub fn receive_told(
        &self,
        names: Names,
        count: usize,
        completable: bool,
        timeout: Option<Duration>,
        reply: Reply<Vec<Delivery>>,
    ) {
        let wanted = Wanted { names, want: Want::Messages { count, completable } };
        let patience = Patience { timeout, is_cancelled: false };
        let found = Reply::new(move |found: error::Result<Option<Vec<Delivery>>>| {
            reply.send(found.map(Option::unwrap_or_default));
        });
        self.0.receive(wanted, patience, Waiting::Messages(found));
    }

    /// A message that was received through this queue, of what was told of it: for
    /// whoever kept that and not the message.
    pub fn received(&self, delivery: Delivery) -> ReceivedMessage {
        ReceivedMessage::new(Arc::clone(&self.0), self.1.clone(), delivery)
    }
}

impl ReceivedMessage {
    /// [`ReceivedMessage::complete`].
    pub fn complete_told(&self, response: Option<Bytes>, reply: Reply<()>) {
        let Delivery { id, deliveries, .. } = self.delivery;
        self.end_told(reply, move |queue, at| queue.complete(id, deliveries, response, at));
    }

    /// [`ReceivedMessage::release`].
    pub fn release_told(&self, delay: Option<Duration>, error: Option<String>, reply: Reply<()>) {
        let Delivery { id, deliveries, .. } = self.delivery;
        self.end_told(reply, move |queue, at| {
            queue.release(id, deliveries, delay, error.as_deref(), at)
        });
    }

    fn end_told(
        &self,
        reply: Reply<()>,
        end: impl FnOnce(&mut Queue, Moment) -> Result<Change, QueueError> + Send + 'static,
    ) {
        let refusal = if !self.delivery.completable {
            Some(QueueError::CompleteNotConfigured { name: self.delivery.name.to_string() })
        } else if self.is_over.swap(true, Ordering::Relaxed) {
            Some(QueueError::AlreadyCompleted)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            return reply.send(Err(refusal.into()));
        }
        let is_over = Arc::clone(&self.is_over);
        let ended = Reply::new(move |ended: error::Result<()>| {
            if ended.is_err() {
                is_over.store(false, Ordering::Relaxed);
            }
            reply.send(ended);
        });
        if let Some(transaction) = &self.within {
            let Delivery { id, deliveries, .. } = self.delivery;
            return ended.send(transaction.end_delivery(id, deliveries, end));
        }
        self.actor.change_queue(ended, |queue, at| Ok(((), end(queue, at)?)));
    }
}
