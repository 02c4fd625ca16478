//! One heap of deadlines for all actors, and the one task that waits for them.
//!
//! # Invariants
//!
//! 1. A target is ticked at or after its deadline, in the order of deadlines,
//!    equal ones in the order in which they were armed.
//! 2. An entry cannot be taken back: a target that was armed too early finds
//!    nothing due, and arms again. So an actor keeps at most a few entries here,
//!    however often its deadlines move.
//! 3. The heap holds weak references only: an actor that is gone is skipped. What is
//!    left of it, the room that it took, is given back at its deadline, or before more
//!    than half of the heap is left of such ([`Timers::left`]), or it is more than twice as
//!    large as what lived when that was last looked at.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::spawner::{Spawner, panic_text};
use crate::time::{Clock, Instant};

/// Something that has deadlines.
pub trait Timed: Send + Sync + 'static {
    /// Does what is due. Must not block.
    fn tick(self: Arc<Self>);
}

/// The handle by which deadlines are armed. The task ends when it is dropped.
#[derive(Debug)]
pub struct Timers {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    heap: Mutex<Heap>,
    /// Wakes the task when the earliest deadline changed, or to end it.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Heap {
    entries: BinaryHeap<Reverse<Entry>>,
    /// Makes equal deadlines fire in the order of arming (invariant 1).
    next_sequence: u64,
    /// At how many entries those of targets that are gone are thrown out.
    sweep_at: usize,
    /// How many targets have gone since, at least.
    gone: usize,
    closed: bool,
}

/// Fewer entries than this are not worth a sweep.
const SMALL: usize = 256;

#[derive(Debug)]
struct Entry {
    at: Instant,
    sequence: u64,
    target: Weak<dyn Timed>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl std::fmt::Debug for dyn Timed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Timed")
    }
}

impl Timers {
    /// Starts the task.
    pub fn new(clock: Clock, spawner: &Spawner) -> Self {
        let shared = Arc::new(Shared { heap: Mutex::default(), changed: Notify::new() });
        spawner.spawn("timers", run(clock, Arc::clone(&shared)));
        Self { shared }
    }

    /// How many deadlines are armed.
    pub fn armed(&self) -> usize {
        self.shared.heap.lock().entries.len()
    }

    /// Ticks `target` at `at`, or soon after.
    pub fn arm(&self, at: Instant, target: Weak<dyn Timed>) {
        let earliest = {
            let mut heap = self.shared.heap.lock();
            let earliest = heap.entries.peek().is_none_or(|Reverse(first)| at < first.at);
            heap.next_sequence += 1;
            let sequence = heap.next_sequence;
            if heap.entries.len() >= heap.sweep_at {
                heap.sweep();
            }
            heap.entries.push(Reverse(Entry { at, sequence, target }));
            earliest
        };
        if earliest {
            self.shared.changed.notify_one();
        }
    }

    /// A target that may have been armed is gone.
    pub fn left(&self) {
        let mut heap = self.shared.heap.lock();
        heap.gone += 1;
        if heap.gone >= SMALL && heap.gone * 2 > heap.entries.len() {
            heap.sweep();
        }
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        self.shared.heap.lock().closed = true;
        self.shared.changed.notify_one();
    }
}

/// What the task does next.
enum Next {
    Fire(Weak<dyn Timed>),
    WaitUntil(Instant),
    Wait,
    End,
}

impl Heap {
    /// Keeps invariant 3. Rare enough to cost each entry next to nothing.
    fn sweep(&mut self) {
        self.entries.retain(|Reverse(entry)| entry.target.strong_count() > 0);
        self.gone = 0;
        self.sweep_at = SMALL.max(2 * self.entries.len());
        self.entries.shrink_to(self.sweep_at);
    }

    fn next(&mut self, now: Instant) -> Next {
        if self.closed {
            return Next::End;
        }
        match self.entries.peek() {
            None => Next::Wait,
            Some(Reverse(first)) if first.at > now => Next::WaitUntil(first.at),
            Some(_) => match self.entries.pop() {
                Some(Reverse(entry)) => Next::Fire(entry.target),
                None => Next::Wait,
            },
        }
    }
}

