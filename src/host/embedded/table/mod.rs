//! All actors that the host knows, by key and by id: those that live, those that
//! somebody waits for, and a bounded number of sleeping ones, as a cache of the
//! directory.
//!
//! # Invariants
//!
//! 1. An entry is known by its id as long as it is here. By its key it is known
//!    too, unless a look-up of that key is on its way.
//! 2. While a look-up is on its way, everybody who asks for the same waits for it,
//!    in the order in which they came.
//! 3. The answer of a look-up is used only if no actor that it could be about was
//!    destroyed since it began.
//!
//! Whoever changes the table gets [`Task`]s, to be done in order after the unlock.

mod key;
mod lookup;
mod slots;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

pub(super) use self::key::Target;
use self::key::{Named, NamedKey};
use self::lookup::Lookup;
use self::slots::Slots;
use super::entry::{self, Farewell, Step, World};
use super::error::HostError;
use super::visit::Visit;
use super::waiter::{By, Want};
use crate::core::behavior::Reply;
use crate::core::context::ActorContext;
use crate::error::Error;
use crate::ids::{ActorId, ActorKey, ActorName};
use crate::store::ActorRow;

pub(super) type Entry = entry::Entry<ActorContext, Visit>;
pub(super) type Waiter = super::waiter::Waiter<Visit>;

/// All actors that the host knows.
#[derive(Debug)]
pub(super) struct Table {
    slots: Slots,
    by_key: HashMap<NamedKey, Slot>,
    by_id: HashMap<ActorId, Slot>,
    /// How many look-ups are on their way.
    looking: usize,
    /// Numbers look-ups, so that an answer that nobody waits for is known.
    tickets: u64,
    /// How many sleeping actors are remembered.
    cache: usize,
}

#[derive(Debug)]
enum Slot {
    /// The entry at this index.
    Known(usize),
    /// The directory is being asked.
    Looking(Box<Lookup>),
}

/// Something to be done after the unlock.
#[derive(Debug)]
pub(super) enum Task {
    /// Perform the steps of this entry.
    Pump(ActorId),
    /// Ask the directory, then say [`Table::looked_up`].
    Look(Look),
    /// Answer with the row.
    Found(Reply<ActorRow>, Arc<ActorRow>),
    /// Answer that the actor exists.
    Exists(Reply<ActorRow>, Arc<ActorRow>),
    /// Answer whether there was an actor to destroy.
    Destroyed(Reply<bool>, bool),
    /// Answer with the error.
    Refuse(Waiter, Error),
}

/// A question to the directory.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) target: Target,
    pub(super) ticket: u64,
    /// Create the actor, with this input, if it does not exist.
    pub(super) create: Option<Option<Bytes>>,
}

/// What the directory said.
#[derive(Debug)]
pub(super) enum Seen {
    /// Nobody is there.
    Nobody,
    /// It was there before.
    Existing(ActorRow),
    /// The question created it.
    Created(ActorRow),
}

impl Table {
    /// An empty table that remembers at most `cache` sleeping actors.
    pub(super) fn new(cache: usize) -> Self {
        Self {
            slots: Slots::new(),
            by_key: HashMap::new(),
            by_id: HashMap::new(),
            looking: 0,
            tickets: 0,
            cache,
        }
    }

    /// Whether nothing lives, nobody waits and no question is on its way.
    pub(super) fn is_quiet(&self) -> bool {
        self.slots.active() == 0 && self.looking == 0
    }

    /// How many sleeping actors are remembered.
    pub(super) fn remembered(&self) -> usize {
        self.slots.at_rest()
    }

    /// How many are at what, in the order of [`entry::BUSY`].
    pub(super) fn busy(&self) -> [usize; entry::BUSY.len()] {
        self.slots.busy()
    }

