//! The handle on an actor's queue, and on a message that was received from it.
//!
//! # Invariants
//!
//! 1. A call begins when it is made, not when its future is polled. A wait whose future
//!    is dropped ends, unless messages are on their way to it.
//! 2. A future that changes something resolves when the change is durable; a message is
//!    handed out when its delivery is.
//! 3. A message ends once: by [`ReceivedMessage::complete`] or by
//!    [`ReceivedMessage::release`].
//! 4. Within a transaction a send and an end change what the transaction will change, and
//!    are answered at once.

mod told;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::actor::Actor;
use super::actor::queue::{Waiting, timed_out};
use super::behavior::Reply;
use super::queue::{
    Change, Delivery, Moment, Names, NewMessage, Patience, Queue, QueueError, Sent, WaiterId, Want,
    Wanted,
};
use super::transaction::StateTransaction;
use crate::error::Result;
use crate::store::{DeadLetter, MessageId};
use crate::time::Duration;

/// A handle on the queue of one generation. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ActorQueue(Arc<Actor>, Option<StateTransaction>);

/// Which messages are received, and how.
#[derive(Clone, Debug)]
pub struct Receive {
    /// Their names.
    pub names: Names,
    /// How many at most; 0 counts as 1.
    pub count: usize,
    /// Whether they stay until they are completed.
    pub completable: bool,
    /// When the wait ends.
    pub until: Until,
}

/// What ends a wait before there is anything. The actor's stop does, too.
#[derive(Clone, Debug, Default)]
pub struct Until {
    /// Its length; `None` for ever, zero for one look.
    pub timeout: Option<Duration>,
    /// Whoever waits gives up.
    pub signal: Option<CancellationToken>,
}

impl Until {
    fn patience(&self) -> Patience {
        let is_cancelled = self.signal.as_ref().is_some_and(CancellationToken::is_cancelled);
        Patience { timeout: self.timeout, is_cancelled }
    }
}

impl ActorQueue {
    pub(super) fn new(actor: Arc<Actor>) -> Self {
        Self(actor, None)
    }

    /// A handle through which a transaction sends, completes and gives back.
    pub(super) fn within(actor: Arc<Actor>, transaction: StateTransaction) -> Self {
        Self(actor, Some(transaction))
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// [`QueueError`] when it is refused, `actor/stopping` or `storage/*` when it could
    /// not be stored.
    pub fn send(&self, message: NewMessage) -> BoxFuture<'static, Result<Sent>> {
        let (reply, outcome) = Reply::channel();
        self.send_told(message, reply);
        outcome.boxed()
    }

