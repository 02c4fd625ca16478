//! Where work waits for a thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// As in the options of the store.
type WaitsForTurn = Arc<dyn Fn() + Send + Sync>;

/// Work in the order in which it came, for any number of threads.
pub(super) struct Line<T> {
    /// Changed by whoever has work (push), the threads (next) and the closing store.
    state: Mutex<State<T>>,
    /// Told when there may be something to do.
    came: Condvar,
    /// Called when something waits for its turn; absent where threads take it.
    waits_for_turn: Option<WaitsForTurn>,
}

struct State<T> {
    work: VecDeque<T>,
    is_closed: bool,
}

/// What a thread does next.
pub(super) enum Next<T> {
    /// This.
    Work(T),
    /// Nothing came in time.
    Idle,
    /// Nothing waits, and what comes is for nobody.
    Closed,
}

impl<T> Line<T> {
    pub(super) fn new(waits_for_turn: Option<WaitsForTurn>) -> Self {
        let state = State { work: VecDeque::new(), is_closed: false };
        Self { state: Mutex::new(state), came: Condvar::new(), waits_for_turn }
    }

    /// Adds work. Threads that end serve what they have added themselves.
    pub(super) fn push(&self, work: T) {
        self.state.lock().work.push_back(work);
        match &self.waits_for_turn {
            None => {
                self.came.notify_one();
            }
            Some(waits) => waits(),
        }
    }

    /// Waits for work, at most for `patience`.
    pub(super) fn next(&self, patience: Option<Duration>) -> Next<T> {
        let mut state = self.state.lock();
        loop {
            if let Some(work) = state.work.pop_front() {
                return Next::Work(work);
            }
            if state.is_closed {
                return Next::Closed;
            }
            match patience {
                None => self.came.wait(&mut state),
                Some(patience) => {
                    if self.came.wait_for(&mut state, patience).timed_out() {
                        return state.work.pop_front().map_or(Next::Idle, Next::Work);
                    }
                }
            }
        }
    }

    /// The first that waits, if any does.
    pub(super) fn take(&self) -> Option<T> {
        self.state.lock().work.pop_front()
    }

    /// Ends the threads once nothing waits.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.came.notify_all();
    }
}
