//! Whoever waits for an actor, and for what.

use bytes::Bytes;

use super::EnvironmentId;
use crate::core::behavior::Reply;
use crate::error::Error;
use crate::store::ActorRow;

/// Somebody who waits for an actor to be found, started, stopped or deleted.
/// `C` is what is wanted of a generation that lives.
#[derive(Debug)]
pub(super) struct Waiter<C> {
    /// How the actor was named. Decides what becomes of the waiter when the
    /// actor is destroyed while it waits.
    pub(super) by: By,
    /// Where the actor is to run if it must be started.
    pub(super) environment: EnvironmentId,
    /// For what.
    pub(super) want: Want<C>,
}

/// How a waiter named its actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// By id: it means this actor and never a later one of the same key.
    Id,
    /// By key: it means whoever has the key.
    Key(Missing),
}

/// What a look-up by key does when no actor has the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// Answers `actor/not_found`.
    Fail,
    /// Creates the actor, with this input.
    Create(Option<Bytes>),
}

/// What a waiter waits for.
#[derive(Debug)]
pub(super) enum Want<C> {
    /// A generation that takes the visit.
    Call(C),
    /// A generation that lives, for an alarm that is due.
    Wake(Reply<()>),
    /// The row. Starts nothing.
    Row(Reply<ActorRow>),
    /// The row of an actor that it created itself. Starts nothing.
    Create(Reply<ActorRow>),
    /// The end of the generation that lives, if any.
    Sleep(Reply<()>),
    /// The end of the actor; `false` when there was none.
    Destroy(Reply<bool>),
}

impl<C> Want<C> {
    /// Whether it needs a generation that lives.
    pub(super) fn starts(&self) -> bool {
        matches!(self, Self::Call(_) | Self::Wake(_))
    }
}

impl By {
    /// Whether it brings an actor about where there is none.
    pub(super) fn creates(&self) -> bool {
        matches!(self, Self::Key(Missing::Create(_)))
    }
}

/// A call that can be refused.
pub(super) trait Refusable {
    /// Answers with `error`.
    fn refuse(self, error: Error);
}

impl<C: Refusable> Waiter<C> {
    /// Answers with `error`.
    pub(super) fn refuse(self, error: Error) {
        match self.want {
            Want::Call(call) => call.refuse(error),
            Want::Row(reply) | Want::Create(reply) => reply.send(Err(error)),
            Want::Sleep(reply) | Want::Wake(reply) => reply.send(Err(error)),
            Want::Destroy(reply) => reply.send(Err(error)),
        }
    }
}
