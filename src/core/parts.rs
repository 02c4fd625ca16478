//! What goes in and out of a generation: its parts, a call, and whether it takes one.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::behavior::{BehaviorFactory, Caller, Reply};
use super::host::Host;
use super::identity::Identity;
use super::runtime::Runtime;
use crate::error::ActorSpecifier;
use crate::store::ActorStoreRef;

/// Everything that a generation is made of.
pub struct ActorParts {
    /// Who it is.
    pub identity: Identity,
    /// What the author wrote.
    pub factory: Arc<dyn BehaviorFactory>,
    /// Where it is kept.
    pub store: ActorStoreRef,
    /// The place that it runs in.
    pub host: Arc<dyn Host>,
    /// What all actors of that place share.
    pub runtime: Arc<Runtime>,
}

/// A call of an action.
#[derive(Debug)]
pub struct CallRequest {
    /// The action.
    pub name: String,
    /// Its encoded arguments.
    pub args: Bytes,
    /// Who calls.
    pub caller: Caller,
    /// A number by which whoever submitted the call knows it; 0 for none.
    pub origin: u64,
    /// Where the generation that takes the call says who it is, before it answers. Most
    /// callers do not ask.
    pub taken_by: Option<Arc<OnceLock<ActorSpecifier>>>,
    /// Answered once.
    pub reply: Reply<Bytes>,
}

/// Whether a generation takes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It does.
    Open,
    /// It does not, and another generation will: wait for it.
    Wait,
    /// The actor is being destroyed.
    Gone,
}
