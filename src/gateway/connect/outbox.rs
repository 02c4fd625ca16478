//! What a client is to be told, on its way from whoever makes it to the task of its socket.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::task::AtomicWaker;
use parking_lot::Mutex;

use crate::core::connections::{ConnId, Event};
use crate::error::{ActorSpecifier, Error, Result};
use crate::host::embedded::sessions::{SessionClient, SessionEnd};

/// How much may wait for a client that does not read, in bytes: 8 MiB. What is on its way
/// into the socket comes on top of it, at most as much again. A client that is behind by
/// more is cut off.
pub(super) const MAX_BEHIND: usize = 8 * 1024 * 1024;

/// What one costs beside its bytes.
const OVERHEAD: usize = 128;

/// Something that a client is to be told.
#[derive(Debug)]
pub(super) enum Out {
    /// It is accepted.
    Init(ConnId, ActorSpecifier),
    /// An event.
    Event(Arc<Event>),
    /// What a call came to.
    Answer(u64, Result<Bytes>),
    /// A subscription failed, which ends it.
    Failed(Error),
    /// It is over.
    End(SessionEnd),
}

impl Out {
    fn weight(&self) -> usize {
        OVERHEAD
            + match self {
                Self::Event(event) => event.args().len(),
                Self::Answer(_, Ok(output)) => output.len(),
                Self::Init(..) | Self::Answer(..) | Self::Failed(_) | Self::End(_) => 0,
            }
    }
}

/// The way. One lock, a few lines; nothing is called while it is held.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: Mutex<Waiting>,
    task: AtomicWaker,
}

#[derive(Debug, Default)]
struct Waiting {
    items: Vec<Out>,
    bytes: usize,
    /// More than may wait had to: nothing is taken in any more.
    overflowed: bool,
}

/// What was there to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Something.
    Some,
    /// The client is too far behind.
    Overflow,
}

impl Outbox {
    pub(super) fn push(&self, item: Out) {
        let weight = item.weight();
        let dropped = {
            let mut waiting = self.waiting.lock();
            // One alone may be of any size: the limit of outgoing messages is for it.
            if waiting.overflowed {
                (vec![item], false)
            } else if waiting.bytes + weight > MAX_BEHIND && !waiting.items.is_empty() {
                waiting.overflowed = true;
                let mut dropped = std::mem::take(&mut waiting.items);
                dropped.push(item);
                (dropped, true)
            } else {
                waiting.bytes += weight;
                waiting.items.push(item);
                // Whoever found it not empty was woken before.
                (Vec::new(), waiting.items.len() == 1)
            }
        };
        let (dropped, wakes) = dropped;
        drop(dropped);
        if wakes {
            self.task.wake();
        }
    }

    /// Moves what waits into `batch`, which is empty; pending when there is nothing.
    pub(super) fn poll_take(&self, cx: &mut Context<'_>, batch: &mut Vec<Out>) -> Poll<Taken> {
        // Before the look, so that what comes behind it wakes.
        self.task.register(cx.waker());
        let mut waiting = self.waiting.lock();
        if waiting.overflowed {
            return Poll::Ready(Taken::Overflow);
        }
        if waiting.items.is_empty() {
            return Poll::Pending;
        }
        std::mem::swap(&mut waiting.items, batch);
        waiting.bytes = 0;
        Poll::Ready(Taken::Some)
    }

    /// Ready once the client is too far behind, for whoever takes nothing at the moment.
    pub(super) fn poll_overflow(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.task.register(cx.waker());
        if self.waiting.lock().overflowed { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Gives back what a burst needed: most clients are quiet.
    pub(super) fn shrink(&self) {
        let mut waiting = self.waiting.lock();
        if waiting.items.is_empty() && waiting.items.capacity() > 0 {
            waiting.items = Vec::new();
        }
    }
}

impl SessionClient for Outbox {
    fn accepted(&self, connection: &ConnId, actor: &ActorSpecifier) {
        self.push(Out::Init(connection.clone(), actor.clone()));
    }

    fn event(&self, event: &Arc<Event>) {
        self.push(Out::Event(Arc::clone(event)));
    }

    fn ended(&self, end: SessionEnd) {
        self.push(Out::End(end));
    }
}

#[cfg(test)]
mod tests {
    use tokio_test::{assert_pending, assert_ready_eq, task};

    use super::*;

    fn event(len: usize) -> Arc<Event> {
        Arc::new(Event::new("e", vec![0; len].into()))
    }

    #[test]
    fn whoever_waits_is_woken_once_for_all_that_is_there() {
        let outbox = Outbox::default();
        let mut batch = Vec::new();
        let mut taking = task::spawn(std::future::poll_fn(|cx| outbox.poll_take(cx, &mut batch)));
        assert_pending!(taking.poll());

        outbox.event(&event(1));
        assert!(taking.is_woken());
        outbox.event(&event(1));
        assert_ready_eq!(taking.poll(), Taken::Some);

        drop(taking);
        assert_eq!(batch.len(), 2);
    }

    #[test]
    fn a_client_that_is_too_far_behind_is_told_nothing_more_and_nothing_is_kept_for_it() {
        let outbox = Outbox::default();
        let shared = event(MAX_BEHIND / 2);
        for _ in 0..3 {
            outbox.event(&shared);
        }
        outbox.ended(SessionEnd::Refused(Error::internal("x")));

        assert_eq!(Arc::strong_count(&shared), 1);
        let mut batch = Vec::new();
        let mut taking = task::spawn(std::future::poll_fn(|cx| outbox.poll_take(cx, &mut batch)));
        assert_ready_eq!(taking.poll(), Taken::Overflow);
    }
}
