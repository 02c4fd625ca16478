//! What the writer thread is asked to do.
//!
//! # Invariants
//!
//! 1. Every job is answered exactly once, also when it is dropped unanswered.
//! 2. A job can be applied again until it is answered: applying takes nothing
//!    out of it.
//! 3. A callback that panics harms nobody else.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::Connection;

use super::place::{FileName, PlaceChange};
use super::{ActorNumber, ActorRow, NewActor, StoreError, WriteBatch};

/// What [`super::SharedStore::create`] found or made.
#[derive(Clone, Debug, PartialEq)]
pub struct Created {
    /// The row, existing or new.
    pub row: ActorRow,
    /// Whether it is new.
    pub created: bool,
}

/// An actor that comes with a file of its own.
pub(super) struct Adopted {
    pub(super) row: ActorRow,
    pub(super) alarm: Option<i64>,
    /// What the last application found or made.
    pub(super) made: Option<Created>,
    pub(super) reply: Reply<Created>,
}

/// Who waits for the end of a job.
pub(super) struct Reply<T>(Option<Callback<T>>);

type Callback<T> = Box<dyn FnOnce(Result<T, StoreError>) + Send>;

/// One reading of the database, in no transaction of its own. It hears why when
/// there is no connection to read from.
pub(super) type Read = Box<dyn FnOnce(Result<&Connection, StoreError>) + Send>;

/// One thing to write.
pub(super) enum Write {
    /// Changes of one actor.
    Commit { number: ActorNumber, batch: WriteBatch, reply: Reply<()> },
    /// A new actor; `made` is what the last application found or made.
    Create { actor: NewActor, made: Option<Created>, reply: Reply<Created> },
    /// A number that no other actor gets; `number` is what the last application took.
    Reserve { number: Option<ActorNumber>, reply: Reply<ActorNumber> },
    /// A new actor whose rows are in a file.
    Adopt(Box<Adopted>),
    /// The end of an actor; `existed` and `file`, its own file if it has one, are what
    /// the last application found.
    Destroy { number: ActorNumber, existed: bool, file: Option<FileName>, reply: Reply<bool> },
    /// A change of what the directory says of an actor's file.
    Place { number: ActorNumber, change: PlaceChange, reply: Reply<()> },
    /// A slice of what destroyed actors left; `more` says whether any remains.
    Sweep { more: bool },
}

/// What waits in the queue.
pub(super) enum Job {
    /// To be committed, in a group.
    Write(Write),
    /// To be read on the write connection, between groups.
    Read(Read),
}

impl<T> Reply<T> {
    pub(super) fn new(callback: Callback<T>) -> Self {
        Self(Some(callback))
    }

    pub(super) fn send(mut self, result: Result<T, StoreError>) {
        self.call(result);
    }

    fn call(&mut self, result: Result<T, StoreError>) {
        let Some(callback) = self.0.take() else { return };
        guarded("the callback of a commit", || callback(result));
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        // Only a writer that ended by a panic drops what it had begun.
        self.call(Err(StoreError::OutcomeUnknown {
            path: "the store".into(),
            reason: "the writer ended before it answered".into(),
        }));
    }
}

/// Calls out, and survives a panic of what is called.
pub(super) fn guarded(what: &str, call: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(call)).is_err() {
        tracing::error!("{what} panicked");
    }
}

impl Write {
    /// What it weighs in the queue, in bytes.
    pub(super) fn weight(&self) -> usize {
        const ROW: usize = 256;
        match self {
            Self::Commit { batch, .. } => batch.weight(),
            Self::Create { actor, .. } => ROW + actor.input.as_ref().map_or(0, bytes::Bytes::len),
            Self::Reserve { .. }
            | Self::Adopt(_)
            | Self::Destroy { .. }
            | Self::Place { .. }
            | Self::Sweep { .. } => ROW,
        }
    }

    /// Whose later readings must see it.
    pub(super) fn number(&self) -> Option<ActorNumber> {
        match self {
            Self::Commit { number, .. }
            | Self::Destroy { number, .. }
            | Self::Place { number, .. } => Some(*number),
            Self::Adopt(adopted) => Some(adopted.row.number),
            Self::Create { .. } | Self::Reserve { .. } | Self::Sweep { .. } => None,
        }
    }

    /// Answers; `Ok` means that the last application is durable.
    pub(super) fn answer(self, result: Result<(), StoreError>) {
        match self {
            Self::Commit { reply, .. } | Self::Place { reply, .. } => reply.send(result),
            Self::Create { made, reply, .. } => {
                reply.send(result.map(|()| made.expect("a creation that was applied has a row")))
            }
            Self::Reserve { number, reply } => reply.send(
                result.map(|()| number.expect("a reservation that was applied has a number")),
            ),
            Self::Adopt(adopted) => {
                let made = adopted.made;
                adopted
                    .reply
                    .send(result.map(|()| made.expect("an adoption that was applied has a row")))
            }
            Self::Destroy { existed, reply, .. } => reply.send(result.map(|()| existed)),
            Self::Sweep { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_reply_that_is_dropped_answers_once_that_the_outcome_is_unknown() {
        let (tell, told) = mpsc::channel();

        drop(Reply::<()>::new(Box::new(move |result| tell.send(result).unwrap())));

        assert!(matches!(told.recv(), Ok(Err(StoreError::OutcomeUnknown { .. }))));
        assert!(told.recv().is_err());
    }

    #[test]
    fn a_callback_that_panics_does_not_unwind_into_its_caller() {
        Reply::<()>::new(Box::new(|_| panic!("on purpose"))).send(Ok(()));
    }
}
