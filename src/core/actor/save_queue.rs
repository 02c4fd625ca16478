//! Who asked for a save of the state, when the next one is due, and who waits for
//! which.
//!
//! Pure bookkeeping: no task, no lock, no I/O. The machine asks for
//! [`SaveQueue::due`], performs the save and reports how it went.
//!
//! # Invariants
//!
//! 1. Each request has a revision, one higher than the last. A save covers the
//!    requests up to the revision that was captured when it began.
//! 2. A save that ends never clears a request that it does not cover.
//! 3. A request never postpones a deadline that stands.
//! 4. A waiter is handed back exactly once: when its revision is written, when a
//!    save that covers it fails, or when the queue closes.
//! 5. A save that was thrown away or failed makes a new request, since the
//!    author's side takes the serialised changes for saved.
//! 6. A save that keeps failing is tried once per interval.

use crate::time::{Duration, Instant};

/// How a save is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaveRequest {
    /// Whether it should begin at once.
    pub immediate: bool,
    /// How long its beginning may be put off, if less than the interval.
    pub max_wait: Option<Duration>,
}

/// What became of somebody who wants to wait for a revision.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a waiter that is given back must be told"]
pub enum Wait<W> {
    /// The queue keeps the waiter.
    Waits,
    /// The revision is written already.
    Written(W),
    /// The revision failed, or no save will come any more.
    Failed(W),
}

/// How urgent the requests are that a save will cover.
#[derive(Clone, Copy, Debug, Default)]
struct Urgency {
    requested: bool,
    immediate: bool,
    /// The earliest moment that `max_wait` allows.
    within: Option<Instant>,
}

impl Urgency {
    fn merge(&mut self, other: Self) {
        self.requested |= other.requested;
        self.immediate |= other.immediate;
        self.within = earliest(self.within, other.within);
    }
}

/// The one save that the machine performs on behalf of the queue.
#[derive(Clone, Copy, Debug)]
struct Saving {
    revision: u64,
    covers: Urgency,
}

/// The save requests of one generation and those who wait for them.
#[derive(Debug)]
pub struct SaveQueue<W> {
    interval: Duration,
    /// Grows with each request.
    request_revision: u64,
    /// The highest revision known to be written.
    completed_revision: u64,
    /// The highest revision whose save failed.
    failed_revision: u64,
    /// From when the interval counts: the last success or failure.
    throttled_from: Option<Instant>,
    /// The requests that no running save covers.
    open: Urgency,
    /// When a save of `open` is to begin; `None` exactly when nothing is open or
    /// the queue is closed.
    due: Option<Instant>,
    /// Set by `begin`, cleared by what ends the save.
    saving: Option<Saving>,
    /// In no particular order of revision.
    waiters: Vec<(u64, W)>,
    /// Set by `close`, never cleared.
    closed: bool,
}

impl<W> SaveQueue<W> {
    /// An empty queue that begins at most one save per `interval` unless hurried.
    pub const fn new(interval: Duration) -> Self {
        Self {
            interval,
            request_revision: 0,
            completed_revision: 0,
            failed_revision: 0,
            throttled_from: None,
            open: Urgency { requested: false, immediate: false, within: None },
            due: None,
            saving: None,
            waiters: Vec::new(),
            closed: false,
        }
    }

    /// Asks for a save and returns the request's revision. Once the queue is
    /// closed the request gets a revision that no save will cover.
    pub fn request(&mut self, request: SaveRequest, now: Instant) -> u64 {
        self.request_revision += 1;
        if !self.closed {
            self.open.merge(Urgency {
                requested: true,
                immediate: request.immediate,
                within: request.max_wait.map(|wait| now + wait),
            });
            // The old deadline stays if it is earlier (invariant 3).
            self.due = earliest(self.due, Some(self.deadline(now)));
        }
        self.request_revision
    }

    /// Waits until `revision` is written. A waiter that has nothing to wait for is
    /// given back.
    pub fn wait(&mut self, revision: u64, waiter: W) -> Wait<W> {
        if self.completed_revision >= revision {
            return Wait::Written(waiter);
        }
        if self.closed || self.failed_revision >= revision {
            return Wait::Failed(waiter);
        }
        self.waiters.push((revision, waiter));
        Wait::Waits
    }

    /// When the next save is to begin; `None` while there is nothing to save and
    /// while a save runs.
    pub fn due(&self) -> Option<Instant> {
        if self.saving.is_some() { None } else { self.due }
    }

    /// Begins the one save that may run at a time, and returns the revision that
    /// it covers. To be called before the state is serialised, so that whatever is
    /// requested meanwhile counts as newer, and not while [`SaveQueue::is_saving`].
    pub fn begin(&mut self, now: Instant) -> u64 {
        let mut covers = std::mem::take(&mut self.open);
        // A second save of a careless caller also answers for the first.
        if let Some(running) = self.saving.take() {
            covers.merge(running.covers);
        }
        self.throttled_from = Some(now);
        self.due = None;
        self.saving = Some(Saving { revision: self.request_revision, covers });
        self.request_revision
    }

