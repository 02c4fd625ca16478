//! Threads that are not the store's own and work on its files all the same.
//!
//! # Invariants
//!
//! 1. The store does not close, and nobody else gets its folder, before every guest has
//!    left.
//! 2. A guest waits for nothing that a closing store does not answer.

use parking_lot::{Condvar, Mutex};

use crate::store::StoreError;

/// Who is there.
#[derive(Default)]
pub(super) struct Guests {
    /// Changed by whoever comes or leaves, and by the closing store.
    state: Mutex<State>,
    /// Told when the last one has left.
    left: Condvar,
}

#[derive(Default)]
struct State {
    count: usize,
    is_closed: bool,
}

/// One of them, until it is dropped.
#[must_use = "the store may close as soon as this is dropped"]
pub(super) struct Guest<'g>(&'g Guests);

impl Guests {
    /// Comes in, unless the store is about to close.
    pub(super) fn enter(&self) -> Result<Guest<'_>, StoreError> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(StoreError::Closed);
        }
        state.count += 1;
        Ok(Guest(self))
    }

    /// Lets nobody in any more, and returns once nobody is there.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        while state.count > 0 {
            self.left.wait(&mut state);
        }
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        let is_last = {
            let mut state = self.0.state.lock();
            state.count -= 1;
            state.count == 0
        };
        if is_last {
            self.0.left.notify_all();
        }
    }
}