async fn run(clock: Clock, shared: Arc<Shared>) {
    loop {
        // `notify_one` stores a permit, so a change between the look and the
        // wait is not lost.
        let next = shared.heap.lock().next(clock.now());
        match next {
            Next::End => return,
            Next::Fire(target) => {
                let Some(target) = target.upgrade() else { continue };
                // One actor's panic must not take the others' deadlines with it.
                let tick = AssertUnwindSafe(|| target.tick());
                if let Err(panic) = std::panic::catch_unwind(tick) {
                    tracing::error!(panic = panic_text(panic.as_ref()), "a tick panicked");
                }
            }
            Next::Wait => shared.changed.notified().await,
            Next::WaitUntil(at) => tokio::select! {
                () = clock.sleep_until(at) => {}
                () = shared.changed.notified() => {}
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[tokio::test]
    async fn targets_that_are_gone_do_not_pile_up() {
        let manual = Clock::manual(0);
        let spawner = Spawner::new(tokio::runtime::Handle::current());
        let timers = Timers::new(manual.clock(), &spawner);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let stays: Arc<dyn Timed> = Arc::new(Recorder(0, Arc::clone(&seen)));
        let at = Instant::START + Duration::from_secs(60);
        timers.arm(at, Arc::downgrade(&stays));

        for n in 1..10_000 {
            let gone: Arc<dyn Timed> = Arc::new(Recorder(n, Arc::clone(&seen)));
            timers.arm(at, Arc::downgrade(&gone));
        }

        assert!(timers.armed() <= SMALL, "{} are left", timers.armed());
        manual.advance(Duration::from_secs(60));
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        assert_eq!(*seen.lock(), [0]);
    }

    #[tokio::test]
    async fn nothing_is_kept_of_many_that_lived_at_once_and_are_gone() {
        let manual = Clock::manual(0);
        let spawner = Spawner::new(tokio::runtime::Handle::current());
        let timers = Timers::new(manual.clock(), &spawner);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let at = Instant::START + Duration::from_secs(60);
        let crowd: Vec<Arc<dyn Timed>> = (0..10_000)
            .map(|n| Arc::new(Recorder(n, Arc::clone(&seen))) as Arc<dyn Timed>)
            .collect();
        for target in &crowd {
            timers.arm(at, Arc::downgrade(target));
        }
        assert_eq!(timers.armed(), 10_000);

        for target in crowd {
            drop(target);
            timers.left();
        }

        assert!(timers.armed() < 2 * SMALL, "{} are left", timers.armed());
    }

    struct Recorder(u32, Arc<Mutex<Vec<u32>>>);

    impl Timed for Recorder {
        fn tick(self: Arc<Self>) {
            self.1.lock().push(self.0);
        }
    }

    #[tokio::test]
    async fn deadlines_fire_in_order_and_dropped_targets_are_skipped() {
        let manual = Clock::manual(0);
        let spawner = Spawner::new(tokio::runtime::Handle::current());
        let timers = Timers::new(manual.clock(), &spawner);
        let fired = Arc::new(Mutex::new(Vec::new()));
        let targets: Vec<Arc<dyn Timed>> =
            (0..4).map(|n| Arc::new(Recorder(n, Arc::clone(&fired))) as Arc<dyn Timed>).collect();
        let second = Duration::from_secs(1);
        for (target, at) in targets.iter().zip([3, 1, 1, 2]) {
            timers.arm(Instant::START + second * at, Arc::downgrade(target));
        }
        let targets: Vec<_> = targets.into_iter().take(3).collect();
        tokio::task::yield_now().await;

        for _ in 0..3 {
            manual.advance(second);
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
        }

        assert_eq!(*fired.lock(), [1, 2, 0]);
        drop(targets);
    }
}
