//! The messages that wait, in memory: what may be handed out, in which order.
//!
//! # Invariants
//!
//! 1. A message has one place: ready, delayed or in flight. `ready` and the sets of
//!    `by_name` hold exactly the ready ones, `delayed` the delayed ones, `held` those
//!    reserved or in flight.
//! 2. Bodies in memory weigh at most [`CACHED_BYTES`] together.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use crate::store::MessageId;

/// How many bytes of bodies one actor's queue keeps in memory: 1 MiB, that of a
/// thousand messages of a kilobyte. The bodies of further ones are read when needed.
pub(super) const CACHED_BYTES: usize = 1024 * 1024;

/// Which messages are wanted, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    /// All.
    Any,
    /// Those of these names.
    Of(Box<[Arc<str>]>),
}

impl Names {
    /// The given names, doubles ignored; any for none.
    pub fn of<S: Into<Arc<str>>>(names: impl IntoIterator<Item = S>) -> Self {
        let names: BTreeSet<Arc<str>> = names.into_iter().map(Into::into).collect();
        if names.is_empty() { Self::Any } else { Self::Of(names.into_iter().collect()) }
    }
}

/// Where a message is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It may be handed out.
    Ready,
    /// It may be handed out from `available_at_ms` on.
    Delayed,
    /// Its body is being read for a consumer.
    Reserved,
    /// A consumer has it, and has to say how it ends.
    InFlight,
}

/// A message.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: Arc<str>,
    pub(super) created_at_ms: i64,
    pub(super) available_at_ms: i64,
    pub(super) deliveries: u32,
    /// The key that it was sent under.
    pub(super) sent_key: Option<Arc<str>>,
    /// `None` when it must be read.
    body: Option<Bytes>,
    /// Changed by [`Messages`] only.
    place: Place,
}

impl Entry {
    /// A message whose body must be read.
    pub(super) fn new(name: Arc<str>, created_at_ms: i64, available_at_ms: i64) -> Self {
        Self {
            name,
            created_at_ms,
            available_at_ms,
            deliveries: 0,
            sent_key: None,
            body: None,
            place: Place::Ready,
        }
    }

    pub(super) fn body(&self) -> Option<&Bytes> {
        self.body.as_ref()
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }
}

/// The messages that wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    entries: BTreeMap<MessageId, Entry>,
    places: Places,
    cached: usize,
}

/// Which messages are where (invariant 1).
#[derive(Clone, Debug, Default)]
struct Places {
    ready: BTreeSet<MessageId>,
    by_name: HashMap<Arc<str>, BTreeSet<MessageId>>,
    delayed: BTreeSet<(i64, MessageId)>,
    held: BTreeSet<(i64, MessageId)>,
    /// How many of those that are held are in flight.
    in_flight: usize,
}

