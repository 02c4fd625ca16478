//! Which commits of a file have begun, which are on the disk, and who waits for that.
//!
//! Pure bookkeeping: no lock, no I/O. Callbacks come out as values, to be called after
//! the unlock.
//!
//! # Invariants
//!
//! 1. `durable` never exceeds a number that was begun before the sync that raised it.
//! 2. Who waits is answered in the order of the numbers, each exactly once.
//! 3. A gate that failed opens for nobody who waited, nor later for a number that was
//!    lost then.

use std::collections::VecDeque;

use crate::store::StoreError;
use crate::store::job::Reply;

/// Who waits for the disk.
pub(super) type Waiter = Reply<()>;

/// The gate of one file.
#[derive(Default)]
pub(super) struct Gate {
    begun: u64,
    durable: u64,
    /// In the order of their numbers.
    waiting: VecDeque<(u64, Waiter)>,
    /// Numbers whose sync failed or whose commit is in doubt: those above the first and
    /// up to the second.
    lost: (u64, u64),
}

/// What becomes of somebody who wants to wait.
pub(super) enum Wait {
    /// The gate keeps it.
    Waiting,
    /// The number is on the disk.
    Open(Waiter),
    /// Nobody knows whether the number is on the disk.
    Lost(Waiter),
}

impl Gate {
    /// Notes a commit and returns its number.
    pub(super) fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// The number of the last commit.
    pub(super) fn begun(&self) -> u64 {
        self.begun
    }

    /// Whether everything that has begun is on the disk.
    pub(super) fn is_drained(&self) -> bool {
        self.durable == self.begun
    }

    /// Lets `waiter` wait for a number that has begun, unless its end is known.
    pub(super) fn wait(&mut self, number: u64, waiter: Waiter) -> Wait {
        if number > self.lost.0 && number <= self.lost.1 {
            return Wait::Lost(waiter);
        }
        if number <= self.durable {
            return Wait::Open(waiter);
        }
        // Nearly always the last one; another only when a caller asks for an old number.
        let at = self.waiting.partition_point(|&(waiting, _)| waiting <= number);
        self.waiting.insert(at, (number, waiter));
        Wait::Waiting
    }

    /// Notes that everything up to `number` is on the disk; returns who waited for it.
    pub(super) fn synced(&mut self, number: u64) -> Vec<Waiter> {
        self.durable = self.durable.max(number);
        let open = self.waiting.partition_point(|&(waiting, _)| waiting <= self.durable);
        self.waiting.drain(..open).map(|(_, waiter)| waiter).collect()
    }

    /// Gives up whatever is not on the disk; returns who waited. What begins afterwards
    /// is waited for anew.
    pub(super) fn fail(&mut self) -> Vec<Waiter> {
        // A second failure loses what is between, too: that is on the safe side.
        let from = if self.lost.1 == 0 { self.durable } else { self.lost.0 };
        if self.begun > self.durable {
            self.lost = (from, self.begun);
        }
        self.durable = self.begun;
        self.waiting.drain(..).map(|(_, waiter)| waiter).collect()
    }
}

/// Answers those who waited.
pub(super) fn answer(waiters: Vec<Waiter>, result: &Result<(), StoreError>) {
    for waiter in waiters {
        waiter.send(result.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    type Heard = Arc<Mutex<Vec<u64>>>;

    fn waiter(number: u64, heard: &Heard) -> Waiter {
        let heard = Arc::clone(heard);
        Reply::new(Box::new(move |result| {
            if result.is_ok() {
                heard.lock().push(number);
            }
        }))
    }

    #[test]
    fn a_number_that_is_on_the_disk_waits_for_nothing() {
        let (mut gate, heard) = (Gate::default(), Heard::default());
        let number = gate.begin();
        gate.synced(number);

        assert!(matches!(gate.wait(number, waiter(number, &heard)), Wait::Open(_)));
        assert!(gate.is_drained());
    }

    #[test]
    fn a_sync_answers_those_who_wait_for_what_had_begun_before_it() {
        let (mut gate, heard) = (Gate::default(), Heard::default());
        for number in 1..=3 {
            assert_eq!(gate.begin(), number);
            assert!(matches!(gate.wait(number, waiter(number, &heard)), Wait::Waiting));
        }

        answer(gate.synced(2), &Ok(()));
        assert_eq!(*heard.lock(), [1, 2]);
        assert!(!gate.is_drained());
        answer(gate.synced(3), &Ok(()));

        assert_eq!(*heard.lock(), [1, 2, 3]);
    }

    #[test]
    fn a_sync_that_ends_late_takes_nothing_back() {
        let mut gate = Gate::default();
        gate.begin();
        gate.begin();

        gate.synced(2);
        gate.synced(1);

        assert!(gate.is_drained());
    }

    #[test]
    fn a_gate_that_failed_opens_for_nobody_who_waited() {
        let (mut gate, heard) = (Gate::default(), Heard::default());
        let number = gate.begin();
        drop(gate.wait(number, waiter(number, &heard)));

        let failed = gate.fail();
        assert_eq!(failed.len(), 1);
        drop(failed);

        assert!(heard.lock().is_empty());
        assert!(matches!(gate.wait(number, waiter(number, &heard)), Wait::Lost(_)));
        let next = gate.begin();
        assert!(matches!(gate.wait(next, waiter(next, &heard)), Wait::Waiting));
        answer(gate.synced(next), &Ok(()));
        assert_eq!(*heard.lock(), [next]);
    }
}