    /// A save begins that the author's side pushes by itself; returns the revision
    /// that it covers. What it covers is no longer due. It ends with
    /// [`SaveQueue::written_directly`] or [`SaveQueue::failed`].
    pub fn begin_directly(&mut self) -> u64 {
        self.open = Urgency::default();
        self.due = None;
        self.request_revision
    }

    /// The save that covers `revision` is written; returns those who waited for
    /// it. Newer requests are due by their own urgency (invariant 2).
    #[must_use = "who is returned must be told that the save is written"]
    pub fn written(&mut self, revision: u64, now: Instant) -> Vec<W> {
        self.saving.take_if(|saving| saving.revision <= revision);
        self.written_directly(revision, now)
    }

    /// A save that was not begun through [`SaveQueue::begin`] is written. It
    /// covers `revision`, captured with [`SaveQueue::request_revision`] before it
    /// was serialised; a save that was begun goes on.
    #[must_use = "who is returned must be told that the save is written"]
    pub fn written_directly(&mut self, revision: u64, now: Instant) -> Vec<W> {
        self.completed_revision = self.completed_revision.max(revision);
        self.throttled_from = Some(now);
        if self.completed_revision >= self.request_revision {
            self.open = Urgency::default();
        }
        self.rearm(now);
        self.take_waiters(revision)
    }

    /// The running save was thrown away because a transaction came between; asks
    /// at once for another (invariant 5). Its waiters wait on.
    pub fn outdated(&mut self, now: Instant) {
        if let Some(saving) = self.saving.take() {
            self.open.merge(saving.covers);
        }
        self.request(SaveRequest { immediate: true, max_wait: None }, now);
    }

    /// The running save failed, which covers `revision`; returns those who waited
    /// for it. Its requests stay, without their hurry, and count as made now
    /// (invariants 5 and 6).
    #[must_use = "who is returned must be told that the save failed"]
    pub fn failed(&mut self, revision: u64, now: Instant) -> Vec<W> {
        // Only its own requests lose their hurry; nobody has tried the newer ones.
        if self.saving.take_if(|saving| saving.revision <= revision).is_none()
            && self.request_revision <= revision
        {
            self.open = Urgency::default();
        }
        self.failed_directly(revision, now)
    }

    /// A save failed that was not begun through [`SaveQueue::begin`]; one that was
    /// goes on. Otherwise as [`SaveQueue::failed`].
    #[must_use = "who is returned must be told that the save failed"]
    pub fn failed_directly(&mut self, revision: u64, now: Instant) -> Vec<W> {
        self.failed_revision = self.failed_revision.max(revision);
        self.throttled_from = Some(now);
        self.due = None;
        self.request(SaveRequest::default(), now);
        self.take_waiters(revision)
    }

    /// Ends the queue because no save will come any more; returns everybody who
    /// still waits. Later waiters fail at once, unless their revision is written.
    #[must_use = "who is returned must be told that no save will come"]
    pub fn close(&mut self) -> Vec<W> {
        self.closed = true;
        self.open = Urgency::default();
        self.due = None;
        std::mem::take(&mut self.waiters).into_iter().map(|(_, waiter)| waiter).collect()
    }

    /// Whether a request waits that no finished save covers.
    pub fn requested(&self) -> bool {
        self.open.requested || self.saving.is_some_and(|saving| saving.covers.requested)
    }

    /// Whether a request waits that no save has begun to cover.
    pub fn is_open(&self) -> bool {
        self.open.requested
    }

    /// Whether one of those asked to be saved at once.
    pub fn requested_immediate(&self) -> bool {
        self.open.immediate || self.saving.is_some_and(|saving| saving.covers.immediate)
    }

    /// Whether a save has begun that was not yet written, thrown away or failed.
    pub fn is_saving(&self) -> bool {
        self.saving.is_some()
    }

    /// The highest revision known to be written.
    pub fn completed_revision(&self) -> u64 {
        self.completed_revision
    }

    /// The revision of the last request.
    pub fn request_revision(&self) -> u64 {
        self.request_revision
    }

    /// When a save of the open requests may begin at the earliest.
    fn deadline(&self, now: Instant) -> Instant {
        if self.open.immediate {
            return now;
        }
        // Before the first save the whole interval is ahead.
        let passed = self.throttled_from.map_or(Duration::ZERO, |from| now.since(from));
        let throttled = now + self.interval.saturating_sub(passed);
        self.open.within.map_or(throttled, |within| within.min(throttled))
    }

    fn rearm(&mut self, now: Instant) {
        self.due = self.open.requested.then(|| self.deadline(now));
    }

    fn take_waiters(&mut self, revision: u64) -> Vec<W> {
        let done = self.waiters.extract_if(.., |(wanted, _)| *wanted <= revision);
        done.map(|(_, waiter)| waiter).collect()
    }
}

fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests;
