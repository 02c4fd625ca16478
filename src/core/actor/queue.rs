//! The queue of a generation within its machine: what a step of it makes necessary,
//! and who is behind the number of a wait.
//!
//! # Invariants
//!
//! 1. Memory changes only where the rows of the change can still be stored.
//! 2. Whoever sends, completes or is handed something hears of it when the rows of
//!    that change, and of all before it, are durable. That is not the gate's affair,
//!    since nothing of it leaves the actor: so it waits for no state.
//! 3. What a step of the author's side changes is committed with its turn; what a
//!    delivery or a moment changes is committed at once.
//! 4. Every wait is answered: at the latest with the end of the generation.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::Actor;
use super::effect::{Effect, Output};
use super::machine::Machine;
use super::rows::{Readable, Rows};
use crate::core::behavior::{Reply, call_given_up};
use crate::core::config::ActorConfig;
use crate::core::queue::{
    Change, Delivery, Moment, NewMessage, Patience, Queue, QueueError, QueueSettings, Sent,
    WaiterId, Wake, Wanted, unstored,
};
use crate::error::{Error, Result};
use crate::store::{DeadLetter, MessageId, QueueOp, QueueRows, RowOp};
use crate::time::{Duration, Instant};

/// Somebody behind the number of a wait.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// It wants messages; `None` says that nothing came in time.
    Messages(Reply<Option<Vec<Delivery>>>),
    /// It wants to know that a message is there, or that none came in time.
    Notice(Reply<bool>),
    /// It wants the response to a message; `timeout` is what it was ready to wait.
    Completion { reply: Reply<Option<Bytes>>, timeout: Option<Duration> },
}

impl Waiting {
    fn fail(self, error: Error) -> Reply<()> {
        match self {
            Self::Messages(reply) => Reply::new(move |_| reply.send(Err(error))),
            Self::Notice(reply) => Reply::new(move |_| reply.send(Err(error))),
            Self::Completion { reply, .. } => Reply::new(move |_| reply.send(Err(error))),
        }
    }
}

/// The queue and those who wait for it.
#[derive(Debug)]
pub(super) struct QueueDesk {
    queue: Queue,
    waiting: HashMap<WaiterId, Waiting>,
    /// When the queue wants to be ticked.
    due: Option<Instant>,
    /// What the metrics have not been told.
    untold: Option<Flow>,
    /// How often the messages have changed.
    revision: u64,
}

/// What has come and gone.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    sent: u32,
    received: u32,
}

impl QueueDesk {
    pub(super) fn new(config: &ActorConfig) -> Self {
        let (queue, _) = Queue::load(QueueRows::default(), settings(config), 0);
        Self { queue, waiting: HashMap::new(), due: None, untold: None, revision: 0 }
    }

    /// When something is due by itself.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Raised by each step that changes the messages.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Puts a queue that was changed by several steps in the place of the one before them.
    pub(super) fn set_queue(&mut self, queue: Queue) {
        self.queue = queue;
    }
}

fn settings(config: &ActorConfig) -> QueueSettings {
    QueueSettings {
        max_size: config.max_queue_size as usize,
        max_message_len: config.max_queue_message_size as usize,
        policies: Arc::clone(&config.queue_policies),
    }
}

/// Who makes a change (invariant 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Author,
    Itself,
}

impl Machine {
    /// Takes over the queue as it is stored; returns what became of what the last
    /// generation left.
    pub(super) fn install_queue(&mut self, rows: QueueRows, at: Moment) -> Vec<RowOp> {
        if rows == QueueRows::default() {
            return Vec::new();
        }
        let (queue, ops) = Queue::load(rows, settings(self.config()), at.unix_ms);
        self.desk.queue = queue;
        self.desk.untold = Some(Flow::default());
        self.apply_queue(Change::default(), By::Itself, at);
        ops.into_iter().map(RowOp::Queue).collect()
    }

