//! What the handle on a store says of the actors that have a file of their own.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::actor::Actor;
use super::file::{ActorFile, FileStats};
use super::shared::{SharedStore, received};
use super::{ActorNumber, StoreError};
use crate::ids::Generation;

impl SharedStore {
    /// Gives an actor a file of its own, durably; does nothing if it has one. What is sent
    /// to the actor meanwhile waits, for 3 to 8 milliseconds and the disk's good will.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] for another generation than the current one,
    /// [`StoreError::NotFound`] for an actor that is gone, else what the disk said; then
    /// the actor stays where it is. With [`StoreError::OutcomeUnknown`] the generation has
    /// ended and the directory decides.
    pub fn promote(
        self: &Arc<Self>,
        number: ActorNumber,
        generation: Generation,
    ) -> BoxFuture<'static, Result<ActorFile, StoreError>> {
        let (answer, answered) = oneshot::channel();
        let (store, files) = (Arc::clone(self), Arc::clone(&self.shared.files));
        let promotion = move || {
            let promoted = files.promote(number, generation);
            drop(answer.send(promoted.map(|slot| ActorFile::new(store, slot))));
        };
        match self.shared.files.on_pool(promotion) {
            Ok(()) => received(answered),
            Err(error) => async move { Err(error) }.boxed(),
        }
    }

    /// [`SharedStore::promote`], for the JavaScript thread in the middle of a turn: does it
    /// there, and waits for nothing but the shared store and the disk.
    pub fn promote_now(
        self: &Arc<Self>,
        number: ActorNumber,
        generation: Generation,
    ) -> Result<ActorFile, StoreError> {
        let slot = self.shared.files.promote_here(number, generation)?;
        Ok(ActorFile::new(Arc::clone(self), slot))
    }

    /// Reads in their files the alarms that the directory does not know, because the
    /// process ended while their actors were awake, and tells the directory. Called once
    /// after opening, before the alarms are read; returns how many there were. One whose
    /// file cannot be read is logged and stays unknown.
    pub fn settle_alarms(self: &Arc<Self>) -> BoxFuture<'static, Result<usize, StoreError>> {
        let store = Arc::clone(self);
        async move {
            let open = store.shared.files.open_alarms();
            let count = open.len();
            for number in open {
                let actor = Actor { store: Arc::clone(&store), number };
                if let Err(error) = actor.settle().await {
                    tracing::error!(%error, actor = number.0, "its alarm stays unknown");
                }
            }
            Ok(count)
        }
        .boxed()
    }

    /// What the files of actors have done so far.
    pub fn file_stats(&self) -> FileStats {
        self.shared.files.stats()
    }
}