impl Messages {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, id: MessageId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    /// All of them, by id.
    pub(super) fn iter(&self) -> impl Iterator<Item = (MessageId, &Entry)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }

    /// Takes a message in; its body is kept if there is room.
    pub(super) fn insert(
        &mut self,
        id: MessageId,
        mut entry: Entry,
        body: Option<Bytes>,
        now: i64,
    ) {
        entry.body = body.filter(|body| self.cached + body.len() <= CACHED_BYTES);
        self.cached += entry.body.as_ref().map_or(0, Bytes::len);
        self.places.link(id, &mut entry, now);
        self.entries.insert(id, entry);
    }

    /// Notes the key that a message was sent under.
    pub(super) fn set_key(&mut self, id: MessageId, name: &str, key: &Arc<str>) {
        if let Some(entry) = self.entries.get_mut(&id).filter(|entry| *entry.name == *name) {
            entry.sent_key = Some(Arc::clone(key));
        }
    }

    /// Takes a message out.
    pub(super) fn remove(&mut self, id: MessageId) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        self.places.unlink(id, &entry);
        self.cached -= entry.body.as_ref().map_or(0, Bytes::len);
        Some(entry)
    }

    /// Takes all messages out.
    pub(super) fn clear(&mut self) -> BTreeMap<MessageId, Entry> {
        std::mem::take(self).entries
    }

    /// The first `count` ready messages of these names, by id.
    pub(super) fn pick(&self, names: &Names, count: usize) -> Vec<MessageId> {
        match names {
            Names::Any => self.places.ready.iter().take(count).copied().collect(),
            Names::Of(names) => {
                let sets = names.iter().filter_map(|name| self.places.by_name.get(name));
                let mut ids: Vec<_> =
                    sets.flat_map(|ids| ids.iter().take(count).copied()).collect();
                ids.sort_unstable();
                ids.truncate(count);
                ids
            }
        }
    }

    /// Whether any message is ready.
    pub(super) fn has_ready(&self) -> bool {
        !self.places.ready.is_empty()
    }

    /// Whether any message is in flight.
    pub(super) fn has_in_flight(&self) -> bool {
        self.places.in_flight > 0
    }

    /// Makes those ready whose time has come.
    pub(super) fn mature(&mut self, now: i64) {
        while let Some(&(at, id)) = self.places.delayed.first()
            && at <= now
        {
            self.release(id, at, now);
        }
    }

    /// Takes a ready message out of the sight of other consumers.
    pub(super) fn reserve(&mut self, id: MessageId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            self.places.unlink(id, entry);
            entry.place = Place::Reserved;
            self.places.held.insert((entry.available_at_ms, id));
        }
    }

    /// Counts the delivery of a reserved message, which waits until `available_at_ms`
    /// if nothing is heard of it before the generation ends.
    pub(super) fn count_delivery(&mut self, id: MessageId, available_at_ms: i64) {
        if let Some(entry) = self.entries.get_mut(&id) {
            self.places.unlink(id, entry);
            entry.place = Place::InFlight;
            entry.available_at_ms = available_at_ms;
            entry.deliveries = entry.deliveries.saturating_add(1);
            self.places.held.insert((available_at_ms, id));
            self.places.in_flight += 1;
        }
    }

    /// Lets a message wait again, from `available_at_ms` on.
    pub(super) fn release(&mut self, id: MessageId, available_at_ms: i64, now: i64) {
        if let Some(entry) = self.entries.get_mut(&id) {
            self.places.unlink(id, entry);
            entry.available_at_ms = available_at_ms;
            self.places.link(id, entry, now);
        }
    }

    /// When the next delayed message is ready.
    pub(super) fn next_ready_ms(&self) -> Option<i64> {
        self.places.delayed.first().map(|(at, _)| *at)
    }

    /// The earliest moment after `now` from which on a message may be handed out that
    /// may not yet, those in flight included.
    pub(super) fn next_available_ms(&self, now: i64) -> Option<i64> {
        let first = |set: &BTreeSet<(i64, MessageId)>| {
            set.range((now.saturating_add(1), MessageId(i64::MIN))..).next().map(|(at, _)| *at)
        };
        let Places { delayed, held, .. } = &self.places;
        [first(delayed), first(held)].into_iter().flatten().min()
    }

    /// The first moment from `since` on at which the time of a message came or will come,
    /// whoever has it now; unless `all`, of those that had to wait for it. Looks at all
    /// messages.
    pub(super) fn first_since_ms(&self, since: i64, all: bool) -> Option<i64> {
        let waited = |entry: &&Entry| all || entry.available_at_ms > entry.created_at_ms;
        let moments = self.entries.values().filter(waited).map(|entry| entry.available_at_ms);
        moments.filter(|at| *at >= since).min()
    }
}

impl Places {
    /// Gives a message that nobody has its place.
    fn link(&mut self, id: MessageId, entry: &mut Entry, now: i64) {
        if entry.available_at_ms > now {
            entry.place = Place::Delayed;
            self.delayed.insert((entry.available_at_ms, id));
        } else {
            entry.place = Place::Ready;
            self.ready.insert(id);
            self.by_name.entry(Arc::clone(&entry.name)).or_default().insert(id);
        }
    }

    fn unlink(&mut self, id: MessageId, entry: &Entry) {
        match entry.place {
            Place::Ready => {
                self.ready.remove(&id);
                if let Some(ids) = self.by_name.get_mut(&entry.name) {
                    ids.remove(&id);
                    // Or names that are made up for each message would gather.
                    if ids.is_empty() {
                        self.by_name.remove(&entry.name);
                    }
                }
            }
            Place::Delayed => {
                self.delayed.remove(&(entry.available_at_ms, id));
            }
            Place::Reserved | Place::InFlight => {
                self.held.remove(&(entry.available_at_ms, id));
                self.in_flight -= usize::from(entry.place == Place::InFlight);
            }
        }
    }
}