    /// Does what is due in the queue.
    pub(super) fn tick_queue(&mut self, at: Moment) {
        let due = self.desk.made().and_then(QueueDesk::due);
        if due.is_some_and(|due| due <= at.now) && self.takes_rows() {
            let change = self.desk.queue.tick(at);
            self.apply_queue(change, By::Itself, at);
        }
    }

    /// Looks again at when the actor must be woken for its queue.
    pub(super) fn set_queue_alarm(&mut self, at: Moment) {
        let Some(desk) = self.desk.made() else { return };
        let (alarm, in_flight) = (desk.queue.alarm_ms(at.unix_ms), desk.queue.has_in_flight());
        self.alarm.set_queue(alarm);
        if in_flight {
            self.alarm.hand_out(at.unix_ms);
        }
    }

    /// Ends the waits for messages, because the actor stops.
    pub(super) fn stop_queue(&mut self, at: Moment) {
        let change = self.desk.queue.stop(at);
        self.apply_queue(change, By::Itself, at);
    }

    /// Answers everybody who still waits for the queue with `error`.
    pub(super) fn close_queue(&mut self, error: &Error) {
        let Some(desk) = self.desk.made_mut() else { return };
        drop(desk.queue.abandon());
        desk.due = None;
        self.activity.queue_waits = 0;
        for (_, waiting) in desk.waiting.drain() {
            let told = Output::Flushed(waiting.fail(error.clone()), Ok(()));
            self.effects.push_back(Effect::Release(told));
        }
    }

    pub(super) fn apply_queue(&mut self, change: Change, by: By, at: Moment) {
        let Change { ops, wakes } = change;
        // Before the commit, which takes it along.
        self.set_queue_alarm(at);
        if !ops.is_empty() {
            let flow = self.desk.untold.get_or_insert_default();
            let is_sent = |op: &&QueueOp| matches!(op, QueueOp::Send { .. });
            flow.sent += u32::try_from(ops.iter().filter(is_sent).count()).unwrap_or(u32::MAX);
            let ops = ops.into_iter().map(RowOp::Queue).collect();
            let rows = Rows { ops, in_memory: true };
            match by {
                By::Author => self.rows.add(rows),
                By::Itself => self.write_own_rows(rows),
            }
        }
        for wake in wakes {
            self.wake(wake);
        }
        self.desk.due = self.desk.queue.next_due(at);
        self.activity.queue_waits = self.desk.queue.active_waits();
    }

    fn wake(&mut self, wake: Wake) {
        match wake {
            Wake::Read { waiter, ids } => {
                self.effects.push_back(Effect::ReadMessages { waiter, ids });
            }
            Wake::Messages { waiter, messages } => {
                let flow = self.desk.untold.get_or_insert_default();
                flow.received += u32::try_from(messages.len()).unwrap_or(u32::MAX);
                if let Some(Waiting::Messages(reply)) = self.desk.waiting.remove(&waiter) {
                    self.tell_durable(reply, Some(messages));
                }
            }
            Wake::Completed { waiter, response } => {
                let waiting = self.desk.waiting.remove(&waiter);
                if let Some(Waiting::Completion { reply, .. }) = waiting {
                    self.tell_durable(reply, response);
                }
            }
            Wake::Failed { waiter, error } => {
                if let Some(waiting) = self.desk.waiting.remove(&waiter) {
                    self.when_rows_are_durable(waiting.fail(error.into()));
                }
            }
            Wake::Notice(waiter) => {
                if let Some(Waiting::Notice(reply)) = self.desk.waiting.remove(&waiter) {
                    self.tell(reply, Ok(true));
                }
            }
            Wake::TimedOut(waiter) => match self.desk.waiting.remove(&waiter) {
                Some(Waiting::Messages(reply)) => self.tell(reply, Ok(None)),
                Some(Waiting::Notice(reply)) => self.tell(reply, Ok(false)),
                Some(Waiting::Completion { reply, timeout }) => {
                    self.tell(reply, Err(timed_out(timeout.unwrap_or_default())));
                }
                None => {}
            },
            Wake::Aborted(waiter) => {
                if let Some(waiting) = self.desk.waiting.remove(&waiter) {
                    self.tell(waiting.fail(call_given_up()), Ok(()));
                }
            }
        }
    }

