//! Keys of transactions that have ended, so that a handle used too late hears why.

use std::collections::{HashMap, VecDeque};

/// How many keys are kept of a kind; the oldest is forgotten first.
pub(super) const LIMIT: usize = 1024;

/// The last [`LIMIT`] keys with what became of them.
#[derive(Debug)]
pub(super) struct Remembered<T> {
    order: VecDeque<String>,
    ends: HashMap<String, T>,
}

impl<T> Remembered<T> {
    pub(super) fn insert(&mut self, key: String, end: T) {
        if self.ends.insert(key.clone(), end).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > LIMIT
            && let Some(oldest) = self.order.pop_front()
        {
            self.ends.remove(&oldest);
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&T> {
        self.ends.get(key)
    }
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self { order: VecDeque::new(), ends: HashMap::new() }
    }
}
