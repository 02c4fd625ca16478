//! How an actor is named in the table's maps.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};

use crate::ids::{ActorId, ActorKey, ActorName};

/// What a look-up in the directory looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Target {
    /// The actor of this type that has the key.
    Key(ActorName, ActorKey),
    /// The actor of this id.
    Id(ActorId),
}

/// A type and a key as the key of a map.
#[derive(Debug)]
pub(super) struct NamedKey(pub(super) ActorName, pub(super) ActorKey);

/// A type and a key, owned or not, so that looking one up copies nothing.
pub(super) trait Named {
    /// The two.
    fn parts(&self) -> (&ActorName, &ActorKey);
}

impl Named for NamedKey {
    fn parts(&self) -> (&ActorName, &ActorKey) {
        (&self.0, &self.1)
    }
}

impl Named for (&ActorName, &ActorKey) {
    fn parts(&self) -> (&ActorName, &ActorKey) {
        *self
    }
}

impl PartialEq for dyn Named + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn Named + '_ {}

impl Hash for dyn Named + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl PartialEq for NamedKey {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for NamedKey {}

impl Hash for NamedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl<'a> Borrow<dyn Named + 'a> for NamedKey {
    fn borrow(&self) -> &(dyn Named + 'a) {
        self
    }
}