    /// Answers after the unlock.
    fn tell<T: Send + 'static>(&mut self, reply: Reply<T>, result: Result<T>) {
        let told = Reply::new(move |_| reply.send(result));
        self.effects.push_back(Effect::Release(Output::Flushed(told, Ok(()))));
    }

    /// Answers with `value` when all rows so far are durable.
    fn tell_durable<T: Send + 'static>(&mut self, reply: Reply<T>, value: T) {
        self.when_rows_are_durable(Reply::new(move |end: Result<()>| {
            reply.send(end.map(|()| value));
        }));
    }
}

/// `queue/timed_out` after so long.
pub(crate) fn timed_out(timeout: Duration) -> Error {
    let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    QueueError::TimedOut { timeout_ms }.into()
}

impl Actor {
    /// Tells the metrics what has come and gone. Within the step, so that they follow
    /// the counts in order.
    pub(super) fn show_queue(&self, machine: &mut Machine) {
        let Some(desk) = machine.desk.made_mut() else { return };
        if let Some(Flow { sent, received }) = desk.untold.take() {
            self.metrics.queue_moved(sent, received, desk.queue.len());
            desk.revision += 1;
        }
    }

    pub(super) fn moment(&self, now: Instant) -> Moment {
        Moment { now, unix_ms: self.runtime.clock().unix_ms() }
    }

    /// Reads the queue.
    pub(crate) fn with_queue<R>(&self, read: impl FnOnce(&Queue) -> R) -> R {
        read(self.machine.lock().desk.queue())
    }

    /// Looks at the queue for what a transaction will change, which may keep something in
    /// it but changes nothing that is stored.
    pub(crate) fn plan_queue<T>(
        self: &Arc<Self>,
        plan: impl FnOnce(&mut Queue, Moment) -> Result<T, QueueError>,
    ) -> Result<T> {
        self.step(|machine, now| {
            let at = self.moment(now);
            Ok(plan(&mut machine.desk.queue, at)?)
        })
    }

