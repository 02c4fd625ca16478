//! The entries themselves, by index, and which of them may be forgotten.
//!
//! # Invariants
//!
//! 1. An entry is counted as active or is in the list of those at rest, never both.
//! 2. Those at rest are forgotten in the order in which they were last used.
//! 3. How many are busy, and at what, is counted whenever one changes: whoever asks looks at
//!    none of them.

use std::collections::BTreeMap;

use super::Entry;
use super::entry::BUSY;

/// Entries by index. An index is used again once its entry is taken out.
#[derive(Debug)]
pub(super) struct Slots {
    /// Boxed, so that what a crowd leaves behind when it sleeps is small.
    slots: Vec<Option<Box<Slot>>>,
    free: Vec<usize>,
    /// Entries at rest by when they were last used; see [`Slot::rested`].
    rested: BTreeMap<u64, usize>,
    /// Counts uses, so that `rested` has an order.
    uses: u64,
    /// Entries that are not at rest.
    active: usize,
    /// Entries by what they are at, in the order of [`BUSY`].
    busy: [usize; BUSY.len()],
}

#[derive(Debug)]
struct Slot {
    entry: Entry,
    /// The key in [`Slots::rested`]; `None` for an active entry.
    rested: Option<u64>,
    /// As what it is counted among the busy ones.
    busy: Option<usize>,
}

impl Slots {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            rested: BTreeMap::new(),
            uses: 0,
            active: 0,
            busy: Default::default(),
        }
    }

    /// How many entries are at what, in the order of [`BUSY`].
    pub(super) fn busy(&self) -> [usize; BUSY.len()] {
        self.busy
    }

    /// How many entries are not at rest.
    pub(super) fn active(&self) -> usize {
        self.active
    }

    /// How many entries are at rest.
    pub(super) fn at_rest(&self) -> usize {
        self.rested.len()
    }

    /// Takes in an entry that is at rest.
    pub(super) fn insert(&mut self, entry: Entry) -> usize {
        let slot = Box::new(Slot { entry, rested: None, busy: None });
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index] = Some(slot);
                index
            }
            None => {
                self.slots.push(Some(slot));
                self.slots.len() - 1
            }
        };
        self.active += 1;
        self.settle(index);
        index
    }

    /// The entry at an index that a map holds.
    pub(super) fn get(&self, index: usize) -> &Entry {
        &self.slots[index].as_ref().expect("the maps hold taken indices only").entry
    }

    /// Changes the entry at an index that a map holds. It counts as a use.
    pub(super) fn change<R>(&mut self, index: usize, change: impl FnOnce(&mut Entry) -> R) -> R {
        let result = change(&mut self.slot(index).entry);
        self.settle(index);
        result
    }

    /// Takes an entry out.
    pub(super) fn remove(&mut self, index: usize) -> Entry {
        match self.slot(index).rested {
            Some(use_) => drop(self.rested.remove(&use_)),
            None => self.active -= 1,
        }
        if let Some(at) = self.slot(index).busy {
            self.busy[at] -= 1;
        }
        self.free.push(index);
        self.slots[index].take().expect("looked at above").entry
    }

    /// The entry at rest that was not used for the longest time.
    pub(super) fn oldest_at_rest(&self) -> Option<usize> {
        self.rested.first_key_value().map(|(_, &index)| index)
    }

    /// All entries.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.slots.iter().flatten().map(|slot| &slot.entry)
    }

    fn slot(&mut self, index: usize) -> &mut Slot {
        self.slots[index].as_mut().expect("the maps hold taken indices only")
    }

    /// Keeps invariants 1 and 3 after a change.
    fn settle(&mut self, index: usize) {
        let slot = self.slot(index);
        let busy = slot.entry.busy();
        let before = std::mem::replace(&mut slot.busy, busy);
        if before != busy {
            before.into_iter().for_each(|at| self.busy[at] -= 1);
            busy.into_iter().for_each(|at| self.busy[at] += 1);
        }
        self.uses += 1;
        let used = self.uses;
        let slot = self.slot(index);
        let at_rest = slot.entry.is_at_rest();
        let before = std::mem::replace(&mut slot.rested, at_rest.then_some(used));
        if let Some(before) = before {
            self.rested.remove(&before);
        }
        if at_rest {
            self.rested.insert(used, index);
        }
        match (before.is_some(), at_rest) {
            (true, false) => self.active += 1,
            (false, true) => self.active -= 1,
            _ => {}
        }
    }
}
