//! Who waits for the queue, by number. The caller knows who is behind a number.
//!
//! # Invariants
//!
//! 1. A number is given to one wait and never again, in the order in which they began.
//! 2. A wait is in one of `receivers`, `reading` and `completions`, and leaves it with
//!    the wake-up that ends it.
//! 3. `deadlines` holds exactly the deadlines of `receivers` and `completions`: every
//!    step of the actor asks for the first one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::index::Names;
use crate::store::MessageId;
use crate::time::Instant;

/// The number of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct WaiterId(pub u64);

/// What a wait is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Messages of these names.
    pub names: Names,
    /// What is to happen to them.
    pub want: Want,
}

/// What is to happen to messages that somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// They are handed out.
    Messages {
        /// How many at most; 0 counts as 1.
        count: usize,
        /// Whether they stay until they are completed.
        completable: bool,
    },
    /// Their presence is told, and nothing else.
    Notice,
}

/// Somebody who waits for messages.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub(super) wanted: Wanted,
    pub(super) deadline: Option<Instant>,
}

/// Somebody whose messages are being read.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) receiver: Receiver,
    pub(super) ids: Vec<MessageId>,
    /// Whether its caller gave up meanwhile: it waits for nothing else.
    pub(super) is_cancelled: bool,
}

/// Somebody who waits for the completion of a message.
#[derive(Clone, Debug)]
struct Completion {
    message: MessageId,
    deadline: Option<Instant>,
}

/// Everybody who waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiters {
    last: u64,
    receivers: BTreeMap<WaiterId, Receiver>,
    reading: BTreeMap<WaiterId, Reading>,
    completions: BTreeMap<WaiterId, Completion>,
    by_message: HashMap<MessageId, Vec<WaiterId>>,
    deadlines: BTreeSet<(Instant, WaiterId)>,
}

impl Waiters {
    /// The number of the next wait.
    pub(super) fn number(&mut self) -> WaiterId {
        self.last += 1;
        WaiterId(self.last)
    }

    /// How many wait for messages.
    pub(super) fn receivers_len(&self) -> usize {
        self.receivers.len()
    }

    /// Who waits for messages, the first first.
    pub(super) fn receivers(&self) -> Vec<WaiterId> {
        self.receivers.keys().copied().collect()
    }

    /// Begins a wait for messages, or goes on with it.
    pub(super) fn park(&mut self, waiter: WaiterId, receiver: Receiver) {
        self.deadlines.extend(receiver.deadline.map(|deadline| (deadline, waiter)));
        self.receivers.insert(waiter, receiver);
    }

    /// Ends a wait for messages.
    pub(super) fn unpark(&mut self, waiter: WaiterId) -> Option<Receiver> {
        let receiver = self.receivers.remove(&waiter)?;
        self.drop_deadline(waiter, receiver.deadline);
        Some(receiver)
    }

    /// Ends all waits for messages.
    pub(super) fn unpark_all(&mut self) -> Vec<WaiterId> {
        let receivers = std::mem::take(&mut self.receivers);
        for (waiter, receiver) in &receivers {
            self.drop_deadline(*waiter, receiver.deadline);
        }
        receivers.into_keys().collect()
    }

    /// Notes that messages are being read for a wait.
    pub(super) fn read(&mut self, waiter: WaiterId, reading: Reading) {
        self.reading.insert(waiter, reading);
    }

    /// The messages of a wait have been read, or will not be.
    pub(super) fn take_reading(&mut self, waiter: WaiterId) -> Option<Reading> {
        self.reading.remove(&waiter)
    }

    /// Begins a wait for the completion of a message.
    pub(super) fn wait_for_completion(
        &mut self,
        waiter: WaiterId,
        message: MessageId,
        deadline: Option<Instant>,
    ) {
        self.deadlines.extend(deadline.map(|deadline| (deadline, waiter)));
        self.completions.insert(waiter, Completion { message, deadline });
        self.by_message.entry(message).or_default().push(waiter);
    }

    /// Ends all waits for the completion of a message.
    pub(super) fn take_completions(&mut self, message: MessageId) -> Vec<WaiterId> {
        let waiters = self.by_message.remove(&message).unwrap_or_default();
        for waiter in &waiters {
            if let Some(completion) = self.completions.remove(waiter) {
                self.drop_deadline(*waiter, completion.deadline);
            }
        }
        waiters
    }

    /// Ends a wait, unless its messages are on their way; says whether it did.
    pub(super) fn cancel(&mut self, waiter: WaiterId) -> bool {
        if self.unpark(waiter).is_some() {
            return true;
        }
        if let Some(reading) = self.reading.get_mut(&waiter) {
            reading.is_cancelled = true;
        }
        let Some(completion) = self.completions.remove(&waiter) else { return false };
        self.drop_deadline(waiter, completion.deadline);
        if let Some(waiters) = self.by_message.get_mut(&completion.message) {
            waiters.retain(|other| *other != waiter);
            if waiters.is_empty() {
                self.by_message.remove(&completion.message);
            }
        }
        true
    }

    /// Ends the waits whose deadline has come, the earliest first.
    pub(super) fn take_overdue(&mut self, now: Instant) -> Vec<WaiterId> {
        let due = self.deadlines.iter().take_while(|(deadline, _)| *deadline <= now);
        let overdue: Vec<_> = due.map(|(_, waiter)| *waiter).collect();
        for waiter in &overdue {
            self.cancel(*waiter);
        }
        overdue
    }

    /// The first deadline.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Ends all waits without a word.
    pub(super) fn take_all(&mut self) -> Vec<WaiterId> {
        let receivers = std::mem::take(&mut self.receivers).into_keys();
        let reading = std::mem::take(&mut self.reading).into_keys();
        let completions = std::mem::take(&mut self.completions).into_keys();
        self.by_message.clear();
        self.deadlines.clear();
        let mut all: Vec<_> = receivers.chain(reading).chain(completions).collect();
        all.sort_unstable();
        all
    }

    fn drop_deadline(&mut self, waiter: WaiterId, deadline: Option<Instant>) {
        if let Some(deadline) = deadline {
            self.deadlines.remove(&(deadline, waiter));
        }
    }
}