    /// All entries.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.slots.iter()
    }

    /// The entry of this name and key, unless the directory is being asked.
    pub(super) fn by_key(&self, name: &ActorName, key: &ActorKey) -> Option<&Entry> {
        match self.by_key.get(&(name, key) as &dyn Named)? {
            Slot::Known(index) => Some(self.slots.get(*index)),
            Slot::Looking(_) => None,
        }
    }

    /// The entry of this id.
    pub(super) fn by_id(&self, id: ActorId) -> Option<&Entry> {
        self.index(id).map(|index| self.slots.get(index))
    }

    /// Changes the entry of this id; `None` when it is not here.
    pub(super) fn change<R>(
        &mut self,
        id: ActorId,
        change: impl FnOnce(&mut Entry) -> R,
    ) -> Option<R> {
        let index = self.index(id)?;
        let result = self.slots.change(index, change);
        self.forget_oldest();
        Some(result)
    }

    /// The next step of an entry whose pump the caller holds.
    pub(super) fn step(&mut self, id: ActorId, world: &World) -> Option<Step<ActorContext, Visit>> {
        self.change(id, |entry| entry.step(world))
    }

    /// Somebody comes for the actor that `target` names.
    pub(super) fn route(&mut self, target: Target, waiter: Waiter, tasks: &mut Vec<Task>) {
        match self.slot_mut(&target) {
            Some(Slot::Known(index)) => {
                let index = *index;
                self.admit(index, waiter, tasks);
            }
            Some(Slot::Looking(lookup)) => lookup.waiters.push_back(waiter),
            None => {
                let lookup = Lookup::new([waiter].into());
                self.look(target, lookup, tasks);
            }
        }
    }

    /// Forgets an actor that is gone, and says what becomes of those who waited.
    pub(super) fn bury(&mut self, id: ActorId, farewell: Farewell<Visit>, tasks: &mut Vec<Task>) {
        let Some(index) = self.index(id) else { return };
        let row = Arc::clone(self.slots.remove(index).row());
        self.by_id.remove(&id);
        // Invariant 3: what a look-up of the key has found may be this actor.
        if let Some(lookup) = self.forget_key(&row) {
            lookup.is_stale = true;
        }
        let Farewell { destroyers, orphans, heirs } = farewell;
        tasks.extend(destroyers.into_iter().map(|reply| Task::Destroyed(reply, true)));
        tasks.extend(orphans.into_iter().map(|orphan| {
            let error = match &orphan.by {
                By::Id => HostError::NoSuchId { id },
                By::Key(_) => HostError::NoSuchKey { name: row.name.clone(), key: row.key.clone() },
            };
            Task::Refuse(orphan, error.into())
        }));
        for heir in heirs {
            self.route(Target::Key(row.name.clone(), row.key.clone()), heir, tasks);
        }
    }

    /// Forgets an actor of which nobody knows whether it is still there: whoever comes next
    /// asks the directory. Nobody may wait for it.
    pub(super) fn doubt(&mut self, id: ActorId) {
        let Some(index) = self.index(id) else { return };
        let row = Arc::clone(self.slots.remove(index).row());
        self.by_id.remove(&id);
        if let Some(lookup) = self.forget_key(&row) {
            lookup.is_stale = true;
        }
    }

    /// Somebody comes for an entry.
    fn admit(&mut self, index: usize, waiter: Waiter, tasks: &mut Vec<Task>) {
        let Waiter { by, environment, want } = waiter;
        let entry = self.slots.get(index);
        let row = Arc::clone(entry.row());
        let want = match want {
            // The row is there, and stays at least until a destroy begins.
            Want::Row(reply) if !entry.is_doomed() => {
                self.slots.change(index, |_| ());
                return tasks.push(Task::Found(reply, row));
            }
            Want::Create(reply) if !entry.is_doomed() => {
                return tasks.push(Task::Exists(reply, row));
            }
            want => want,
        };
        self.slots.change(index, |entry| entry.enqueue(Waiter { by, environment, want }));
        tasks.push(Task::Pump(row.id));
    }

    /// The entry of a row, made if it is not here.
    fn entry_of(&mut self, row: ActorRow, tasks: &mut Vec<Task>) -> usize {
        if let Some(index) = self.index(row.id) {
            return index;
        }
        let id = row.id;
        let key = NamedKey(row.name.clone(), row.key.clone());
        let index = self.slots.insert(Entry::new(Arc::new(row)));
        // Invariant 1, also for one that was asked for by its id: whoever comes by its key
        // while it is destroyed has to find it.
        self.by_key.entry(key).or_insert(Slot::Known(index));
        if let Some(Slot::Looking(lookup)) = self.by_id.insert(id, Slot::Known(index)) {
            // They are answered; what the directory says later finds nobody.
            self.looking -= 1;
            for waiter in lookup.waiters {
                self.admit(index, waiter, tasks);
            }
        }
        index
    }

    /// Forgets sleeping actors beyond the cache's size.
    fn forget_oldest(&mut self) {
        while self.slots.at_rest() > self.cache {
            let Some(index) = self.slots.oldest_at_rest() else { return };
            let row = Arc::clone(self.slots.remove(index).row());
            self.by_id.remove(&row.id);
            self.forget_key(&row);
            self.shrink();
        }
    }

    /// Gives back what the maps needed for a crowd that sleeps. Rare enough to cost
    /// each entry that was forgotten next to nothing.
    fn shrink(&mut self) {
        const ROOMY: usize = 4;
        const SMALL: usize = 1_024;
        let room = SMALL + 2 * self.by_id.len();
        if self.by_id.capacity() > ROOMY * room {
            self.by_id.shrink_to(room);
            self.by_key.shrink_to(room);
        }
    }

    /// Forgets who has the key, unless the directory is being asked just that.
    fn forget_key(&mut self, row: &ActorRow) -> Option<&mut Lookup> {
        let key = (&row.name, &row.key);
        if let Some(Slot::Known(_)) = self.by_key.get(&key as &dyn Named) {
            self.by_key.remove(&key as &dyn Named);
        }
        match self.by_key.get_mut(&key as &dyn Named)? {
            Slot::Looking(lookup) => Some(lookup),
            Slot::Known(_) => None,
        }
    }

    fn index(&self, id: ActorId) -> Option<usize> {
        match self.by_id.get(&id)? {
            Slot::Known(index) => Some(*index),
            Slot::Looking(_) => None,
        }
    }

    fn slot_mut(&mut self, target: &Target) -> Option<&mut Slot> {
        match target {
            Target::Key(name, key) => self.by_key.get_mut(&(name, key) as &dyn Named),
            Target::Id(id) => self.by_id.get_mut(id),
        }
    }
}