    /// Changes the queue by a step of the author's side, which ends its turn with a
    /// commit. `reply` hears when that is durable.
    pub(crate) fn change_queue<T: Send + 'static>(
        self: &Arc<Self>,
        reply: Reply<T>,
        change: impl FnOnce(&mut Queue, Moment) -> Result<(T, Change), QueueError>,
    ) {
        self.step(|machine, now| {
            if let Some(error) = self.no_rows(machine) {
                return machine.tell(reply, Err(error));
            }
            let at = self.moment(now);
            match change(&mut machine.desk.queue, at) {
                Ok((value, change)) => {
                    machine.apply_queue(change, By::Author, at);
                    machine.tell_durable(reply, value);
                }
                Err(error) => machine.tell(reply, Err(error.into())),
            }
        });
    }

    /// Begins a wait for messages. `None` when it is over already.
    pub(crate) fn receive(
        self: &Arc<Self>,
        wanted: Wanted,
        patience: Patience,
        waiting: Waiting,
    ) -> Option<WaiterId> {
        self.step(|machine, now| {
            if let Some(error) = self.no_rows(machine) {
                machine.tell(waiting.fail(error), Ok(()));
                return None;
            }
            let at = self.moment(now);
            let (waiter, change) = machine.desk.queue.receive(wanted, patience, at);
            machine.desk.waiting.insert(waiter, waiting);
            machine.apply_queue(change, By::Itself, at);
            machine.desk.waiting.contains_key(&waiter).then_some(waiter)
        })
    }

    /// Sends a message and begins a wait for its completion. `None` when it is over
    /// already.
    pub(crate) fn send_and_wait(
        self: &Arc<Self>,
        message: NewMessage,
        patience: Patience,
        reply: Reply<Option<Bytes>>,
    ) -> Option<WaiterId> {
        self.step(|machine, now| {
            if let Some(error) = self.no_rows(machine) {
                machine.tell(reply, Err(error));
                return None;
            }
            let at = self.moment(now);
            match machine.desk.queue.send_and_wait(message, patience, at) {
                Ok((Sent { .. }, waiter, change)) => {
                    let timeout = patience.timeout;
                    machine.desk.waiting.insert(waiter, Waiting::Completion { reply, timeout });
                    machine.apply_queue(change, By::Author, at);
                    machine.desk.waiting.contains_key(&waiter).then_some(waiter)
                }
                Err(error) => {
                    machine.tell(reply, Err(error.into()));
                    None
                }
            }
        })
    }

    /// Ends a wait whose caller gave up. One to which messages are on their way goes on.
    pub(crate) fn cancel_wait(self: &Arc<Self>, waiter: WaiterId) {
        self.step(|machine, now| {
            let change = machine.desk.queue.cancel(waiter);
            machine.apply_queue(change, By::Itself, self.moment(now));
        });
    }

    /// Reads the list of dead messages.
    pub(crate) fn dead_letters(
        self: &Arc<Self>,
        after: MessageId,
        limit: u32,
    ) -> BoxFuture<'static, Result<Vec<DeadLetter>>> {
        let rows = self.readable_rows();
        async move {
            match rows.await? {
                Readable::Store(store) => Ok(store.dead_letters(after, limit).await?),
                Readable::Unstored(ops) => Ok(unstored::dead(&ops, after, limit)),
            }
        }
        .boxed()
    }

    /// Reads the bodies of messages for a wait, and hands them out.
    pub(super) fn read_messages(self: &Arc<Self>, waiter: WaiterId, ids: Vec<MessageId>) {
        let actor = Arc::clone(self);
        let rows = self.readable_rows();
        let panicked = Arc::clone(self);
        self.runtime.spawner().spawn_guarded(
            "queue_read",
            async move {
                let bodies = match rows.await {
                    Ok(Readable::Store(store)) => {
                        store.message_bodies(ids.clone()).await.map_err(Error::from)
                    }
                    Ok(Readable::Unstored(ops)) => Ok(unstored::bodies(&ops, &ids)),
                    Err(error) => Err(error),
                };
                actor.messages_read(waiter, bodies.map(|found| ids.into_iter().zip(found)));
            },
            move |text| {
                let error = format_args!("a read of the queue panicked: {text}");
                panicked.break_generation(Error::internal(error));
            },
        );
    }

    fn messages_read(
        self: &Arc<Self>,
        waiter: WaiterId,
        read: Result<impl Iterator<Item = (MessageId, Option<Bytes>)>>,
    ) {
        let broken = self.step(|machine, now| {
            if machine.is_over() || !machine.desk.waiting.contains_key(&waiter) {
                return None;
            }
            let at = self.moment(now);
            let read = match self.no_rows(machine) {
                Some(error) => Err(error),
                None => read,
            };
            match read.map(|read| machine.desk.queue.supply(waiter, read.collect(), at)) {
                Ok(Ok(change)) => machine.apply_queue(change, By::Itself, at),
                Ok(Err(missing)) => return Some(Error::internal(missing)),
                Err(error) => {
                    let change = machine.desk.queue.unread(waiter, at);
                    if let Some(waiting) = machine.desk.waiting.remove(&waiter) {
                        machine.tell(waiting.fail(error), Ok(()));
                    }
                    machine.apply_queue(change, By::Itself, at);
                }
            }
            None
        });
        if let Some(error) = broken {
            tracing::error!(actor_id = %self.identity.id, %error, "the queue and the store disagree");
            self.break_generation(error);
        }
    }
}
