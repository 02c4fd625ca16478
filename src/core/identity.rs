//! Who an actor is.

use crate::error::ActorSpecifier;
use crate::ids::{ActorId, ActorKey, ActorName, Generation};
use crate::store::ActorNumber;

/// Who an actor is, and which run of it this is. Never changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// The id that stays over generations.
    pub id: ActorId,
    /// The row of the directory.
    pub number: ActorNumber,
    /// The actor's type.
    pub name: ActorName,
    /// What tells it from the others of its type.
    pub key: ActorKey,
    /// Where it runs; informational, may be empty.
    pub region: String,
    /// This run.
    pub generation: Generation,
}

impl Identity {
    /// The form that errors carry.
    pub fn specifier(&self) -> ActorSpecifier {
        ActorSpecifier {
            actor_id: self.id.to_string(),
            generation: self.generation.get(),
            key: Some(self.key.to_string()),
            phase: None,
        }
    }
}
