//! What a client is to be told, on its way from whoever makes it to the task of its socket.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use parking_lot::Mutex;

use super::wire::Wire;

/// How much may wait for a client that does not read, in bytes: 8 MiB. What is on its way
/// into the socket comes on top of it, at most as much again. A client that is behind by
/// more is cut off.
pub(super) const MAX_BEHIND: usize = 8 * 1024 * 1024;

/// What one costs beside its bytes.
const OVERHEAD: usize = 128;

/// Something that a client is to be told.
pub(super) trait Weighty {
    /// What it counts of [`MAX_BEHIND`], in bytes.
    fn weight(&self) -> usize;
}

/// The way. One lock, a few lines; nothing is called while it is held.
#[derive(Debug)]
pub(super) struct Outbox<T> {
    waiting: Mutex<Waiting<T>>,
    task: AtomicWaker,
}

#[derive(Debug)]
struct Waiting<T> {
    items: Vec<T>,
    bytes: usize,
    /// More than may wait had to: nothing is taken in any more.
    overflowed: bool,
    /// The task has taken something, and not looked again.
    busy: bool,
    /// Where something goes while nothing is before it.
    wire: Option<Arc<Wire>>,
}

/// What was there to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Something.
    Some,
    /// The client is too far behind.
    Overflow,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        let waiting = Waiting {
            items: Vec::new(),
            bytes: 0,
            overflowed: false,
            // Until there is a task.
            busy: true,
            wire: None,
        };
        Self { waiting: Mutex::new(waiting), task: AtomicWaker::new() }
    }
}

impl<T: Weighty> Outbox<T> {
    pub(super) fn push(&self, item: T) {
        let weight = OVERHEAD + item.weight();
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

    /// Has the task look again.
    pub(super) fn nudge(&self) {
        self.task.wake();
    }

    /// Takes nothing in any more, and drops what waits: the end of the socket comes next.
    pub(super) fn close(&self) {
        let dropped = {
            let mut waiting = self.waiting.lock();
            waiting.overflowed = true;
            (std::mem::take(&mut waiting.items), waiting.wire.take())
        };
        drop(dropped);
    }

    /// Lets messages go past the task from now on.
    pub(super) fn connect(&self, wire: &Arc<Wire>) {
        self.waiting.lock().wire = Some(Arc::clone(wire));
    }

    /// Sends a message at once, if nothing is before it. `false`, and nothing is done, when
    /// it has to wait for its turn.
    pub(super) fn try_send(&self, message: &[u8], is_text: bool) -> bool {
        let has_rest = {
            let waiting = self.waiting.lock();
            let Some(wire) = &waiting.wire else { return false };
            if waiting.busy || waiting.overflowed || !waiting.items.is_empty() || wire.has_rest() {
                return false;
            }
            // Under the lock, so that nothing comes in between; it does not wait.
            wire.send(message, is_text)
        };
        if has_rest {
            self.task.wake();
        }
        true
    }

    /// Moves what waits into `batch`, which is empty; pending when there is nothing.
    pub(super) fn poll_take(&self, cx: &mut Context<'_>, batch: &mut Vec<T>) -> Poll<Taken> {
        // Before the look, so that what comes behind it wakes.
        self.task.register(cx.waker());
        let mut waiting = self.waiting.lock();
        if waiting.overflowed {
            return Poll::Ready(Taken::Overflow);
        }
        waiting.busy = !waiting.items.is_empty();
        if !waiting.busy {
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

#[cfg(test)]
mod tests {
    use tokio_test::{assert_pending, assert_ready_eq, task};

    use super::*;

    impl Weighty for Arc<usize> {
        fn weight(&self) -> usize {
            **self
        }
    }

    #[test]
    fn whoever_waits_is_woken_once_for_all_that_is_there() {
        let outbox = Outbox::default();
        let mut batch = Vec::new();
        let mut taking = task::spawn(std::future::poll_fn(|cx| outbox.poll_take(cx, &mut batch)));
        assert_pending!(taking.poll());

        outbox.push(Arc::new(1));
        assert!(taking.is_woken());
        outbox.push(Arc::new(1));
        assert_ready_eq!(taking.poll(), Taken::Some);

        drop(taking);
        assert_eq!(batch.len(), 2);
    }

    #[test]
    fn a_client_that_is_too_far_behind_is_told_nothing_more_and_nothing_is_kept_for_it() {
        let outbox = Outbox::default();
        let long = Arc::new(MAX_BEHIND / 2);
        let mut behind = task::spawn(std::future::poll_fn(|cx| outbox.poll_overflow(cx)));
        outbox.push(Arc::clone(&long));
        assert_pending!(behind.poll());
        for _ in 0..2 {
            outbox.push(Arc::clone(&long));
        }

        assert!(behind.is_woken());
        assert_ready_eq!(behind.poll(), ());
        assert_eq!(Arc::strong_count(&long), 1);
        let mut batch = Vec::new();
        let mut taking = task::spawn(std::future::poll_fn(|cx| outbox.poll_take(cx, &mut batch)));
        assert_ready_eq!(taking.poll(), Taken::Overflow);
    }
}
