//! Which commits of a file have begun, which are on the disk, and who waits for that.
//!
//! Pure bookkeeping: no lock, no I/O. Callbacks come out as values, to be called after
//! the unlock.
//!
//! # Invariants
//!
//! 1. `durable` never exceeds a number that was begun before the sync that raised it.
//! 2. Who waits is answered in the order of the numbers, each exactly once: by one thread
//!    at a time, which also tells what becomes due meanwhile.
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
    due: VecDeque<Answer>,
    /// Whether a thread is telling what is due (invariant 2).
    is_told: bool,
}

/// Somebody whose wait is over, and how it ended.
pub(super) type Answer = (Waiter, Result<(), StoreError>);

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

    /// Lets `waiter` wait for a number that has begun. One whose end is known is due at
    /// once, with `lost` when nobody knows whether the number is on the disk.
    pub(super) fn wait(&mut self, number: u64, waiter: Waiter, lost: impl FnOnce() -> StoreError) {
        if number > self.lost.0 && number <= self.lost.1 {
            return self.due.push_back((waiter, Err(lost())));
        }
        if number <= self.durable {
            return self.due.push_back((waiter, Ok(())));
        }
        // Nearly always the last one; another only when a caller asks for an old number.
        let at = self.waiting.partition_point(|&(waiting, _)| waiting <= number);
        self.waiting.insert(at, (number, waiter));
    }

    /// Ends a wait before it began.
    pub(super) fn refuse(&mut self, waiter: Waiter, error: StoreError) {
        self.due.push_back((waiter, Err(error)));
    }

    /// Notes that everything up to `number` is on the disk; who waited for it is due.
    pub(super) fn synced(&mut self, number: u64) {
        self.durable = self.durable.max(number);
        let open = self.waiting.partition_point(|&(waiting, _)| waiting <= self.durable);
        self.due.extend(self.waiting.drain(..open).map(|(_, waiter)| (waiter, Ok(()))));
    }

    /// Gives up whatever is not on the disk; who waited is due with `result`. What begins
    /// afterwards is waited for anew.
    pub(super) fn fail(&mut self, result: &Result<(), StoreError>) {
        // A second failure loses what is between, too: that is on the safe side.
        let from = if self.lost.1 == 0 { self.durable } else { self.lost.0 };
        if self.begun > self.durable {
            self.lost = (from, self.begun);
        }
        self.durable = self.begun;
        self.due.extend(self.waiting.drain(..).map(|(_, waiter)| (waiter, result.clone())));
    }

    /// Makes the caller the one who tells what is due, unless there is another.
    pub(super) fn begin_telling(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told, true)
    }

    /// What is to be told next. Nothing once all is told: then the next one may begin.
    pub(super) fn next_due(&mut self) -> VecDeque<Answer> {
        self.is_told = !self.due.is_empty();
        std::mem::take(&mut self.due)
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

    /// Tells what is due, as the only thread does.
    fn tell(gate: &mut Gate) {
        assert!(gate.begin_telling());
        loop {
            let due = gate.next_due();
            if due.is_empty() {
                return;
            }
            due.into_iter().for_each(|(waiter, result)| waiter.send(result));
        }
    }

    fn lost() -> StoreError {
        StoreError::Closed
    }

    #[test]
    fn a_number_that_is_on_the_disk_waits_for_nothing() {
        let (mut gate, heard) = (Gate::default(), Heard::default());
        let number = gate.begin();
        gate.synced(number);
        gate.wait(number, waiter(number, &heard), lost);

        tell(&mut gate);

        assert_eq!(*heard.lock(), [number]);
        assert!(gate.is_drained());
    }

    #[test]
    fn a_sync_answers_those_who_wait_for_what_had_begun_before_it() {
        let (mut gate, heard) = (Gate::default(), Heard::default());
        for number in 1..=3 {
            assert_eq!(gate.begin(), number);
            gate.wait(number, waiter(number, &heard), lost);
        }

        gate.synced(2);
        tell(&mut gate);
        assert_eq!(*heard.lock(), [1, 2]);
        assert!(!gate.is_drained());
        gate.synced(3);
        tell(&mut gate);

        assert_eq!(*heard.lock(), [1, 2, 3]);
    }

    #[test]
    fn what_becomes_due_while_a_thread_tells_is_told_by_that_thread_behind_the_rest() {
        let (mut gate, heard) = (Gate::default(), Heard::default());
        for number in 1..=2 {
            gate.begin();
            gate.wait(number, waiter(number, &heard), lost);
        }
        gate.synced(1);
        assert!(gate.begin_telling());
        let first = gate.next_due();

        // Another thread, before the first one has told what it took.
        gate.synced(2);
        assert!(!gate.begin_telling());
        first.into_iter().for_each(|(waiter, result)| waiter.send(result));
        let second = gate.next_due();
        second.into_iter().for_each(|(waiter, result)| waiter.send(result));

        assert_eq!(*heard.lock(), [1, 2]);
        assert!(gate.next_due().is_empty());
        assert!(gate.begin_telling());
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
        gate.wait(number, waiter(number, &heard), lost);

        gate.fail(&Err(lost()));
        gate.wait(number, waiter(number, &heard), lost);
        tell(&mut gate);

        assert!(heard.lock().is_empty());
        let next = gate.begin();
        gate.wait(next, waiter(next, &heard), lost);
        gate.synced(next);
        tell(&mut gate);
        assert_eq!(*heard.lock(), [next]);
    }
}
