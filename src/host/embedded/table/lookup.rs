//! Questions to the directory, and those who wait for their answers.

use std::collections::VecDeque;
use std::mem;

use super::key::NamedKey;
use super::{Look, Seen, Slot, Table, Target, Task, Waiter};
use crate::error::Error;
use crate::host::embedded::error::HostError;
use crate::host::embedded::waiter::{By, Missing, Want};

/// A question that is on its way.
#[derive(Debug)]
pub(super) struct Lookup {
    ticket: u64,
    /// Whether the question creates the actor if it does not exist.
    creates: bool,
    /// An actor that it could be about was destroyed meanwhile.
    pub(super) is_stale: bool,
    /// In the order in which they came.
    pub(super) waiters: VecDeque<Waiter>,
}

impl Lookup {
    /// A question that has not been asked, for those who wait.
    pub(super) fn new(waiters: VecDeque<Waiter>) -> Self {
        Self { ticket: 0, creates: false, is_stale: false, waiters }
    }
}

impl Table {
    /// Asks the directory what the first of those who wait needs to know.
    pub(super) fn look(&mut self, target: Target, mut lookup: Lookup, tasks: &mut Vec<Task>) {
        let create = match lookup.waiters.front().map(|waiter| &waiter.by) {
            Some(By::Key(Missing::Create(input))) => Some(input.clone()),
            Some(By::Key(Missing::Fail) | By::Id) => None,
            None => return,
        };
        self.tickets += 1;
        let ticket = self.tickets;
        lookup.ticket = ticket;
        lookup.creates = create.is_some();
        lookup.is_stale = false;
        self.looking += 1;
        let slot = Slot::Looking(Box::new(lookup));
        match &target {
            Target::Key(name, key) => {
                self.by_key.insert(NamedKey(name.clone(), key.clone()), slot);
            }
            Target::Id(id) => {
                self.by_id.insert(*id, slot);
            }
        }
        tasks.push(Task::Look(Look { target, ticket, create }));
    }

    /// The directory has answered the question of this ticket.
    pub(in super::super) fn looked_up(
        &mut self,
        target: Target,
        ticket: u64,
        answer: Result<Seen, Error>,
        tasks: &mut Vec<Task>,
    ) {
        let Some(mut lookup) = self.take_lookup(&target, ticket) else { return };
        if lookup.is_stale {
            return self.look(target, lookup, tasks);
        }
        match answer {
            Err(error) => self.look_failed(target, lookup, &error, tasks),
            Ok(Seen::Nobody) => self.nobody(target, lookup, tasks),
            Ok(Seen::Existing(row)) => {
                let index = self.entry_of(row, tasks);
                self.known(target, index, lookup.waiters, tasks);
            }
            Ok(Seen::Created(row)) => {
                let index = self.entry_of(row, tasks);
                // The question was asked for the first in line: it is the creator.
                let creator = lookup.waiters.pop_front().and_then(|waiter| match waiter.want {
                    Want::Create(reply) => {
                        let row = self.slots.get(index).row().clone();
                        tasks.push(Task::Found(reply, row));
                        None
                    }
                    _ => Some(waiter),
                });
                if let Some(waiter) = creator {
                    lookup.waiters.push_front(waiter);
                }
                self.known(target, index, lookup.waiters, tasks);
            }
        }
        self.forget_oldest();
    }

    /// Refuses everybody who waits for an answer, except who is about to have
    /// created an actor and must hear whether.
    pub(in super::super) fn dismiss_lookups(&mut self, error: &Error, tasks: &mut Vec<Task>) {
        let slots = self.by_key.values_mut().chain(self.by_id.values_mut());
        for slot in slots {
            let Slot::Looking(lookup) = slot else { continue };
            let mut waiters = mem::take(&mut lookup.waiters);
            let creator = pop_front_if(&mut waiters, |first| {
                lookup.creates && matches!(first.want, Want::Create(_))
            });
            tasks.extend(waiters.into_iter().map(|waiter| Task::Refuse(waiter, error.clone())));
            lookup.waiters.extend(creator);
        }
    }

    fn known(
        &mut self,
        target: Target,
        index: usize,
        waiters: VecDeque<Waiter>,
        tasks: &mut Vec<Task>,
    ) {
        if let Target::Key(name, key) = target {
            self.by_key.insert(NamedKey(name, key), Slot::Known(index));
        }
        for waiter in waiters {
            self.admit(index, waiter, tasks);
        }
    }

    /// Answers those in front who find nobody; the first who creates asks again.
    fn nobody(&mut self, target: Target, mut lookup: Lookup, tasks: &mut Vec<Task>) {
        while let Some(waiter) = pop_front_if(&mut lookup.waiters, |waiter| !waiter.by.creates()) {
            tasks.push(match waiter.want {
                Want::Destroy(reply) => Task::Destroyed(reply, false),
                want => {
                    let error = match target.clone() {
                        Target::Id(id) => HostError::NoSuchId { id },
                        Target::Key(name, key) => HostError::NoSuchKey { name, key },
                    };
                    Task::Refuse(Waiter { want, ..waiter }, error.into())
                }
            });
        }
        self.look(target, lookup, tasks);
    }

    /// Refuses those who asked for what failed; the others ask for themselves.
    fn look_failed(
        &mut self,
        target: Target,
        mut lookup: Lookup,
        error: &Error,
        tasks: &mut Vec<Task>,
    ) {
        let (failed, others): (VecDeque<_>, VecDeque<_>) = mem::take(&mut lookup.waiters)
            .into_iter()
            .partition(|waiter| waiter.by.creates() == lookup.creates);
        tasks.extend(failed.into_iter().map(|waiter| Task::Refuse(waiter, error.clone())));
        lookup.waiters = others;
        self.look(target, lookup, tasks);
    }

    /// Takes a look-up out; `None` when its waiters were served otherwise.
    fn take_lookup(&mut self, target: &Target, ticket: u64) -> Option<Lookup> {
        let slot = self.slot_mut(target)?;
        if !matches!(slot, Slot::Looking(lookup) if lookup.ticket == ticket) {
            return None;
        }
        let slot = match target {
            Target::Key(name, key) => self.by_key.remove(&(name, key) as &dyn super::Named),
            Target::Id(id) => self.by_id.remove(id),
        };
        self.looking -= 1;
        match slot {
            Some(Slot::Looking(lookup)) => Some(*lookup),
            Some(Slot::Known(_)) | None => None,
        }
    }
}

fn pop_front_if<T>(queue: &mut VecDeque<T>, takes: impl FnOnce(&T) -> bool) -> Option<T> {
    if takes(queue.front()?) { queue.pop_front() } else { None }
}