    /// Sends a message and waits for the response of whoever completes it. The message
    /// stays when the wait ends before. The actor's stop does not end the wait, the end
    /// of the generation does.
    ///
    /// # Errors
    ///
    /// Those of [`ActorQueue::send`]; `queue/timed_out`, `actor/aborted`; `queue/dead` when
    /// the message was given up, `queue/completion_waiter_dropped` after a reset.
    pub fn send_and_wait(
        &self,
        message: NewMessage,
        until: Until,
    ) -> BoxFuture<'static, Result<Option<Bytes>>> {
        let (reply, outcome) = Reply::channel();
        let waiter = self.0.send_and_wait(message, until.patience(), reply);
        self.wait(waiter, until.signal, outcome)
    }

    /// Receives messages; none when the time is over.
    ///
    /// # Errors
    ///
    /// `actor/aborted` when the signal was given or the actor stops, `actor/stopping` or
    /// `storage/*` when the delivery could not be stored.
    pub fn receive(&self, receive: Receive) -> BoxFuture<'static, Result<Vec<ReceivedMessage>>> {
        let Receive { names, count, completable, until } = receive;
        let wanted = Wanted { names, want: Want::Messages { count, completable } };
        let (reply, outcome) = Reply::channel();
        let waiter = self.0.receive(wanted, until.patience(), Waiting::Messages(reply));
        let received = self.wait(waiter, until.signal, outcome);
        let actor = Arc::clone(&self.0);
        async move {
            let deliveries = received.await?.unwrap_or_default();
            let message = |delivery| ReceivedMessage::new(Arc::clone(&actor), None, delivery);
            Ok(deliveries.into_iter().map(message).collect())
        }
        .boxed()
    }

    /// Receives one message.
    ///
    /// # Errors
    ///
    /// Those of [`ActorQueue::receive`], and `queue/timed_out`.
    pub fn wait_for_names(&self, receive: Receive) -> BoxFuture<'static, Result<ReceivedMessage>> {
        let timeout = receive.until.timeout.unwrap_or_default();
        let received = self.receive(Receive { count: 1, ..receive });
        async move { received.await?.pop().ok_or_else(|| timed_out(timeout)) }.boxed()
    }

    /// Waits until a message of these names is there, and takes nothing.
    ///
    /// # Errors
    ///
    /// `queue/timed_out`, `actor/aborted`, `actor/stopping`.
    pub fn wait_for_names_available(
        &self,
        names: Names,
        until: Until,
    ) -> BoxFuture<'static, Result<()>> {
        let timeout = until.timeout.unwrap_or_default();
        let (reply, outcome) = Reply::channel();
        let wanted = Wanted { names, want: Want::Notice };
        let waiter = self.0.receive(wanted, until.patience(), Waiting::Notice(reply));
        let noticed = self.wait(waiter, until.signal, outcome);
        async move { if noticed.await? { Ok(()) } else { Err(timed_out(timeout)) } }.boxed()
    }

    /// Completes a message by its id and name, whoever has it, also after a restart;
    /// says whether it was there.
    ///
    /// # Errors
    ///
    /// `queue/message_identity_mismatch` when it has another name, `actor/stopping` or
    /// `storage/*` when that could not be stored.
    pub fn complete_by_id(
        &self,
        id: MessageId,
        expected_name: String,
        response: Option<Bytes>,
    ) -> BoxFuture<'static, Result<bool>> {
        if let Some(transaction) = &self.1 {
            let done = transaction.complete_by_id(id, expected_name, response);
            return std::future::ready(done).boxed();
        }
        self.change(move |queue, at| queue.complete_by_id(id, &expected_name, response, at))
    }

    /// Throws away everything that waits, and the keys of senders. Dead messages stay.
    ///
    /// # Errors
    ///
    /// `actor/stopping` or `storage/*` when that could not be stored.
    pub fn reset(&self) -> BoxFuture<'static, Result<()>> {
        self.change(|queue, _| Ok(((), queue.reset())))
    }

    /// At most `limit` dead messages with an id behind `after`, by id.
    ///
    /// # Errors
    ///
    /// `storage/*`, or why the generation ended.
    pub fn dead_letters(
        &self,
        after: MessageId,
        limit: u32,
    ) -> BoxFuture<'static, Result<Vec<DeadLetter>>> {
        self.0.dead_letters(after, limit)
    }

    /// Lets a dead message wait again; says whether it was there.
    ///
    /// # Errors
    ///
    /// `queue/full`, `actor/stopping` or `storage/*`: it stays dead then.
    pub fn revive(&self, id: MessageId) -> BoxFuture<'static, Result<bool>> {
        self.change(move |queue, at| queue.revive(id, at))
    }

    /// Throws away a dead message; says whether it was there.
    ///
    /// # Errors
    ///
    /// `actor/stopping` or `storage/*` when that could not be stored.
    pub fn delete_dead(&self, id: MessageId) -> BoxFuture<'static, Result<bool>> {
        self.change(move |queue, _| Ok(queue.delete_dead(id)))
    }

    /// How many messages wait, those included that consumers have.
    pub fn len(&self) -> usize {
        self.0.with_queue(Queue::len)
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many messages may wait.
    pub fn max_size(&self) -> usize {
        self.0.with_queue(Queue::max_size)
    }

    /// Id, name and time of sending of each message that waits, by id. The time is in
    /// milliseconds since the Unix epoch.
    pub fn inspect(&self) -> Vec<(MessageId, Arc<str>, i64)> {
        self.0.with_queue(|queue| {
            queue.inspect().map(|(id, name, at)| (id, Arc::clone(name), at)).collect()
        })
    }

    fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Queue, Moment) -> Result<(T, Change), QueueError>,
    ) -> BoxFuture<'static, Result<T>> {
        let (reply, outcome) = Reply::channel();
        self.0.change_queue(reply, change);
        outcome.boxed()
    }

    /// Waits for the outcome of a wait, or for its signal.
    fn wait<T: Send + 'static>(
        &self,
        waiter: Option<WaiterId>,
        signal: Option<CancellationToken>,
        outcome: impl Future<Output = Result<T>> + Send + 'static,
    ) -> BoxFuture<'static, Result<T>> {
        let Some(waiter) = waiter else { return outcome.boxed() };
        let wait = Wait { actor: Arc::clone(&self.0), waiter, is_over: false };
        async move {
            // Dropped with the future (invariant 1).
            let mut wait = wait;
            let mut outcome = std::pin::pin!(outcome);
            if let Some(signal) = signal {
                tokio::select! {
                    biased;
                    outcome = &mut outcome => return wait.over(outcome),
                    () = signal.cancelled() => wait.actor.cancel_wait(wait.waiter),
                }
            }
            let outcome = outcome.await;
            wait.over(outcome)
        }
        .boxed()
    }
}

/// A wait that is given up when it is dropped.
struct Wait {
    actor: Arc<Actor>,
    waiter: WaiterId,
    is_over: bool,
}

impl Wait {
    /// Notes that there is an outcome.
    fn over<T>(&mut self, outcome: T) -> T {
        self.is_over = true;
        outcome
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if !self.is_over {
            self.actor.cancel_wait(self.waiter);
        }
    }
}

/// A message that was received.
#[derive(Debug)]
pub struct ReceivedMessage {
    actor: Arc<Actor>,
    /// What it ends with, if not at once.
    within: Option<StateTransaction>,
    delivery: Delivery,
    /// Set by the call that ends it (invariant 3), cleared when that one fails.
    is_over: Arc<AtomicBool>,
}

impl ReceivedMessage {
    fn new(actor: Arc<Actor>, within: Option<StateTransaction>, delivery: Delivery) -> Self {
        Self { actor, within, delivery, is_over: Arc::default() }
    }

    /// What was received.
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// Completes it, with a response for whoever waits for one.
    ///
    /// # Errors
    ///
    /// `queue/complete_not_configured` unless it was received to be completed,
    /// `queue/already_completed` when it is over, `actor/stopping` or `storage/*` when that
    /// could not be stored.
    pub fn complete(&self, response: Option<Bytes>) -> BoxFuture<'static, Result<()>> {
        let (reply, outcome) = Reply::channel();
        self.complete_told(response, reply);
        outcome.boxed()
    }

    /// Gives it back, so that it waits again, for `delay` or as the policy of its name
    /// says; the last delivery that the policy allows gives it up.
    ///
    /// # Errors
    ///
    /// Those of [`ReceivedMessage::complete`].
    pub fn release(
        &self,
        delay: Option<Duration>,
        error: Option<String>,
    ) -> BoxFuture<'static, Result<()>> {
        let (reply, outcome) = Reply::channel();
        self.release_told(delay, error, reply);
        outcome.boxed()
    }
}
